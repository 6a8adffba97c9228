"""Checkpointing: several backward passes within one GraphExecGroup."""

from contextlib import nullcontext

import torch
import torch.utils.checkpoint
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.torch._recomputed import drawn_pair


@keeps("CKPT-24")
def test_a_group_of_passes_recomputes_a_region_once(subject, data):
    """Passes through separate outputs run the function again once within a group, and once each without one."""
    count = subject.draw(data, st.integers(1, 3), "outputs, with a pass for each")
    grouped = subject.draw(data, (True, False), "within a GraphExecGroup")
    reentrant = subject.draw(data, (False, True), "use_reentrant")
    x, g = drawn_pair(subject, data)
    runs = []
    square = subject.custom(
        forward=lambda ctx, x: (ctx.save_for_backward(x.clone()), x * x)[1],
        backward=lambda ctx, g: 2 * ctx.saved_tensors[0] * g,
    )

    def f(x):
        runs.append(torch.is_grad_enabled())
        return tuple(n * square(x) for n in range(1, count + 1))

    checkpoint = torch.utils.checkpoint
    outputs = checkpoint.checkpoint(f, x, use_reentrant=reentrant, early_stop=False)
    with checkpoint.GraphExecGroup() if grouped else nullcontext():
        for y in outputs:
            y.backward(g, retain_graph=True)
    again = 1 if grouped and not reentrant else count
    subject.assert_equal("runs of the function in the passes", got=len(runs) - 1, expected=again)
    total = count * (count + 1) // 2
    subject.assert_same("gradient", got=x.grad, expected=total * 2 * x.detach() * g)


@keeps("CKPT-24", variant="ends")
def test_a_group_ends_with_its_block(subject, data):
    """A group within another raises, and after a block, however it was left, there is none."""
    fails = subject.draw(data, (False, True), "the block is left by an exception")
    nested = subject.draw(data, (False, True), "a group within")
    group = torch.utils.checkpoint.GraphExecGroup
    try:
        with group():
            if nested:
                facts = ["nested"]
                subject.assert_raises(RuntimeError, lambda: group().__enter__(), "a group within a group", naming=facts)
            if fails:
                raise KeyError
    except KeyError:
        pass
    try:
        subject.assert_accepted(lambda: _entered(group), "a group after the block")
    finally:
        # What a faulty torch leaves is not for other tests.
        torch._C._set_graph_exec_group(None)


def _entered(group):
    with group():
        pass

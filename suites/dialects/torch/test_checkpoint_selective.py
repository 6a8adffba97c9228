"""Selective checkpointing: which operators of a custom Function run again in the backward pass."""

from functools import partial

import numpy as np
import pytest
import torch
import torch.utils.checkpoint
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.torch._recomputed import drawn_pair

SAVES, RECOMPUTES = ("MUST_SAVE", "PREFER_SAVE"), ("MUST_RECOMPUTE", "PREFER_RECOMPUTE")
OFFLOADS = ("MUST_CPU_OFFLOAD", "PREFER_CPU_OFFLOAD")
OPERATORS = {"abs": torch.ops.aten.abs.default, "relu": torch.ops.aten.relu.default, "neg": torch.ops.aten.neg.default}


class _Counting(TorchDispatchMode):
    """How often each operator runs."""

    def __init__(self):
        super().__init__()
        self.runs = dict.fromkeys(OPERATORS, 0)

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        for name, each in OPERATORS.items():
            self.runs[name] += operator is each
        return operator(*args, **(kwargs or {}))


class _Chain(torch.autograd.Function):
    """-relu(abs(x)), of which every step is saved."""

    @staticmethod
    def forward(ctx, x):
        first = torch.abs(x)
        second = torch.relu(first)
        third = torch.neg(second)
        ctx.save_for_backward(x, first, second, third)
        return third

    @staticmethod
    def backward(ctx, g):
        x, first, second, third = ctx.saved_tensors
        return g * torch.sign(x) * (first > 0) * torch.sign(second) * torch.sign(third) * torch.sign(first)


@keeps("CKPT-15")
def test_the_policy_says_what_runs_again(subject, data):
    """Operators in a custom Function run once if they are to be saved, and twice if they are to be recomputed."""
    each = st.tuples(*[st.sampled_from((*SAVES, *RECOMPUTES))] * len(OPERATORS))
    policies = dict(zip(OPERATORS, subject.draw(data, each, f"policies of {', '.join(OPERATORS)}"), strict=True))
    _assert_runs(subject, data, policies, subject.draw(data, (False, True), "a list of what is to be saved"))


@keeps("CKPT-15", variant="offload")
def test_what_is_offloaded_does_not_run_again(subject, data):
    """An operator runs once if its output is to be saved on the CPU."""
    if not hasattr(torch.utils.checkpoint.CheckpointPolicy, OFFLOADS[0]):
        pytest.skip(f"this release has no {OFFLOADS[0]}")
    which = subject.draw(data, tuple(OPERATORS), "operator that is offloaded")
    others = subject.draw(data, RECOMPUTES, "policy of the others")
    policies = {**dict.fromkeys(OPERATORS, others), which: subject.draw(data, OFFLOADS, "its policy")}
    _assert_runs(subject, data, policies, listed=False)


def _assert_runs(subject, data, policies, listed):
    """Each operator runs as its policy says, also by a list of those to be saved, and the gradient is right."""
    calls = subject.draw(data, (1, 2), "calls of the Function")
    early = subject.draw(data, (True, False), "early_stop")
    leaf, g = drawn_pair(subject, data)
    checkpoint = torch.utils.checkpoint
    saved = {OPERATORS[name] for name, policy in policies.items() if policy not in RECOMPUTES}
    chosen = {OPERATORS[name]: checkpoint.CheckpointPolicy[policy] for name, policy in policies.items()}

    def policy(ctx, operator, *args, **kwargs):
        return chosen.get(operator, checkpoint.CheckpointPolicy.PREFER_RECOMPUTE)

    def f(x):
        for _ in range(calls):
            x = _Chain.apply(x)
        return x

    contexts = partial(checkpoint.create_selective_checkpoint_contexts, [*saved] if listed else policy)
    with _Counting() as counting, checkpoint.set_checkpoint_early_stop(early):
        y = checkpoint.checkpoint(f, leaf, use_reentrant=False, context_fn=contexts)
        forward = dict(counting.runs)
        torch.autograd.backward(y, g)
    subject.assert_equal("runs of each operator in forward", got=forward, expected=dict.fromkeys(OPERATORS, calls))
    expected = {name: calls if OPERATORS[name] in saved else 2 * calls for name in OPERATORS}
    subject.assert_equal("runs of each operator in forward and in the pass", got=counting.runs, expected=expected)
    x, g = map(subject.implementation.numpy, (leaf.detach(), g))
    subject.assert_same("gradient", got=leaf.grad, expected=-np.sign(x) * g)


# What is done to the saved output, and whether it changes it.
_USES = {
    "none": (lambda y: None, False),
    "a change": (lambda y: y.mul_(3), True),
    "of a view": (lambda y: y[:1].neg_(), True),
}


@keeps("CKPT-19")
def test_a_saved_tensor_must_not_be_changed(subject, data):
    """Backward raises if what an operator saved was changed in place, unless that is allowed."""
    x = subject.tensor([1.0, -2.0]).requires_grad_()
    use = subject.draw(data, _USES, "use of the saved tensor")
    options = subject.draw(
        data, ({}, {"allow_cache_entry_mutation": False}, {"allow_cache_entry_mutation": True}), "options"
    )
    change, changes = _USES[use]
    checkpoint = torch.utils.checkpoint

    def f(x):
        y = torch.abs(x.detach())
        output = _Chain.apply(x) * y.sum()
        with torch.no_grad():
            change(y)
        return output

    contexts = partial(checkpoint.create_selective_checkpoint_contexts, [OPERATORS["abs"]], **options)
    with checkpoint.set_checkpoint_early_stop(False):
        output = checkpoint.checkpoint(f, x, use_reentrant=False, context_fn=contexts)
    what = "backward of a selective checkpoint"
    if changes and not options.get("allow_cache_entry_mutation"):
        subject.assert_raises(RuntimeError, output.sum().backward, f"{what} with a change", naming=["mutated"])
    else:
        subject.assert_accepted(output.sum().backward, what)


@keeps("CKPT-15", variant="policy")
def test_a_policy_sees_each_call_of_an_operator(subject, data):
    """A policy gets the operator with its arguments, and a list has single operators; nothing else is taken."""
    values = subject.draw(data, st.lists(st.sampled_from((1.0, -2.0)), min_size=1, max_size=3), "x")
    x, seen = subject.tensor(values).requires_grad_(), []
    wrong = subject.draw(data, ("an operator in a list that has several", "no list and no function"), "refused")
    checkpoint = torch.utils.checkpoint

    def policy(ctx, operator, *args, **kwargs):
        seen.append((operator, *args)) if operator in OPERATORS.values() else None
        return checkpoint.CheckpointPolicy.PREFER_RECOMPUTE

    contexts = partial(checkpoint.create_selective_checkpoint_contexts, policy)
    checkpoint.checkpoint(_Chain.apply, x, use_reentrant=False, context_fn=contexts)
    operators = [operator for operator, *_ in seen]
    subject.assert_equal("operators that the policy was asked for", got=operators, expected=list(OPERATORS.values()))
    size = np.abs(np.asarray(values))
    got = [argument for _, *arguments in seen for argument in arguments]
    subject.assert_all_same("their arguments", got=got, expected=[np.asarray(values), size, size])
    given = [torch.ops.aten.abs] if wrong.startswith("an operator") else "abs"
    create = checkpoint.create_selective_checkpoint_contexts
    kinds = (ValueError, TypeError)
    subject.assert_raises(kinds, lambda: create(given), wrong, naming=[("OpOverload", "list")])

"""Modules whose activations are recomputed: wrapped one by one, or those that are chosen of a model."""

import torch
from hypothesis import strategies as st
from torch.distributed.algorithms._checkpoint import checkpoint_wrapper as wrappers
from torch.utils import checkpoint

from autograd_conformance.harness.testing.marks import keeps

# The gradient of the Function is too large by this factor: it shows that its backward was used.
FACTOR = 3


class _Scaled(torch.nn.Module):
    """A Function of its argument, times another one, and a log of its calls."""

    def __init__(self, apply):
        super().__init__()
        self.apply_function, self.calls = apply, []

    def forward(self, x, y=None):
        """``2 * x * y``."""
        self.calls.append(torch.is_grad_enabled())
        return self.apply_function(x) * (1 if y is None else y)


def _doubled(subject):
    """The apply of a Function for the double, which saves its argument: without that nothing is recomputed."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 2 * x

    return subject.custom(forward=forward, backward=lambda ctx, g: FACTOR * g + 0 * ctx.saved_tensors[0])


# The options of the wrapper, whether its backward is one node, and whether an argument may be given by keyword.
WRAPPERS = {
    "by default": ({}, False, True),
    "reentrant": ({"checkpoint_impl": wrappers.CheckpointImpl.REENTRANT}, True, True),
    "without random state": ({"preserve_rng_state": False}, False, True),
    "a function of its own": ({"checkpoint_fn": checkpoint.checkpoint, "use_reentrant": True}, True, False),
}


@keeps("CKPT-27")
def test_a_wrapped_module_is_recomputed(subject, data):
    """The implementation that is asked for recomputes the module; results and gradients are the module's."""
    options, reentrant, keywords = WRAPPERS[subject.draw(data, tuple(WRAPPERS), "wrapped")]
    by_keyword = subject.draw(data, (True, False) if keywords else (False,), "an argument by keyword")
    module = _Scaled(_doubled(subject))
    x, y = (subject.tensor(values).requires_grad_() for values in ([1.0, -2.0], [3.0, 4.0]))
    wrapped = wrappers.checkpoint_wrapper(module, **options)
    output = wrapped(x, y=y) if by_keyword else wrapped(x, y)
    subject.assert_same("output", got=output, expected=2 * x.detach() * y.detach())
    got = output.grad_fn.name().startswith("CheckpointFunction")
    subject.assert_equal("whether backward is one node", got=got, expected=reentrant)
    subject.assert_equal("grad mode of the call", got=module.calls, expected=[not reentrant])
    output.sum().backward()
    subject.assert_equal("number of calls after backward", got=len(module.calls), expected=2)
    subject.assert_all_same("gradients", got=[x.grad, y.grad], expected=[FACTOR * y.detach(), 2 * x.detach()])


@keeps("CKPT-27", variant="chosen")
def test_the_modules_that_are_chosen_are_recomputed(subject, data):
    """apply_activation_checkpointing wraps the modules for which check_fn is true, or all, and not the model."""
    chosen = subject.draw(data, st.lists(st.booleans(), min_size=1, max_size=3), "modules chosen")
    every = subject.draw(data, st.booleans(), "no check_fn")
    layers = [_Scaled(_doubled(subject)) for _ in chosen]
    model = torch.nn.Sequential(*layers)
    wanted = {id(layer) for layer, wrapped in zip(layers, chosen, strict=True) if wrapped}
    options = {} if every else {"check_fn": lambda module: id(module) in wanted}
    wrappers.apply_activation_checkpointing(model, **options)
    x = subject.tensor([1.0, -2.0]).requires_grad_()
    model(x).sum().backward()
    calls = [len(layer.calls) for layer in layers]
    subject.assert_equal("calls of each module", got=calls, expected=[1 + (every or wrapped) for wrapped in chosen])
    subject.assert_same("gradient", got=x.grad, expected=torch.full_like(x, float(FACTOR ** len(layers))))

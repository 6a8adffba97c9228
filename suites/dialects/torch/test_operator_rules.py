"""Rules that operators of torch.library have for modes, and for subclasses of tensors."""

from contextlib import nullcontext
from itertools import count

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from autograd_conformance.harness.testing.marks import keeps

SPACE = "autograd_conformance_rules"
NUMBERS = st.lists(st.sampled_from((1.0, -1.0, 2.0, -3.0)), min_size=2, max_size=2)

_COUNT = count()


def _doubled(x: Tensor) -> Tensor:
    return 2 * x


class _Mode(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class _Wrapped(Tensor):
    """A tensor with a class of its own, whose operations are those of the tensor in it."""

    @staticmethod
    def __new__(cls, x):
        return Tensor._make_wrapper_subclass(cls, x.shape, dtype=x.dtype, device=x.device)

    def __init__(self, x):
        self.x = x

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        inner = [each.x if isinstance(each, cls) else each for each in args]
        return cls(func(*inner, **(kwargs or {})))


# What a rule may be for: its class, the context of a call, how an argument is wrapped, and what is in a result.
PLACES = {
    "a mode": (_Mode, _Mode, lambda x: x, lambda x: x),
    "a subclass of tensors": (_Wrapped, nullcontext, lambda x: _Wrapped(x.detach()), lambda x: x.x),
}
RULES = {
    "its method": lambda op, *rule: op.register_torch_dispatch(*rule),
    "register_torch_dispatch of the operator": lambda op, *rule: torch.library.register_torch_dispatch(op, *rule),
    "register_torch_dispatch of its name": lambda op, *rule: torch.library.register_torch_dispatch(op._qualname, *rule),
}


@keeps("LIB-25")
def test_a_rule_for_a_class_runs_there_alone(subject, data):
    """A rule gets its class or mode, and the operator with its arguments; elsewhere the kernel runs."""
    place = subject.draw(data, tuple(PLACES), "rule for")
    way = subject.draw(data, tuple(RULES), "registered by")
    decorates = subject.draw(data, (False, True), "as a decorator")
    rules = subject.draw(data, (1, 2), "rules, of which the last counts")
    x = subject.tensor(subject.draw(data, NUMBERS, "x")).requires_grad_()
    kind, context, wrap, unwrapped = PLACES[place]
    # A name of its own: a faulty torch may keep the rules of another operator.
    op = torch.library.custom_op(f"{SPACE}::ruled_{next(_COUNT)}", _doubled, mutates_args=())
    seen = []
    op.register_autograd(lambda ctx, g: (7 * g,), setup_context=lambda ctx, inputs, output: None)

    def call():
        with context():
            return unwrapped(op(wrap(x)))

    for factor in (3, 5)[-rules:]:

        def rule(where, func, types, args, kwargs, factor=factor):
            seen.append((where if isinstance(where, type) else type(where), str(func)))
            return wrap(factor * unwrapped(args[0]))

        subject.assert_accepted(
            lambda rule=rule: RULES[way](op, kind)(rule) if decorates else RULES[way](op, kind, rule), "a rule"
        )
    y = subject.assert_accepted(call, "a call where a rule holds")
    subject.assert_same("output where the rule holds", got=y.detach(), expected=5 * x.detach())
    subject.assert_equal("what the rule was asked, and of what", got=seen, expected=[(kind, str(op._opoverload))])
    if y.requires_grad:
        (got,) = torch.autograd.grad(y.sum(), x)
        subject.assert_same("gradient where the rule holds", got=got, expected=np.full(2, 7.0))
    subject.assert_same("output elsewhere", got=op(x).detach(), expected=2 * x.detach())
    subject.assert_equal("calls of the rule elsewhere", got=len(seen) - 1, expected=0)

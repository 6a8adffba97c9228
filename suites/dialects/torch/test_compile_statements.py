"""Compiled code that sets modes, asks for gradients, changes and looks at tensors, and runs checkpoints."""

from functools import partial
from itertools import cycle

import numpy as np
import torch
from hypothesis import strategies as st
from torch.autograd import graph
from torch.utils import checkpoint

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.torch._compiled import BACKENDS, fresh

# The gradient of the Function is too large by this factor: it shows that its backward was used.
FACTOR = 3


def _cubed(subject):
    """A Function for cubes, or for another multiple of them."""

    def forward(ctx, x, times=1):
        ctx.save_for_backward(x)
        ctx.times = times
        return times * x**3

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return FACTOR * g * 3 * ctx.times * x**2, None

    def doubled(cls, x):
        return cls.apply(2 * x)

    return subject.define(forward=forward, backward=backward, doubled=classmethod(doubled), halved=lambda x: x / 2)


def _in_block(block, f, x):
    with block():
        y = f.apply(x)
    return x * y.clone()


def _in_autocast(f, x):
    with torch.autocast(x.device.type, torch.bfloat16):
        y = f.apply(x).float() + 1 / 3
        within = torch.mm(y[None], y[:, None])[0]
    return x * within + x * torch.mm(y[None], y[:, None])[0]


def _by_grad(f, x):
    y = (2 * x.detach()).requires_grad_()
    return x * torch.autograd.grad(f.apply(y).sum(), y)[0]


def _detached(f, x):
    y = f.apply(x)
    return x * y.detach_() * (3 - y.requires_grad) + y


def _counted(f, x):
    y = f.apply(x)
    y.add_(1)
    return x * y._version


def _kept(policy):
    return checkpoint.create_selective_checkpoint_contexts(lambda *_, **__: policy)


def _checkpointed(f, x, **options):
    return checkpoint.checkpoint(lambda x: f.apply(x).sin(), x, use_reentrant=False, **options)


def _hooked(f, x):
    y, total = x.detach().requires_grad_(), torch.zeros_like(x)

    def add(leaf):
        total.add_(leaf.grad)

    y.register_post_accumulate_grad_hook(add)
    f.apply(y).sum().backward()
    return x * total


_SAVE = checkpoint.CheckpointPolicy.MUST_SAVE

# What compiled code does with the Function and its argument.
STATEMENTS = {
    "a class method": lambda f, x: f.doubled(x),
    "a static method": lambda f, x: f.halved(x) * x,
    "no_grad": partial(_in_block, torch.no_grad),
    "inference_mode": partial(_in_block, torch.inference_mode),
    "autocast": _in_autocast,
    "disable_saved_tensors_hooks": partial(_in_block, lambda: graph.disable_saved_tensors_hooks("not here")),
    "saved_tensors_hooks": partial(_in_block, lambda: graph.saved_tensors_hooks(lambda x: x + 0, lambda x: x)),
    "autograd.grad": _by_grad,
    "backward, and a hook of a leaf": _hooked,
    "detach_": _detached,
    "_version": _counted,
    "data": lambda f, x: f.apply(x.data) * x,
    "grad": lambda f, x: f.apply(x) if x.grad is None else x * x.grad,
    "grad_fn": lambda f, x: f.apply(x) * (2 if f.apply(x).grad_fn is None else 3),
    "requires_grad": lambda f, x: x * sum(t.requires_grad + 2 * t.is_leaf for t in (x, f.apply(x), x.detach())),
    "a checkpoint": _checkpointed,
    "a checkpoint that keeps all": lambda f, x: _checkpointed(f, x, context_fn=partial(_kept, _SAVE)),
}


# How compiled code is told to treat a function, and where that is; a release may not have all.
DECORATORS = {
    "disable": lambda: torch.compiler,
    "nested_compile_region": lambda: torch.compiler,
    "nonstrict_trace": lambda: torch._dynamo,
}


def _decorated(f, name):
    """A function of a tensor that calls the Function within a function with this decorator."""

    @getattr(DECORATORS[name](), name)
    def twice(given):
        return {"y": f.apply(given["x"], 2)}

    return lambda x: twice({"x": x})["y"]


def _result(subject, values, before, call):
    """What the call gives, and its gradient."""
    x = subject.tensor(values).requires_grad_()
    if before:
        x.grad = torch.full_like(x, 4)
    y = call(x)
    return y, *torch.autograd.grad(y.sum(), x)


@keeps("COMPILE-20", slow=True, examples=0.04)
def test_compiled_statements_do_what_they_do_uncompiled(subject, data):
    """For each statement, results and gradients of the compiled function are those of the uncompiled one."""
    backends = subject.draw(data, (BACKENDS, BACKENDS[::-1]), "backends in turn")
    values = np.array(subject.draw(data, st.tuples(*[st.sampled_from((2.0, -1.0, 3.0))] * 2), "argument"))
    before = subject.draw(data, st.booleans(), "has a gradient")
    f = _cubed(subject)
    result = partial(_result, subject, values, before)
    calls = {name: partial(statement, f) for name, statement in STATEMENTS.items()}
    calls.update((name, _decorated(f, name)) for name, place in DECORATORS.items() if hasattr(place(), name))
    for (name, call), backend in zip(calls.items(), cycle(backends), strict=False):
        expected = result(call)
        with fresh():
            got = subject.assert_accepted(partial(result, torch.compile(call, backend=backend)), name)
        subject.assert_all_same(f"result and gradient of {name}", got=got, expected=expected)


@keeps("COMPILE-20", variant="keywords", needs="keywords", slow=True, examples=0.12)
def test_compiled_calls_may_have_keywords(subject, data):
    """In compiled code, too, arguments are given by keyword, in any order."""
    backend, count = subject.draw(data, st.tuples(st.sampled_from(BACKENDS), st.integers(1, 3)), "backend, times")
    by_name = subject.draw(data, (True, False), "all by keyword")
    f = _cubed(subject)
    call = (lambda x: f.apply(times=count, x=x)) if by_name else (lambda x: f.apply(x, times=count))
    expected = _result(subject, np.array([2.0, -1.0]), False, call)
    with fresh():
        compiled = torch.compile(call, backend=backend)
        got = subject.assert_accepted(lambda: _result(subject, np.array([2.0, -1.0]), False, compiled), "keywords")
    subject.assert_all_same("result and gradient", got=got, expected=expected)

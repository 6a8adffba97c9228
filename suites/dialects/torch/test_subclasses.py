"""Tensors of a class that wraps another tensor and dispatches in Python, as arguments of custom Functions."""

from functools import partial

import torch
from hypothesis import strategies as st
from torch.utils import _python_dispatch as python_dispatch
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import checkpoint

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.torch._compiled import fresh

# The gradient of the Function is too large by this factor: it shows that its backward was used.
FACTOR = 3


class Wrapping(torch.Tensor):
    """A tensor whose values are those of its inner tensor."""

    @staticmethod
    def __new__(cls, inner):
        about = {"strides": inner.stride(), "storage_offset": inner.storage_offset(), "dtype": inner.dtype}
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, device=inner.device, **about)
        made.inner = inner
        return made

    def __tensor_flatten__(self):
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(inner, *_):
        return Wrapping(inner["inner"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        plain_args, plain_kwargs = pytree.tree_map_only(Wrapping, lambda x: x.inner, (args, kwargs or {}))
        output = pytree.tree_map_only(torch.Tensor, Wrapping, func(*plain_args, **plain_kwargs))
        return python_dispatch.return_and_correct_aliasing(func, args, kwargs or {}, output)


def _squared(subject):
    """The apply of a Function for the square and the double of a tensor."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x, 2 * x

    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        return FACTOR * (2 * g * x + 2 * h)

    return subject.custom(forward=forward, backward=backward)


def _changed(f, x, change):
    y = x * 1
    z = change(y)
    return f(y)[0] + f(z)[0].sum()


# What is done with the Function and a matrix. The first ones are compiled in the simplest example.
PROGRAMS = {
    "a change in place": partial(_changed, change=lambda y: y.mul_(2)),
    "a change of strides": partial(_changed, change=lambda y: y.t_()),
    "views": lambda f, x: f(x.view(-1))[0].reshape(2, 3) + f(x.t())[1].t() + f(x[0])[0],
    "a call": lambda f, x: f(x)[0] * f(x)[1],
    "a list of views": lambda f, x: torch.stack([f(row)[0] for row in x.unbind(0)]),
    "a change of a view": partial(_changed, change=lambda y: y[0].mul_(3)),
    "several changes": partial(_changed, change=lambda y: (torch._foreach_mul_([y[0], y[1]], 2), y)[1]),
    "a change of an output": lambda f, x: f(x)[0].add_(x),
    "a result put into a tensor": lambda f, x: torch.mul(f(x.detach())[0], 2, out=torch.empty_like(x).detach()) * x,
    "a detached argument": lambda f, x: f(x.detach())[0] * x,
    "a checkpoint": lambda f, x: checkpoint(f, x, use_reentrant=False)[0],
}


@keeps("FN-32", slow=True, examples=0.08)
def test_a_function_takes_tensors_that_wrap_others(subject, data):
    """Outputs and gradients are of the class of the arguments, with the values that plain tensors have."""
    values = subject.draw(data, st.lists(st.sampled_from((2.0, -1.0, 3.0)), min_size=6, max_size=6), "values")
    some = st.lists(st.sampled_from(tuple(PROGRAMS)), min_size=3, max_size=3, unique=True)
    compiled = subject.draw(data, some, "compiled ones")
    f = _squared(subject)

    def result(call, wrap):
        x = wrap(subject.tensor(values).reshape(2, 3)).requires_grad_()
        y = call(x)
        (slope,) = torch.autograd.grad(y.sum(), x)
        return y, slope

    for name, program in PROGRAMS.items():
        call = partial(program, f)
        with fresh():
            ran = torch.compile(call, backend="aot_eager") if name in compiled else call
            found = subject.assert_accepted(lambda ran=ran: result(ran, Wrapping), name)
        kinds = [type(each).__name__ for each in found]
        subject.assert_equal(f"classes of the result and the gradient of {name}", got=kinds, expected=["Wrapping"] * 2)
        expected = result(call, lambda x: x)
        got = [each.inner for each in found]
        subject.assert_all_same(f"result and gradient of {name}", got=got, expected=expected)

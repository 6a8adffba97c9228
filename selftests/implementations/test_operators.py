"""The documented Functions as operators of torch.library: what one is made of, and what it cannot be made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from autograd_conformance import implementations
from autograd_conformance.implementations.protocol import Implementation, Unavailable
from autograd_conformance.reference.functions import FUNCTIONS

torch = pytest.importorskip("torch")
library = pytest.importorskip("autograd_conformance.implementations.torch.library")


@pytest.fixture(scope="module")
def operators() -> Implementation:
    try:
        return implementations.load("torch-library")
    except Unavailable as problem:
        pytest.skip(str(problem))


def tensors(*shapes: tuple[int, ...]) -> list[Any]:
    made = [torch.linspace(0.5, 2.0, int(np.prod(shape)), dtype=torch.float64) for shape in shapes]
    return [values.reshape(shape) for values, shape in zip(made, shapes, strict=True)]


@pytest.mark.parametrize(
    ("name", "args", "schema"),
    [
        ("Square", tensors((2,)), "(Tensor x) -> Tensor"),
        ("Sinh", tensors((2,)), "(Tensor x) -> (Tensor, Tensor, Tensor)"),
        ("MulConstant", [*tensors((2,)), 3], "(Tensor tensor, int constant) -> Tensor"),
        ("MulConstant", [*tensors((2,)), 0.5], "(Tensor tensor, float constant) -> Tensor"),
        ("LinearFunction", tensors((2, 3), (4, 3)), "(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor"),
        ("LinearFunction", tensors((2, 3), (4, 3), (4,)), "(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor"),
        # An intermediate is a further output.
        ("SaveForBackward", [*tensors((2,), (2,)), 3], "(Tensor x, Tensor y, int z) -> (Tensor, Tensor)"),
        (
            "SpecialSpmm",
            [torch.tensor([[0, 1], [1, 0]]), *tensors((2,)), (2, 2), *tensors((2, 1))],
            "(Tensor indices, Tensor values, int[] shape, Tensor b) -> Tensor",
        ),
    ],
)  # fmt: skip
def test_an_operator_has_the_schema_of_its_call(
    operators: Implementation, name: str, args: list[Any], schema: str
) -> None:
    _, op = library._operator(operators.build(FUNCTIONS[name]), args)
    assert str(op._opoverload._schema).partition("(")[2] == schema.removeprefix("(")


def test_an_operator_is_made_once_for_each_kind_of_arguments(operators: Implementation) -> None:
    cls, (x,) = operators.build(FUNCTIONS["MulConstant"]), tensors((2,))
    first, again, other = (library._operator(cls, (x, constant))[1] for constant in (3, 4, 0.5))
    assert first is again
    assert first is not other


def test_an_argument_of_another_type_is_refused(operators: Implementation) -> None:
    cls, (x,) = operators.build(FUNCTIONS["MulConstant"]), tensors((2,))
    with pytest.raises(TypeError, match="takes no argument of the type complex"):
        operators.function(cls)(x, 1j)


def test_torch_refuses_the_view_that_is_a_limit(operators: Implementation) -> None:
    assert ("Select", "") in operators.limits
    with pytest.raises(RuntimeError, match="may not alias any inputs"):
        operators.function(operators.build(FUNCTIONS["Select"]))(*tensors((3, 2)))


def test_torch_cannot_trace_the_backward_that_is_a_limit(operators: Implementation) -> None:
    assert ("ScipyConv2d", "ENV-COMPILE") in operators.limits
    apply = operators.function(operators.build(FUNCTIONS["ScipyConv2d"]))
    leaves = [x.requires_grad_() for x in tensors((2, 2), (1, 1), (1, 1))]
    with pytest.raises(Exception, match=r"\.numpy\(\) is not supported"):
        operators.compile(lambda *xs: apply(*xs))(*leaves)


def test_a_body_keeps_what_forward_left_on_its_ctx(operators: Implementation) -> None:
    class Kept(operators.ag.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx, x, k):  # type: ignore[no-untyped-def]
            ctx.half, ctx.k, (ctx.whole,) = x / 2, k, (x,)
            ctx.save_for_backward(x * k, None)
            return x * k, x + k

        @staticmethod
        def backward(ctx, g, h):  # type: ignore[no-untyped-def]
            scaled, nothing = ctx.saved_tensors
            assert nothing is None
            assert h is not None
            return g * (ctx.half + 10 * ctx.whole + 100 * scaled) * ctx.k, None

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    outputs = Kept.apply(x, 3)
    assert len(outputs) == 2
    (found,) = torch.autograd.grad(outputs[0].sum(), x)
    expected = 3 * (0.5 + 10 + 300) * np.array([1.0, 2.0])
    assert np.array_equal(found.numpy(), expected)


def test_calls_of_several_threads_have_operators_of_their_own_kind(operators: Implementation) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def slope(name: str) -> list[float]:
        x = torch.tensor([2.0], requires_grad=True)
        y = operators.function(operators.build(FUNCTIONS[name]))(x)
        return list(torch.autograd.grad(y.sum(), x)[0].tolist())

    names = ["Square", "Cube", "Exp"] * 4
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(slope, names))
    expected = [4.0, 12.0, float(np.exp(np.float32(2.0)))] * 4
    assert np.allclose(np.ravel(found), expected, rtol=1e-6, atol=0)


def test_torch_refuses_a_formula_for_what_is_changed(operators: Implementation) -> None:
    for name, body in FUNCTIONS.items():
        assert ((name, "") in operators.limits) == (bool(body.inplace) or name == "Select")

    def add(x: Any) -> None:
        x.add_(1)

    op = torch.library.custom_op(f"{library.SPACE}::add", add, mutates_args=("x",), schema="(Tensor(a!) x) -> ()")
    with pytest.raises(RuntimeError, match="for non-functional operator"):
        op.register_autograd(lambda *_: None)

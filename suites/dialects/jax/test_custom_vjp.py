"""What the rule of a custom_vjp function gets, and how its result is used."""

import jax
import numpy as np
from hypothesis import strategies as st
from jax import numpy as jnp

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.jax._functions import CALLS, JAX, JaxCase, drawn_pack, leaves, structure
from autograd_conformance.suites.dialects.shared import sentences
from autograd_conformance.suites.dialects.shared.sentences import row

test_the_rule_decides = row("JAX-VJP-01", sentences.the_rule_decides, JAX)
test_unused_outputs = row("JAX-VJP-16", sentences.unused_outputs_have_cotangents_of_zeros, JAX)
test_none = row("JAX-VJP-07", sentences.none_is_a_gradient_of_zeros, JAX)
test_number_of_gradients = row(
    "JAX-VJP-05",
    sentences.another_number_of_gradients_raises,
    JAX,
    refusal=TypeError,
    naming=lambda *_: ["bwd", "length"],
    kinds=(tuple, list),
)


@keeps("JAX-VJP-01", variant="grad")
def test_grad_gives_what_was_asked_for(subject, data):
    """jax.grad gives the rule's gradients in the order of argnums."""
    case = JaxCase(subject, data)
    wanted = subject.draw(data, st.permutations(range(case.linear.arguments)), "argnums")
    function = case.with_vjp()
    got = jax.grad(lambda *xs: sum(jnp.sum(y) for y in function(*xs)), argnums=tuple(wanted))(*case.points)
    expected = case.linear.pulled(*case.linear.ones)
    subject.assert_all_same("gradients", got=got, expected=[expected[i] for i in wanted])


@keeps("JAX-VJP-02")
def test_a_call_that_is_not_differentiated_runs_the_function_alone(subject, data):
    """A call that is not differentiated runs neither fwd nor bwd."""
    case, ran = JaxCase(subject, data), []
    call = subject.draw(data, tuple(CALLS), "call")

    def forward(*xs):
        ran.append("fwd")
        return case.linear.primal(*xs), None

    function = CALLS[call](case.with_vjp(forward, lambda *_: ran.append("bwd")))
    arrays = [x[None] for x in case.linear.points]
    subject.assert_all_same("outputs", got=function(*case.tensors(arrays)), expected=case.linear.primal(*arrays))
    subject.assert_equal("parts of the rule that ran", got=ran, expected=[])


@keeps("JAX-VJP-03")
def test_a_pullback_can_be_called_again(subject, data):
    """fwd runs once, and bwd once for each call of the pullback, on the same residuals."""
    case, ran = JaxCase(subject, data), []
    times = subject.draw(data, st.integers(0, 3), "calls of the pullback")

    def forward(*xs):
        ran.append("fwd")
        return case.linear.primal(*xs), xs

    def backward(residuals, cotangents):
        ran.append("bwd")
        return tuple(x + g for x, g in zip(residuals, case.linear.pulled(*cotangents), strict=True))

    _, pullback = jax.vjp(case.with_vjp(forward, backward), *case.points)
    each = [case.linear.arrays(case.linear.outputs, 10 + salt) for salt in range(times)]
    got = [g for cotangents in each for g in pullback(tuple(case.tensors(cotangents)))]
    expected = [x + g for gs in each for x, g in zip(case.linear.points, case.linear.pulled(*gs), strict=True)]
    subject.assert_all_same("gradients", got=got, expected=list(map(np.asarray, expected)))
    subject.assert_equal("parts of the rule that ran", got=ran, expected=["fwd", *["bwd"] * times])


@keeps("JAX-VJP-04")
def test_residuals_reach_bwd_as_they_were(subject, data):
    """bwd gets the residuals with their values and pytree structure, also under jit."""
    case, structures = JaxCase(subject, data, outputs=1), []
    pack = drawn_pack(subject, data, "residuals in a")
    call = subject.draw(data, ("call", "jit"), "call")

    def backward(residuals, cotangents):
        structures.append(structure(residuals))
        return tuple(x * cotangents[0] for x in leaves(residuals)[: case.linear.arguments])

    function = case.with_vjp(lambda *xs: (case.linear.primal(*xs), pack([*xs, 2.0, None])), backward)
    _, gradients = case.pulled(CALLS[call](function))
    expected = structure(pack([0] * (case.linear.arguments + 1) + [None]))
    subject.assert_equal("structure of the residuals", got=structures, expected=[expected])
    products = [x * case.linear.cotangents[0] for x in case.linear.points]
    subject.assert_all_same("gradients made of the residuals", got=gradients, expected=products)


@keeps("JAX-VJP-05", variant="list")
def test_bwd_may_return_a_list(subject, data):
    """bwd may return its cotangents in a list."""
    case = JaxCase(subject, data)
    function = case.with_vjp(backward=lambda *given: list(case.rule(*given)))
    _, gradients = subject.assert_accepted(lambda: case.pulled(function), "a list from bwd")
    case.assert_gradients(gradients)


@keeps("JAX-VJP-06")
def test_a_cotangent_has_the_shape_of_its_argument(subject, data):
    """A cotangent whose shape is not its argument's raises ValueError."""
    case = JaxCase(subject, data)
    position = case.position(data, "position of the cotangent")
    shapes = st.sampled_from(((), (1,), (2,), (3,), (3, 1), (2, 3), (1, 2, 3)))
    shape = subject.draw(data, shapes.filter(lambda s: s != case.linear.shape), "its shape")

    def backward(*given):
        wrong = jnp.ones(shape, case.linear.dtype)
        return tuple(wrong if i == position else g for i, g in enumerate(case.rule(*given)))

    function = case.with_vjp(backward=backward)
    what = "a cotangent of another shape than its argument"
    subject.assert_raises(ValueError, lambda: case.pulled(function), what, naming=["bwd", "type"])


def _of_containers(case, pack_outputs, backward):
    """The function with one container as argument and another as result."""
    function = jax.custom_vjp(lambda tree: pack_outputs(case.linear.primal(*leaves(tree))))
    function.defvjp(lambda tree: (pack_outputs(case.linear.primal(*leaves(tree))), None), backward)
    return function


@keeps("JAX-VJP-07", variant="containers")
def test_none_stands_for_a_whole_container(subject, data):
    """A single None from bwd gives zeros for every leaf of a container."""
    case, pack = JaxCase(subject, data), drawn_pack(subject, data, "arguments in a")
    _, pullback = jax.vjp(_of_containers(case, tuple, lambda *_: (None,)), pack(case.points))
    (gradients,) = pullback(case.cotangents)
    subject.assert_all_same("gradients", got=leaves(gradients), expected=[case.linear.zeros] * case.linear.arguments)


@keeps("JAX-VJP-08")
def test_containers_keep_their_structure(subject, data):
    """bwd gets cotangents in the output's structure, and gradients have the arguments' structure."""
    case, structures = JaxCase(subject, data), []
    pack, pack_outputs = (drawn_pack(subject, data, f"{part} in a") for part in ("arguments", "outputs"))

    def backward(_, cotangents):
        structures.append(structure(cotangents))
        return (pack(case.linear.pulled(*leaves(cotangents))),)

    outputs, pullback = jax.vjp(_of_containers(case, pack_outputs, backward), pack(case.points))
    (gradients,) = pullback(pack_outputs(case.cotangents))
    subject.assert_equal("structure of the cotangents in bwd", got=structures, expected=[structure(outputs)])
    expected = structure(pack(case.points))
    subject.assert_equal("structure of the gradients", got=structure(gradients), expected=expected)
    case.assert_gradients(leaves(gradients))
    case.assert_outputs(leaves(outputs))


@keeps("JAX-VJP-17", examples=0.4)
def test_a_gradient_has_the_dtype_of_its_argument(subject, data):
    """A cotangent of another dtype from bwd is cast to the argument's dtype."""
    case = JaxCase(subject, data, outputs=1)
    others = [d for d in ("float32", "float64", "float16", "complex64") if d != case.linear.dtype]
    dtype = subject.draw(data, others, "dtype of what bwd returns")
    function = case.with_vjp(backward=lambda *given: tuple(g.astype(dtype) for g in case.rule(*given)))
    got = jax.grad(lambda *xs: jnp.sum(function(*xs)[0]))(*case.points).dtype
    subject.assert_equal("dtype of the gradient", got=str(got), expected=case.linear.dtype)


@keeps("JAX-VJP-26")
def test_fwd_returns_a_pair(subject, data):
    """A fwd that returns anything but a pair raises TypeError."""
    case = JaxCase(subject, data)
    made = {"outputs": lambda ys: ys[0], "one": lambda ys: (ys,), "three": lambda ys: (ys, None, None), "None": id}
    kind = subject.draw(data, tuple(made), "what fwd returns")
    function = case.with_vjp(lambda *xs: made[kind](case.linear.primal(*xs)))
    what = "a fwd that returns no pair"
    subject.assert_raises(TypeError, lambda: case.pulled(function), what, naming=["fwd", "pair"])

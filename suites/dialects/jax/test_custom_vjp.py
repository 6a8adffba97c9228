"""What the rule of a custom_vjp function gets, and how its result is used."""

import jax
import numpy as np
from hypothesis import strategies as st
from jax import numpy as jnp

from autograd_conformance.harness.checking.marks import keeps
from autograd_conformance.suites.dialects.jax._linear_functions import PACKS, argument_of, jax_arrays, leaves, linears

COUNTS = st.integers(0, 3)


def _pulled(subject, linear, function, cotangents=None):
    """The outputs of the function at the drawn points, and the cotangents of its arguments."""
    outputs, pullback = jax.vjp(function, *jax_arrays(subject, linear, linear.points))
    return outputs, pullback(tuple(jax_arrays(subject, linear, cotangents or linear.cotangents)))


@keeps("JAX-VJP-01")
def test_reverse_mode_uses_the_rule(subject, data):
    """jax.vjp gives the function's outputs and the rule's gradients."""
    linear = subject.draw(data, linears(), "function")
    outputs, gradients = _pulled(subject, linear, linear.with_vjp())
    subject.assert_all_same("outputs", got=outputs, expected=linear.primal(*linear.points))
    subject.assert_all_same("gradients", got=gradients, expected=linear.pulled(*linear.cotangents))


@keeps("JAX-VJP-01", variant="grad")
def test_grad_gives_what_was_asked_for(subject, data):
    """jax.grad gives the rule's gradients in the order of argnums."""
    linear = subject.draw(data, linears(), "function")
    wanted = subject.draw(data, st.permutations(range(linear.arguments)), "argnums")
    function = linear.with_vjp()
    loss = jax.grad(lambda *xs: sum(jnp.sum(y) for y in function(*xs)), argnums=tuple(wanted))
    expected = linear.pulled(*[np.ones(linear.shape)] * linear.outputs)
    got = loss(*jax_arrays(subject, linear, linear.points))
    subject.assert_all_same("gradients", got=got, expected=[expected[i] for i in wanted])


# Ways to call a function that do not differentiate it.
CALLS = {
    "call": lambda f, *xs: f(*xs),
    "jit": lambda f, *xs: jax.jit(f)(*xs),
    "vmap": lambda f, *xs: [y[0] for y in jax.vmap(f)(*(x[None] for x in xs))],
    "jit of vmap": lambda f, *xs: [y[0] for y in jax.jit(jax.vmap(f))(*(x[None] for x in xs))],
    "checkpoint": lambda f, *xs: jax.checkpoint(f)(*xs),
}


@keeps("JAX-VJP-02")
def test_a_call_that_is_not_differentiated_runs_the_function_alone(subject, data):
    """A call that is not differentiated runs neither fwd nor bwd."""
    linear = subject.draw(data, linears(), "function")
    call = subject.draw(data, tuple(CALLS), "call")
    ran = []

    def forward(*xs):
        ran.append("fwd")
        return linear.primal(*xs), None

    function = linear.with_vjp(forward=forward, backward=lambda _, cts: ran.append("bwd"))
    got = CALLS[call](function, *jax_arrays(subject, linear, linear.points))
    subject.assert_all_same("outputs", got=got, expected=linear.primal(*linear.points))
    subject.assert_equal("parts of the rule that ran", got=ran, expected=[])


@keeps("JAX-VJP-03")
def test_a_pullback_can_be_called_again(subject, data):
    """fwd runs once, and bwd once for each call of the pullback, on the same residuals."""
    linear = subject.draw(data, linears(), "function")
    times = subject.draw(data, COUNTS, "calls of the pullback")
    ran = []

    def forward(*xs):
        ran.append("fwd")
        return linear.primal(*xs), xs

    def backward(residuals, cotangents):
        ran.append("bwd")
        return tuple(x + g for x, g in zip(residuals, linear.pulled(*cotangents), strict=True))

    _, pullback = jax.vjp(
        linear.with_vjp(forward=forward, backward=backward), *jax_arrays(subject, linear, linear.points)
    )
    each = [linear.arrays(linear.outputs, 10 + salt) for salt in range(times)]
    got = [pullback(tuple(jax_arrays(subject, linear, cotangents))) for cotangents in each]
    expected = [np.add(x, g) for gs in each for x, g in zip(linear.points, linear.pulled(*gs), strict=True)]
    subject.assert_all_same("gradients", got=[g for gradients in got for g in gradients], expected=expected)
    subject.assert_equal("parts of the rule that ran", got=ran, expected=["fwd", *["bwd"] * times])


@keeps("JAX-VJP-04")
def test_residuals_reach_bwd_as_they_were(subject, data):
    """bwd gets the residuals with their values and pytree structure, also under jit."""
    linear = subject.draw(data, linears(max_outputs=1), "function")
    pack = PACKS[subject.draw(data, tuple(PACKS), "residuals in a")]
    compiled = subject.draw(data, st.booleans(), "under jit")
    structures = []

    def forward(*xs):
        return linear.primal(*xs), pack([*xs, 2.0, None])

    def backward(residuals, cotangents):
        structures.append(jax.tree_util.tree_structure(residuals))
        return tuple(x * cotangents[0] for x in leaves(residuals)[: linear.arguments])

    function = linear.with_vjp(forward=forward, backward=backward)
    _, gradients = _pulled(subject, linear, jax.jit(function) if compiled else function)
    expected = jax.tree_util.tree_structure(pack([0] * (linear.arguments + 1) + [None]))
    subject.assert_equal("structure of the residuals", got=structures, expected=[expected])
    products = [x * linear.cotangents[0] for x in linear.points]
    subject.assert_all_same("gradients made of the residuals", got=gradients, expected=products)


@keeps("JAX-VJP-05")
def test_bwd_returns_a_cotangent_for_each_argument(subject, data):
    """A bwd that returns too few or too many cotangents raises TypeError."""
    linear = subject.draw(data, linears(), "function")
    count = subject.draw(data, st.integers(0, 5).filter(lambda n: n != linear.arguments), "cotangents returned")
    kind = subject.draw(data, (tuple, list), "returned in a")

    def backward(_, cotangents):
        return kind([cotangents[0]] * count)

    what = f"a bwd that returns {count} cotangents for {linear.arguments} arguments"
    function = linear.with_vjp(backward=backward)
    subject.assert_raises(TypeError, lambda: _pulled(subject, linear, function), what, naming=["bwd", "length"])


@keeps("JAX-VJP-05", variant="list")
def test_bwd_may_return_a_list(subject, data):
    """bwd may return its cotangents in a list."""
    linear = subject.draw(data, linears(), "function")
    function = linear.with_vjp(backward=lambda _, cotangents: list(linear.pulled(*cotangents)))
    _, gradients = subject.assert_accepted(lambda: _pulled(subject, linear, function), "a list from bwd")
    subject.assert_all_same("gradients", got=gradients, expected=linear.pulled(*linear.cotangents))


@keeps("JAX-VJP-06")
def test_a_cotangent_has_the_shape_of_its_argument(subject, data):
    """A cotangent whose shape is not its argument's raises ValueError."""
    linear = subject.draw(data, linears(), "function")
    position = subject.draw(data, argument_of(linear), "position of the cotangent")
    shapes = st.sampled_from(((), (1,), (2,), (3,), (3, 1), (2, 3), (1, 2, 3)))
    shape = subject.draw(data, shapes.filter(lambda s: s != linear.shape), "its shape")

    def backward(_, cotangents):
        found = list(linear.pulled(*cotangents))
        found[position] = jnp.ones(shape, linear.dtype)
        return tuple(found)

    function = linear.with_vjp(backward=backward)
    what = "a cotangent of another shape than its argument"
    subject.assert_raises(ValueError, lambda: _pulled(subject, linear, function), what, naming=["bwd", "type"])


@keeps("JAX-VJP-07")
def test_none_is_a_cotangent_of_zeros(subject, data):
    """None from bwd gives zeros with the shape and dtype of the argument."""
    linear = subject.draw(data, linears(), "function")
    dropped = subject.draw(data, st.sets(argument_of(linear), min_size=1), "arguments that get None")

    def backward(_, cotangents):
        return tuple(None if i in dropped else g for i, g in enumerate(linear.pulled(*cotangents)))

    _, gradients = _pulled(subject, linear, linear.with_vjp(backward=backward))
    pulled = linear.pulled(*linear.cotangents)
    expected = [np.zeros(linear.shape) if i in dropped else g for i, g in enumerate(pulled)]
    subject.assert_all_same("gradients", got=gradients, expected=expected)
    kinds = [subject.implementation.describe(g).dtype for g in gradients]
    subject.assert_equal("dtypes of the gradients", got=kinds, expected=[linear.dtype] * linear.arguments)


def _of_containers(linear, pack_outputs, backward):
    """The function with one container as argument and another as result."""
    function = jax.custom_vjp(lambda tree: pack_outputs(linear.primal(*leaves(tree))))
    function.defvjp(lambda tree: (pack_outputs(linear.primal(*leaves(tree))), None), backward)
    return function


@keeps("JAX-VJP-07", variant="containers")
def test_none_stands_for_a_whole_container(subject, data):
    """A single None from bwd gives zeros for every leaf of a container."""
    linear = subject.draw(data, linears(), "function")
    pack = PACKS[subject.draw(data, tuple(PACKS), "arguments in a")]
    function = _of_containers(linear, tuple, lambda *_: (None,))
    _, pullback = jax.vjp(function, pack(jax_arrays(subject, linear, linear.points)))
    (gradients,) = pullback(tuple(jax_arrays(subject, linear, linear.cotangents)))
    subject.assert_all_same("gradients", got=leaves(gradients), expected=[np.zeros(linear.shape)] * linear.arguments)


@keeps("JAX-VJP-08")
def test_containers_keep_their_structure(subject, data):
    """bwd gets cotangents in the output's structure, and gradients have the arguments' structure."""
    linear = subject.draw(data, linears(), "function")
    pack = PACKS[subject.draw(data, tuple(PACKS), "arguments in a")]
    pack_outputs = PACKS[subject.draw(data, tuple(PACKS), "outputs in a")]
    structures = []

    def backward(_, cotangents):
        structures.append(jax.tree_util.tree_structure(cotangents))
        return (pack(linear.pulled(*leaves(cotangents))),)

    function = _of_containers(linear, pack_outputs, backward)
    outputs, pullback = jax.vjp(function, pack(jax_arrays(subject, linear, linear.points)))
    (gradients,) = pullback(pack_outputs(jax_arrays(subject, linear, linear.cotangents)))
    structure = jax.tree_util.tree_structure
    subject.assert_equal("structure of the cotangents in bwd", got=structures, expected=[structure(outputs)])
    expected = structure(pack(linear.points))
    subject.assert_equal("structure of the gradients", got=structure(gradients), expected=expected)
    subject.assert_all_same("gradients", got=leaves(gradients), expected=linear.pulled(*linear.cotangents))
    subject.assert_all_same("outputs", got=leaves(outputs), expected=linear.primal(*linear.points))


@keeps("JAX-VJP-17", examples=0.4)
def test_a_gradient_has_the_dtype_of_its_argument(subject, data):
    """A cotangent of another dtype from bwd is cast to the argument's dtype."""
    linear = subject.draw(data, linears(max_outputs=1), "function")
    others = [d for d in ("float32", "float64", "float16", "complex64") if d != linear.dtype]
    dtype = subject.draw(data, others, "dtype of what bwd returns")
    function = linear.with_vjp(backward=lambda _, cts: tuple(g.astype(dtype) for g in linear.pulled(*cts)))
    loss = jax.grad(lambda *xs: jnp.sum(function(*xs)[0]))
    gradient = subject.implementation.describe(loss(*jax_arrays(subject, linear, linear.points)))
    subject.assert_equal("dtype of the gradient", got=gradient.dtype, expected=linear.dtype)


@keeps("JAX-VJP-26")
def test_fwd_returns_a_pair(subject, data):
    """A fwd that returns anything but a pair raises TypeError."""
    linear = subject.draw(data, linears(), "function")
    made = {"outputs": lambda ys: ys[0], "one": lambda ys: (ys,), "three": lambda ys: (ys, None, None), "None": id}
    kind = subject.draw(data, tuple(made), "what fwd returns")
    function = linear.with_vjp(forward=lambda *xs: made[kind](linear.primal(*xs)))
    what = "a fwd that returns no pair"
    subject.assert_raises(TypeError, lambda: _pulled(subject, linear, function), what, naming=["fwd", "pair"])

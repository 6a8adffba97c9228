"""Autocast: its state in forward and backward, and the casts of arguments, of operations, and of compiled code."""

from contextlib import nullcontext

import numpy as np
import torch
from hypothesis import strategies as st
from torch.utils.checkpoint import checkpoint

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.torch._autocast import LOWER, autocast, autocast_state, states
from autograd_conformance.suites.dialects.torch._blocks import pass_blocks
from autograd_conformance.suites.dialects.torch._compiled import fresh


def _name(tensor):
    return str(tensor.dtype).removeprefix("torch.")


def _product(subject, seen, *, custom_fwd=lambda f: f, custom_bwd=lambda f: f, separate=False):
    """A matrix product with these decorators, whose methods note autocast's state and the dtypes of their tensors."""

    def compute(a, b, *others):
        seen["forward"] = (autocast_state(subject), *map(_name, (a, b, *others)))
        return a @ b

    def setup_context(ctx, inputs, output):
        a, b, *others = inputs
        ctx.save_for_backward(a, b)
        ctx.others = len(others)

    @custom_fwd
    def forward(ctx, *args):
        output = compute(*args)
        setup_context(ctx, args, output)
        return output

    @custom_bwd
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        seen["backward"] = (autocast_state(subject), *map(_name, (a, b)))
        return g @ b.mT, a.mT @ g, *(None for _ in range(ctx.others))

    if separate:
        return subject.define(forward=custom_fwd(compute), setup_context=setup_context, backward=backward)
    return subject.define(forward=forward, backward=backward)


def _decorated(subject, **options):
    return {
        "custom_fwd": torch.amp.custom_fwd(device_type=subject.device, **options),
        "custom_bwd": torch.amp.custom_bwd(device_type=subject.device),
    }


def _factors(subject, data):
    """Two matrices of small integers, so that their product is exact in every dtype."""
    rows, inner, columns = subject.draw(data, st.tuples(*[st.integers(1, 3)] * 3), "sizes")
    random = np.random.default_rng(subject.draw(data, st.integers(0, 99), "seed"))
    return random.integers(-3, 4, (rows, inner)).astype(float), random.integers(-3, 4, (inner, columns)).astype(float)


def _leaves(subject, factors, dtype="float32"):
    return [subject.tensor(factor, dtype).requires_grad_() for factor in factors]


def _gradients(subject, output, leaves):
    def backward():
        return torch.autograd.grad(output, leaves, torch.ones_like(output))

    return subject.assert_accepted(backward, "backward under custom_bwd")


def _assert_gradients(subject, factors, gradients):
    """These are the gradients of the sum of the product."""
    a, b = factors
    g = np.ones((a.shape[0], b.shape[1]))
    subject.assert_all_same("gradients", got=gradients, expected=[g @ b.T, a.T @ g])


def _assert_product(subject, factors, output, gradients, dtypes):
    subject.assert_same("product", got=output, expected=np.matmul(*factors))
    _assert_gradients(subject, factors, gradients)
    got = tuple(map(_name, (output, *gradients)))
    subject.assert_equal("dtypes of the product and the gradients", got=got, expected=dtypes)


@keeps("AMP-01")
def test_backward_runs_in_the_autocast_state_of_forward(subject, data):
    """backward runs in forward's autocast state, whatever the state around the pass."""
    factors = _factors(subject, data)
    state = subject.draw(data, states(subject), "autocast around the call")
    around = subject.draw(data, states(subject), "autocast around the pass")
    leaves, seen = _leaves(subject, factors), {}
    product = _product(subject, seen, **_decorated(subject))
    with autocast(subject, state):
        output = product.apply(*leaves)
    with autocast(subject, around):
        gradients = _gradients(subject, output, leaves)
    expected = dict.fromkeys(("forward", "backward"), (state, "float32", "float32"))
    subject.assert_equal("states of autocast and dtypes of the factors", got=seen, expected=expected)
    lower = "float32" if state == "off" else state
    _assert_product(subject, factors, output, gradients, (lower, "float32", "float32"))


@keeps("AMP-01", variant="checkpoint", needs="checkpoint")
def test_a_checkpoint_keeps_the_autocast_state(subject, data):
    """Under checkpointing forward runs twice in its autocast state, and then backward."""
    factors = _factors(subject, data)
    state = subject.draw(data, states(subject), "autocast around the call")
    around = subject.draw(data, states(subject), "autocast around the pass")
    reentrant = subject.draw(data, (False, True), "use_reentrant")
    leaves, seen = _leaves(subject, factors), {}
    product = _product(subject, seen, **_decorated(subject))
    with autocast(subject, state):
        output = checkpoint(product.apply, *leaves, use_reentrant=reentrant)
    first = seen.pop("forward")
    with autocast(subject, around):
        subject.assert_accepted(output.float().sum().backward, "backward of a checkpoint under custom_bwd")
    what = "states of autocast and dtypes of the factors, in forward twice and in backward"
    got = [first, seen.get("forward"), seen["backward"]]
    subject.assert_equal(what, got=got, expected=[(state, "float32", "float32")] * 3)
    _assert_gradients(subject, factors, [x.grad for x in leaves])


@keeps("AMP-01", variant="left")
def test_the_autocast_state_is_that_of_the_innermost_block(subject, data):
    """Forward and backward run in the state of the block around the call, however others and methods were left."""
    factors = _factors(subject, data)
    state = subject.draw(data, states(subject), "autocast around the call")
    decorates = subject.draw(data, (False, True), "autocast is a decorator")
    fails = subject.draw(data, ("neither", "forward", "backward"), "method of an earlier call that raises")
    cast = subject.draw(data, (None, "float32"), "cast_inputs of that call")
    leaves, seen = _leaves(subject, factors), {}
    product = _product(subject, seen, **_decorated(subject))
    wrong = _product(subject, {}, **_decorated(subject, **({"cast_inputs": getattr(torch, cast)} if cast else {})))

    def call():
        pass_blocks(subject, data, lambda other: autocast(subject, other), states(subject))
        if fails != "neither":
            subject.assert_raises(Exception, lambda: _run_wrong(subject, wrong, fails), f"an error in {fails}")
        return product.apply(*leaves), autocast_state(subject)

    outside = autocast_state(subject)
    if decorates:
        output, within = autocast(subject, state)(call)()
    else:
        with autocast(subject, state):
            output, within = call()
    subject.assert_equal("states of autocast in and after the block", got=(within, autocast_state(subject)),
                         expected=(state, outside))  # fmt: skip
    _gradients(subject, output, leaves)
    got = (seen["forward"][0], seen["backward"][0])
    subject.assert_equal("states of autocast in forward and backward", got=got, expected=(state, state))


def _run_wrong(subject, cls, method):
    """Forward of matrices that do not fit, or backward of a cotangent that does not."""
    a, b = _leaves(subject, [np.ones((2, 3)), np.ones((3 if method == "backward" else 2, 2))])
    y = cls.apply(a, b)
    cls.backward(y.grad_fn, torch.ones(5, 5, device=subject.device))


@keeps("AMP-02")
def test_backward_without_decorators_does_not_have_the_state_of_forward(subject, data):
    """Without custom_bwd, autocast is off in backward and mixed dtypes raise."""
    factors = _factors(subject, data)
    state = subject.draw(data, subject.implementation.autocast_dtypes, "autocast around the call")
    used = subject.draw(data, ((), ("custom_fwd",)), "decorators")
    decorators = {name: _decorated(subject)[name] for name in used}
    leaves, seen = _leaves(subject, factors), {}
    with autocast(subject, state):
        output = _product(subject, seen, **decorators).apply(*leaves)

    def backward():
        return torch.autograd.grad(output, leaves, torch.ones_like(output))

    subject.assert_raises(RuntimeError, backward, "a backward that mixes dtypes", naming=[("dtype", "type")])
    subject.assert_equal("states of autocast", got=(seen["forward"][0], seen["backward"][0]), expected=(state, "off"))


@keeps("AMP-03")
def test_cast_inputs_casts_under_autocast_and_switches_it_off(subject, data):
    """Under autocast, cast_inputs casts the floating tensors and switches autocast off inside."""
    factors = _factors(subject, data)
    state = subject.draw(data, states(subject), "autocast around the call")
    dtype = subject.draw(data, ("float32", *LOWER), "dtype of the arguments")
    cast = subject.draw(data, ("float32", *LOWER), "cast_inputs")
    around = subject.draw(data, states(subject), "autocast around the pass")
    leaves, seen = _leaves(subject, factors, dtype), {}
    product = _product(subject, seen, **_decorated(subject, cast_inputs=getattr(torch, cast)))
    with autocast(subject, state):
        fixed = subject.tensor([1.0, 2.0], dtype), subject.tensor([1, 2]), subject.tensor([True])
        output = product.apply(*leaves, *fixed)
        subject.assert_equal("state of autocast after the call", got=autocast_state(subject), expected=state)
    with autocast(subject, around):
        gradients = _gradients(subject, output, leaves)
    inside = dtype if state == "off" else cast
    expected = {"forward": ("off", inside, inside, inside, "int64", "bool"), "backward": ("off", inside, inside)}
    subject.assert_equal("states of autocast and dtypes of the tensors", got=seen, expected=expected)
    _assert_product(subject, factors, output, gradients, (inside, dtype, dtype))


class Pair(tuple):
    """A tuple of a class of its own."""


# What holds tensors, and which of them it holds.
HOLDERS = {
    "list": (list, list),
    "tuple": (tuple, list),
    "subclass of tuple": (Pair, list),
    "dict": (lambda xs: dict(enumerate(xs)), lambda held: list(held.values())),
    "list in a dict": (lambda xs: {"xs": list(xs)}, lambda held: held["xs"]),
}


@keeps("AMP-03", variant="containers")
def test_cast_inputs_looks_into_containers(subject, data):
    """cast_inputs casts the floating tensors in lists, tuples and dicts, and leaves text, arrays and other devices."""
    state = subject.draw(data, subject.implementation.autocast_dtypes, "autocast around the call")
    cast = subject.draw(data, ("float32", *LOWER), "cast_inputs")
    put, take = HOLDERS[subject.draw(data, HOLDERS, "tensors held by")]
    array, seen = np.ones(2, "float32"), []

    @torch.amp.custom_fwd(device_type=subject.device, cast_inputs=getattr(torch, cast))
    def forward(ctx, x, *others):
        seen.extend(others)
        return 2 * x

    held = put([subject.tensor([1.0], "float32"), subject.tensor([2]), subject.tensor([3.0], "float16")])
    elsewhere = torch.ones(2, device="meta")
    with autocast(subject, state):
        subject.custom(forward=forward)(subject.tensor([1.0], "float32"), held, "text", array, elsewhere)
    inside, *others = seen
    subject.assert_equal("type of what holds them", got=type(inside), expected=type(held))
    expected = [cast, "int64", cast]
    subject.assert_equal("dtypes of the tensors held", got=[_name(t) for t in take(inside)], expected=expected)
    what = "whether text, an array and a tensor on another device are what was passed"
    got = [a is b for a, b in zip(others, ("text", array, elsewhere), strict=True)]
    subject.assert_equal(what, got=got, expected=[True] * 3)


@keeps("AMP-03", variant="float64")
def test_cast_inputs_casts_double_precision_too(subject, data):
    """cast_inputs casts float64 tensors too."""
    factors = _factors(subject, data)
    cast = subject.draw(data, ("float32", *LOWER), "cast_inputs")
    leaves, seen = _leaves(subject, factors, "float64"), {}
    product = _product(subject, seen, **_decorated(subject, cast_inputs=getattr(torch, cast)))
    with autocast(subject, subject.draw(data, subject.implementation.autocast_dtypes, "autocast around the call")):
        product.apply(*leaves)
    subject.assert_equal("dtypes of double factors in forward", got=seen["forward"][1:], expected=(cast, cast))


@keeps("AMP-04")
def test_the_decorators_can_be_used_bare(subject, data):
    """Bare custom_fwd and custom_bwd work like decorators with arguments."""
    factors = _factors(subject, data)
    state = subject.draw(data, states(subject), "autocast around the call")
    leaves, seen = _leaves(subject, factors), {}
    bare = {"custom_fwd": torch.amp.custom_fwd, "custom_bwd": torch.amp.custom_bwd}
    product = subject.assert_accepted(lambda: _product(subject, seen, **bare), "bare custom_fwd and custom_bwd")
    with autocast(subject, state):
        output = product.apply(*leaves)
    gradients = _gradients(subject, output, leaves)
    got = (seen["forward"][0], seen["backward"][0])
    subject.assert_equal("states of autocast in forward and backward", got=got, expected=(state, state))
    lower = "float32" if state == "off" else state
    _assert_product(subject, factors, output, gradients, (lower, "float32", "float32"))


@keeps("AMP-05")
def test_the_decorators_work_with_setup_context(subject, data):
    """A Function with setup_context runs backward in forward's autocast state, under func.grad too."""
    factors = _factors(subject, data)
    state = subject.draw(data, states(subject), "autocast around the call")
    transformed = subject.draw(data, (False, True), "gradients by func.grad")
    seen = {}
    product = _product(subject, seen, **_decorated(subject), separate=True)

    def loss(a, b):
        with autocast(subject, state):
            return torch.sum(product.apply(a, b).float())

    def gradients():
        leaves = _leaves(subject, factors)
        if transformed:
            return torch.func.grad(loss, argnums=(0, 1))(*(x.detach() for x in leaves))
        return torch.autograd.grad(loss(*leaves), leaves)

    got = subject.assert_accepted(gradients, "backward under custom_bwd of a Function with setup_context")
    subject.assert_equal("state of autocast in backward", got=seen["backward"][0], expected=state)
    _assert_gradients(subject, factors, got)


def _casting(subject):
    """A matrix product whose backward casts its cotangent itself."""

    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g.to(a.dtype) @ b.mT, a.mT @ g.to(a.dtype)

    return subject.custom(forward=forward, backward=backward)


@keeps("AMP-06")
def test_a_product_has_the_dtype_of_its_region(subject, data):
    """A product of single or half precision has the region's dtype, or the default one; others have their own."""
    factors = _factors(subject, data)
    state = subject.draw(data, ("default", *subject.implementation.autocast_dtypes), "dtype of autocast")
    # Accelerators have no products of integers.
    integers = ("int64",) if subject.device == "cpu" else ()
    dtype = subject.draw(data, ("float32", "float64", *LOWER, *integers), "dtype of the factors")
    given = {} if state == "default" else {"dtype": getattr(torch, state)}
    tracked = dtype != "int64"
    leaves = [subject.tensor(factor, dtype).requires_grad_(tracked) for factor in factors]
    product = _casting(subject)
    with torch.autocast(subject.device, **given):
        output = subject.assert_accepted(lambda: product(*leaves), "a product under autocast")
    usual = "bfloat16" if subject.device == "cpu" else str(torch.get_autocast_dtype(subject.device))
    lower = usual.removeprefix("torch.") if state == "default" else state
    expected = dtype if dtype in ("float64", "int64") else lower
    gradients = _gradients(subject, output, leaves) if tracked else ()
    if tracked:
        _assert_product(subject, factors, output, gradients, (expected, dtype, dtype))
    else:
        subject.assert_same("product", got=output, expected=np.matmul(*factors).astype(dtype))


# Uses of a parameter: whether one is recorded, and the product of a matrix with it.
_USES = {
    "an operation": (True, lambda product, x, w: x @ w),
    "a Function": (True, lambda product, x, w: product(x, w)),
    "an operation under no_grad": (False, lambda product, x, w: torch.no_grad()(torch.matmul)(x, w)),
}


@keeps("AMP-06", variant="cache")
def test_a_parameter_is_right_with_and_without_the_cache(subject, data):
    """Each use of a parameter in a region has its present values, and the gradients of the recorded ones add up."""
    cached = subject.draw(data, (None, True, False), "cache_enabled")
    uses = subject.draw(data, st.lists(st.sampled_from(tuple(_USES)), min_size=1, max_size=4), "uses in a region")
    regions = subject.draw(data, (2, 1), "regions, between which the parameter changes")
    state = subject.draw(data, subject.implementation.autocast_dtypes, "dtype of autocast")
    factors = _factors(subject, data)
    x, w = (subject.tensor(factor, "float32") for factor in factors)
    w.requires_grad_()
    product = _casting(subject)
    count = sum(_USES[use][0] for use in uses)
    for region in range(regions):
        with torch.autocast(subject.device, dtype=getattr(torch, state), cache_enabled=cached):
            outputs = [_USES[use][1](product, x, w) for use in uses]
            w.data.add_(2)
            changed = torch.no_grad()(torch.matmul)(x, w)
            w.data.sub_(2)
        if cached is False:
            what = "product with a parameter that changed in the region"
            subject.assert_same(what, got=changed, expected=factors[0] @ (factors[1] + region + 2))
        expected = factors[0] @ (factors[1] + region)
        subject.assert_all_same(f"products in region {region + 1}", got=outputs, expected=[expected] * len(uses))
        recorded = [y.float().sum() for y in outputs if y.requires_grad]
        subject.assert_equal("products that require grad", got=len(recorded), expected=count)
        subject.assert_accepted(lambda recorded=recorded: torch.autograd.backward(recorded), "the pass of a region")
        w.data.add_(1)
    expected = regions * count * factors[0].T @ np.ones_like(expected)
    subject.assert_same("gradient of the parameter", got=w.grad, expected=expected if count else None)


# What backward_pass_autocast may be, given a dtype, with the state of backward that it says, given that of forward.
_CONFIGURED = {
    "the default": (None, lambda forward, dtype: forward),
    "same_as_forward": (lambda device, dtype: "same_as_forward", lambda forward, dtype: forward),
    "off": (lambda device, dtype: "off", lambda forward, dtype: "off"),
    "a list": (
        lambda device, dtype: [{"device_type": device, "dtype": getattr(torch, dtype)}],
        lambda forward, dtype: dtype,
    ),
}
# A number that each precision rounds to another one.
_FINE = 1 + 2**-9 + 2**-12
_ROUNDED = {"off": _FINE, "float16": 1 + 2**-9, "bfloat16": 1.0}


@keeps("AMP-07", slow=True, examples=0.12)
def test_compiled_backward_has_the_state_that_is_configured(subject, data):
    """The precision of a product in backward is that of the configured state, whatever is around the pass."""
    configured = subject.draw(data, tuple(_CONFIGURED), "backward_pass_autocast")
    forward = subject.draw(data, subject.implementation.autocast_dtypes, "autocast around the call")
    around = subject.draw(data, states(subject), "autocast around the pass")
    listed = subject.draw(data, subject.implementation.autocast_dtypes, "dtype in a list")
    setting, state_of = _CONFIGURED[configured]

    def doubled(ctx, x, w):
        ctx.save_for_backward(w)
        return 2 * x

    function = subject.custom(forward=doubled, backward=lambda ctx, g: (g @ ctx.saved_tensors[0], None))
    x, w = subject.tensors([np.ones((1, 1)), np.full((1, 1), _FINE)], "float32")
    x.requires_grad_()
    with fresh():
        from torch._functorch import config

        patched = config.patch(backward_pass_autocast=setting(subject.device, listed)) if setting else nullcontext()
        with patched, autocast(subject, forward):
            y = torch.compile(function, backend="aot_eager", fullgraph=True)(x, w)
        with autocast(subject, around):
            (got,) = subject.assert_accepted(lambda: torch.autograd.grad(y, x, torch.ones_like(y)), "the pass")
    expected = _ROUNDED[state_of(forward, listed)]
    subject.assert_equal(
        "gradient, by whose precision the state of backward is seen", got=got.item(), expected=expected
    )

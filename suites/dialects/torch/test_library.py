"""Operators of torch.library and their autograd formulas, and the base classes of old code."""

from contextlib import nullcontext
from functools import cache
from types import SimpleNamespace
from typing import Optional

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd.function import InplaceFunction

from autograd_conformance.harness.testing.marks import keeps

# What setup_context and backward of the operators got last.
SEEN = {}


def _formula(op, keywords):
    """Register an autograd formula for ``a * x + scale * y, x * y``."""

    def setup_context(ctx, inputs, keyword_only_inputs, output):
        SEEN.update(inputs=inputs, keywords=keyword_only_inputs, output=output, needs=ctx.needs_input_grad)
        ctx.save_for_backward(*inputs[:2])
        ctx.rest, ctx.keywords = inputs[2:], keyword_only_inputs

    def without_keywords(ctx, inputs, output):
        setup_context(ctx, inputs, {}, output)

    def backward(ctx, g, h):
        SEEN.update(cotangents=(g, h), needs_in_backward=ctx.needs_input_grad)
        (x, y), (a,), scale = ctx.saved_tensors, ctx.rest, ctx.keywords.get("scale", 1.0)
        g, h = (0.0 if cotangent is None else cotangent for cotangent in (g, h))
        return a * g + h * y, scale * g + h * x, None

    op.register_autograd(backward, setup_context=setup_context if keywords else without_keywords)


@cache
def _operators():
    """The operators that the tests call, defined once per process."""
    define = torch.library.custom_op

    @define("autograd_conformance::with_keywords", mutates_args=())
    def with_keywords(
        x: Tensor, y: Tensor, a: float = 2.0, *, scale: float = 3.0, shift: int = 0
    ) -> tuple[Tensor, Tensor]:
        return a * x + scale * y + shift, x * y

    @define("autograd_conformance::without_keywords", mutates_args=())
    def without_keywords(x: Tensor, y: Tensor, a: float = 2.0) -> tuple[Tensor, Tensor]:
        return a * x + y, x * y

    @define("autograd_conformance::no_formula", mutates_args=())
    def no_formula(x: Tensor) -> Tensor:
        return x * 2

    @define("autograd_conformance::changes_first", mutates_args={"x"})
    def changes_first(x: Tensor, y: Tensor) -> None:
        x.mul_(2)

    @define("autograd_conformance::changes_second", mutates_args={"y"})
    def changes_second(x: Tensor, y: Tensor) -> Tensor:
        y.mul_(2)
        return x * 2

    @define("autograd_conformance::returns_input", mutates_args=())
    def returns_input(x: Tensor) -> Tensor:
        return x

    @define("autograd_conformance::returns_view", mutates_args=())
    def returns_view(x: Tensor) -> Tensor:
        return x.view(-1)

    @define("autograd_conformance::returns_twice", mutates_args=())
    def returns_twice(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * 2
        return y, y

    @define("autograd_conformance::returns_view_of_out", mutates_args={"out"})
    def returns_view_of_out(x: Tensor, out: Optional[Tensor] = None) -> Tensor:  # noqa: UP045
        return x * 2 if out is None else out.copy_(x * 2).view(-1)

    @define("autograd_conformance::returns_list_of_out", mutates_args={"out"})
    def returns_list_of_out(x: Tensor, out: Optional[Tensor] = None) -> list[Tensor]:  # noqa: UP045
        return [x * 2 if out is None else out.copy_(x * 2)]

    _formula(with_keywords, keywords=True)
    _formula(without_keywords, keywords=False)
    return SimpleNamespace(**{name: value for name, value in locals().items() if name != "define"})


VECTORS = st.lists(st.sampled_from((1.0, -1.0, 2.0, -3.0)), min_size=2, max_size=2)
OPTIONS = {"a": st.sampled_from((-1.0, 5.0)), "scale": st.sampled_from((-2.0, 7.0)), "shift": st.integers(1, 3)}
DEFAULTS = {"a": 2.0, "scale": 3.0, "shift": 0}


def _call(subject, data, name, options):
    """Draw and run a call: its tensors, the other arguments that were passed, and its outputs."""
    track = subject.draw(data, ((True, False), (False, True), (True, True)), "requires grad")
    x, y = subject.draw(data, st.tuples(VECTORS, VECTORS), "x and y")
    passed = subject.draw(data, st.fixed_dictionaries({}, optional={name: OPTIONS[name] for name in options}), "passed")
    tensors = [t.requires_grad_(flag) for t, flag in zip(subject.tensors([x, y]), track, strict=True)]
    SEEN.clear()
    return tensors, passed, getattr(_operators(), name)(*tensors, **passed)


def _assert_formula(subject, data, tensors, scale, a, outputs):
    """backward gets a cotangent for each output, and its gradients reach the caller."""
    g, h = subject.draw(data, st.tuples(VECTORS, st.none() | VECTORS), "cotangents")
    used = [(out, subject.tensor(c)) for out, c in zip(outputs, (g, h), strict=True) if c is not None]
    wanted = [t for t in tensors if t.requires_grad]
    found = torch.autograd.grad([out for out, _ in used], wanted, [c for _, c in used])
    x, y, g, h = (np.zeros(2) if v is None else np.array(v) for v in (*(t.tolist() for t in tensors), g, h))
    subject.assert_all_same("cotangents in backward", got=SEEN["cotangents"], expected=[g, h])
    expected = [d for d, t in zip((a * g + h * y, scale * g + h * x), tensors, strict=True) if t.requires_grad]
    subject.assert_all_same("gradients", got=found, expected=expected)


@keeps("LIB-01")
def test_setup_context_gets_keyword_only_arguments_apart(subject, data):
    """setup_context gets keyword-only arguments apart from the inputs, with their defaults."""
    tensors, passed, outputs = _call(subject, data, "with_keywords", ("a", "scale", "shift"))
    options = {**DEFAULTS, **passed}
    keywords = {"scale": options["scale"], "shift": options["shift"]}
    subject.assert_equal("keyword_only_inputs in setup_context", got=SEEN["keywords"], expected=keywords)
    subject.assert_equal("number of inputs in setup_context", got=len(SEEN["inputs"]), expected=3)
    subject.assert_equal("third input in setup_context", got=SEEN["inputs"][2], expected=options["a"])
    subject.assert_all_same("tensors in setup_context", got=SEEN["inputs"][:2], expected=tensors)
    subject.assert_all_same("output in setup_context", got=SEEN["output"], expected=outputs)
    _assert_formula(subject, data, tensors, options["scale"], options["a"], outputs)


@keeps("LIB-01", variant="positional")
def test_setup_context_gets_inputs_and_output_as_of_a_function(subject, data):
    """Without keyword-only arguments, setup_context gets the inputs and outputs as a Function's does."""
    tensors, passed, outputs = _call(subject, data, "without_keywords", ("a",))
    a = passed.get("a", DEFAULTS["a"])
    subject.assert_equal("number of inputs in setup_context", got=len(SEEN["inputs"]), expected=3)
    subject.assert_equal("third input in setup_context", got=SEEN["inputs"][2], expected=a)
    subject.assert_all_same("tensors in setup_context", got=SEEN["inputs"][:2], expected=tensors)
    subject.assert_all_same("output in setup_context", got=SEEN["output"], expected=outputs)
    _assert_formula(subject, data, tensors, 1.0, a, outputs)


FLAGS = "ctx.needs_input_grad of an operator with three inputs, in "


@keeps("LIB-01", variant="needs_input_grad")
def test_needs_input_grad_has_one_flag_for_each_input(subject, data):
    """needs_input_grad has one flag for each input, in setup_context and in backward."""
    tensors, _, outputs = _call(subject, data, "without_keywords", ("a",))
    torch.autograd.grad(outputs[0].sum(), [t for t in tensors if t.requires_grad])
    expected, got = (*(t.requires_grad for t in tensors), False), (SEEN["needs"], SEEN["needs_in_backward"])
    subject.assert_equal(f"{FLAGS}setup_context and in backward", got=got, expected=(expected, expected))


@keeps("LIB-01", variant="needs_in_backward")
def test_backward_has_one_flag_for_each_input_that_was_passed(subject, data):
    """In backward needs_input_grad has one flag for each input that the call passed."""
    tensors, passed, outputs = _call(subject, data, "without_keywords", ("a",))
    torch.autograd.grad(outputs[0].sum(), [t for t in tensors if t.requires_grad])
    expected = (*(t.requires_grad for t in tensors), *(False for _ in passed))
    subject.assert_equal(f"{FLAGS}backward", got=SEEN["needs_in_backward"], expected=expected)


@keeps("LIB-02")
def test_backward_raises_where_there_is_no_formula(subject, data):
    """Backward through an operator without a formula raises; a pass around it works."""
    count = subject.draw(data, st.integers(1, 2), "number of calls in a row")
    x, y = (t.requires_grad_() for t in subject.tensors(subject.draw(data, st.tuples(VECTORS, VECTORS), "x and y")))
    z = x * 1
    for _ in range(count):
        z = subject.assert_accepted(lambda z=z: _operators().no_formula(z), "a call of an operator without a formula")
    naming = ["no_formula", "register_autograd"]
    what = "a backward pass through an operator without a formula"
    subject.assert_raises(RuntimeError, lambda: torch.autograd.grad(z.sum(), x, retain_graph=True), what, naming=naming)
    alongside = (z * y).sum()
    (found,) = subject.assert_accepted(
        lambda: torch.autograd.grad(alongside, y), "a backward pass that does not reach it"
    )
    subject.assert_same("gradient of the pass that does not reach it", got=found, expected=x.detach() * 2**count)


@keeps("LIB-02", variant="mutating")
def test_an_operator_that_changes_an_input_cannot_have_a_formula(subject, data):
    """register_autograd raises for an operator that changes an input."""
    name = subject.draw(data, ("changes_first", "changes_second"), "operator")
    by_name = subject.draw(data, st.booleans(), "registered by name")
    op = f"autograd_conformance::{name}" if by_name else getattr(_operators(), name)
    _operators()
    subject.assert_raises(
        RuntimeError,
        lambda: torch.library.register_autograd(op, lambda ctx, *_: None),
        "registering a formula for an operator that changes an input",
        naming=[f"autograd_conformance::{name}", "functional"],
    )


@keeps("LIB-02", variant="aliasing")
def test_an_operator_must_not_return_what_is_an_alias(subject, data):
    """An operator that returns an input, a view of one, it in a list, or one tensor twice raises."""
    of_out = ("returns_view_of_out", "returns_list_of_out")
    name = subject.draw(data, ("returns_input", "returns_view", "returns_twice", *of_out), "operator")
    x = subject.tensor(subject.draw(data, VECTORS, "x")).requires_grad_(subject.draw(data, st.booleans(), "tracked"))
    what = "a call of an operator that returns an alias"
    op = getattr(_operators(), name)
    more = [torch.zeros_like(x, requires_grad=False)] if name in of_out else []
    subject.assert_raises(RuntimeError, lambda: op(x, *more), what, naming=[name, "alias"])
    new = op if name in of_out else _operators().no_formula
    subject.assert_accepted(lambda: new(x), "a call of an operator that returns a new tensor")


@keeps("LEGACY-01")
def test_a_subclass_of_inplace_function_works(subject, data):
    """A Function derived from InplaceFunction has right outputs and gradients."""
    polynomial = subject.polynomial(data, separate=None)
    body = subject.body(polynomial)
    run = subject.run(polynomial, cls=type("Legacy", (body, InplaceFunction), {}))
    cotangents = polynomial.cotangents()
    tensors = [y for y in run.outputs if isinstance(y, Tensor)]
    expected = [y for y in polynomial.forward() if isinstance(y, np.ndarray)]
    subject.assert_all_same("outputs", got=tensors, expected=expected)
    subject.assert_all_same("gradients", got=run.gradients(cotangents), expected=polynomial.vjp(cotangents))


@keeps("LEGACY-01", variant="classes")
def test_the_old_base_classes_are_functions(subject, data):
    """InplaceFunction and NestedIOFunction are Functions and can be derived from."""
    name = subject.draw(data, ("InplaceFunction", "NestedIOFunction"), "class")
    old = getattr(torch.autograd.function, name)
    bases = [base.__name__ for base in old.__mro__]
    what = f"torch.autograd.function.{name}, by its base classes,"
    subject.assert_that(issubclass(old, torch.autograd.Function), what, got=bases, expected="a Function")
    subject.assert_accepted(lambda: type("Derived", (old,), {}), "a class derived from it")


NAME = "autograd_conformance::drawn"
# Ways to register a formula for a custom operator.
_WAYS = {
    "its method": lambda op: op.register_autograd,
    "register_autograd of the operator": lambda op: lambda *a, **k: torch.library.register_autograd(op, *a, **k),
    "register_autograd of its name": lambda op: lambda *a, **k: torch.library.register_autograd(NAME, *a, **k),
}


def _tripled(x: Tensor) -> Tensor:
    return 3 * x


def _defined_in_a_library(lib):
    """The same operator without custom_op; its formula belongs to the library."""
    lib.define("drawn_plain(Tensor x) -> Tensor")
    lib.impl("drawn_plain", _tripled, "CompositeExplicitAutograd")
    name = "autograd_conformance::drawn_plain"
    return torch.ops.autograd_conformance.drawn_plain, lambda *a, **k: torch.library.register_autograd(
        name, *a, lib=lib, **k
    )


@keeps("LIB-01", variant="ways")
def test_every_way_to_register_a_formula_counts(subject, data):
    """However it was registered, a formula gives the gradient, as a bare tensor too, and no_grad records nothing."""
    way = subject.draw(data, (*_WAYS, "in a Library"), "registered by")
    factor = subject.draw(data, (None, 2.0, -5.0), "factor that setup_context stores, None without a setup_context")
    bare = subject.draw(data, st.booleans(), "backward returns a tensor, not a tuple of one")
    recorded = subject.draw(data, (True, False), "recorded")
    x = subject.tensor([1.0, -2.0]).requires_grad_()

    def backward(ctx, g):
        gradient = (7.0 if factor is None else ctx.factor) * g
        return gradient if bare else (gradient,)

    def setup_context(ctx, inputs, output):
        ctx.factor = factor

    options = {} if factor is None else {"setup_context": setup_context}
    library = torch.library._scoped_library if way == "in a Library" else lambda *_: nullcontext()
    with library("autograd_conformance", "FRAGMENT") as lib:
        if lib is None:
            op = torch.library.custom_op(NAME, _tripled, mutates_args=())
            register = _WAYS[way](op)
        else:
            op, register = _defined_in_a_library(lib)
        subject.assert_accepted(lambda: register(backward, **options), f"a formula registered by {way}")
        with torch.set_grad_enabled(recorded):
            y = op(x)
        subject.assert_same("output", got=y, expected=3 * x.detach())
        subject.assert_equal("requires_grad of the output", got=y.requires_grad, expected=recorded)
        if recorded:
            (got,) = subject.assert_accepted(lambda: torch.autograd.grad(y, x, torch.ones_like(x)), "its backward")
            subject.assert_same("gradient", got=got, expected=np.full(2, factor or 7.0))


@keeps("LIB-01", variant="lists")
def test_lists_of_tensors_have_lists_of_gradients(subject, data):
    """backward gets a list of cotangents for a list of outputs, and returns a list for a list of inputs."""
    track = subject.draw(data, st.lists(st.booleans(), min_size=1, max_size=3).filter(any), "requires grad")
    count = len(track)
    withheld = subject.draw(data, st.sets(st.sampled_from(range(count))), "tensors for which backward returns None")
    extra = subject.draw(data, (True, False), "a tensor beside the list requires grad")
    seen = {}

    @torch.library.custom_op("autograd_conformance::weighted", mutates_args=())
    def weighted(xs: list[Tensor], scale: Tensor, n: int) -> tuple[list[Tensor], Tensor]:
        return [n * i * x for i, x in enumerate(xs, 1)], scale * 2

    def setup_context(ctx, inputs, output):
        seen.update(inputs=[type(each) for each in inputs], output=[type(each) for each in output])
        ctx.n = inputs[2]

    def backward(ctx, gs, h):
        seen.update(cotangents=(type(gs), len(gs)), needs=ctx.needs_input_grad)
        gradients = [None if i in withheld else ctx.n * (i + 1) * g for i, g in enumerate(gs)]
        return gradients, 2 * h, None

    weighted.register_autograd(backward, setup_context=setup_context)
    leaves = [subject.tensor([1.0 + i, 2.0]).requires_grad_(flag) for i, flag in enumerate(track)]
    scale = subject.tensor(5.0).requires_grad_(extra)
    ys, z = subject.assert_accepted(lambda: weighted(leaves, scale, 3), "a call with a list of tensors")
    subject.assert_all_same("outputs", got=[*ys, z], expected=[
        *(3 * i * x.detach() for i, x in enumerate(leaves, 1)), np.asarray(10.0)])  # fmt: skip
    types = {"inputs": [list, Tensor, int], "output": [list, Tensor]}
    subject.assert_equal("types in setup_context", got={name: seen[name] for name in types}, expected=types)
    total = sum(y.sum() for y in ys) + z
    tracked = [x for x in (*leaves, scale) if x.requires_grad]
    torch.autograd.grad(total, tracked, retain_graph=True, allow_unused=True)
    subject.assert_accepted(total.backward, "a second backward pass")
    subject.assert_equal("cotangents of the list of outputs", got=seen["cotangents"], expected=(list, count))
    got = seen["needs"]
    subject.assert_equal("ctx.needs_input_grad in backward", got=got, expected=(track, extra, False))
    expected = [None if i in withheld or not flag else np.full(2, 3.0 * (i + 1)) for i, flag in enumerate(track)]
    subject.assert_all_same("gradients", got=[x.grad for x in leaves], expected=expected)
    subject.assert_same("gradient beside the list", got=scale.grad, expected=np.asarray(2.0) if extra else None)


@keeps("LIB-01", variant="results")
def test_a_list_of_results_has_a_list_of_cotangents(subject, data):
    """backward gets a list for a list of outputs, where no argument is a list, and zeros for unused ones."""
    count = subject.draw(data, st.integers(1, 3), "outputs")
    used = subject.draw(data, st.lists(st.booleans(), min_size=count, max_size=count).filter(any), "outputs used")
    seen = []

    @torch.library.custom_op("autograd_conformance::multiples", mutates_args=())
    def multiples(x: Tensor, n: int) -> list[Tensor]:
        return [x * i for i in range(1, n + 1)]

    def backward(ctx, gs):
        seen.append((type(gs), len(gs)))
        return sum(i * g for i, g in enumerate(gs, 1)), None

    multiples.register_autograd(backward)
    x = subject.tensor([1.0, -2.0]).requires_grad_()
    outputs = subject.assert_accepted(lambda: multiples(x, count), "a call with a list of results")
    sum(y.sum() for y, wanted in zip(outputs, used, strict=True) if wanted).backward()
    subject.assert_equal("type and length of the cotangents", got=seen, expected=[(list, count)])
    right = sum(i for i, wanted in enumerate(used, 1) if wanted)
    subject.assert_same("gradient", got=x.grad, expected=np.full(2, float(right)))

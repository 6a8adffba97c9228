"""Operators of torch.library that change tensors: those that fill tensors, and those that change an argument."""

import itertools
import warnings
from contextlib import nullcontext, suppress
from typing import Optional

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from autograd_conformance.harness.testing.marks import keeps

SPACE = "autograd_conformance_changes"
_COUNT = itertools.count()
Pair = tuple[Tensor, Tensor]
NUMBERS = st.lists(st.sampled_from((1.0, -1.0, 2.0, -3.0)), min_size=2, max_size=2)


CHANGED = (("x",), ("y",), ("x", "y"))


@keeps("LIB-05")
def test_a_declared_change_counts(subject, data):
    """The version of an argument says whether the operator is declared to change it, and a saved one is noticed."""
    _assert_changes(subject, data, "custom_op", subject.draw(data, (*CHANGED, "unknown"), "mutates_args"))


@keeps("LIB-23")
def test_a_declared_change_of_a_triton_op_counts(subject, data):
    """The arguments that mutates_args names have changed after a call of a triton_op, and the others have not."""
    _assert_changes(subject, data, "triton_op", subject.draw(data, CHANGED, "mutates_args"))


@keeps("LIB-23", variant="unknown")
def test_unknown_changes_of_a_triton_op_are_of_all(subject, data):
    """After a call of a triton_op whose mutates_args is unknown all arguments have changed."""
    _assert_changes(subject, data, "triton_op", "unknown")


def _assert_changes(subject, data, by, names):
    """An operator that is defined by a function of torch.library, with these mutates_args, changes what it says."""
    changed = {"x", "y"} if names == "unknown" else set(names)

    def changes(x: Tensor, y: Tensor) -> None:
        # As foreign code does, which no version counts.
        for name, tensor in (("x", x), ("y", y)):
            if name in changed:
                tensor.data.mul_(2)

    # A name of its own: a faulty torch may keep the rules of another operator.
    name = f"{SPACE}::declared_{next(_COUNT)}"
    define = lambda: getattr(torch.library, by)(name, changes, mutates_args=names)  # noqa: E731
    op = subject.assert_accepted(define, f"an operator that may change {names}")
    values = dict(zip("xy", subject.draw(data, st.tuples(NUMBERS, NUMBERS), "x and y"), strict=True))
    tensors = {name: subject.tensor(value) for name, value in values.items()}
    factor = subject.tensor([1.0, 1.0]).requires_grad_()
    products = {name: factor * tensor for name, tensor in tensors.items()}
    before = {name: tensor._version for name, tensor in tensors.items()}
    op(**tensors)
    moved = {name for name, tensor in tensors.items() if tensor._version > before[name]}
    subject.assert_equal("arguments that have changed, by their versions", got=moved, expected=changed)
    for name, product in products.items():
        doubled = np.array(values[name]) * (2 if name in changed else 1)
        subject.assert_same(f"values of {name}", got=tensors[name], expected=doubled)
        what = f"a backward that saved {name} before it was changed"
        if name in changed:
            subject.assert_raises(RuntimeError, lambda p=product: p.sum().backward(), what, naming=["inplace"])
        else:
            subject.assert_accepted(lambda p=product: p.sum().backward(), "a backward that saved what stays")


def _filling(count):
    """An operator that fills one or two tensors, by its arguments of each kind."""

    def one(x: Tensor, more: list[Tensor], y: Tensor | None = None, *, out: Tensor) -> Tensor:
        return out.copy_(_total(x, more, y))

    def two(x: Tensor, more: list[Tensor], y: Tensor | None = None, *, out: Tensor, second: Tensor) -> Pair:
        return out.copy_(_total(x, more, y)), second.copy_(3 * x)

    function, filled = ((one, {"out"}), (two, {"out", "second"}))[count - 1]
    name = f"{SPACE}::fills_{function.__name__}"
    return torch.library.custom_op(name, function, mutates_args=filled, tags=torch.Tag.out)


def _total(x, more, y):
    return sum(more, 2 * x) if y is None else sum(more, 2 * x) + y


@keeps("LIB-18")
def test_an_operator_that_fills_tensors_has_no_gradients(subject, data):
    """A call raises if anything requires grad and gradients are recorded; others give the tensors that they fill."""
    count = subject.draw(data, (1, 2), "number of tensors to fill")
    filled = ("out", "second")[:count]
    tracked = subject.draw(data, ("x", "nothing", "more", "y", *filled), "requires grad")
    recorded = subject.draw(data, (True, False), "gradients are recorded")
    keyword = subject.draw(data, st.booleans(), "x by keyword")
    values = dict(zip(("x", "more", "y"), subject.draw(data, st.tuples(*[NUMBERS] * 3), "x, more and y"), strict=True))
    tensors = {
        name: subject.tensor(values.get(name, [0.0, 0.0])).requires_grad_(name == tracked)
        for name in ("x", "more", "y", *filled)
    }
    before = {name: tensor._version for name, tensor in tensors.items()}
    named = {**tensors, "more": [tensors["more"]]}
    args = () if keyword else (named.pop("x"),)

    def call():
        with nullcontext() if recorded else torch.no_grad():
            return _filling(count)(*args, **named)

    if recorded and tracked != "nothing":
        subject.assert_raises(RuntimeError, call, "a call with a tensor that requires grad")
        return
    found = subject.assert_accepted(call, "a call without gradients")
    results = (found,) if count == 1 else found
    same = [result is tensors[name] for result, name in zip(results, filled, strict=True)]
    subject.assert_equal("each result is the tensor that was given", got=same, expected=[True] * count)
    x, more, y = (np.array(values[name]) for name in ("x", "more", "y"))
    subject.assert_all_same("values", got=results, expected=(2 * x + more + y, 3 * x)[:count])
    moved = {name for name, tensor in tensors.items() if tensor._version > before[name]}
    subject.assert_equal("arguments that have changed, by their versions", got=moved, expected=set(filled))


@keeps("LIB-18", variant="formula")
def test_an_operator_that_fills_tensors_has_no_formula(subject, data):
    """A formula for an operator that fills tensors is refused, by the operator and by its name."""
    count = subject.draw(data, (1, 2), "number of tensors to fill")
    op = _filling(count)
    given = op._qualname if subject.draw(data, st.booleans(), "registered by name") else op
    subject.assert_raises(
        RuntimeError,
        lambda: torch.library.register_autograd(given, lambda ctx, *_: None),
        "registering a formula for an operator that fills a tensor",
    )


def _changing(tagged):
    """An operator that changes its first argument into ``3 * x + y``: it returns it, or nothing."""

    def returning(x: Tensor, y: Tensor) -> Tensor:
        return x.mul_(3).add_(y)

    def alone(x: Tensor, y: Tensor) -> None:
        x.mul_(3).add_(y)

    if tagged:
        return torch.library.custom_op(f"{SPACE}::returns", returning, mutates_args={"x"}, tags=torch.Tag.inplace)
    return torch.library.custom_op(f"{SPACE}::changes", alone, mutates_args={"x"})


@keeps("LIB-19")
def test_an_operator_returns_the_argument_that_it_changes(subject, data):
    """The result is the first argument itself; where gradients are recorded, a pass through the result raises."""
    needs = subject.draw(data, st.tuples(*[st.booleans()] * 2), "requires grad")
    recorded = subject.draw(data, (True, False), "gradients are recorded")
    values = subject.draw(data, st.tuples(NUMBERS, NUMBERS), "x and y")
    leaf, y = (t.requires_grad_(needed) for t, needed in zip(subject.tensors(values), needs, strict=True))
    x = leaf * 1
    version = x._version
    with nullcontext() if recorded else torch.no_grad():
        result = subject.assert_accepted(lambda: _changing(tagged=True)(x, y), "a call")
    changed = 3 * np.array(values[0]) + values[1]
    subject.assert_all_same("result and argument", got=[result, x], expected=[changed, changed])
    subject.assert_that(x._version > version, "version of the argument", got=x._version, expected=f"over {version}")
    if recorded and any(needs):
        naming = ["returns", "register_autograd"]
        what = "a backward pass through an operator without a formula"
        subject.assert_raises(RuntimeError, lambda: result.sum().backward(), what, naming=naming)
    else:
        subject.assert_equal("the result is the argument", got=result is x, expected=True)


@keeps("LIB-19", variant="history", examples=0.4)
def test_a_pass_through_a_changed_argument_raises(subject, data):
    """Where an operator changed a tensor while gradients were recorded, the gradient is right, or there is an error."""
    needs = subject.draw(data, ((True, True), (True, False), (False, True)), "requires grad")
    tagged = subject.draw(data, (True, False), "the operator returns what it changes")
    values = subject.draw(data, st.tuples(NUMBERS, NUMBERS), "x and y")
    leaf, y = (t.requires_grad_(needed) for t, needed in zip(subject.tensors(values), needs, strict=True))
    op, x = _changing(tagged), leaf * 1
    with torch.no_grad():
        unrecorded = leaf * 1
        op(unrecorded, y)
    subject.assert_same("changed, without recording", got=unrecorded, expected=3 * np.array(values[0]) + values[1])
    with suppress(RuntimeError):
        op(x, y)
        got = torch.autograd.grad((x + leaf + y).sum(), [t for t in (leaf, y) if t.requires_grad])
        expected = [np.full(2, slope) for slope, needed in zip((4.0, 2.0), needs, strict=True) if needed]
        subject.assert_all_same("gradients after a change by an operator", got=got, expected=expected)


@keeps("LIB-05", variant="optional")
def test_an_optional_argument_may_be_changed(subject, data):
    """It has changed where it is given; returning it may be refused. Without it the result is new."""
    given = subject.draw(data, (True, False), "the tensor to change is given")
    returned = subject.draw(data, (False, True), "the operator returns it")
    values = subject.draw(data, NUMBERS, "x")

    def doubles(x: Tensor, out: Optional[Tensor] = None) -> Tensor:  # noqa: UP045 - what torch 2.4 reads
        if out is None:
            return 2 * x
        # As foreign code does, which no version counts.
        out.data.copy_(2 * x)
        return out if returned else 3 * x

    op = torch.library.custom_op(f"{SPACE}::doubles", doubles, mutates_args={"out"})
    x = subject.tensor(values)
    out = subject.tensor([0.0, 0.0]) if given else None
    before = out._version if given else 0
    with suppress(RuntimeError) if given and returned else nullcontext():
        result = subject.assert_accepted(lambda: op(x, out), "a call") if not returned else op(x, out)
        factor = 2 if returned or not given else 3
        subject.assert_same("result", got=result, expected=factor * np.array(values))
        subject.assert_equal("the result is what was given", got=result is out, expected=given and returned)
        if given:
            subject.assert_same("what was given", got=out, expected=2 * np.array(values))
            moved = out._version > before
            subject.assert_equal("whether arguments that have changed have another version", got=moved, expected=True)


def _without_values(subject, data, count):
    """So many meta or fake tensors, and the context in which they are used."""
    if subject.draw(data, st.booleans(), "meta tensors, not fake ones"):
        return [torch.empty(2, device="meta") for _ in range(count)], nullcontext()
    mode = FakeTensorMode()
    return [mode.from_tensor(torch.empty(2, device=subject.device)) for _ in range(count)], mode


# Operators with a tag: how they are made, and the names of what they take and change.
TAGGED = {
    "inplace": (lambda: _changing(tagged=True), ("x", "y"), ("x",)),
    "out": (lambda: _filling(1), ("x", "out"), ("out",)),
    "out, of two": (lambda: _filling(2), ("x", "out", "second"), ("out", "second")),
}


@keeps("LIB-24")
def test_an_operator_with_a_tag_has_a_fake_kernel(subject, data):
    """A call without values gives the tensors that the operator changes; a fake kernel that is registered does it."""
    which = subject.draw(data, tuple(TAGGED), "tag")
    own = subject.draw(data, (False, True), "a fake kernel is registered")
    make, names, changed = TAGGED[which]
    op, ran = make(), []

    def fake(*args, **options):
        ran.append("the registered one")
        found = [options.get(name, args[0]) for name in changed]
        return found[0] if len(found) == 1 else tuple(found)

    if own:
        with warnings.catch_warnings():
            # It says that this is unnecessary.
            warnings.simplefilter("ignore", UserWarning)
            op.register_fake(fake)
    tensors, mode = _without_values(subject, data, len(names))
    given = dict(zip(names, tensors, strict=True))
    by_position = [given.pop("x"), given.pop("y", [tensors[0]])]
    with mode:
        found = subject.assert_accepted(lambda: op(*by_position, **given), "a call with tensors without values")
    results = (found,) if len(changed) == 1 else found
    same = [result is tensors[names.index(name)] for result, name in zip(results, changed, strict=True)]
    subject.assert_equal("each result is the tensor that was given", got=same, expected=[True] * len(changed))
    subject.assert_equal("fake kernels that ran", got=ran, expected=["the registered one"] * own)

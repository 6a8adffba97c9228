"""The tests of sentences that several frameworks document; a `row` of a dialect is one of them for its framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.testing.clauses import ClauseSubject, Fact
from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.shared.linear import Case, Spellings, drawn_spelling

Refusal = type[Exception]


def row(clause_id: str, sentence: Callable[..., None], spellings: Spellings, *, variant: str = "",
        examples: float = 1.0, **exceptions: Any) -> Any:  # fmt: skip
    """The test of a sentence for one framework: its clause, how it spells a rule, and what is peculiar to it."""

    def test(subject: ClauseSubject, data: Any) -> None:
        sentence(subject, data, spellings, **exceptions)

    test.__name__, test.__doc__ = f"test_{sentence.__name__}", sentence.__doc__
    return keeps(clause_id, variant=variant, examples=examples)(test)


def the_rule_decides(subject: ClauseSubject, data: Any, spellings: Spellings, **restrictions: Any) -> None:
    """Outputs are those of the function and gradients those of the rule, even if that is not its derivative."""
    case = Case(subject, data, spellings, **restrictions)
    rule = case.products if subject.draw(data, st.booleans(), "the rule multiplies by the arguments") else case.rule
    outputs, gradients = case.pulled(case.custom(rule))
    case.assert_outputs(outputs)
    expected = map(np.asarray, rule(case.linear.points, case.linear.cotangents))
    subject.assert_all_same("gradients", got=gradients, expected=list(expected))


def _either(given: int, wanted: int) -> Sequence[Fact]:
    return [given, wanted]


def another_number_of_gradients_raises(
    subject: ClauseSubject, data: Any, spellings: Spellings, *, refusal: Refusal, naming: Any = _either,
    fewer: bool = False, least: int = 0, kinds: Sequence[Callable[[Any], Any]] = (tuple,), **restrictions: Any,
) -> None:  # fmt: skip
    """A rule that returns fewer or more gradients than the function has arguments raises an error."""
    case = Case(subject, data, spellings, **restrictions)
    wanted = case.linear.arguments
    numbers = range(least, wanted if fewer else wanted + 4)
    given = subject.draw(data, [n for n in numbers if n != wanted], "gradients returned")
    kind = subject.draw(data, kinds, "returned in a")
    f = case.custom(lambda _, cotangents: kind(cotangents[:1] * given))
    what = f"a rule that returns {given} gradients for {wanted} arguments"
    facts = [] if case.spelling.wordless else naming(given, wanted)
    subject.assert_raises(refusal, lambda: case.pulled(f), what, naming=facts)


def none_is_a_gradient_of_zeros(subject: ClauseSubject, data: Any, spellings: Spellings, **restrictions: Any) -> None:
    """None from the rule gives zeros in the shape and dtype of the argument, or the gradient of its other uses."""
    case = Case(subject, data, spellings, **restrictions)
    absent = case.some(data, "arguments that get None")
    used = subject.draw(data, st.booleans(), "the arguments are used next to the function")

    def some(found: Sequence[Any], nothing: Any = None) -> tuple[Any, ...]:
        return tuple(nothing if i in absent else g for i, g in enumerate(found))

    f = case.custom(lambda xs, cotangents: some(case.rule(xs, cotangents)))

    def also(*xs: Any) -> Any:
        first, *others = _tuple(f(*xs))
        return (sum((4 * x for x in xs), first), *others)

    _, gradients = case.pulled(also if used else f)
    first = 4 * case.linear.cotangents[0] * used
    expected = [g + first for g in some(case.linear.pulled(*case.linear.cotangents), case.linear.zeros)]
    subject.assert_all_same("gradients", got=gradients, expected=expected)
    case.assert_dtypes("gradients", gradients)


def unused_outputs_have_cotangents_of_zeros(
    subject: ClauseSubject, data: Any, spellings: Spellings, *, options: Sequence[Mapping[str, Any]] = ({},),
    **restrictions: Any,
) -> None:  # fmt: skip
    """The rule gets zeros for outputs that are not used, in their shape and dtype, unless it is to get None."""
    case = Case(subject, data, spellings, **restrictions)
    option = subject.draw(data, options, "options")
    used = subject.draw(data, st.sets(st.integers(0, case.linear.outputs - 1), min_size=1), "outputs used")
    seen: list[Any] = []

    def backward(xs: Sequence[Any], cotangents: Sequence[Any]) -> tuple[Any, ...]:
        seen.extend(cotangents)
        return tuple(case.points)

    given = [g if o in used else None for o, g in enumerate(case.linear.cotangents)]
    _, gradients = case.pulled(case.custom(backward, **option), given)
    subject.assert_all_same("gradients", got=gradients, expected=case.linear.points)
    nothing = None if option.get("materialize") is False else case.linear.zeros
    expected = [g if o in used else nothing for o, g in enumerate(case.linear.cotangents)]
    subject.assert_all_same("cotangents that the rule gets", got=seen, expected=expected)
    case.assert_dtypes("cotangents", [g for g in seen if g is not None])


def the_rule_is_differentiated(
    subject: ClauseSubject, data: Any, spellings: Spellings, *, ways: Mapping[str, Callable[[Any, Any], Any]],
    shape: tuple[int, ...] = (),
) -> None:  # fmt: skip
    """Every kind of second derivative differentiates the operations of the rule."""
    way = subject.draw(data, tuple(ways), "second derivative")
    power = subject.draw(data, st.integers(1, 3), "power")
    slope, factor = (subject.draw(data, (2, -3, 5), label) for label in ("factor of the rule", "factor outside"))
    point = float(subject.draw(data, (1, -2, 3), "point"))
    x = subject.tensor(np.full(shape, point), "float64")
    f = drawn_spelling(subject, data, spellings).custom(
        lambda x: (factor * x,), lambda xs, gs: (gs[0] * slope * xs[0] ** power,)
    )
    found = _tuple(subject.assert_accepted(lambda: ways[way](lambda x: _tuple(f(x))[0], x), way))
    # A way gives the second derivative, or the first one, too.
    both = [np.full(shape, slope * point**power), np.full(shape, slope * power * point ** (power - 1))]
    subject.assert_all_same("derivatives, the last of them the second", got=found, expected=both[-len(found) :])


def no_gradient_flows_through_stopped_arguments(
    subject: ClauseSubject, data: Any, spellings: Spellings, *, stop: Callable[[], Callable[[Any], Any]]
) -> None:
    """Arguments that are stopped keep their values and get no gradient."""
    case = Case(subject, data, spellings)
    stopped = case.some(data, "stopped arguments")
    used = subject.draw(data, st.booleans(), "the arguments are used next to the function, not stopped")
    f = case.custom()

    def some_stopped(*xs: Any) -> Any:
        first, *others = _tuple(f(*(stop()(x) if i in stopped else x for i, x in enumerate(xs))))
        return (sum((4 * x for x in xs), first) if used else first, *others)

    outputs, gradients = case.pulled(some_stopped)
    first, *others = case.linear.primal(*case.linear.points)
    subject.assert_all_same("outputs", got=outputs, expected=[first + 4 * used * sum(case.linear.points), *others])
    found = case.linear.pulled(*case.linear.cotangents)
    if used:
        also = 4 * case.linear.cotangents[0]
        expected = [also if i in stopped else g + also for i, g in enumerate(found)]
    else:
        expected = subject.returned([None if i in stopped else g for i, g in enumerate(found)], case.linear.shape)
    subject.assert_all_same("gradients", got=gradients, expected=expected)


def recomputation_runs_the_function_again(
    subject: ClauseSubject, data: Any, spellings: Spellings, *, ways: Mapping[str, Callable[[Any], Any]]
) -> None:
    """A recomputed function runs once, and a second time in the backward pass, and has the same gradients."""
    case = Case(subject, data, spellings, outputs=1)
    recompute = ways[subject.draw(data, tuple(ways), "recomputed by")]
    ran, forward = list[int](), list[int]()
    f = case.custom()

    def run(*xs: Any) -> Any:
        ran.append(1)
        return f(*xs)

    def noted(*xs: Any) -> Any:
        found = recompute(run)(*xs)
        forward.append(len(ran))
        return found

    outputs, gradients = case.pulled(noted)
    subject.assert_equal("runs of the function, forward and in all", got=(forward[0], len(ran)), expected=(1, 2))
    case.assert_outputs(outputs)
    case.assert_gradients(gradients)


def an_exception_comes_out(
    subject: ClauseSubject, data: Any, spellings: Spellings, *, methods: Sequence[str] = ("backward",)
) -> None:
    """An exception in the function or in its rule reaches the caller with type and message, and a later call works."""
    case = Case(subject, data, spellings, outputs=1)
    kind = subject.draw(data, (KeyError, ValueError, ZeroDivisionError, RuntimeError), "exception")
    method = subject.draw(data, methods, "method that raises")

    def fail(*_: Any) -> Any:
        raise kind("mine")

    f = case.custom(**{method: fail})
    subject.assert_raises(kind, lambda: case.pulled(f), f"a {method} that raises", naming=["mine"])
    case.assert_gradients(case.pulled(case.custom())[1])


def what_is_no_gradient_is_refused(
    subject: ClauseSubject, data: Any, spellings: Spellings, *, values: Mapping[str, Any], refusal: Refusal,
    naming: Sequence[Fact],
) -> None:  # fmt: skip
    """A gradient that is no tensor raises an error."""
    case = Case(subject, data, spellings)
    position = subject.draw(data, st.integers(0, case.linear.arguments - 1), "position of the gradient")
    value = values[subject.draw(data, tuple(values), "gradient")]

    def backward(xs: Sequence[Any], cotangents: Sequence[Any]) -> tuple[Any, ...]:
        found = case.rule(xs, cotangents)
        return (*found[:position], value, *found[position + 1 :])

    f = case.custom(backward)
    subject.assert_raises(refusal, lambda: case.pulled(f), "a gradient that is no tensor", naming=naming)


def _tuple(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)

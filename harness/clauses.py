"""The subject of a clause's test: one clause on one device, with the verbs that such tests are written in."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException

from autograd_conformance.harness.compare import same_bits
from autograd_conformance.harness.observe import Observation, observed
from autograd_conformance.harness.outcomes import Broken, Finding, Record, Vacuous, message_of, named
from autograd_conformance.implementations.protocol import Deviation, Implementation
from autograd_conformance.reference.clauses.definitions import Clause
from autograd_conformance.reference.polynomials import OUTPUTS, TENSORS, Polynomial
from autograd_conformance.strategies.calls import Call
from autograd_conformance.strategies.polynomials import DTYPES, SHAPES, polynomials

# What a fault of the suite raises; any other exception in a clause's test comes of what is checked.
_OURS = (NameError, ImportError, HypothesisException, Vacuous)

# Kinds of outputs that not every implementation claims.
_OUTPUTS_THAT_NEED = {"marked": {"nondifferentiable"}, "static": {"objects"}}

# Text that a message must contain, or several of which it must contain one.
Fact = str | int | tuple[str | int, ...]


@dataclass
class Run:
    """A generated Function that ran: its tensor arguments, its outputs, and what was seen inside."""

    subject: ClauseSubject
    polynomial: Polynomial
    primals: tuple[Any, ...]
    outputs: tuple[Any, ...]
    pullback: Callable[..., Any]
    seen: Observation

    def gradients(self, cotangents: Sequence[Any], **options: Any) -> tuple[Any, ...]:
        """What comes back for each argument, given cotangents in NumPy; None for what is no tensor."""
        found = iter(self.pullback(self.subject.tensors(cotangents, self.polynomial.dtype), **options))
        return tuple(next(found) if kind in TENSORS else None for kind in self.polynomial.arguments)


@dataclass
class ClauseSubject:
    """A clause under test."""

    implementation: Implementation
    clause: Clause
    device: str
    variant: str = ""
    dtype: str | None = None
    record: Record = field(default_factory=Record)
    # Nothing that could be replayed: a clause draws more than a call.
    replayed: Call | None = None
    cpu_seconds: float = 0.0
    choices: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"{self.implementation.name}-{self.device}"

    @property
    def claim_id(self) -> str:
        """The clause's id, with the variant of the test."""
        return named(self.clause.id, self.variant)

    @property
    def share(self) -> float:
        """The share of a test's examples that it gets."""
        return self.implementation.share_of_examples

    @property
    def key(self) -> dict[str, Any]:
        """What the test's result line starts with."""
        line = {"kind": "result", "id": f"{self.claim_id}[{self.device}]", "clause": self.clause.id}
        variant = {"variant": self.variant} if self.variant else {}
        return {**line, **variant, "level": self.clause.level, "device": self.device}

    @property
    def needs(self) -> frozenset[str]:
        """The capabilities that the subject needs beside the test's own."""
        return frozenset()

    @property
    def deviation(self) -> Deviation | None:
        """What the implementation is listed not to keep here."""
        return next((d for d in self.implementation.deviations if d.names(self.claim_id)), None)

    def script(self, failure: dict[str, Any]) -> dict[str, str]:  # noqa: ARG002 - as a Function's subject has it
        """What a report adds to a failure: nothing, since a clause is shown by its test."""
        return {}

    # What is drawn.

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes of the run in which small integers are computed exactly."""
        wanted = tuple(d for d in DTYPES if d in self.implementation.dtypes and self.dtype in (None, d))
        return wanted or DTYPES[:1]

    def draw(self, data: Any, strategy: st.SearchStrategy[Any] | Sequence[Any], label: str) -> Any:
        """Draw what the test varies; a failure prints it under this label."""
        options = strategy if isinstance(strategy, st.SearchStrategy) else st.sampled_from(tuple(strategy))
        self.choices[label] = data.draw(options, label=label)
        self.record.call = self.chosen
        self.record.note(self.chosen)
        return self.choices[label]

    @property
    def chosen(self) -> str:
        """What was drawn, in text."""
        return ", ".join(f"{label}: {value!r}" for label, value in self.choices.items())

    def polynomial(self, data: Any, label: str = "function", **restrictions: Any) -> Polynomial:
        """Draw a generated Function in the dtypes of the run; see `strategies.polynomials`."""
        restrictions = {"dtypes": self.dtypes, **restrictions}
        drawn: Polynomial = self.draw(data, polynomials(**self.possible(restrictions)), label)
        return drawn

    def possible(self, restrictions: dict[str, Any]) -> dict[str, Any]:
        """The restrictions, with those on what the implementation does not claim."""
        claimed = self.implementation.capabilities
        kinds = (k for k in restrictions.pop("outputs", OUTPUTS) if claimed >= _OUTPUTS_THAT_NEED.get(k, set()))
        limited: dict[str, Any] = {} if "tuples" in claimed else {"max_outputs": 1}
        if "materialize" not in claimed:
            limited["materialize"] = True
        if not self.implementation.empty:
            limited["shapes"] = tuple(shape for shape in restrictions.get("shapes", SHAPES) if 0 not in shape)
        return {**restrictions, "outputs": tuple(kinds), **limited}

    # What is run.

    def tensor(self, values: Any, dtype: str = "float64") -> Any:
        """A tensor on the subject's device; integers keep their own dtype."""
        array = np.asarray(values)
        return self.implementation.array(array, array.dtype.name if array.dtype.kind in "iub" else dtype, self.device)

    def tensors(self, arrays: Sequence[Any], dtype: str = "float64") -> tuple[Any, ...]:
        """A tensor for each array, None for None."""
        return tuple(None if a is None else self.tensor(a, dtype) for a in arrays)

    def run(
        self, polynomial: Polynomial, *, cls: Any = None, under: Callable[[], Any] = nullcontext,
        prepare: Callable[[Any], Any] = lambda x: x,
    ) -> Run:  # fmt: skip
        """The generated Function, or another class with its arguments and outputs, called ``under`` a context.

        It gets what ``prepare`` makes of each leaf.
        """
        xp, ag = self.implementation.xp, self.implementation.ag
        needs = "needs_input_grad" in self.implementation.capabilities
        watched, seen = observed(cls or polynomial.body(xp, ag), ag.Function, needs=needs)
        apply = self.implementation.function(watched)

        def f(*tensors: Any) -> Any:
            given = iter([prepare(x) for x in tensors])
            pairs = zip(polynomial.arguments, polynomial.values, strict=True)
            with under():
                return apply(*(next(given) if kind in TENSORS else value for kind, value in pairs))

        primals = self.tensors([polynomial.values[i] for i in polynomial.tensors], polynomial.dtype)
        outputs, pullback = self.implementation.vjp(f, primals, track=polynomial.track)
        return Run(self, polynomial, primals, outputs, pullback, seen)

    def returned(self, gradients: Sequence[Any], shape: tuple[int, ...]) -> tuple[Any, ...]:
        """The gradients or tangents of that shape as they come back: where there is none, None or zeros."""
        zeros = np.zeros(shape) if self.implementation.zeros_for_none else None
        return tuple(zeros if g is None else g for g in gradients)

    # What is asserted.

    def fail(self, what: str, *, got: Any, expected: Any, hint: str = "", cause: Exception | None = None) -> NoReturn:
        """Report that the clause is broken."""
        version = self.implementation.environment().version
        where = f"{self.implementation.name} {version}, {self.device}"
        finding = Finding(what, _brief(got), _brief(expected), "", chosen=self.chosen, hint=hint)
        raise Broken(self.clause.id, self.clause.sentence, where, finding) from cause

    def assert_that(self, holds: bool, what: str, *, got: Any, expected: Any, hint: str = "") -> None:
        """Equivalent to ``assert holds``, phrased as what came and what should have come."""
        __tracebackhide__ = True
        self.record.checks += 1
        if not holds:
            self.fail(what, got=got, expected=expected, hint=hint)

    def assert_equal(self, what: str, *, got: Any, expected: Any, hint: str = "") -> None:
        """Equivalent to ``assert got == expected``, types of sequences included."""
        __tracebackhide__ = True
        self.assert_that(type(got) is type(expected) and got == expected, what, got=got, expected=expected, hint=hint)

    def assert_same(self, what: str, *, got: Any, expected: Any, hint: str = "") -> None:
        """A tensor has exactly the values and the shape of an array or tensor; None is equal to None alone."""
        __tracebackhide__ = True
        a, b = self._array(got), self._array(expected)
        both = isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
        self.assert_that(same_values(a, b) if both else a is b, what, got=a, expected=b, hint=hint)

    def assert_all_same(self, what: str, *, got: Sequence[Any], expected: Sequence[Any], hint: str = "") -> None:
        """`assert_same` for each pair; a failure names the position."""
        __tracebackhide__ = True
        self.assert_equal(f"number of {what}", got=len(got), expected=len(expected), hint=hint)
        for position, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
            self.assert_same(f"{what}, position {position}", got=mine, expected=theirs, hint=hint)

    def assert_raises(
        self, kinds: type[Exception] | tuple[type[Exception], ...], action: Callable[[], Any], what: str, *,
        naming: Sequence[Fact] = (), hint: str = "",
    ) -> Exception:  # fmt: skip
        """The action raises one of these, and its message carries the facts; see `missing`."""
        __tracebackhide__ = True
        wanted = kinds if isinstance(kinds, tuple) else (kinds,)
        names = " or ".join(kind.__name__ for kind in wanted)
        self.record.checks += 1
        try:
            got = f"no error, and {_brief(action())}"
        except wanted as raised:
            absent = missing(message_of(raised), naming)
            if absent:
                self.fail(
                    f"message of {what}",
                    got=message_of(raised),
                    expected=f"it to name {absent}",
                    hint=hint,
                    cause=raised,
                )
            return raised
        except Exception as raised:  # noqa: BLE001 - any other exception breaks the clause
            got = _told(raised)
        return self.fail(what, got=got, expected=names, hint=hint)

    def assert_accepted(self, action: Callable[[], Any], what: str, *, hint: str = "") -> Any:
        """The action raises nothing; gives its result."""
        __tracebackhide__ = True
        self.record.checks += 1
        try:
            return action()
        except Exception as raised:  # noqa: BLE001 - any exception breaks the clause
            self.fail(what, got=_told(raised), expected="no error", hint=hint, cause=raised)

    def assert_warns(
        self, category: type[Warning], action: Callable[[], Any], what: str, *, naming: Sequence[Fact] = (),
        hint: str = "",
    ) -> Any:  # fmt: skip
        """The action warns in this category, with the facts in the message; gives its result."""
        __tracebackhide__ = True
        self.record.checks += 1
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = action()
        told = [str(w.message) for w in caught if issubclass(w.category, category)]
        if not any(not missing(text, naming) for text in told):
            got = [f"{w.category.__name__}: {w.message}" for w in caught] or "no warning"
            facts = f" that names {missing('', naming)}" if naming else ""
            self.fail(what, got=got, expected=f"{category.__name__}{facts}", hint=hint)
        return result

    def _array(self, value: Any) -> Any:
        if isinstance(value, np.generic):
            return np.asarray(value)
        return self.implementation.numpy(value) if self._is_tensor(value) else value

    @cached_property
    def _is_tensor(self) -> Callable[[Any], bool]:
        return self.implementation.is_tensor

    @contextmanager
    def blaming_the_implementation(self) -> Iterator[None]:
        """Report an exception that the test did not expect as a failure; warnings are looked at by `assert_warns`."""
        self.choices = {}
        self.record.examples += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        except (Broken, *_OURS):
            raise
        except Exception as raised:  # noqa: BLE001 - whatever the implementation raises
            self.fail("what came of it", got=_told(raised), expected="a result", cause=raised)


def missing(message: str, naming: Sequence[Fact]) -> list[Fact]:
    """The facts that a message does not carry: words and numbers, whole, in any case; of a tuple one is enough."""
    return [
        fact for fact in naming if not any(_names(message, f) for f in (fact if isinstance(fact, tuple) else (fact,)))
    ]


def _names(message: str, fact: str | int) -> bool:
    return re.search(rf"(?<![A-Za-z0-9_]){re.escape(str(fact))}(?![A-Za-z0-9])", message, re.IGNORECASE) is not None


def same_values(a: Any, b: Any) -> bool:
    """Whether two arrays have the same shape and values, zeros of either sign, NaN equal to NaN."""
    return a.shape == b.shape and (same_bits(a, b) or bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")))


def _told(raised: Exception) -> str:
    lines = message_of(raised).strip().splitlines()
    return f"{type(raised).__name__}: {lines[0] if lines else ''}"


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return np.array2string(value, threshold=8, separator=", ")
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " ..."


# Characters of a value that a message quotes.
_LONGEST = 300

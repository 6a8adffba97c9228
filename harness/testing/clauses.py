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
from hypothesis import reject
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException

from autograd_conformance.harness.outcomes import LOUD, Broken, Finding, Record, Vacuous, message_of
from autograd_conformance.harness.testing.compare import same_bits
from autograd_conformance.harness.testing.defining import Defining
from autograd_conformance.harness.testing.examined import PartMissing, Untaken, described
from autograd_conformance.harness.testing.observe import Observation, observed
from autograd_conformance.harness.testing.settings import kept
from autograd_conformance.harness.testing.steering import steers
from autograd_conformance.implementations.protocol import Implementation
from autograd_conformance.reference.clauses.definitions import Clause
from autograd_conformance.reference.polynomials import OUTPUTS, TENSORS, Polynomial
from autograd_conformance.strategies.calls import Call
from autograd_conformance.strategies.generated_functions import DTYPES, SHAPES, polynomials

# Exceptions of faults in the suite. Any other exception in a clause's test is blamed on the implementation.
_OURS = (NameError, ImportError, HypothesisException, Vacuous)

# Kinds of outputs that not every implementation claims.
_OUTPUTS_THAT_NEED = {"marked": {"nondifferentiable"}, "static": {"objects"}}

# A text or number that a message must contain; of a tuple it must contain one.
Fact = str | int | tuple[str | int, ...]

# The component of a finding about an exception: whatever else is wrong, it is no silent result.
_LOUD = {"aspect": LOUD}


@dataclass
class Run:
    """A generated Function that ran: its tensor arguments, its outputs, and what was observed inside."""

    subject: ClauseSubject
    polynomial: Polynomial
    primals: tuple[Any, ...]
    outputs: tuple[Any, ...]
    pullback: Callable[..., Any]
    seen: Observation

    def gradients(self, cotangents: Sequence[Any], **options: Any) -> tuple[Any, ...]:
        """The gradient for each argument, given cotangents in NumPy; None for arguments that are not tensors."""
        found = iter(self.pullback(self.subject.tensors(cotangents, self.polynomial.dtype), **options))
        return tuple(next(found) if kind in TENSORS else None for kind in self.polynomial.arguments)


@dataclass
class ClauseSubject(Defining):
    """A clause under test."""

    implementation: Implementation
    clause: Clause
    device: str
    variant: str = ""
    dtype: str | None = None
    record: Record = field(default_factory=Record)
    # Always None: a clause draws more than a call.
    replayed: Call | None = None
    cpu_seconds: float = 0.0
    # The capabilities that the test needs, and the implementation does not claim.
    unclaimed: tuple[str, ...] = ()
    choices: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"{self.implementation.name}-{self.device}"

    @property
    def claim(self) -> str:
        return self.clause.id

    @property
    def sentence(self) -> str:
        return self.clause.sentence

    @property
    def key(self) -> dict[str, Any]:
        """The first fields of the test's result line."""
        line = {"kind": "result", "id": f"{self.claim_id}[{self.device}]", "clause": self.clause.id}
        variant = {"variant": self.variant} if self.variant else {}
        unclaimed = {"unclaimed": list(self.unclaimed)} if self.unclaimed else {}
        return {**line, **variant, "level": self.clause.level, "device": self.device, **unclaimed}

    @property
    def needs(self) -> frozenset[str]:
        """The capabilities that the subject needs in addition to those of the test."""
        return frozenset()

    # What is drawn.

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes of the run that compute small integers exactly."""
        wanted = tuple(d for d in DTYPES if d in self.implementation.dtypes and self.dtype in (None, d))
        return wanted or DTYPES[:1]

    def draw(self, data: Any, strategy: st.SearchStrategy[Any] | Sequence[Any], label: str) -> Any:
        drawn = super().draw(data, strategy, label)
        self.record.call = self.chosen
        self.record.note(self.chosen)
        return drawn

    @property
    def chosen(self) -> str:
        """The drawn values, as text."""
        return ", ".join(f"{label}: {value!r}" for label, value in self.choices.items())

    def polynomial(self, data: Any, label: str = "function", **restrictions: Any) -> Polynomial:
        """Draw a generated Function in the dtypes of the run; see `strategies.generated_functions`."""
        restrictions = {"dtypes": self.dtypes, **restrictions}
        drawn: Polynomial = self.draw(data, polynomials(**self.possible(restrictions)), label)
        return drawn

    def possible(self, restrictions: dict[str, Any]) -> dict[str, Any]:
        """The restrictions, extended by those that follow from missing capabilities."""
        claimed = self.implementation.capabilities
        kinds = (k for k in restrictions.pop("outputs", OUTPUTS) if claimed >= _OUTPUTS_THAT_NEED.get(k, set()))
        limited: dict[str, Any] = {} if "tuples" in claimed else {"max_outputs": 1}
        if "materialize" not in claimed:
            limited["materialize"] = True
        if not self.implementation.empty:
            limited["shapes"] = tuple(shape for shape in restrictions.get("shapes", SHAPES) if 0 not in shape)
        return {**restrictions, "outputs": tuple(kinds), **limited}

    # What is run.

    def run(
        self, polynomial: Polynomial, *, cls: Any = None, under: Callable[[], Any] = nullcontext,
        prepare: Callable[[Any], Any] = lambda x: x,
    ) -> Run:  # fmt: skip
        """Call the generated Function, or another class ``cls`` with its arguments and outputs.

        The call runs ``under`` a context. Each tensor argument is ``prepare`` of a leaf.
        """
        needs = "needs_input_grad" in self.implementation.capabilities
        watched, seen = observed(cls or self.body(polynomial), self.implementation.ag.Function, needs=needs)
        call, primals = self.call_of(polynomial, watched), self.primals(polynomial)

        def f(*tensors: Any) -> Any:
            given = [prepare(x) for x in tensors]
            with under():
                return call(*given)

        outputs, pullback = self.implementation.vjp(f, primals, track=polynomial.track)
        return Run(self, polynomial, primals, outputs, pullback, seen)

    def returned(self, gradients: Sequence[Any], shape: tuple[int, ...]) -> tuple[Any, ...]:
        """Expected gradients or tangents: zeros for None if the implementation returns zeros."""
        zeros = np.zeros(shape) if self.implementation.zeros_for_none else None
        return tuple(zeros if g is None else g for g in gradients)

    # What is asserted.

    def fail(
        self, what: str, *, got: Any, expected: Any, cause: BaseException | None = None, **details: Any
    ) -> NoReturn:
        """Fail: the clause does not hold. ``details`` are fields of the `Finding`."""
        self.break_(Finding(what, _brief(got), _brief(expected), "", chosen=self.chosen, **details), cause)

    def assert_that(self, holds: bool, what: str, *, got: Any, expected: Any, hint: str = "") -> None:
        """Equivalent to ``assert holds``, with the actual and the expected result."""
        __tracebackhide__ = True
        self.record.checks += 1
        if not holds:
            self.fail(what, got=got, expected=expected, hint=hint)

    def assert_equal(self, what: str, *, got: Any, expected: Any, hint: str = "") -> None:
        """Equivalent to ``assert got == expected``, types of sequences included."""
        __tracebackhide__ = True
        self.assert_that(type(got) is type(expected) and got == expected, what, got=got, expected=expected, hint=hint)

    def assert_same(self, what: str, *, got: Any, expected: Any, hint: str = "") -> None:
        """Assert that a tensor has exactly the values and shape of an array or tensor; None equals only None."""
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
        """Assert that the action raises one of these exceptions, and that its message has the facts; see `missing`."""
        __tracebackhide__ = True
        wanted = kinds if isinstance(kinds, tuple) else (kinds,)
        names = " or ".join(kind.__name__ for kind in wanted)
        self.record.checks += 1
        try:
            got = f"no error, but the result {_brief(action())}"
        except wanted as raised:
            absent = missing(message_of(raised), naming)
            if absent:
                self.fail(
                    f"message of {what}",
                    got=message_of(raised),
                    expected=f"a message that names {absent}",
                    hint=hint,
                    cause=raised,
                    component=_LOUD,
                )
            return raised
        except Exception as raised:  # noqa: BLE001 - any other exception breaks the clause
            self.fail(what, got=described(raised), expected=names, hint=hint, component=_LOUD)
        return self.fail(what, got=got, expected=names, hint=hint)

    def assert_accepted(self, action: Callable[[], Any], what: str, *, hint: str = "") -> Any:
        """Assert that the action raises nothing, and return its result."""
        __tracebackhide__ = True
        self.record.checks += 1
        try:
            return action()
        except Exception as raised:  # noqa: BLE001 - any exception breaks the clause
            self.fail(what, got=described(raised), expected="no error", hint=hint, cause=raised, component=_LOUD)

    def assert_warns(
        self, category: type[Warning], action: Callable[[], Any], what: str, *, naming: Sequence[Fact] = (),
        hint: str = "",
    ) -> Any:  # fmt: skip
        """Assert that the action warns in this category, with the facts in the message, and return its result."""
        __tracebackhide__ = True
        self.record.checks += 1
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = action()
        texts = [str(w.message) for w in caught if issubclass(w.category, category)]
        if all(missing(text, naming) for text in texts):
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
        """Turn an unexpected exception of the test into a failure, and ignore warnings (see `assert_warns`).

        What is left changed, by a fault or by the test that shows it, would fail the tests that follow.
        """
        try:
            with _blaming(self):
                yield
        except Untaken as asked:
            self.record.untaken = str(asked)
            reject()
        except Broken as broken:
            if not self.may_refuse(broken):
                self.record.failed = broken
                raise


@contextmanager
def _blaming(subject: ClauseSubject) -> Iterator[None]:
    """A context in which an unexpected exception becomes a failure."""
    subject.choices = {}
    subject.record.examples += 1
    try:
        with kept(subject.implementation), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (Broken, PartMissing, Untaken):
        raise
    except BaseException as raised:  # whatever the implementation raises
        if not steers(raised) and (isinstance(raised, _OURS) or not isinstance(raised, Exception)):
            raise
        details = subject.raised(raised)
        subject.fail("the test", got=described(raised), expected="no exception", cause=raised, **details)


def missing(message: str, naming: Sequence[Fact]) -> list[Fact]:
    """The facts that a message lacks. Facts are complete words and numbers in any case; of a tuple one is enough."""
    return [
        fact for fact in naming if not any(_names(message, f) for f in (fact if isinstance(fact, tuple) else (fact,)))
    ]


def _names(message: str, fact: str | int) -> bool:
    return re.search(rf"(?<![A-Za-z0-9_]){re.escape(str(fact))}(?![A-Za-z0-9])", message, re.IGNORECASE) is not None


def same_values(a: Any, b: Any) -> bool:
    """Whether two arrays have the same shape and values, zeros of either sign, NaN equal to NaN."""
    return a.shape == b.shape and (same_bits(a, b) or bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")))


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return np.array2string(value, threshold=8, separator=", ")
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " ..."


# The most characters of a value that a message quotes.
_LONGEST = 300

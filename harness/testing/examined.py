"""The common base of the subjects of properties and of clauses."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from hypothesis import strategies as st

from autograd_conformance.harness.catalogue import PACKAGE, is_part_of
from autograd_conformance.harness.outcomes import Broken, Finding, Kind, Means, Raised, Record, message_of, named
from autograd_conformance.harness.testing.steering import RAISING
from autograd_conformance.implementations.deviations import Deviation, named_by
from autograd_conformance.implementations.importing.missing import missing_part
from autograd_conformance.implementations.protocol import Implementation
from autograd_conformance.strategies.calls import Call
from autograd_conformance.strategies.generated_functions import DTYPES


class Examined:
    """A property or clause under test, on one implementation and device."""

    implementation: Implementation
    device: str
    # Distinguishes the tests of one property or clause.
    variant: str
    # The only dtype of the run, if any.
    dtype: str | None
    record: Record
    # A call to run instead of drawn ones.
    replayed: Call | None
    cpu_seconds: float
    # The capabilities that the test needs, and the implementation does not claim.
    unclaimed: tuple[str, ...]
    # What the test drew in addition to the call, by label.
    choices: dict[str, Any]

    @property
    def claim(self) -> str:
        """The id of the property or clause."""
        raise NotImplementedError

    @property
    def sentence(self) -> str:
        """The sentence of the property or clause."""
        raise NotImplementedError

    @property
    def examined(self) -> str:
        """The name of the Function under test; empty for a clause."""
        return ""

    @property
    def claim_id(self) -> str:
        """The id of the property or clause, with the variant of the test."""
        return named(self.claim, self.variant)

    @property
    def share(self) -> float:
        """The share of a test's examples that this subject gets."""
        return self.implementation.share_of_examples

    @property
    def deviations(self) -> tuple[Deviation, ...]:
        """The deviations that the implementation lists for this test."""
        i = self.implementation
        listed = (*i.deviations, *(i.of_accelerators if self.device in i.accelerators() else ()))
        return named_by(listed, self.claim_id, self.examined)

    @property
    def usual(self) -> str:
        """The dtype of tensors of which a test does not say it: float64, if the device takes that."""
        return next((dtype for dtype in DTYPES if dtype in self.implementation.dtypes), DTYPES[0])

    def supported(self, dtype: str) -> str:
        """The dtype, if the device takes it; the example ends here if it does not."""
        if dtype in self.implementation.untaken:
            raise Untaken(f"{self.device} takes no {dtype}")
        return dtype

    def examine(self, test: Any, attempt: Callable[[bool], None]) -> None:  # noqa: ARG002
        """Run a test, which ``attempt`` does: given True, it looks for the smallest call that fails."""
        attempt(True)

    def draw(self, data: Any, strategy: st.SearchStrategy[Any] | Sequence[Any], label: str) -> Any:
        """Draw a value that the test varies; a failure shows it with this label."""
        options = strategy if isinstance(strategy, st.SearchStrategy) else st.sampled_from(tuple(strategy))
        self.choices[label] = data.draw(options, label=label)
        return self.choices[label]

    def break_(self, finding: Finding, cause: BaseException | None = None) -> NoReturn:
        """Raise Broken with this finding."""
        version = self.implementation.environment().version
        what = f"{self.examined} on " if self.examined else ""
        where = f"{what}{self.implementation.name} {version}, {self.device}"
        raise Broken(self.claim, self.sentence, where, finding) from cause

    def may_refuse(self, broken: Broken) -> bool:
        """Whether a failure is a refusal of what the implementation does not claim; it counts as one.

        Smaller examples may be refused where larger ones are silently wrong, so the test goes on.
        """
        refused = bool(self.unclaimed) and broken.finding.is_loud
        if refused:
            self.record.excuse_with(broken.finding.got)
        return refused

    def raised(self, raised: BaseException, means: Means = "") -> dict[str, Any]:
        """The fields of a finding that describe an exception of the implementation."""
        own = own_frames(raised, self.implementation)
        at = place(own or _foreign_frames(raised) or _outside_of_python(raised))
        which = Raised(type(raised).__name__, at, "function" if own else "framework", means)
        return {"kind": Kind.RAISED, "raised": which}


def described(raised: BaseException) -> str:
    """The exception's type and the first line of its message."""
    lines = message_of(raised).strip().splitlines()
    return f"{type(raised).__name__}: {lines[0] if lines else ''}"


def place(frames: Sequence[traceback.FrameSummary]) -> str:
    """The innermost line of a traceback."""
    return f"{frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""


def own_frames(raised: BaseException, implementation: Implementation) -> list[traceback.FrameSummary]:
    """The frames of the traceback that are neither in the framework nor in this suite, the innermost last."""
    framework = str(Path(implementation.environment().location).parent)
    return [frame for frame in _foreign_frames(raised) if not frame.filename.startswith(framework)]


def _foreign_frames(raised: BaseException) -> list[traceback.FrameSummary]:
    return [frame for frame in _outside_of_python(raised) if not _is_ours(frame.filename)]


def _outside_of_python(raised: BaseException) -> list[traceback.FrameSummary]:
    """The frames that are not in the standard library, which others call: it says nothing of what is wrong."""
    return [frame for frame in _frames(raised) if not _is_of_python(frame.filename)]


def _frames(raised: BaseException) -> Sequence[traceback.FrameSummary]:
    """The frames of the traceback, whose source is not read: a refused example is no failure to show."""
    return traceback.StackSummary.extract(traceback.walk_tb(raised.__traceback__), lookup_lines=False)


@cache
def _is_of_python(filename: str) -> bool:
    packaged = {"site-packages", "dist-packages"} & {*Path(filename).parts}
    return filename.startswith("<frozen ") or (filename.startswith(_PYTHON) and not packaged)


class Untaken(BaseException):
    """An example asks for a dtype that the device does not take. It fails no call: another example may do without."""


class PartMissing(BaseException):
    """The package under test lacks what a test needs. No exception like others: it ends the test, and fails no call."""


@contextmanager
def naming_what_is_missing(implementation: Implementation) -> Iterator[None]:
    """A context in which what the package lacks ends the test by `PartMissing`."""
    try:
        yield
    except Exception as raised:
        name = missing_part(raised, implementation.drop_in)
        if name is None:
            raise
        raise PartMissing(f"needs {name}") from raised


# The folder of Python's own modules.
_PYTHON = str(Path(contextlib.__file__).parent) + os.sep


@cache
def _is_ours(filename: str) -> bool:
    # The bodies of documented Functions are under test: they are in a folder of reference/.
    ours = is_part_of(filename, "harness", "suites", "implementations", "strategies")
    return ours or Path(filename).resolve().parent == PACKAGE / "reference" or filename.startswith(RAISING)


# What does not call the Function itself; the adapters do.
_SUITE = (
    "harness",
    "suites",
    "strategies",
    "reference",
    "implementations/adapting/__init__.py",
    "implementations/protocol.py",
)
# The functions of the suite that call the Function itself.
_CALLING = ("called", "call_with", "in_place")


def raised_by_suite(raised: BaseException) -> bool:
    """Whether the suite's own code raised an exception, and neither the Function nor the framework."""
    frames = _frames(raised)
    if not frames or isinstance(raised, RuntimeError):
        # A framework raises these in compiled code, which has no frames.
        return False
    file, name = frames[-1].filename, frames[-1].name
    return is_part_of(file, *_SUITE) and not is_part_of(file, "reference/functions") and name not in _CALLING


def passes_through(raised: BaseException, implementation: type) -> bool:
    """Whether an exception passed through the adapter, so that the implementation or the Function raised it."""
    # An adapter may refine another one.
    modules = {sys.modules[kind.__module__] for kind in implementation.__mro__ if issubclass(kind, Implementation)}
    files = {module.__file__ for module in modules} - {sys.modules[Implementation.__module__].__file__}
    return any(frame.filename in files for frame in _frames(raised))

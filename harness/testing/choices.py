"""One of several choices in a test: what it may raise, and what is left out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from autograd_conformance.harness.outcomes import Broken, message_of
from autograd_conformance.harness.testing.assertions import Assertions
from autograd_conformance.harness.testing.examined import raised_by_suite
from autograd_conformance.harness.testing.policy import Meaning
from autograd_conformance.strategies.calls import Call
from autograd_conformance.strategies.compositions import BEFORE, Before

# The most characters of an exception's message: a framework may list every kernel that it has.
_LONG = 600


class Choices(Assertions):
    """The choices of a test, each of which the Function may refuse."""

    # The calls of the current example.
    tried: list[Call]
    # Of the current example: how many of its several choices were kept, and why the last one was left out.
    kept: int
    left_out: str

    @property
    def before(self) -> tuple[Before, ...]:
        """The operations that may come before the Function."""
        return BEFORE

    def taken(self, call: Call) -> Call:
        """The call without the layouts that the Function is known to refuse."""
        return call

    def leave_out(self, what: str) -> None:
        """Note that an example cannot be made, because the Function refuses this."""
        self.left_out = what

    @contextmanager
    def choice(self, call: Call) -> Iterator[None]:
        """One of several choices in a test: an exception that the policy excuses leaves out this choice alone."""
        before, self.tried = self.tried, [call]
        try:
            yield
        except Exception as raised:
            if isinstance(raised, Broken) or raised_by_suite(raised):
                raise
            why = self.policy.excuse(raised)
            if not why:
                self._fail_with(call, raised)
            self.left_out = why
        else:
            self.kept += 1
        finally:
            self.tried = before

    def _fail_with(self, call: Call, raised: BaseException, meaning: Meaning | None = None) -> NoReturn:
        """Fail because of an exception that the call raised; the policy is asked what it means, if nobody knows."""
        message = message_of(raised)
        got = f"{type(raised).__name__}: {message[:_LONG]}{' ...' * (len(message) > _LONG)}"
        compared: tuple[Any, ...] = ()
        if meaning is None and isinstance(raised, Exception):
            meaning, compared = self.policy.meaning(call, raised), (got, "")
        meaning = meaning or Meaning()
        details = {"hint": meaning.hint, "compared": compared, **self.raised(raised, meaning.means)}
        self.fail(call, "the call", got=got, expected="no exception", cause=raised, **details)

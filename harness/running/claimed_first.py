"""The schedule of tests for workers: what is not claimed comes last."""

from __future__ import annotations

from typing import Any

from xdist.scheduler import WorkStealingScheduling  # type: ignore[import-untyped]

from autograd_conformance.harness.running.unclaimed import END

# A worker has the test that it runs, and the next one.
_LEAST = 2


class ClaimedFirst(WorkStealingScheduling):  # type: ignore[misc]
    """Gives workers the tests of what is not claimed when no other one is left.

    Whatever such a test does to its process, no result of a test before it can change. Only if a worker is lost at the
    end may another one, which has begun with these, get the one or two tests that it had left.
    """

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._later: list[int] | None = None

    def check_schedule(self) -> None:
        if self._later is None:
            self._later = [n for n in self.pending if self._unclaimed(n)]
            self.pending[:] = [n for n in self.pending if not self._unclaimed(n)]
        if self._later and self.steal_requested_from_node is None:
            self._deal()
            # From such queues no test can be taken: all that is claimed runs where it is.
            if not self.pending and max(map(len, self.node2pending.values()), default=0) <= _LEAST:
                self.pending[:], self._later = self._later, []
        super().check_schedule()

    def _deal(self) -> None:
        """Give what is left to idle workers; without more work to come, they would be shut down."""
        idle = [node for node, queue in self.node2pending.items() if len(queue) < _LEAST and not node.shutting_down]
        for number, node in enumerate(idle):
            self._send_tests(node, len(self.pending) // (len(idle) - number))

    def _unclaimed(self, number: int) -> bool:
        assert self.collection is not None
        return str(self.collection[number]).endswith(f"{END}]")

    @property
    def tests_finished(self) -> bool:
        return not self._later and bool(super().tests_finished)

    @property
    def has_pending(self) -> bool:
        return bool(self._later) or bool(super().has_pending)

"""The workers of a run as its controller knows them: their start, their end, and what this machine lacks for them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from autograd_conformance.harness.outcomes import UNDECIDED, shortage
from autograd_conformance.harness.text import shown

if TYPE_CHECKING:
    from autograd_conformance.harness.running.controller import Controller

# The output of a worker that has the reason why it could not collect the tests, or go on.
LACKING = "conformance_lacking"

# The run ends when this number of workers were lost before they had collected the tests.
UNREADY = 3


class Workers:
    """Ends the run of a controller when its workers cannot start or go on, with the reason in a sentence."""

    def __init__(self, controller: Controller) -> None:
        self._run = controller

    @pytest.hookimpl(tryfirst=True)
    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Say what the machine lacks; pytest would print a stack."""
        lack = shortage(excinfo.value)
        if lack:
            self._run.lost["machine"] = lack
            pytest.exit(shown(lack), returncode=pytest.ExitCode.INTERNAL_ERROR)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        self._run.watchdog.start_worker(node)

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        output = getattr(node, "workeroutput", {})
        self._run.all_ids = output.get("conformance_all_ids", self._run.all_ids)
        worker = node.gateway.id
        start = self._run.watchdog.end(worker)
        if LACKING in output:
            self._give_up(node, f"cannot go on: {output[LACKING]}")
        if error is None:
            return
        if start is not None and start.late:
            self._give_up(node, f"cannot start: it did not answer within {start.limit:g} s")
        # Only the exceptions of a traceback; xdist prints all of it.
        raised = re.findall(r"^[\w.]+: .*", str(error), re.MULTILINE)
        reason = "; ".join(raised).removeprefix("pytest.UsageError: ") or str(error)
        self._run.lost[worker] = f"worker {worker} was lost: {reason}"
        if node not in self._run.ready and (raised or len(self._run.lost) >= UNREADY):
            self._give_up(node, f"cannot start: {reason}")

    def _give_up(self, node: Any, problem: str) -> NoReturn:
        """End the run: no worker like this one could run."""
        worker = node.gateway.id
        self._run.lost[worker] = f"worker {worker} {problem}"
        pytest.exit("the run ends without this worker", returncode=UNDECIDED)

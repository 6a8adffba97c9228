"""Running a program so that the calls of its custom Functions are recorded."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from autograd_conformance.harness.drafting import recorder
from autograd_conformance.harness.drafting.observed import Observed, observed
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.processes.child import exit_status

# Python runs a module with this name when it starts. The environment's own, if there is one, runs after it.
_SITE = f"""\
import importlib.util, os, sys
_folder = os.environ.get({recorder.FOLDER!r}, "")
if _folder:
    _spec = importlib.util.spec_from_file_location(
        "_autograd_conformance_recorder", {recorder.__file__!r}, submodule_search_locations={[*recorder.__path__]!r}
    )
    _recorder = sys.modules[_spec.name] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(_recorder)
    _recorder.start(_folder)
sys.path[:] = [place for place in sys.path if place != os.path.dirname(__file__)]
_mine = sys.modules.pop("sitecustomize")
try:
    import sitecustomize
except ImportError:
    sys.modules["sitecustomize"] = _mine
"""


@dataclass(frozen=True)
class Recorded:
    """The Functions that a program called, and how it ended: empty if it ended well."""

    functions: list[Observed]
    ended: str


def record(command: Sequence[str]) -> Recorded:
    """Run a command, and record its calls. Raises UsageProblem if it cannot be started."""
    words = [sys.executable, *command] if command[0].startswith("-") or command[0].endswith(".py") else list(command)
    with recorded() as (environment, folder):
        try:
            process = subprocess.Popen(words, env=environment)
        except OSError as problem:
            raise UsageProblem(f"{shlex.join(words)} cannot be started: {problem.strerror}") from None
        status = _ended(process)
        return Recorded(observed(folder), f"ended with {exit_status(status)}" if status else "")


def _ended(process: subprocess.Popen[bytes]) -> int:
    """The exit status of a program. An interrupt at a terminal reaches it as well, and it may take its time."""
    while process.returncode is None:
        with suppress(KeyboardInterrupt):
            process.wait()
    return process.returncode


@contextmanager
def recorded() -> Iterator[tuple[Mapping[str, str], Path]]:
    """The environment in which processes record, and the folder that they write to."""
    with tempfile.TemporaryDirectory(prefix="autograd-conformance-") as place:
        folder, site = Path(place, "calls"), Path(place, "site")
        folder.mkdir()
        site.mkdir()
        site.joinpath("sitecustomize.py").write_text(_SITE, encoding="utf-8")
        paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH", "")])]
        yield {**os.environ, "PYTHONPATH": os.pathsep.join(paths), recorder.FOLDER: str(folder)}, folder

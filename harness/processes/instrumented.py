"""A command of which each Python process loads `harness.inside`."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from autograd_conformance.harness import inside
from autograd_conformance.harness.outcomes import UsageProblem

# Python runs a module with this name when it starts. The environment's own, if there is one, runs after it.
_SITE = f"""\
import importlib.util, os, sys
if os.environ.get({inside.VARIABLE!r}):
    _spec = importlib.util.spec_from_file_location(
        "_autograd_conformance_inside", {inside.__file__!r}, submodule_search_locations={[*inside.__path__]!r}
    )
    _inside = sys.modules[_spec.name] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(_inside)
    _inside.start()
sys.path[:] = [place for place in sys.path if place != os.path.dirname(__file__)]
_mine = sys.modules.pop("sitecustomize")
try:
    import sitecustomize
except ImportError:
    sys.modules["sitecustomize"] = _mine
"""


@contextmanager
def instrumented(module: str, **options: Any) -> Iterator[tuple[Mapping[str, str], Path]]:
    """The environment in which Python processes start a module of `harness.inside`, and the folder they write to."""
    with tempfile.TemporaryDirectory(prefix="autograd-conformance-") as place:
        folder, site = Path(place, "calls"), Path(place, "site")
        folder.mkdir()
        site.mkdir()
        site.joinpath("sitecustomize.py").write_text(_SITE, encoding="utf-8")
        paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH", "")])]
        asked = json.dumps({"module": module, "folder": str(folder), **options})
        yield {**os.environ, "PYTHONPATH": os.pathsep.join(paths), inside.VARIABLE: asked}, folder


def run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command, and return its exit status. Raises UsageProblem if it cannot be started.

    A script or an option of Python is run by this interpreter.
    """
    words = [sys.executable, *command] if command[0].startswith("-") or command[0].endswith(".py") else list(command)
    try:
        process = subprocess.Popen(words, env=environment)
    except OSError as problem:
        raise UsageProblem(f"{shlex.join(words)} cannot be started: {problem.strerror}") from None
    while process.returncode is None:
        # An interrupt at a terminal reaches it as well, and it may take its time.
        with suppress(KeyboardInterrupt):
            process.wait()
    return process.returncode

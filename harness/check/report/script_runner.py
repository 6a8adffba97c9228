"""The standalone scripts of a Function's faults: they are written, and run once to see whether they show the fault.

A script makes the failing call in a process of its own. If the call is right there, the fault comes from what ran
before it.
"""

from __future__ import annotations

import importlib
import os
import re
import runpy
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from autograd_conformance.harness.processes import child

# Seconds after which no other script of a Function is begun, and that one may take.
_SECONDS = 120


def written(scripts: Mapping[Path, str]) -> dict[Path, str]:
    """Write the scripts; why each one is not there, "" for those that are."""
    return {path: _write(path, text) for path, text in scripts.items()}


def _write(path: Path, text: str) -> str:
    """Write a script; why it is not there, or ""."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        return f"{path} cannot be written: {problem.strerror}"
    return ""


def right(paths: Sequence[Path], implementation: str = "torch") -> set[Path]:
    """Those of the scripts that show no fault."""
    end = time.monotonic() + _SECONDS
    if not paths:
        return set()
    if not child.CAN_FORK:
        # Each in an interpreter of its own, which takes longer.
        codes = {path: child.command([str(path)], seconds=max(0.0, end - time.monotonic()))[1].code for path in paths}
        return {path for path, code in codes.items() if code == 0}
    texts = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    named = sorted(set(re.findall(r"^import ([\w.]+)(?: as \w+)?$", texts, re.MULTILINE)))
    found = set()
    for said in child.messages(_run_each, named, paths, fork=child.forks(implementation), seconds=_SECONDS):
        if isinstance(said, child.Ended):
            break
        found |= set() if said["shows"] else {paths[said["script"]]}
        if time.monotonic() > end:
            break
    return found


def _run_each(send: Callable[[child.Message], None], modules: Sequence[str], paths: Sequence[Path]) -> None:
    """Import the modules once, and run each script in a child process; send whether it shows a fault."""
    # As an interpreter of its own would find them.
    sys.path.insert(0, "")
    for name in modules:
        importlib.import_module(name)
    for number, path in enumerate(paths):
        pid = os.fork()
        if not pid:
            # A script that hangs ends with this process, which is killed.
            child.end_with_parent()
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os._exit(_shows(path))
        send({"script": number, "shows": os.waitpid(pid, 0)[1] != 0})


def _shows(path: Path) -> int:
    """Whether a script shows a fault: one that ends as if there were none does not."""
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        return int(end.code not in (None, 0))
    except BaseException:  # noqa: BLE001 - a script may raise anything
        return 1
    return 0

"""The standalone scripts of a Function's faults: they are written, and run once to see whether they show the fault.

A script makes the failing call in a process of its own. If the call is right there, the fault comes from what ran
before it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from autograd_conformance.harness.processes import child

# Seconds for all scripts of a Function, after which nothing more is known of them.
_SECONDS = 120

# Imports the modules of the first argument once, and runs each script in a child process. Says whether it shows a
# fault: one that ends as if there were none does not. Nothing of this package is imported.
_RUNNER = f"""
import importlib, os, runpy, sys
for name in filter(None, sys.argv[1].split(",")):
    importlib.import_module(name)
for number, path in enumerate(sys.argv[2:]):
    child = os.fork()
    if not child:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1), os.dup2(null, 2)
        shows = 0
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit as end:
            shows = int(end.code not in (None, 0))
        except BaseException:
            shows = 1
        os._exit(shows)
    shows = int(os.waitpid(child, 0)[1] != 0)
    print(f'\\n{child.MARK} {{{{"script": {{number}}, "shows": {{shows}}}}}}', flush=True)
# A module may have left a thread.
os._exit(0)
"""


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


def right(paths: Sequence[Path]) -> set[Path]:
    """Those of the scripts that show no fault."""
    if not child.CAN_FORK:
        return _right_one_by_one(paths)
    if not paths:
        return set()
    texts = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    named = set(re.findall(r"^import ([\w.]+)(?: as \w+)?$", texts, re.MULTILINE))
    words = ["-c", _RUNNER, ",".join(sorted(named)), *map(str, paths)]
    said, _ = child.command(words, seconds=_SECONDS)
    return {paths[message["script"]] for message in said if message.get("shows") == 0 and "script" in message}


def _right_one_by_one(paths: Sequence[Path]) -> set[Path]:
    """The same, each in an interpreter of its own, which takes longer."""
    end = time.monotonic() + _SECONDS
    codes = {path: child.command([str(path)], seconds=max(0.0, end - time.monotonic()))[1].code for path in paths}
    return {path for path, code in codes.items() if code == 0}

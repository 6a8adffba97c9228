"""Runs reproduction scripts: in this process, or many of them in one bare interpreter."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import subprocess
import sys
import types
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.reports.ndjson import Line
from autograd_conformance.harness.testing.settings import kept
from autograd_conformance.harness.testing.source import Source
from autograd_conformance.reference.definitions import Function
from autograd_conformance.selftests.faults.properties.definitions import TORCH

# The module from which scripts import what has no source of its own: a planted fault, or its correct twin.
MODULE = "planted_fault"
SOURCE = Source(f"from {MODULE} import Function\n", "Function.apply")

# Runs every script of a folder where nothing of this suite can be imported, and prints the status of each.
DRIVER = """
import contextlib, gc, io, json, runpy, sys
from pathlib import Path
import torch
found = {}
for path in sorted(Path(sys.argv[1]).iterdir()):
    found[path.stem] = 0
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        found[path.stem] = int(end.code or 0)
    except Exception as raised:
        found[path.stem] = type(raised).__name__
    torch.use_deterministic_algorithms(False)
    gc.enable()
assert "autograd_conformance" not in sys.modules
print(json.dumps(found))
"""


def statuses(folder: Path, texts: Mapping[str, str]) -> dict[str, Any]:
    """How each script ends in a bare interpreter: its exit status, or the name of the exception."""
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    words = [sys.executable, "-I", "-W", "ignore", "-c", DRIVER, str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@contextlib.contextmanager
def _imported(module: types.ModuleType) -> Iterator[None]:
    """The module as `MODULE`. All other modules stay: what registers operators cannot be imported twice."""
    before = sys.modules.get(MODULE)
    sys.modules[MODULE] = module
    try:
        yield
    finally:
        if before is None:
            del sys.modules[MODULE]
        else:
            sys.modules[MODULE] = before


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Set back what a script changes for all of its process: torch's settings, and the collection of garbage."""
    collecting = gc.isenabled()
    try:
        with kept(TORCH), torch.enable_grad():
            yield
    finally:
        if collecting:
            gc.enable()


def status(text: str, **members: Any) -> Any:
    """How a script ends in this process, where `MODULE` has these members: its exit status, or an exception's name."""
    module = types.ModuleType(MODULE)
    vars(module).update(members)
    # A device can be started once in a process.
    started = mock.patch("torch._lazy.ts_backend.init")
    with _imported(module), started, mock.patch.object(sys, "path", list(sys.path)), _undisturbed():
        try:
            with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile(text, "script", "exec"), {"__name__": "__main__"})
        except SystemExit as end:
            return int(end.code or 0)
        except Exception as raised:  # noqa: BLE001 - the verdict of the caller
            return type(raised).__name__
    return 0


def shown_by(failure: Line) -> Any:
    """How the script for a failure has to end: with 1, or with the exception that the failure is."""
    return failure.get("raised", {}).get("type", 1)


def body_of(function: Function) -> Any:
    """A documented or planted Function as torch's class."""
    return function.body(TORCH.xp, TORCH.ag)


@contextlib.contextmanager
def importable(declaration: Declaration, folder: Path) -> Iterator[Declaration]:
    """The declaration as the global DECLARED of `MODULE`, which its scripts then import."""
    module = types.ModuleType(MODULE)
    module.__file__ = str(folder / f"{MODULE}.py")
    vars(module)["DECLARED"] = declaration
    declaration.where = f"{module.__file__}:1"
    with _imported(module):
        yield declaration

"""Runs scripts, each in a child that is forked from a process in which all that they import is imported.

A line of stdin is a JSON list of a script, the folder to run it in, and the seconds that it may take. The line that
answers holds its exit status and what it wrote to stdout and stderr.
"""

from __future__ import annotations

import ast
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any

# What torch imports later, when it first compiles or transforms something.
_LATER = ("torch._dynamo.backends.debugging", "torch._functorch.aot_autograd", "torch._decomp.decompositions_for_jvp")


def imports(script: Path) -> Iterator[str]:
    """The modules that a script imports at its top, and what they import later."""
    for line in ast.parse(script.read_text(encoding="utf-8")).body:
        if isinstance(line, ast.Import):
            yield from (name for alias in line.names for name in (alias.name, *_LATER * (alias.name == "torch")))
        elif isinstance(line, ast.ImportFrom):
            yield line.module or ""


def may_fork() -> bool:
    """Whether this process has one thread, so that a fork of it is whole."""
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


def run(script: Path, folder: str, seconds: int) -> dict[str, Any]:
    """Run a script, forked if that is safe."""
    for name in imports(script):
        # The script itself is to fail of what cannot be imported; a framework may raise anything.
        with suppress(Exception):
            import_module(name)
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        status = (_forked if may_fork() else _started)(script, folder, seconds, out, err)
        shown = []
        for stream in (out, err):
            stream.seek(0)
            shown.append(stream.read())
    return {"status": status, "out": shown[0], "err": shown[1]}


def _started(script: Path, folder: str, seconds: int, out: IO[str], err: IO[str]) -> int | None:
    try:
        return subprocess.run(
            [sys.executable, str(script)], cwd=folder, timeout=seconds, stdout=out, stderr=err, check=False
        ).returncode
    except subprocess.TimeoutExpired:
        return None


def _forked(script: Path, folder: str, seconds: int, out: IO[str], err: IO[str]) -> int:
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.chdir(folder)
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    signal.alarm(seconds)  # nobody handles it, so that it ends the child wherever it hangs
    status = 1
    try:
        runpy.run_path(str(script), run_name="__main__")
        status = 0
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    for line in sys.stdin:
        script, folder, seconds = json.loads(line)
        print(json.dumps(run(Path(script), folder, seconds)), flush=True)

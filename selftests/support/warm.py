"""Starts the command fast: as a fork of a process that has it in memory, one for each process that tests run in."""

from __future__ import annotations

import atexit
import os
import pkgutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from autograd_conformance.selftests import costs
from autograd_conformance.selftests.support import warm_server
from autograd_conformance.suites import contract, functions
from autograd_conformance.suites.dialects import torch as torch_dialect

COMMAND = warm_server.COMMAND

# These tests may themselves run in a worker; what they start is none.
OUTSIDE = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}

# What a run of the model imports beside the command, and what one of torch imports in addition.
_MODEL = (
    "autograd_conformance.harness.running.plugin",
    "autograd_conformance.implementations.model",
    *(
        f"{room.__name__}.{found.name}"
        for room in (contract, functions)
        for found in pkgutil.iter_modules(room.__path__)
    ),
)
_TORCH = (
    "autograd_conformance.implementations.torch",
    *(f"{torch_dialect.__name__}.{found.name}" for found in pkgutil.iter_modules(torch_dialect.__path__)),
    "torch._decomp.decompositions_for_jvp",
)


@cache
def place(*, torch: bool = False) -> str:
    """The socket of the server, which is started by the first who asks."""
    folder = tempfile.TemporaryDirectory(prefix="warm")
    found = str(Path(folder.name) / "socket")
    _write_client(Path(found).with_name(warm_server.INTERPRETER), found, sys.executable)
    words = [sys.executable, "-m", warm_server.__name__, found, *_MODEL, *(_TORCH if torch else ())]
    process = subprocess.Popen(words, env=OUTSIDE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    costs.SERVERS.append(process.pid)

    def end() -> None:
        process.communicate()
        folder.cleanup()

    atexit.register(end)
    return found


def started(
    *words: Any, folder: Path, environment: Mapping[str, str] = OUTSIDE, seconds: float = 300, fresh: bool = False,
    torch: bool = False,
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """What ``autograd-conformance`` with these words prints, and its exit status.

    If the start of an interpreter is the point, the command is a ``fresh`` one. One with ``torch`` has that in memory.
    """
    given, env = [COMMAND, *map(str, words)], dict(environment)
    if fresh:
        return subprocess.run(given, cwd=folder, env=env, capture_output=True, text=True, timeout=seconds, check=False)
    return warm_server.run(
        place(torch=torch or "torch" in words), given, folder=folder, environment=env, seconds=seconds
    )


# What a script can call instead of the command. It imports little, to start in no time.
_CLIENT = """#!{python} -IS
import json, os, resource, socket, sys

request = {{"words": [{program!r}, *sys.argv[1:]], "folder": os.getcwd(), "environment": dict(os.environ)}}
request["seconds"] = 600
request["largest"] = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect({place!r})
    socket.send_fds(connection, [b"."], [0, 1, 2])
    connection.sendall(json.dumps(request).encode() + b"\\n")
    status = int(connection.makefile().read())
if status < 0:
    os.kill(os.getpid(), -status)
sys.exit(status)
"""


def _write_client(path: Path, place: str, program: str) -> None:
    words = {"python": sys.executable, "program": program, "place": place}
    path.write_text(_CLIENT.format(**words))
    path.chmod(0o755)


def command(path: Path, *, torch: bool = False) -> str:
    """Write a program that does what the command does, for scripts; its path."""
    _write_client(path, place(torch=torch), COMMAND)
    return str(path)

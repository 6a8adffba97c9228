"""A process in which all that the command needs is imported: each command is a fork of it, not a new interpreter.

``python -m autograd_conformance.selftests.support.warm_server SOCKET MODULE...`` serves until its stdin is closed. A
request is three files and a JSON object with the words, folder and environment of a command; the answer is its exit
status. The smoke stage of a command, its workers and what runs its scripts are such forks too.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import resource
import secrets
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
import types
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from _pytest.pathlib import resolve_pkg_root_and_module_name
from execnet import gateway_io

from autograd_conformance import implementations
from autograd_conformance.harness import cli
from autograd_conformance.harness.probing import smoke
from autograd_conformance.harness.processes import child
from autograd_conformance.harness.provenance import identity

COMMAND = str(Path(sys.executable).with_name("autograd-conformance"))
EXAMINATION = [sys.executable, "-m", smoke.__name__]
NO_ANSWER = "none in time"

# The name of a program next to the socket that stands for the interpreter, and asks this server.
INTERPRETER = "python"


def ask(place: str, files: list[int], *, seconds: float, words: list[str], **request: Any) -> int:
    """The exit status of a command, which has these files as stdin, stdout and stderr, run by the server at a place."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(place)
        socket.send_fds(connection, [b"."], files)
        connection.sendall(json.dumps({"words": words, "seconds": seconds, **request}).encode() + b"\n")
        answer = connection.makefile().read()
    if answer == NO_ANSWER:
        raise subprocess.TimeoutExpired(words, seconds)
    return int(answer)


def serve(place: str) -> None:
    """Answer requests, each in a process of its own, until stdin is closed."""
    signal.signal(signal.SIGCHLD, _reap)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(place)
        listening.listen(64)
        print("ready", flush=True)
        while 0 not in select.select([listening, 0], [], [])[0]:
            connection, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                _answer(place, connection)
            connection.close()


def _reap(*_: Any) -> None:
    """Wait for the processes that have answered, so that what they used is known."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _answer(place: str, connection: socket.socket) -> NoReturn:
    """Run what is asked for in a child, and send how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, files, *_ = socket.recv_fds(connection, 1, 3)
    request = json.loads(connection.makefile().readline())
    seconds = request.pop("seconds")
    child = os.fork()
    if child == 0:
        connection.close()
        _be(place, files, **request)
    for number in files:
        os.close(number)
    ended = os.pidfd_open(child)
    # Who asked may end before, or not wait so long.
    in_time = ended in select.select([ended, connection], [], [], seconds)[0]
    if not in_time:
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with suppress(OSError):
        connection.sendall(str(status).encode() if in_time else NO_ANSWER.encode())
    os._exit(0)


def _be(
    place: str, files: list[int], *, words: list[str], folder: str, environment: dict[str, str],
    largest: int = resource.RLIM_INFINITY,
) -> NoReturn:  # fmt: skip
    """Be the interpreter that was started with these words, whose files have at most the largest number of bytes."""
    if largest != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    for number, file in enumerate(files):
        if number != file:
            os.dup2(file, number)
            os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    importlib.invalidate_caches()
    identity.COMMAND = secrets.token_hex(8)
    commanded = words[0] == COMMAND
    sys.path[0] = str(Path(COMMAND).parent) if commanded else folder
    sys.path[1:1] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    sys.orig_argv = [sys.executable, *words] if commanded else words
    sys.argv = words if commanded else words[2:]
    interpreter = str(Path(place).with_name(INTERPRETER))
    gateway_io.popen_args = partial(_worker, interpreter)
    child.subprocess = _Forking(place)
    status: Any = 1
    try:
        _act(words)
        status = 0
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:  # noqa: BLE001 - as an interpreter does
        traceback.print_exc()
    _end(status)


def _act(words: list[str]) -> None:
    """Do what an interpreter does with these words: the command, an examination, or code."""
    if words[0] == COMMAND:
        cli.main()
    elif words[:-1] == EXAMINATION:
        smoke._main()
    else:
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        _, code, *arguments = words[words.index("-c") :]
        sys.argv = ["-c", *arguments]
        exec(code, vars(main))


def _worker(interpreter: str, spec: Any, own: Any = gateway_io.popen_args) -> list[str]:
    """The words that start a worker, which is a fork of the server if it has the same interpreter."""
    words: list[str] = own(spec)
    return words if spec.python else [interpreter, *words[1:]]


def _end(status: int) -> NoReturn:
    """End as an interpreter does, but without taking apart all that is in memory."""
    try:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


class _Forking:
    """Stands for ``subprocess`` where interpreters are started: this one is a fork of the server."""

    TimeoutExpired = subprocess.TimeoutExpired

    def __init__(self, place: str) -> None:
        self.place = place

    def run(
        self, words: list[str], *, timeout: float, env: dict[str, str] | None = None, **_: Any
    ) -> subprocess.CompletedProcess[bytes]:
        """Examine an adapter, or run scripts."""
        done = run(self.place, words, folder=Path.cwd(), environment=env or dict(os.environ), seconds=timeout)
        return subprocess.CompletedProcess(words, done.returncode, done.stdout.encode(), done.stderr.encode())


def run(
    place: str, words: list[str], *, folder: Path, environment: dict[str, str], seconds: float
) -> subprocess.CompletedProcess[str]:
    """What a command printed that the server at a place ran, and its exit status."""
    opened = partial(tempfile.TemporaryFile, "w+", encoding="utf-8", newline="")
    with open(os.devnull) as nothing, opened() as out, opened() as err:
        files = [each.fileno() for each in (nothing, out, err)]
        where = os.fsdecode(folder)
        status = ask(place, files, words=words, folder=where, environment=environment, seconds=seconds)
        said = []
        for each in (out, err):
            each.seek(0)
            said.append(each.read())
    return subprocess.CompletedProcess(words, status, *said)


if __name__ == "__main__":
    for name in sys.argv[2:]:
        module = importlib.import_module(name)
        # Pytest looks for the tests under the names that folders give them, which installed ones have anyway.
        sys.modules.setdefault(resolve_pkg_root_and_module_name(Path(str(module.__file__)))[1], module)
    if "torch" in sys.modules:
        # Nobody changes its files, and to read them takes long.
        identity.build(*map(str, identity.places(implementations.load("torch"))))
    gc.freeze()
    serve(sys.argv[1])

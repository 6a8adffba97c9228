"""The program ``autograd-conformance``: the command, or a sentence if even that cannot be imported.

It ends with the exit status of the command. What an installation registers for the end of every process, as by a .pth
file, does not run. What it inherits from whoever starts it, and would not survive, is set right first.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

from autograd_conformance.harness.text import GONE, origin

# The streams of every process: number, name, mode.
_STREAMS = ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w"))


def _open_streams() -> None:
    """Open what is closed of the three streams, and let those that are open wait for their reader.

    Else the first files and pipes that are opened become these streams.
    """
    for number, name, mode in _STREAMS:
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            nothing = open(os.devnull, mode)  # noqa: SIM115 - as long as the process
            setattr(sys, name, nothing)
            setattr(sys, f"__{name}__", nothing)
        # A pipe that does not wait loses what does not fit into it.
        if mode == "w" and hasattr(os, "set_blocking"):
            os.set_blocking(number, True)


def _hear_signals() -> None:
    """Hear of the ends of child processes, which are lost if SIGCHLD is ignored, and of every signal that is blocked.

    An ignored SIGINT or SIGHUP stays so: that is what a shell and nohup mean.
    """
    if hasattr(signal, "SIGCHLD"):
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _flushed() -> int:
    """0 if everything that was printed has arrived, 2 if not."""
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except (OSError, ValueError):
        return 2
    return 0


def main() -> None:
    """Run the command."""
    _open_streams()
    _hear_signals()
    try:
        # Imported here: what fails must not end with exit status 1, which says that the implementation fails.
        from autograd_conformance.harness.cli import main as command
    except (Exception, KeyboardInterrupt) as raised:  # noqa: BLE001 - as while a command is imported
        print(f"Error: autograd-conformance cannot start: {origin(raised)}", file=sys.stderr)
        sys.exit(2)
    try:
        command()
    except SystemExit as ended:
        # Click has found that nobody reads, and exits with status 1, which says that the implementation fails.
        gone = type(sys.stdout).__name__.endswith("PacifyFlushWrapper")
        if not isinstance(ended.code, int):
            raise
        status = ended.code or _flushed()
    except OSError:
        # What is wrong cannot be said.
        gone, status = True, 2
    if gone:
        with suppress(OSError):
            print(f"Error: {GONE}", file=sys.__stderr__)
    os._exit(2 if gone else status)

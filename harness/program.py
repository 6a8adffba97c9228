"""The program ``autograd-conformance``: the command, or a sentence if even that cannot be imported.

It ends with the exit status of the command. What an installation registers for the end of every process, as by a .pth
file, does not run.
"""

from __future__ import annotations

import os
import sys

from autograd_conformance.harness.text import origin


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
    try:
        # Imported here: what fails must not end with exit status 1, which says that the implementation fails.
        from autograd_conformance.harness.cli import main as command
    except (Exception, KeyboardInterrupt) as raised:  # noqa: BLE001 - as while a command is imported
        print(f"Error: autograd-conformance cannot start: {origin(raised)}", file=sys.stderr)
        sys.exit(2)
    try:
        command()
    except SystemExit as ended:
        if not isinstance(ended.code, int):
            raise
        lost = _flushed()
        os._exit(ended.code or lost)

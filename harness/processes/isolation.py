"""The environment of a process that ignores the user's configuration."""

from __future__ import annotations

import os
import sys

# Modules of the working directory do not stand for installed ones, in Python from 3.11.
SAFE_PATH = {"PYTHONSAFEPATH": "1"}


def environment() -> dict[str, str]:
    """The environment of a process of this interpreter, which has its modules."""
    return {**os.environ, **SAFE_PATH, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def isolate_environment() -> None:
    """Remove the user's pytest settings from this process's environment.

    Also limits threads: workers share the cores, so a framework with a thread for each core in each worker is slower.
    """
    os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", **SAFE_PATH)
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
        os.environ.pop(name, None)

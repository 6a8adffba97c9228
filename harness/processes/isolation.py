"""Arguments and environment for a pytest that ignores the user's configuration."""

from __future__ import annotations

import os
import sys

from autograd_conformance.harness.catalogue import PACKAGE

# No ini file, and no plugins except these. The one for logging costs more time than a short test.
ARGUMENTS = (
    f"-c{os.devnull}", "--import-mode=importlib",
    "-p", "hypothesispytest", "-p", "autograd_conformance.harness.running.plugin", "-p", "no:cacheprovider",
    "-p", "no:logging",
    # Tests assert through their subject: to rewrite assert statements would only cost time.
    "--assert=plain",
    "-q", "--tb=no", "-rN", "--disable-warnings", "--verified",
)  # fmt: skip

# The root folder; no conftest from outside of it.
ROOT = (f"--rootdir={PACKAGE}", f"--confcutdir={PACKAGE}")


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

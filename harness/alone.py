"""How pytest is run so that nothing of the user's configuration takes part."""

from __future__ import annotations

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]

# No ini file, no plugins but these, no conftest from outside.
WORDS = (
    f"-c{os.devnull}", "--import-mode=importlib",
    "-p", "hypothesispytest", "-p", "autograd_conformance.harness.plugin", "-p", "no:cacheprovider",
    "-q", "--tb=no", "-rN", "--disable-warnings", "-W", "ignore::pytest.PytestAssertRewriteWarning", "--verified",
)  # fmt: skip

# Where tests are found, and no conftest beyond it.
INSIDE = (f"--rootdir={PACKAGE}", f"--confcutdir={PACKAGE}")


def leave_environment() -> None:
    """Take the user's pytest out of this process's environment.

    Workers share the cores; a framework that starts a thread for each of them in every worker is slower.
    """
    os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    os.environ.pop("PYTEST_ADDOPTS", None)

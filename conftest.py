"""Loads the suite's plugin in a checkout, whether it is installed or not."""

import sys
from pathlib import Path
from types import ModuleType

if "autograd_conformance" not in sys.modules:
    package = ModuleType("autograd_conformance")
    package.__path__ = [str(Path(__file__).parent)]
    sys.modules[package.__name__] = package

pytest_plugins = ("autograd_conformance.harness.plugin",)

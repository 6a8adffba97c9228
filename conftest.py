"""Loads the suite's plugin in a checkout, whether it is installed or not."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

NAME = "autograd_conformance"

if NAME not in sys.modules:
    here = Path(__file__).parent
    spec = spec_from_file_location(NAME, here / "__init__.py", submodule_search_locations=[str(here)])
    sys.modules[NAME] = package = module_from_spec(spec)
    spec.loader.exec_module(package)

pytest_plugins = (f"{NAME}.harness.running.plugin",)

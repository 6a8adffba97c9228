"""The tests of an implementation's own interface, for a package that lacks a part of what they use."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module

from _pytest.pathlib import resolve_pkg_root_and_module_name

from autograd_conformance.harness.catalogue import SUITES
from autograd_conformance.implementations.importing.missing import StandIns
from autograd_conformance.implementations.importing.piecewise import executed
from autograd_conformance.implementations.protocol import Implementation


@contextmanager
def importable(implementation: Implementation) -> Iterator[None]:
    """A context in which pytest can import these tests: what they lack is named once it is used."""
    if not implementation.drop_in:
        yield
        return
    stand_ins = StandIns(implementation.drop_in)
    with stand_ins.until_the_end():
        for path in sorted((SUITES / "dialects" / implementation.dialect).glob("*.py")):
            name = f"autograd_conformance.suites.dialects.{implementation.dialect}.{path.stem}"
            try:
                stand_ins.importing(partial(import_module, name))
            # A package may answer to what it lacks with anything.
            except Exception:  # noqa: BLE001
                # pytest takes a module that it finds under the name that it gives to the file.
                own = resolve_pkg_root_and_module_name(path)[1]
                sys.modules[name] = sys.modules[own] = executed(name, path, stand_ins)
        yield

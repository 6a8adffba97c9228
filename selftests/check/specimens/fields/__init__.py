"""Right custom Functions of many fields, declared as users would. ``python benchmarks/accused.py`` checks them."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from autograd_conformance.harness.check import Declaration
from autograd_conformance.selftests.check.specimens import whole

# The Functions of each field, by the name of its module.
FIELDS: dict[str, tuple[Declaration, ...]] = {
    module.name: import_module(f"{__name__}.{module.name}").DECLARATIONS for module in iter_modules(__path__)
}
DECLARATIONS = {declaration.name: declaration for field in FIELDS.values() for declaration in field}
SPECIMENS = tuple(whole(declaration, "quick") for declaration in DECLARATIONS.values())

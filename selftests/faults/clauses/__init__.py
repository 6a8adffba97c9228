"""Planted faults of clauses: deliberate bugs of torch, each with the clause whose test must catch it."""

from __future__ import annotations

import pkgutil
from importlib import import_module

_MODULES = [
    import_module(f"{__name__}.{found.name}")
    for found in pkgutil.iter_modules(__path__)
    if found.name not in ("definitions", "editing")
]

FAULTS = tuple(fault for module in _MODULES for fault in module.FAULTS)
FIXES = tuple(fix for module in _MODULES for fix in getattr(module, "FIXES", ()))

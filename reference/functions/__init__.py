"""FUNCTIONS, the documented Functions, and EXHIBITS, published versions that are wrong."""

from __future__ import annotations

from importlib import import_module

from autograd_conformance.reference.definitions import Function
from autograd_conformance.reference.functions.exhibit import Exhibit

_MODULES = ("elementwise", "linear", "scalars", "indexing", "inplace", "convolution")
_EXHIBITS = ("exhibits_formulas", "exhibits_indexing")


def _members(modules: tuple[str, ...]) -> list[object]:
    package = "autograd_conformance.reference.functions"
    return [value for name in modules for value in vars(import_module(f"{package}.{name}")).values()]


FUNCTIONS = {value.name: value for value in _members(_MODULES) if isinstance(value, Function)}
EXHIBITS = {value.function.name: value for value in _members(_EXHIBITS) if isinstance(value, Exhibit)}

"""The one place through which a program calls its custom Functions: `torch.autograd.Function.apply`."""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import inspect
import sys
from collections.abc import Callable
from typing import Any

DEFINES = "torch.autograd.function"

# Makes a call: it gets what calls the Function, and the class and arguments to call that with.
Around = Callable[[Callable[..., Any], Any, tuple[Any, ...], dict[str, Any]], Any]


def through(around: Around) -> None:
    """Make each call by this, from now on or as soon as torch is imported."""
    if DEFINES in sys.modules:
        _patch(sys.modules[DEFINES], around)
    else:
        sys.meta_path.insert(0, _Finder(around))


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the module that defines Functions, and changes it once it is executed."""

    def __init__(self, around: Around) -> None:
        self._around = around

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name != DEFINES:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def executed(module: Any) -> None:
                execute(module)
                _patch(module, self._around)

            spec.loader.exec_module = executed  # type: ignore[method-assign]
        return spec


def _patch(module: Any, around: Around) -> None:
    inner: Callable[..., Any] = module.Function.__dict__["apply"].__func__

    @functools.wraps(inner)
    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        return around(inner, cls, args, kwargs)

    module.Function.apply = classmethod(apply)


def operator(cls: Any) -> tuple[str, Any, Any]:
    """The operator for which torch made a Function, as ``namespace::name``, with itself and its backward.

    The name is empty for any other Function.
    """
    if cls.__module__ != "torch._library.autograd":
        return "", None, None
    cells = zip(cls.forward.__code__.co_freevars, cls.forward.__closure__ or (), strict=False)
    found = {name: cell.cell_contents for name, cell in cells if name in ("op", "info")}
    if len(found) < 2:
        return "", None, None
    return str(found["op"]._schema.name), found["op"], found["info"]._backward_fn


def about(cls: Any, named: str, backward: Any) -> dict[str, Any]:
    """Where a Function is defined, or an operator gets its backward, and the names of the parameters of forward."""
    place = getattr(backward, "__module__", None) or cls.__module__
    module = sys.modules.get(place)
    spec = getattr(module, "__spec__", None)
    try:
        parameters = list(inspect.signature(cls.forward).parameters)
    except (TypeError, ValueError):
        parameters = []
    # Beside a setup_context of the class's own, forward has no ctx.
    own = any("setup_context" in vars(base) for base in cls.__mro__ if base.__module__ != DEFINES)
    return {
        "operator": named,
        "main": place == "__main__",
        "module": getattr(spec, "name", None) or place,
        "qualname": cls.__qualname__,
        "file": str(getattr(module, "__file__", "") or ""),
        "parameters": [] if named else parameters if own else parameters[1:],
    }

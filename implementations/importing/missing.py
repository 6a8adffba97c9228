"""Packages that lack a part of what the suite uses: the part is named where it is used, and nothing else stops.

What is missing while modules of the suite are imported gets a placeholder, which raises `Missing` once it is used.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

_Result = TypeVar("_Result")

_SUITE = Path(__file__).parents[2]

# A package that lacks more parts than this is another one.
_MOST = 500


class Missing(Exception):
    """Something used a part of a package, given by its full name, that the package lacks."""

    def __str__(self) -> str:
        return f"needs {self.args[0]}"


class Placeholder:
    """Stands for a missing part. It has parts itself, and can be a base class; any other use raises `Missing`.

    While modules of the suite are imported, a use gives another placeholder.
    """

    importing = False

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"<missing {self._name}>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Placeholder(f"{self._name}.{name}")

    def __instancecheck__(self, _: object) -> bool:
        return False

    def __mro_entries__(self, _: tuple[Any, ...]) -> tuple[type, ...]:
        return (type("MissingBase", (), {"__init__": self._used, "apply": self._used}),)

    def _used(self, *_: Any, **__: Any) -> Any:
        if Placeholder.importing:
            return Placeholder(self._name)
        raise Missing(self._name)

    def __bool__(self) -> bool:
        return not isinstance(self._used(), Placeholder)

    __call__ = __iter__ = __len__ = __enter__ = __exit__ = __getitem__ = __or__ = __ror__ = _used
    __add__ = __radd__ = __mul__ = __rmul__ = __neg__ = __lt__ = __gt__ = __int__ = __index__ = _used


class StandIns:
    """The placeholders of a package with this name, which lacks something."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.names: list[str] = []
        self._removals: list[Callable[[], Any]] = []

    def importing(self, action: Callable[[], _Result]) -> _Result:
        """Import something, with placeholders for what is missing. Raises what is raised for another reason."""
        for _ in range(_MOST):
            Placeholder.importing = True
            try:
                return action()
            except (AttributeError, ImportError) as problem:
                if not self._stands_in(problem):
                    raise
            finally:
                Placeholder.importing = False
        raise ImportError(f"{self.package} lacks more than {_MOST} parts, among them {', '.join(self.names[:3])}")

    @contextmanager
    def until_the_end(self) -> Iterator[None]:
        """A context at whose end all placeholders are removed: other packages may ask what there is."""
        try:
            yield
        finally:
            for remove in self._removals:
                # The package itself may have changed this since.
                with suppress(AttributeError, KeyError):
                    remove()
            self._removals.clear()

    def _stands_in(self, problem: AttributeError | ImportError) -> bool:
        """Put a placeholder where a part is missing; False if none is."""
        name = missing_part(problem, self.package)
        if name is None:
            return False
        self.names.append(name)
        if isinstance(problem, AttributeError):
            self._put(problem.obj, str(problem.name), Placeholder(name))
        elif isinstance(problem, ModuleNotFoundError):
            self._put_module(str(problem.name), name)
        else:
            self._put(sys.modules[str(problem.name)], name.rpartition(".")[2], Placeholder(name))
        return True

    def _put(self, owner: Any, name: str, value: Any) -> None:
        setattr(owner, name, value)
        self._removals.append(partial(delattr, owner, name))

    def _put_module(self, imported: str, name: str) -> None:
        module = ModuleType(imported)
        vars(module).update(__path__=[], __getattr__=Placeholder(name).__getattr__)
        sys.modules[imported] = module
        self._removals.append(partial(sys.modules.pop, imported))
        parent, _, mine = imported.rpartition(".")
        self._put(sys.modules[parent], mine, module)


def missing_part(problem: BaseException, package: str) -> str | None:
    """The full name of what a package lacks, if the suite's code asked for it and an exception says that it does."""
    if isinstance(problem, Missing):
        return str(problem.args[0])
    if not package or not _asked_by_suite(problem, package):
        return None
    if isinstance(problem, ImportError):
        return _missing_import(problem, package)
    if not isinstance(problem, AttributeError) or problem.name is None:
        return None
    owner = problem.obj
    if isinstance(owner, ModuleType):
        places = [_place(owner, package)]
    else:
        # A Function of the suite is derived from a class of the package.
        places = [_place(kind, package) for kind in (owner if isinstance(owner, type) else type(owner)).__mro__]
    place = next((place for place in places if _is_in(place, package)), None)
    return f"{_public(place, package)}.{problem.name}" if place is not None else None


def _asked_by_suite(problem: BaseException, package: str) -> bool:
    """Whether code of the suite asked for what is missing; what a package lacks inside itself is a fault of its own."""
    file = getattr(sys.modules.get(package), "__file__", None)
    own = [Path(file).parent if Path(file).stem == "__init__" else Path(file)] if file is not None else []
    inside = (_SUITE, *own)
    frames = [frame for frame in traceback.extract_tb(problem.__traceback__) if frame.name != "__getattr__"]
    places = [place for frame in frames for place in inside if Path(frame.filename).is_relative_to(place)]
    return places[-1:] == [_SUITE]


def _missing_import(problem: ImportError, package: str) -> str | None:
    place = str(problem.name or "")
    if (
        place == package
        or not _is_in(place, package)
        or (place in sys.modules) is isinstance(problem, ModuleNotFoundError)
    ):
        return None
    if isinstance(problem, ModuleNotFoundError):
        return _public(place, package)
    # from place import part: Python says which part only in words. Other words are the package's own.
    part = re.match(r"cannot import name '(\w+)'", str(problem.msg))
    return f"{_public(place, package)}.{part[1]}" if part else None


def _place(owner: type | ModuleType, package: str) -> str:
    """The full name of a module or class; of one that the package itself has by its name, that one."""
    if isinstance(owner, ModuleType):
        imported = [name for name, module in list(sys.modules.items()) if module is owner]
        shortest = min((name for name in imported if name.startswith(f"{package}.")), key=len, default="")
        # A namespace of an adapter says of what.
        return shortest or owner.__name__.partition(" ")[0]
    public = getattr(sys.modules.get(package), owner.__name__, None) is owner
    module = sys.modules.get(owner.__module__)
    place = _place(module, package) if module is not None else owner.__module__
    return f"{package}.{owner.__name__}" if public else f"{place}.{owner.__qualname__}"


def _roots(package: str) -> tuple[str, ...]:
    """The names under which a package is imported: the one that is used, and its own."""
    own = getattr(sys.modules.get(package), "__name__", package)
    return tuple(dict.fromkeys((own, package)))


def _is_in(place: str, package: str) -> bool:
    return any(place == root or place.startswith(f"{root}.") for root in _roots(package))


def _public(place: str, package: str) -> str:
    """A place in the package by the name that is used."""
    root = next(root for root in _roots(package) if place == root or place.startswith(f"{root}."))
    return package + place[len(root) :]

"""The implementations that are checked, with one adapter per file."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module, metadata, util
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from packaging.specifiers import SpecifierSet

from autograd_conformance.implementations.classes import derives
from autograd_conformance.implementations.deviations import Deviation
from autograd_conformance.implementations.importing import aliases, failing
from autograd_conformance.implementations.importing.missing import StandIns
from autograd_conformance.implementations.protocol import Implementation, Unavailable

_Imported = TypeVar("_Imported")

_HERE = "autograd_conformance.implementations"

# For each name the adapter's module and class, and what to install for its framework.
ADAPTERS = {
    "model": (f"{_HERE}.model:ModelImplementation", "'numpy>=2'"),
    "torch": (f"{_HERE}.torch:TorchImplementation", "torch==2.13.0"),
    "torch-compile": (f"{_HERE}.torch.compile:TorchCompileImplementation", "torch==2.13.0"),
    "torch-inductor": (f"{_HERE}.torch.inductor:TorchInductorImplementation", "torch==2.13.0"),
    "torch-func": (f"{_HERE}.torch.func:TorchFuncImplementation", "torch==2.13.0"),
    "torch-library": (f"{_HERE}.torch.library:TorchLibraryImplementation", "torch==2.13.0"),
    "torch-cpp": (f"{_HERE}.torch.cpp:TorchCppImplementation", "torch==2.13.0"),
    "jax": (f"{_HERE}.jax:JaxImplementation", "jax"),
    "paddle": (f"{_HERE}.paddle:PaddleImplementation", "paddlepaddle"),
    "mlx": (f"{_HERE}.mlx:MlxImplementation", "mlx mlx-cpu"),
    "mindspore": (f"{_HERE}.mindspore:MindSporeImplementation", "mindspore"),
    "tensorflow": (f"{_HERE}.tensorflow:TensorFlowImplementation", "tensorflow-cpu"),
    "hips": (f"{_HERE}.hips:HipsImplementation", "autograd"),
    "mygrad": (f"{_HERE}.mygrad:MyGradImplementation", "mygrad"),
    "tinygrad": (f"{_HERE}.tinygrad:TinygradImplementation", "tinygrad"),
}

# The packages that others imitate, of which a part may be missing.
_PACKAGES = {name: "torch" for name in ADAPTERS if name.startswith("torch")}

# The variable that names another package to import instead of that, which imitates it.
PACKAGE = "AUTOGRAD_CONFORMANCE_PACKAGE"

# Other packages add adapters by an entry point in this group, with the value module:class.
ENTRY_POINTS = "autograd_conformance.implementations"

# The variable that names what every process imports before it uses an implementation, comma-separated: packages that
# register a device, or with a colon the function of one that does. Child processes inherit it.
IMPORTS = "AUTOGRAD_CONFORMANCE_IMPORT"

# The variable that names the only devices to use, comma-separated, the one where everything is tried first.
DEVICES = "AUTOGRAD_CONFORMANCE_DEVICES"


def joined() -> dict[str, str]:
    """The adapters of other installed packages: their places by name."""
    return {found.name: found.value for found in metadata.entry_points(group=ENTRY_POINTS)}


def load(given: str) -> Implementation:
    """The implementation with this name, at ``module:attribute``, or in a .py file.

    The packages that ``IMPORTS`` names are imported, too, and become parts of it. Raises Unavailable if there is no
    such implementation, or if its framework or one of these packages cannot be imported.
    """
    brought = joined()
    place, requirement = ADAPTERS.get(given) or (brought.get(given, given), "")
    path, _, attribute = place.rpartition(":") if ":" in place else (place, "", "")
    if not place.endswith(".py") and not attribute:
        names = ", ".join((*ADAPTERS, *brought))
        raise Unavailable(
            f"unknown implementation {given!r}; choose from: {names}; "
            "or give module:attribute, or the path of a .py file"
        )
    cure = f"; install it with: pip install {requirement}" if requirement else ""
    stand_ins = StandIns(_PACKAGES.get(given, ""))
    _alias(given)
    with _staying(), stand_ins.until_the_end():
        module = _tried(given, cure, partial(stand_ins.importing, partial(_module, path)))
        added = {name: _tried(f"{name} of --import", "", partial(_set_up, name), name) for name in to_import()}
    found = _made(given, module, attribute)
    if found.drop_in and not isinstance(getattr(found.ag, "Function", None), type):
        raise Unavailable(
            f"{found.package.__name__} has no {found.drop_in}.autograd.Function, so there is nothing to check"
        )
    _add(found, added)
    restrict(found, _listed(DEVICES))
    return found


def _add(found: Implementation, packages: Mapping[str, ModuleType]) -> None:
    """Let packages be parts of an implementation, with what their devices are known not to keep."""
    found.parts = tuple(dict.fromkeys((*found.parts, *packages.values())))
    found.added = {name: _version(each) for name, each in packages.items()}
    found.of_accelerators = tuple(chain.from_iterable(map(of_device, found.added)))


def restrict(found: Implementation, only: Sequence[str]) -> None:
    """Let an implementation have only some of its devices, if any are named. Raises Unavailable if one is not there."""
    for name in only:
        if name not in found.devices():
            raise Unavailable(
                f"{found.name} has no device {name!r} on this machine; choose from: {', '.join(found.devices())}; "
                "--import PACKAGE imports what registers another one"
            )
    if only:
        beside = [device for device in only if device in found.accelerators()]
        found.devices, found.accelerators = lambda: tuple(only), lambda: tuple(beside)  # type: ignore[method-assign]


def _alias(given: str) -> None:
    """Let another package be imported, if one is asked for. Raises Unavailable if that is not possible."""
    package = os.environ.get(PACKAGE, "")
    if package and given not in _PACKAGES:
        raise Unavailable(f"--package {package} goes with {', '.join(_PACKAGES)}, and not with {given}")
    if package:
        _tried(f"{package} of --package", "", lambda: aliases.use(_PACKAGES[given], package), package)


def _module(path: str) -> ModuleType:
    return _from_file(Path(path)) if path.endswith(".py") else _imported(path)


def _version(module: ModuleType) -> str:
    """The version of an imported package; "" if it has none."""
    name = module.__name__.partition(".")[0]
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(name)
    return str(getattr(module, "__version__", ""))


def of_device(package: str) -> tuple[Deviation, ...]:
    """The known deviations of a package that registers a device."""
    place = f"{_HERE}.deviations.devices.{re.split('[.:]', package)[0]}"
    return import_module(place).DEVIATIONS if util.find_spec(place) is not None else ()


def to_import() -> list[str]:
    """The names of the packages, or of their functions, that ``IMPORTS`` asks for."""
    return _listed(IMPORTS)


def statements(name: str) -> str:
    """The lines that do in a script what ``IMPORTS`` does."""
    module, _, function = name.partition(":")
    return f"import {module}\n" + f"\n{module}.{function}()\n" * bool(function)


def _listed(variable: str) -> list[str]:
    return list(dict.fromkeys(filter(None, map(str.strip, os.environ.get(variable, "").split(",")))))


def _tried(what: str, cure: str, importing: Callable[[], _Imported], package: str = "") -> _Imported:
    try:
        return importing()
    except Unavailable:
        raise
    # The import of a framework that does not fit the other installed packages may raise anything.
    except Exception as problem:
        # Whoever has the package needs no advice to install another one.
        absent = isinstance(problem, ModuleNotFoundError) and "." not in str(problem.name)
        said = ", because of ".join(failing.reasons(problem))
        cures = (cure if absent else "") + "".join(f"; {each}" for each in failing.unmet(package))
        raise Unavailable(f"{what} cannot be imported ({said}){cures}") from problem


@contextmanager
def _staying() -> Iterator[None]:
    """A context whose end is in the working folder of its beginning: names of files are relative to that."""
    before = os.getcwd()
    try:
        yield
    finally:
        os.chdir(before)


def _imported(name: str) -> ModuleType:
    # The user's own folder comes last: it must not hide installed packages.
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    return import_module(name)


@cache
def _set_up(name: str) -> ModuleType:
    """Import a package, and call the function that is named behind a colon, once in a process."""
    path, _, function = name.partition(":")
    module = _imported(path)
    if function:
        if not callable(getattr(module, function, None)):
            raise Unavailable(f"{name} of --import: {path} has no function {function!r}")
        try:
            getattr(module, function)()
        except Exception as problem:
            said = ", because of ".join(failing.reasons(problem))
            raise Unavailable(f"{name} of --import cannot be called ({said})") from problem
    return module


@dataclass(frozen=True)
class _Beside(MetaPathFinder):
    """Finds the modules that lie beside an adapter, after all others: they must not hide installed packages."""

    folder: Path

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return PathFinder.find_spec(name, [str(self.folder)]) if path is None else None


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise Unavailable(f"there is no file {path}")
    beside = _Beside(path.resolve().parent)
    if beside not in sys.meta_path:
        sys.meta_path.append(beside)
    name = f"autograd_conformance_joined_{path.stem}"
    spec = util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _made(given: str, module: ModuleType, attribute: str) -> Implementation:
    """The adapter with this name in a module, or the only one that the module defines."""
    mine = [
        name
        for name, value in vars(module).items()
        if derives(value, Implementation) and value.__module__ == module.__name__
    ]
    if not attribute and len(mine) != 1:
        found = ", ".join(mine) or "none"
        raise Unavailable(f"{given} must define one class derived from Implementation, but defines: {found}")
    chosen = getattr(module, attribute or mine[0], None)
    if chosen is None:
        raise Unavailable(
            f"{given}: {module.__name__} has no {attribute!r}; it defines {', '.join(mine) or 'no adapter'}"
        )
    try:
        adapter = chosen() if isinstance(chosen, type) else chosen
    except TypeError as problem:
        raise Unavailable(f"{given}: {problem}") from problem
    if not isinstance(adapter, Implementation):
        raise Unavailable(f"{given} is a {type(adapter).__name__}, which is not derived from Implementation")
    return adapter


def check_version(implementation: Implementation) -> None:
    """Raise Unavailable if the adapter does not support the installed version."""
    version = implementation.environment().version
    if not SpecifierSet(implementation.supported, prereleases=True).contains(version.partition("+")[0]):
        raise Unavailable(
            f"{implementation.name} {version} is not supported; the adapter needs {implementation.supported}"
        )

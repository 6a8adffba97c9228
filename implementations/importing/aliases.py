"""A package that is imported under the name of another one, which it imitates."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any


@dataclass(frozen=True)
class Alias(MetaPathFinder):
    """Finds the modules of ``package`` under another ``name``: torch.autograd is mindtorch.torch.autograd, say."""

    name: str
    package: str

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        if fullname != self.name and not fullname.startswith(f"{self.name}."):
            return None
        own = self.package + fullname[len(self.name) :]
        try:
            module = import_module(own)
        except ModuleNotFoundError as problem:
            if problem.name is None or not f"{own}.".startswith(f"{problem.name}."):
                raise
            # No other finder may look for it: what is installed under this name is not asked for.
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname) from None
        return spec_from_loader(fullname, _Given(module))


@dataclass(frozen=True)
class _Given(Loader):
    """Gives a module that was imported under another name; its own spec stays."""

    module: ModuleType

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Kept(self.module)

    def exec_module(self, module: ModuleType) -> None:
        # The import system takes from here what it finds under the name.
        sys.modules[str(module.__spec__ and module.__spec__.name)] = self.module


class _Kept(ModuleType):
    """Stands for a module while the import system writes the other name's attributes into it."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module.__name__)


def use(name: str, package: str) -> None:
    """Let ``name`` mean ``package`` in this process. Raises ImportError if there is no such package."""
    import_module(package)
    alias = Alias(name, package)
    if package != name and alias not in sys.meta_path:
        sys.meta_path.insert(0, alias)

"""PyTorch with the documented Functions in C++: `torch::autograd::Function`, called through its ``apply``."""

from __future__ import annotations

import os
import re
import shutil
import types
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch.utils import cpp_extension

from autograd_conformance.implementations.protocol import CAPABILITIES, Unavailable
from autograd_conformance.implementations.torch import TorchImplementation
from autograd_conformance.reference.functions import FUNCTIONS

_SOURCE = Path(__file__).with_name("functions.cpp")

# The documented Functions that the source has, by the names that it gives them.
WRITTEN = (
    "Exp", "Square", "Cube", "Sinh", "LegendrePolynomial3", "LinearFunction", "MulConstant",
    "MulConstantUnmaterialized", "SaveForBackward", "SimpleFunc", "SimpleFuncUnmaterialized", "NumpyMul",
    "GradientScaler", "Sort", "GlobalMaxPool", "ReciprocalInplace",
)  # fmt: skip

_NAMES = {function.body.__name__: function.name for function in FUNCTIONS.values()}


@cache
def extension() -> Any:
    """The compiled Functions. torch keeps them, and builds them again if the source or torch changes.

    Raises Unavailable with the compiler's first error.
    """
    # Another torch has other headers, which the build tool does not look at.
    name = re.sub(r"\W", "_", f"autograd_conformance_{torch.__version__}")
    try:
        return cpp_extension.load(name, [str(_SOURCE)], extra_cflags=["-O1"])
    except (ImportError, OSError, RuntimeError) as problem:
        lines = [line.strip() for line in str(problem).splitlines()] or [type(problem).__name__]
        said = next((line for line in lines if "error" in line[1:]), lines[0])
        raise Unavailable(f"torch-cpp cannot build its Functions: {said}") from problem


def verify_tools() -> None:
    """Raise Unavailable if there is no compiler or no ninja."""
    compiler = os.environ.get("CXX", "c++").split()[0]
    for tool, cure in ((compiler, "install one, or name another one in CXX"), ("ninja", "pip install ninja")):
        if shutil.which(tool) is None:
            raise Unavailable(f"torch-cpp builds its Functions in C++, and there is no {tool}: {cure}")


class _Written:
    """A documented Function in C++, in the place of the class that a body makes."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def apply(self, *args: Any) -> Any:
        """Call the Function's ``apply``."""
        found = getattr(extension(), self.__name__)(*args)
        return tuple(found) if isinstance(found, list) else found


class _Bodies(type):
    """Makes no class of a documented body: what it says is written in C++. What tests call around it is Python."""

    def __new__(cls, name: str, bases: tuple[Any, ...], namespace: dict[str, Any]) -> Any:
        if not bases:
            return super().__new__(cls, name, bases, namespace)
        body = namespace.get("__qualname__", "").partition(".")[0]
        if body in _NAMES:
            return _Written(_NAMES[body])
        return types.new_class(name, (torch.autograd.Function,), exec_body=lambda mine: mine.update(namespace))


class _Function(metaclass=_Bodies):
    """The base class of a body."""


class TorchCppImplementation(TorchImplementation):
    """The documented Functions that are written in C++.

    What happens inside them is not seen. C++ has no rules for forward mode and for batches.
    """

    name = "torch-cpp"
    capabilities = frozenset(CAPABILITIES) - {
        "context", "classes", "objects", "keywords", "jvp", "vmap", "compile", "numpy", "sparse",
    }  # fmt: skip
    deviations = tuple(d for d in TorchImplementation.deviations if d.ids[0].startswith("CPP-"))
    limits = types.MappingProxyType({
        (name, ""): "it is not written in C++" for name in FUNCTIONS if name not in WRITTEN
    })  # fmt: skip
    ag: Any = types.SimpleNamespace(Function=_Function, once_differentiable=lambda backward: backward)
    dialect = "cpp"
    script = None
    keeps_contract = False
    sees_inside = False

    def __init__(self) -> None:
        super().__init__()
        verify_tools()

    def prepare(self) -> None:
        extension()

    def simulated_devices(self) -> tuple[str, ...]:
        return ()

    def abstract_devices(self) -> tuple[str, ...]:
        return ()

"""Packages that register a device: by their import, or by a function; and why one could not."""

from __future__ import annotations

import sys

import pytest
import torch

from autograd_conformance import implementations
from autograd_conformance.implementations.protocol import Unavailable

# What registers a device when it is asked to, and what cannot.
REGISTERING = """
calls = []

def register():
    calls.append(1)

def broken():
    try:
        raise OSError("undefined symbol: _ZN2at4fillE")
    except OSError as problem:
        raise RuntimeError("no driver") from problem

number = 3
"""


@pytest.fixture
def registering(tmp_path, monkeypatch):
    (tmp_path / "registering.py").write_text(REGISTERING)
    (tmp_path / "unloadable.py").write_text(f"{REGISTERING}broken()\n")
    about = tmp_path / "unloadable-0.2.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: unloadable\nVersion: 0.2\nRequires-Dist: torch==2.4.1\nRequires-Dist: numpy>=1\n"
        "Requires-Dist: rich==1.0 ; extra == 'more'\nRequires-Dist: not here\n"
    )
    (about / "RECORD").write_text("unloadable.py,,\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield lambda names: monkeypatch.setenv(implementations.IMPORTS, names)
    sys.modules.pop("registering", None)


def test_a_function_of_a_package_is_called_once_in_each_process(registering):
    registering("registering:register, registering")
    implementations.load("model")
    found = implementations.load("model")
    assert found.added.keys() == {"registering:register", "registering"}
    assert [part.calls for part in found.parts] == [[1]]
    assert implementations.statements("registering:register") == "import registering\n\nregistering.register()\n"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("registering:nothing", "registering:nothing of --import: registering has no function 'nothing'"),
        ("registering:number", "registering:number of --import: registering has no function 'number'"),
        (
            "registering:broken",
            "registering:broken of --import cannot be called (RuntimeError: no driver, because of OSError: undefined "
            "symbol: _ZN2at4fillE)",
        ),
        (
            "unloadable",
            "unloadable of --import cannot be imported (RuntimeError: no driver, because of OSError: undefined symbol: "
            f"_ZN2at4fillE); unloadable 0.2 requires torch==2.4.1, but {torch.__version__} is installed",
        ),
    ],
)
def test_why_a_device_is_not_registered_is_said(registering, name, said):
    registering(name)
    with pytest.raises(Unavailable) as raised:
        implementations.load("model")
    assert str(raised.value) == said

"""The specs of ``--tx``: workers on other interpreters and machines."""

from __future__ import annotations

import re
import shlex
import shutil

from execnet import XSpec

from autograd_conformance.harness.outcomes import UsageProblem, choose_from

# The keys that say what to start, as a spec has them.
_KINDS = {"popen": "popen", "ssh": "ssh=HOST", "socket": "socket=HOST:PORT", "vagrant_ssh": "vagrant_ssh=NAME"}

_WITHOUT_VALUE = ("popen", "dont_write_bytecode")

_EXAMPLE = "as in 2*popen//python=python3.12"


def count(given: str) -> int:
    """The number of workers of a spec."""
    return _split(given)[0]


def verify(given: str) -> None:
    """Raise UsageProblem for a spec with which no worker can start."""
    number, text = _split(given)
    try:
        spec = XSpec(text)
    except (ValueError, AttributeError, IndexError):
        raise UsageProblem(f"--tx {given} cannot be read; give [N*]KIND[//KEY=VALUE...], {_EXAMPLE}") from None
    keys = [name for name in vars(XSpec) if not name.startswith("_")]
    values = {name: value for name, value in vars(spec).items() if name not in ("_spec", "env")}
    for name, value in values.items():
        if name not in keys:
            raise UsageProblem(f"--tx {given} has the unknown key {name!r}; {choose_from(name, keys)}")
        if value is True and name not in _WITHOUT_VALUE:
            raise UsageProblem(f"--tx {given} has no value for {name}; give it as {name}=VALUE")
    if number < 1:
        raise UsageProblem(f"--tx {given} starts no worker; give a number from 1, {_EXAMPLE}")
    if not values.keys() & _KINDS.keys():
        raise UsageProblem(f"--tx {given} does not say what to start; choose from: {', '.join(_KINDS.values())}")
    if spec.popen and not spec.via and spec.python and shutil.which(_program(spec.python)) is None:
        raise UsageProblem(f"--tx {given}: there is no program {spec.python}; name a Python interpreter, {_EXAMPLE}")


def _program(command: str) -> str:
    try:
        return shlex.split(command)[0]
    except (ValueError, IndexError):
        return ""


def _split(given: str) -> tuple[int, str]:
    """The number of workers, and the spec of each."""
    found = re.fullmatch(r"(-?\d+)\*(.*)", given)
    return (int(found[1]), found[2]) if found else (1, given)

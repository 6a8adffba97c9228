"""The specs of ``--tx``: workers on other interpreters and machines."""

from __future__ import annotations

import re
import shlex
import shutil
from collections import Counter
from collections.abc import Sequence

from execnet import XSpec

from autograd_conformance.harness.outcomes import UsageProblem, choose_from, one_line
from autograd_conformance.harness.text import shown

# The keys that say what to start, as a spec has them.
_KINDS = {"popen": "popen", "ssh": "ssh=HOST", "socket": "socket=HOST:PORT", "vagrant_ssh": "vagrant_ssh=NAME"}

_WITHOUT_VALUE = ("popen", "dont_write_bytecode")

_EXAMPLE = "as in 2*popen//python=python3.12"


# What xdist puts before each spec.
_XDISTS = "execmodel=main_thread_only//"

# What workers on other interpreters must not load of this machine's choice.
_PLAIN = "//env:PYTEST_DISABLE_PLUGIN_AUTOLOAD=1//env:PYTEST_PLUGINS="


def without_plugins(given: str) -> str:
    """The spec of workers that load no installed plugins of pytest."""
    return f"{given}{_PLAIN}"


def as_given(spec: str) -> str:
    """The spec that the user gave, of one to which xdist and this module have added."""
    return spec.removesuffix(_PLAIN).removeprefix(_XDISTS)


def why(raised: BaseException) -> str:
    """Why workers cannot start, from what execnet raised."""
    if isinstance(raised, TimeoutError) and raised.errno is None:
        return str(raised)
    # Of a closed channel execnet raises an OSError without a number.
    ended = isinstance(raised, BrokenPipeError | EOFError) or (isinstance(raised, OSError) and raised.errno is None)
    return "their program ended before it answered" if ended else shown(one_line(raised))


def count(given: str) -> int:
    """The number of workers of a spec."""
    return _split(given)[0]


def verify(specs: Sequence[str]) -> None:
    """Raise UsageProblem for specs with which no worker can start."""
    ids = Counter(id for id in (_verified(given).id for given in specs) if id)
    for given in specs:
        number, text = _split(given)
        spec = XSpec(text)
        if spec.id and (number > 1 or ids[spec.id] > 1):
            raise UsageProblem(f"--tx {given} gives several workers the id {spec.id}; each needs its own")
        if spec.via and spec.via not in ids:
            raise UsageProblem(
                f"--tx {given}: no worker has the id {spec.via}; give it to one, as in popen//id={spec.via}"
            )


def _verified(given: str) -> XSpec:
    """The spec of a worker that can start, as far as this can be known from it alone."""
    number, text = _split(given)
    try:
        spec = XSpec(text)
    except (ValueError, AttributeError, IndexError):
        raise UsageProblem(f"--tx {given} cannot be read; give [N*]KIND[//KEY=VALUE...], {_EXAMPLE}") from None
    keys = [name for name in vars(XSpec) if not name.startswith("_")]
    values = {name: value for name, value in vars(spec).items() if name not in ("_spec", "env")}
    for name in values:
        if name not in keys:
            raise UsageProblem(f"--tx {given} has the unknown key {name!r}; {choose_from(name, keys)}")
    absent = [name for name, value in values.items() if value == "" or (value is True and name not in _WITHOUT_VALUE)]
    absent += [f"env:{name}" for name, value in spec.env.items() if value is True]
    for name in absent:
        raise UsageProblem(f"--tx {given} has no value for {name}; give it as {name}=VALUE")
    if number < 1:
        raise UsageProblem(f"--tx {given} starts no worker; give a number from 1, {_EXAMPLE}")
    if not values.keys() & _KINDS.keys():
        raise UsageProblem(f"--tx {given} does not say what to start; choose from: {', '.join(_KINDS.values())}")
    if spec.popen and not spec.via and spec.python and shutil.which(_program(spec.python)) is None:
        raise UsageProblem(f"--tx {given}: there is no program {spec.python}; name a Python interpreter, {_EXAMPLE}")
    return spec


def _program(command: str) -> str:
    try:
        return shlex.split(command)[0]
    except (ValueError, IndexError):
        return ""


def _split(given: str) -> tuple[int, str]:
    """The number of workers, and the spec of each."""
    found = re.fullmatch(r"(-?\d+)\*(.*)", given)
    return (int(found[1]), found[2]) if found else (1, given)

"""Keeps a call of a program that shows a fault: its arguments in a file, and a script that makes the call again."""

from __future__ import annotations

import pickle
import re
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autograd_conformance.harness.check.declaration.naming import importing

# Where Python and packages are.
_INSTALLED = ("stdlib", "platstdlib", "purelib", "platlib")

_SCRIPT = '''\
"""A call of {name}, with what a program gave it. To check it: autograd-conformance watch -- {file}"""

import pickle
import sys
from pathlib import Path

sys.path[:0] = {paths}
{imports}

args = pickle.loads(Path(__file__).with_suffix(".pickle").read_bytes())
outputs = {name}.apply(*args)
for output in outputs if isinstance(outputs, tuple) else (outputs,):
    if getattr(output, "requires_grad", False):
        output.sum().backward(retain_graph=True)
'''


def pickled(args: Sequence[Any]) -> bytes | str:
    """The arguments as bytes, or why there are none."""
    try:
        return pickle.dumps(tuple(args))
    except Exception as problem:  # noqa: BLE001 - an object may refuse to be pickled in any way
        return f"its arguments cannot be pickled: {type(problem).__name__}: {problem}"


def written(folder: str, function: Any, name: str, arguments: bytes | str) -> dict[str, str]:
    """Write a call into a folder, unless there is one of this Function; say where it is, or why it is not kept."""
    if isinstance(arguments, str):
        return {"unkept": arguments}
    module = sys.modules.get(str(getattr(function, "__module__", "")))
    if not isinstance(function, type) or module is None or module.__name__ == "__main__" or "<locals>" in name:
        return {"unkept": "a script can import no operator, and no class of a function or of the main module"}
    path = Path(folder, module.__name__, re.sub(r"[^\w.-]+", "-", name) + "-inputs.py")
    # Of objects the program's own modules may be needed.
    paths = [entry for entry in sys.path if entry and not _is_installed(Path(entry))]
    imports = importing(module, name.partition(".")[0])
    text = _SCRIPT.format(name=name, file=path.name, paths=paths, imports=imports)
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_suffix(".pickle").write_bytes(arguments)
            path.write_text(text, encoding="utf-8")
    except OSError as problem:
        return {"unkept": str(problem)}
    return {"kept": str(path)}


def _is_installed(folder: Path) -> bool:
    """Whether Python finds a folder without being told."""
    return folder.suffix == ".zip" or any(folder.is_relative_to(sysconfig.get_path(kind)) for kind in _INSTALLED)

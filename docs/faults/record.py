"""Writes docs/faults/NAME.txt: what the suite says about each of docs/faults/NAME.py.

python docs/faults/record.py [NAME...]

A file has a declaration ``faulty``, which `check` is given; or an adapter or the name of an ``implementation``, which
`run` is given, and ``shown_by``, the Function that shows the fault.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from importlib import util
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
_COMMAND = "from autograd_conformance.harness.cli import main; main(prog_name='autograd-conformance')"


def loaded(name: str) -> ModuleType:
    """The file of that name as a module."""
    spec = util.spec_from_file_location(f"faults_{name}", FOLDER / f"{name}.py")
    assert spec
    assert spec.loader
    module = util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def names() -> list[str]:
    """The names of the files with a fault."""
    return sorted(path.stem for path in FOLDER.glob("*.py") if path != Path(__file__).resolve())


def property_of(name: str) -> str:
    """The property that a file shows, "" for one that shows a verdict."""
    return name.upper().replace("_", "-") if "_" in name else ""


def command(name: str) -> list[str]:
    """The command whose output is recorded."""
    module, shown = loaded(name), property_of(name)
    only = ["--properties", shown] if shown else getattr(module, "options", [])
    if hasattr(module, "faulty"):
        return ["check", f"docs/faults/{name}.py", "--functions", module.faulty.name, *only]
    target = getattr(module, "implementation", f"docs/faults/{name}.py")
    return ["run", target, "--functions", module.shown_by, *only, "-n", "0"]


def output(words: list[str]) -> str:
    """What the command prints at the end; of a run what it says about the fault, without the script."""
    with tempfile.TemporaryDirectory() as folder:
        place = ["--scripts", f"{folder}/scripts"] if words[0] == "check" else ["--report", f"{folder}/r.ndjson"]
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", _COMMAND, *words, *place],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        text = (done.stdout + done.stderr).replace(f"{folder}/scripts", "autograd-conformance-scripts")
    if text.startswith("found: "):
        # The verdict says all of it again.
        text = text.partition("\n\n")[2]
    if words[0] == "run":
        text = re.split(r"^=+ failures =+\n", text, flags=re.M)[-1]
        text = re.split(r"^  (?:script|standalone)|^=", text, maxsplit=1, flags=re.M)[0]
    text = re.sub(r"0x[0-9a-f]{6,}", "0x...", text)
    return text.replace(f"{ROOT}/", "").replace(sys.prefix, "...").replace(sys.base_prefix, "...").rstrip()


if __name__ == "__main__":
    for each in sys.argv[1:] or names():
        words = command(each)
        text = f"$ autograd-conformance {' '.join(words)}\n{output(words)}\n"
        FOLDER.joinpath(f"{each}.txt").write_text(text, encoding="utf-8")
        print(text, flush=True)

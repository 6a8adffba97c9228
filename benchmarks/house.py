"""The figures of the house: its rooms, arrows, files, classes and scripts, as a table.

``--scripts`` adds the reproduction scripts of all planted faults, which takes minutes.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tabulate import tabulate

from autograd_conformance.harness.catalogue import PACKAGE

# Lists of data, which are as long as what they list.
DATA = (
    "examples/survey/judgements.py",
    "implementations/deviations/torch.py",
    "reference/clauses/",
    "reference/functions/exhibits_",
    "selftests/faults/dialects/",
)
# The most lines of a file that is not data, methods of a class, lines of the README and of a script.
LONGEST, MOST_METHODS, README = 450, 25, 150


def sources() -> list[str]:
    """The Python files that git tracks, or all of the rooms outside a checkout."""
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=PACKAGE, capture_output=True, text=True, check=False)
    found = listed.stdout.split() or [str(path.relative_to(PACKAGE)) for path in PACKAGE.glob("*/**/*.py")]
    return sorted(name for name in found if (PACKAGE / name).is_file())


def lines_of(name: str) -> int:
    """The lines of a file."""
    return len((PACKAGE / name).read_text(encoding="utf-8").splitlines())


def lengths() -> Counter[str]:
    """The lines of each Python file that is not data."""
    return Counter({name: lines_of(name) for name in sources() if not name.startswith(DATA)})


def methods() -> Counter[str]:
    """The methods of each class of the harness."""
    trees = {path.name: ast.parse(path.read_text(encoding="utf-8")) for path in (PACKAGE / "harness").glob("**/*.py")}
    return Counter(
        {
            f"{node.name} in {name}": sum(isinstance(each, ast.FunctionDef) for each in node.body)
            for name, tree in trees.items()
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
        }
    )


def arrows() -> set[tuple[str, str]]:
    """Which room or module of the harness imports which other one."""
    return {
        (mine, other)
        for name in sources()
        if name.startswith("harness/")
        for other in _imported(PACKAGE / name)
        if (mine := Path(name.removeprefix("harness/")).parts[0].removesuffix(".py")) not in (other, "__init__")
    }


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            if name.startswith("autograd_conformance.harness."):
                yield name.split(".")[2]


def layers() -> str:
    """What import-linter says about the layers and cycles of all modules."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=PACKAGE, capture_output=True, text=True, check=False)
    return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else done.stderr.strip()


def scripts() -> list[int]:
    """The lines of the reproduction script of each planted fault that has one, without the Function."""
    from autograd_conformance.harness.outcomes import Broken, named
    from autograd_conformance.harness.running.results import json_of
    from autograd_conformance.harness.scripts.script import script_for
    from autograd_conformance.selftests.faults.properties import PLANTED, checks
    from autograd_conformance.selftests.support.scripts import SOURCE

    found = []
    for p in PLANTED:
        wrong = p.wrong
        wrong.implementation.start_device(wrong.device)
        raised = checks.caught(p.id, p.variant, wrong)
        if isinstance(raised, Broken):
            failure = json_of(raised.finding.as_json())
            text, _ = script_for(wrong.implementation, wrong.function, named(p.id, p.variant), failure, SOURCE)
            found += [len(text.splitlines())] if text else []
    return found


def figures() -> Iterator[tuple[str, object, object]]:
    """What is measured, the value, and the bound if there is one."""
    (longest, length), (largest, most) = lengths().most_common(1)[0], methods().most_common(1)[0]
    yield "import contracts (layers, cycles)", layers(), "0 broken"
    yield "arrows between rooms of harness", len(arrows()), ""
    yield f"lines of the longest file, {longest}", length, LONGEST
    yield f"methods of the largest class of harness, {largest}", most, MOST_METHODS
    yield "lines of README.md", lines_of("README.md"), README
    rooms: Counter[str] = Counter()
    for name in sources():
        rooms[name.partition("/")[0]] += lines_of(name)
    for room, count in rooms.items():
        yield f"lines of Python, {room}", count, ""
    yield "lines of Python, together", rooms.total(), ""


def main() -> None:
    """Print the table."""
    rows = list(figures())
    if "--scripts" in sys.argv:
        found = sorted(scripts())
        rows += [
            (f"lines of the longest of {len(found)} scripts", found[-1], 40),
            ("lines of a script, median", found[len(found) // 2], ""),
        ]
    print(tabulate(rows, ("figure", "measured", "at most"), tablefmt="github"))


if __name__ == "__main__":
    main()

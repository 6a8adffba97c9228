"""The identity of a run: its id and host, and the build of the implementation that it checks."""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.reports.ndjson import Line
from autograd_conformance.implementations.protocol import Implementation

# Variables that have the same value in all jobs of a run, by system. A job that is repeated belongs to the same run.
CI = {
    "github": "GITHUB_RUN_ID",
    "gitlab": "CI_PIPELINE_ID",
    "circleci": "CIRCLE_WORKFLOW_ID",
    "buildkite": "BUILDKITE_BUILD_ID",
    "azure": "BUILD_BUILDID",
    "travis": "TRAVIS_BUILD_ID",
    "jenkins": "BUILD_TAG",
    "slurm": "SLURM_ARRAY_JOB_ID",
}

_NATIVE = (".so", ".pyd", ".dylib", ".dll")
_LONGEST = 200

# Bytes that are read at once: a native library may have gigabytes.
_BLOCK = 2**20

# Tells this process and its forks from others: several may write a report with the same name.
COMMAND = secrets.token_hex(8)


def run_id(given: str | None, environment: Mapping[str, str] = os.environ) -> str | None:
    """The id of the run: the given one, or what the CI system says; None if nobody says one. Raises UsageProblem."""
    if given is not None:
        if not given.isprintable() or not given.strip() or len(given) > _LONGEST:
            raise UsageProblem(
                f"--run-id {given!r} is no id; give the same printable text to every shard, as in --run-id nightly-17"
            )
        return given
    return next((f"{system} {found}" for system, name in CI.items() if (found := environment.get(name))), None)


def of_run(id: str | None) -> Line:
    """The fields of a header that identify the run."""
    return {"id": id, "host": platform.node() or "unknown", "command": COMMAND}


def places(implementation: Implementation) -> tuple[Path, ...]:
    """The files of the packages that are the implementation."""
    parts = (str(part.__file__) for part in implementation.parts)
    return tuple(map(Path, (implementation.environment().location, *parts)))


@cache
def build(*locations: str) -> str:
    """The digest of installed packages, given the file of each that is imported; empty if there is none.

    All of it counts: two builds may differ in the content of a native library alone.
    """
    places = [Path(location) for location in locations if os.path.isfile(location)]
    if not places:
        return ""
    found = hashlib.sha256()
    for place in places:
        for file in sorted(_code(place.parent)) if _is_of_folder(place) else [place]:
            found.update(f"{file.relative_to(place.parent).as_posix()} {file.stat().st_size}\n".encode())
            with file.open("rb") as stream:
                while block := stream.read(_BLOCK):
                    found.update(block)
    return found.hexdigest()


def _is_of_folder(place: Path) -> bool:
    """Whether the folder of an imported file belongs to it: that of a package, or of a native module in a namespace."""
    return place.name == "__init__.py" or (is_native(place.name) and str(place.parent) not in sys.path)


def _code(folder: Path) -> Iterator[Path]:
    seen = set()
    # A developer's build has links to folders of its libraries, which may lead back.
    for path, folders, names in os.walk(folder, followlinks=True):
        if os.path.realpath(path) in seen:
            folders.clear()
            continue
        seen.add(os.path.realpath(path))
        files = (Path(path, name) for name in names if name.endswith(".py") or is_native(name))
        yield from (file for file in files if file.is_file())


def is_native(name: str) -> bool:
    """Whether a file with this name is a native library."""
    return name.endswith(_NATIVE) or ".so." in name

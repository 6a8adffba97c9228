"""Forks: install one over the pinned dependencies, and verify that the imported modules are really its own.

``python -m autograd_conformance.harness.provenance.fork RECEIPT`` installs the fork that the variable FORK names, and
writes pip's report to RECEIPT, for ``autograd-conformance run --expect``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from autograd_conformance import implementations
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.implementations.protocol import Implementation

# The builds of a release, which differ only in their local version.
_BUILDS = re.compile(r"cpu|xpu|cu\d+|rocm[\d.]+")

_CODE = (".py", ".pyc", ".so", ".pyd")


@dataclass(frozen=True)
class Fork:
    """The imported modules of a fork: ``modules`` of the implementation's ``total`` modules, and ``others``."""

    name: str
    version: str
    url: str
    modules: int
    total: int
    others: int

    def __str__(self) -> str:
        others = f", and {self.others} other modules" if self.others else ""
        origin = f" from {self.url}" if self.url else ""
        return f"{self.name} {self.version}{origin}: {self.modules} of {self.total} modules{others}"


def verified(expected: str, implementation: Implementation) -> Fork:
    """The expected fork, given as NAME, NAME==VERSION or pip's report of its installation.

    Raises UsageProblem unless the implementation was imported from it.
    """
    wanted = _wanted(expected)
    try:
        found = metadata.distribution(wanted.name)
    except metadata.PackageNotFoundError:
        raise UsageProblem(
            f"the fork {wanted.name} is not installed; install it, or correct --expect {expected}"
        ) from None
    if found.version not in wanted.specifier:
        raise UsageProblem(f"the fork must be {wanted}, but {found.version} is installed")
    _verify_no_release(found, implementation)
    return _imported(found, implementation)


def _wanted(expected: str) -> Requirement:
    text = _requested(Path(expected)) if expected.endswith(".json") else expected
    try:
        wanted = Requirement(text)
    except InvalidRequirement:
        raise UsageProblem(f"--expect {expected!r} must be NAME, NAME==VERSION or pip's report, a .json file") from None
    wanted.specifier.prereleases = True
    return wanted


def _requested(receipt: Path) -> str:
    """The distribution that pip was asked to install, as a requirement; dependencies do not count."""
    try:
        installed = json.loads(receipt.read_text(encoding="utf-8"))["install"]
        found = [each["metadata"] for each in installed if each["requested"]]
    except (OSError, ValueError, LookupError, TypeError) as problem:
        reason = getattr(problem, "strerror", None) or "it is not a report of pip install --report"
        advice = "give the FILE.json that pip install --report FILE.json has written"
        raise UsageProblem(f"the fork cannot be read from {receipt}: {reason}; {advice}") from None
    if len(found) != 1:
        names = ", ".join(each["name"] for each in found) or "nothing"
        raise UsageProblem(f"a fork is one distribution, but by {receipt} pip was asked to install {names}")
    return f"{found[0]['name']}==={found[0]['version']}"


def _verify_no_release(found: metadata.Distribution, implementation: Implementation) -> None:
    """Raise UsageProblem if the distribution is the release itself."""
    _, brought = implementations.ADAPTERS.get(implementation.name, ("", "none"))
    requirement = Requirement(brought.replace("'", "").split()[0])
    version = Version(found.version)
    if (
        _same(requirement.name, found.name)
        and f"=={version.public}" == str(requirement.specifier)
        and _BUILDS.fullmatch(version.local or "cpu")
        and not _origin(found)
    ):
        raise UsageProblem(f"the installed distribution is not a fork, but the release {found.name} {version} itself")


def _same(name: str, other: str) -> bool:
    return canonicalize_name(name) == canonicalize_name(other)


def _origin(found: metadata.Distribution) -> str:
    """The URL that a distribution was installed from; empty if it was installed by name."""
    return str(json.loads(found.read_text("direct_url.json") or "{}").get("url", ""))


def _imported(found: metadata.Distribution, implementation: Implementation) -> Fork:
    """The imported modules of a distribution. Raises UsageProblem if there are none, or some came from elsewhere."""
    location = implementation.environment().location
    files_of = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
    # Modules that code creates may name a file that does not exist.
    modules = {name: _place(file) for name, file in files_of.items() if file and os.path.isfile(file)}
    package = next((name for name, file in modules.items() if file == _place(location)), Path(location).parent.name)
    package = package.partition(".")[0]
    files = dict(_files(found))
    folder = _editable(found)
    own = {name for name, file in modules.items() if file in files or _within(folder, file)}
    fork = f"{found.name} {found.version}"
    if not own:
        raise UsageProblem(
            f"no module of the fork {fork} was imported: {implementation.name} is "
            f"{implementation.environment().version} from {location}{_claimed_by(package, found)}"
        )
    theirs = {name for name in modules if name.partition(".")[0] == package}
    for name in sorted(theirs - own):
        for file in files:
            if file.suffix in _CODE and _stands_for(file, name):
                raise UsageProblem(f"{name} was imported from {modules[name]} instead of {file} of the fork {fork}")
    libraries = {file.name: os.path.realpath(file) for file in files if ".so" in file.suffixes}
    for library in loaded():
        if library.name in libraries and libraries[library.name] != str(library):
            raise UsageProblem(f"{library} was loaded instead of {libraries[library.name]} of the fork {fork}")
    for name in sorted(own):
        file = modules[name]
        if files.get(file) and files[file] != _digest(file):
            raise UsageProblem(
                f"{file} was changed after the fork {fork} had been installed; install the fork again, last"
            )
    return Fork(found.name, found.version, _origin(found), len(own & theirs), len(theirs), len(own - theirs))


def _within(folder: Path | None, file: Path) -> bool:
    """Whether a file is in the folder of the fork, but not in an environment inside that folder."""
    if folder is None or folder not in file.parents:
        return False
    return not any(
        Path(sysconfig.get_path(kind)).resolve() in file.parents for kind in ("purelib", "platlib", "stdlib")
    )


def loaded() -> set[Path]:
    """The native libraries in this process; empty if the system does not list them."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return set()
    return {Path(words[5].strip()) for line in lines if len(words := line.split(maxsplit=5)) == 6 and ".so" in words[5]}


def _files(found: metadata.Distribution) -> Iterator[tuple[Path, str]]:
    """The files that an installed distribution lists, with their digests; an empty one if it lists none."""
    for file in found.files or ():
        known = file.hash is not None and file.hash.mode == "sha256"
        yield _place(str(file.locate())), file.hash.value if known and file.hash else ""


def _place(file: str) -> Path:
    """A file's path with links to folders resolved, but not a link to the file itself."""
    return Path(os.path.realpath(os.path.dirname(file)), os.path.basename(file))


def _editable(found: metadata.Distribution) -> Path | None:
    """The folder of an editable distribution."""
    direct = json.loads(found.read_text("direct_url.json") or "{}")
    if not direct.get("dir_info", {}).get("editable"):
        return None
    return Path(os.path.realpath(unquote(urlsplit(direct["url"]).path)))


def _stands_for(file: Path, module: str) -> bool:
    """Whether the end of a file's path matches the name of a module."""
    stem = file.parent if file.name.startswith("__init__.") else file.with_name(file.name.partition(".")[0])
    parts = tuple(module.split("."))
    return stem.parts[-len(parts) :] == parts


def _claimed_by(package: str, fork: metadata.Distribution) -> str:
    claimants = metadata.packages_distributions().get(package, ())
    others = sorted({f"{name} {metadata.version(name)}" for name in claimants if not _same(name, fork.name)})
    return f", which belongs to {', '.join(others)}" if others else ""


def _digest(file: Path) -> str:
    return urlsafe_b64encode(hashlib.sha256(file.read_bytes()).digest()).rstrip(b"=").decode()


def install(fork: str, receipt: Path) -> int:
    """Install a fork with pip, and write pip's report to ``receipt``. Returns pip's exit status.

    The constraints of PIP_CONSTRAINT hold for everything except the fork itself.
    """
    # A path may have blanks; anything else may be several words, as in "-e FOLDER".
    words = [fork] if Path(fork).exists() else shlex.split(fork)
    with tempfile.TemporaryDirectory() as folder:
        trial, others = Path(folder, "trial.json"), Path(folder, "constraints.txt")
        unbound = {**os.environ, "PIP_CONSTRAINT": ""}
        status = _pip(["--dry-run", "--no-deps", "--ignore-installed", "--quiet", "--report", trial, *words], unbound)
        if status:
            return status
        itself = Requirement(_requested(trial)).name
        pinned = [line for path in os.environ.get("PIP_CONSTRAINT", "").split() for line in _lines(Path(path))]
        others.write_text("".join(f"{line}\n" for line in pinned if not _same(_named(line), itself)), encoding="utf-8")
        return _pip(["--report", receipt, *words], {**os.environ, "PIP_CONSTRAINT": str(others)})


def _pip(words: Sequence[str | Path], environment: dict[str, str]) -> int:
    return subprocess.call([sys.executable, "-m", "pip", "install", *map(str, words)], env=environment)


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _named(line: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", line.strip(), maxsplit=1)[0]


def main() -> int:
    """Install the fork that FORK names. Returns the exit status."""
    fork = os.environ.get("FORK", "").strip()
    if not fork:
        print(
            "FORK is not set: name a wheel, folder or requirement, as in FORK=mine.whl tox run -e fork", file=sys.stderr
        )
        return 2
    try:
        return install(fork, Path(sys.argv[1]))
    except UsageProblem as problem:
        print(problem, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

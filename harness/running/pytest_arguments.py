"""The arguments and plugins of pytest in a run: the suite's own, and a user's, which may not change what it checks."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from autograd_conformance.harness.catalogue import PACKAGE
from autograd_conformance.harness.outcomes import UsageProblem

# The suite's own: no ini file, and no plugins except these. The one for logging costs more time than a short test.
ARGUMENTS = (
    f"-c{os.devnull}", "--import-mode=importlib",
    "-p", "hypothesispytest", "-p", "autograd_conformance.harness.running.plugin", "-p", "no:cacheprovider",
    "-p", "no:logging",
    # Tests assert through their subject: to rewrite assert statements would only cost time.
    "--assert=plain",
    "-q", "--tb=no", "-rN", "--disable-warnings", "--verified",
)  # fmt: skip

# The root folder; no conftest from outside of it.
ROOT = (f"--rootdir={PACKAGE}", f"--confcutdir={PACKAGE}")

# Short options that change what is loaded or collected, and those that take the rest of the word as their value.
_SHORT, _WITH_VALUE = "pcod", "pcokmnrW"
_SHOWING_SHORT = "hV"
_OWN_SHORT = "n"

# What pytest calls options of the command.
_OTHER_NAMES = {"--numprocesses": "-n"}

# Long options that do so, or that run no tests.
_REFUSED = (
    "--config-file", "--override-ini", "--rootdir", "--confcutdir", "--noconftest", "--import-mode", "--collect-only",
    "--co", "--setup-only", "--setup-plan", "--pyargs", "--ignore", "--ignore-glob", "--keep-duplicates", "--lf",
    "--last-failed", "--ff", "--failed-first", "--nf", "--sw", "--stepwise", "--stepwise-skip", "--cache-clear",
    "--runxfail", "--dist", "--tx", "--hypothesis-seed", "--hypothesis-profile", "--pytest-arguments", "--verified",
    "--box",
)  # fmt: skip

# Options that change what is shown, or end the run early: without all results it has no footer.
_HARMLESS = (
    "-x", "--exitfirst", "--maxfail", "-v", "-vv", "--verbose", "-q", "--quiet", "-s", "--capture", "-l",
    "--showlocals", "--tb", "--color", "--durations", "--no-header", "--no-summary", "--junitxml",
    "--junit-xml",
)  # fmt: skip

# Options with which pytest only shows something.
_SHOWING = ("--help", "--version", "--markers", "--fixtures", "--funcargs", "--fixtures-per-test", "--cache-show")

# The packages whose plugins a run has.
_OURS = (
    "_pytest",
    "pytest",
    "pluggy",
    "xdist",
    "execnet",
    "hypothesis",
    "_hypothesis_pytestplugin",
    __name__.split(".")[0],
)
# xdist's part in a worker, which has no file.
_SENT = "__channelexec__"


def recorded(words: Sequence[str], own: Collection[str]) -> str | None:
    """The arguments that may leave something out, as one text; None if there are none.

    Raises UsageProblem for those that a run does not have, and for its ``own`` options.
    """
    for word in words:
        name = "-n" if _has(word, _OWN_SHORT) else _OTHER_NAMES.get(word.split("=")[0], word.split("=")[0])
        if name in own:
            raise UsageProblem(f'give {name} before "--", not after it')
        if word.split("=")[0] in _SHOWING or _has(word, _SHOWING_SHORT):
            raise UsageProblem(
                f"{word} after -- only shows something of pytest's, and checks nothing; run pytest {word}"
            )
        if word.split("=")[0] in _REFUSED or _has(word, _SHORT):
            raise UsageProblem(
                f"{word} after -- would change what the suite loads or runs; choose tests with --suite, --functions or "
                "--properties, or leave some out with -k, -m or --deselect"
            )
    kept = [word for word in words if word.split("=")[0] not in _HARMLESS]
    return shlex.join(kept) or None


def _has(word: str, letters: str) -> bool:
    """Whether a word such as -xp is or holds one of these short options."""
    if not word.startswith("-") or word.startswith("--"):
        return False
    options = re.match(f"[^{_WITH_VALUE}]*.?", word[1:])
    return options is not None and bool(set(options[0]) & set(letters))


def verify_plugins(config: Any) -> None:
    """Raise UsageProblem for a plugin that is neither pytest's, Hypothesis', xdist's nor the suite's.

    The conftest files of tests that ``run --suite`` names belong to these tests.
    """
    tests = [Path(place).resolve() for place in str(config.option.suite_of_run or "").split(os.pathsep) if place]
    for plugin in _foreign(config.pluginmanager.get_plugins(), tests):
        raise UsageProblem(
            f"the plugin {plugin} does not belong to the suite, and could change what it says; leave it out (-p, "
            "PYTEST_PLUGINS, installed plugins, the conftest.py of a folder after --)"
        )


def _foreign(plugins: Iterable[Any], tests: Sequence[Path]) -> Iterator[str]:
    for plugin in plugins:
        name = plugin.__name__ if isinstance(plugin, ModuleType) else type(plugin).__module__
        if name.split(".")[0] in _OURS or name == _SENT:
            continue
        module = plugin if isinstance(plugin, ModuleType) else sys.modules.get(name)
        file = Path(str(getattr(module, "__file__", None) or name)).resolve()
        if file.name != "conftest.py" or not any(file.is_relative_to(place) for place in (PACKAGE, *tests)):
            yield f"{name} ({file})"

"""Which selftests run, and where.

Of the slow kinds each commit runs a share. Such a test is marked with ``share(n)``, and the hash of the commit chooses
one of ``n`` parts. All are run with ``--nightly``, and if a file, a test or a word of its name is asked for.
"""

from __future__ import annotations

import subprocess
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest


@cache
def commit() -> str:
    """The hash of the commit; empty outside a repository."""
    folder = Path(__file__).parent
    ran = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=False)
    return ran.stdout.strip()


def add_option(parser: pytest.Parser) -> None:
    parser.addoption("--nightly", action="store_true", help="run the slow selftests whole, not this commit's share")


def configure(config: pytest.Config) -> None:
    # Tests of one ``xdist_group`` share a fixture that takes long.
    if config.getoption("dist", "no") == "load":
        config.option.dist = "loadgroup"
    config.addinivalue_line("markers", "share(n): each commit runs one part of n of these tests")


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the shares of other commits if whole folders are run."""
    chosen = config.option.keyword or not all(Path(word).is_dir() for word in config.args)
    if chosen or config.getoption("nightly", False):
        return
    config.hook.pytest_deselected(items=[item for item in items if not is_of(item, commit())])
    items[:] = [item for item in items if is_of(item, commit())]


def is_of(item: pytest.Item, commit: str) -> bool:
    """Whether a test is one that this commit runs."""
    marker = item.get_closest_marker("share")
    if marker is None:
        return True
    (parts,) = marker.args
    return _number(item.name) % parts == _number(commit) % parts


def _number(text: str) -> int:
    return int(sha256(text.encode()).hexdigest(), 16)

"""Each commit runs a share of the slow selftests, and some commit runs each of them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from autograd_conformance.selftests import shares

NAMES = [f"test_slow[{n}]" for n in range(60)]
COMMITS = [f"{n:040x}" for n in range(60)]


def item(name, *parts):
    marker = pytest.mark.share(*parts).mark if parts else None
    return SimpleNamespace(name=name, get_closest_marker=lambda _: marker)


def test_some_commit_runs_each():
    run = {commit: {name for name in NAMES if shares.is_of(item(name, 4), commit)} for commit in COMMITS}
    assert set().union(*run.values()) == set(NAMES)
    assert all(0 < len(names) < len(NAMES) / 2 for names in run.values())


def test_every_commit_runs_what_is_not_marked():
    assert all(shares.is_of(item(name), commit) for name in NAMES for commit in COMMITS)


@pytest.mark.parametrize(
    ("args", "options", "whole"),
    [
        (["selftests"], {}, False),
        (["selftests"], {"nightly": True}, True),
        (["selftests"], {"keyword": "slow"}, True),
        (["selftests/test_shares.py"], {}, True),
        (["selftests/test_shares.py::test_it[1]"], {}, True),
    ],
)
def test_what_is_asked_for_is_run_whole(monkeypatch, pytestconfig, args, options, whole):
    monkeypatch.chdir(pytestconfig.rootpath)
    option = SimpleNamespace(**{"keyword": "", "nightly": False, **options})
    gone = []
    hook = SimpleNamespace(pytest_deselected=lambda items: gone.extend(items))
    config = SimpleNamespace(args=args, option=option, hook=hook, getoption=lambda name, _: getattr(option, name))
    items = [item(name, 4) for name in NAMES]
    shares.leave_out(config, items)
    assert (len(items) == len(NAMES)) == whole
    assert len(items) + len(gone) == len(NAMES)

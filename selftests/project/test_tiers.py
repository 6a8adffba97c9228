"""The first tier leaves out what is listed, and nothing else."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from autograd_conformance.selftests import tiers
from autograd_conformance.selftests.tiers import NIGHTLY, Later

SEEDS = Later("test_it.py::test_slow", "other seeds of the same Functions", ".*-[1-9]")
IDS = [f"selftests/test_it.py::test_slow[{name}-{seed}]" for name in ("exp", "log") for seed in range(3)]


def test_a_case_that_is_listed_runs_at_night_only():
    assert [id for id in IDS if not tiers.is_later(id, [SEEDS])] == [IDS[0], IDS[3]]


def test_a_function_is_listed_with_all_of_its_cases():
    listed = [Later("test_it.py::test_slow", "all")]
    assert all(tiers.is_later(id, listed) for id in [*IDS, "selftests/test_it.py::test_slow"])
    assert not any(tiers.is_later(f"selftests/test_it.py::{name}", listed) for name in ("test_slower", "test_slo[exp]"))


@pytest.mark.parametrize(
    ("args", "options", "whole"),
    [
        (["selftests"], {}, False),
        (["selftests/test_it.py"], {}, False),
        (["selftests"], {"nightly": True}, True),
        (["selftests"], {"keyword": "slow"}, True),
        (["selftests/test_it.py::test_slow[exp-1]"], {}, True),
    ],
)
def test_what_is_asked_for_by_name_is_run(monkeypatch, args, options, whole):
    monkeypatch.setattr(tiers, "is_later", lambda id: SEEDS.takes(id))
    option = SimpleNamespace(**{"keyword": "", "nightly": False, **options})
    gone = []
    hook = SimpleNamespace(pytest_deselected=lambda items: gone.extend(items))
    config = SimpleNamespace(
        stash={}, args=args, option=option, hook=hook, getoption=lambda name, _: getattr(option, name)
    )
    items = [SimpleNamespace(nodeid=id) for id in IDS]
    tiers.leave_out(config, items)
    assert (len(items) == len(IDS)) == whole
    assert len(items) + len(gone) == len(IDS)


def test_each_line_has_a_reason_and_takes_a_test(request):
    """Needs the whole folder collected, as CI does."""
    if not any(word.rstrip("/").endswith("selftests") for word in request.config.args):
        pytest.skip("skip: only parts of the selftests were collected")
    everything = request.config.stash[tiers.COLLECTED]
    # The packages of the gallery are not installed everywhere.
    files = {Path(id.partition("::")[0]).name for id in everything} | {"test_gallery.py"}
    absent = {later for later in NIGHTLY if later.test.partition("::")[0] not in files}
    nothing = {later for later in NIGHTLY if "gallery" not in later.test and not any(map(later.takes, everything))}
    assert absent | nothing == set()
    assert all(later.reason for later in NIGHTLY)


def test_tests_that_share_a_fixture_are_one_piece_of_work():
    assert "test_shards.py" in tiers.shared()
    assert tiers.piece("selftests/running/test_shards.py::test_a[1]") == "selftests/running/test_shards.py"
    assert (
        tiers.piece("selftests/project/test_tiers.py::test_a[x::y]") == "selftests/project/test_tiers.py::test_a[x::y]"
    )

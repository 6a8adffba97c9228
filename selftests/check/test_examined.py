"""Whose code raised an exception: the Function's, the framework's or the suite's."""

from __future__ import annotations

import contextlib
import json
from types import SimpleNamespace

import pytest

from autograd_conformance.harness.catalogue import PACKAGE, is_part_of
from autograd_conformance.harness.testing.examined import own_frames, place


@pytest.mark.parametrize(
    ("path", "ours"),
    [
        ("harness/testing/examined.py", True),
        ("suites/functions/test_forward.py", True),
        ("reference/functions/scalars.py", False),
        ("harness_of_others.py", False),
    ],
)
def test_a_file_belongs_to_a_room_by_way_of_a_link_too(tmp_path, path, ours):
    link = tmp_path / "linked"
    link.symlink_to(PACKAGE, target_is_directory=True)
    assert is_part_of(str(PACKAGE / path), "harness", "suites") is ours
    assert is_part_of(str(link / path), "harness", "suites") is ours


def _read():
    return json.loads("no JSON")


@contextlib.contextmanager
def _raising():
    yield _read()


def test_the_place_of_an_exception_is_not_in_pythons_own_modules(tmp_path):
    nowhere = SimpleNamespace(environment=lambda: SimpleNamespace(location=str(tmp_path / "mine.py")))
    with pytest.raises(ValueError, match="Expecting") as raised, _raising():
        pass
    frames = own_frames(raised.value, nowhere)
    assert place(frames).endswith("in _read")
    assert {frame.filename for frame in frames} == {__file__}

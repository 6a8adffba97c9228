"""Whose code raised an exception: the Function's, the framework's or the suite's."""

from __future__ import annotations

import pytest

from autograd_conformance.harness.catalogue import PACKAGE, is_part_of


@pytest.mark.parametrize(
    ("path", "ours"),
    [
        ("harness/checking/examined.py", True),
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

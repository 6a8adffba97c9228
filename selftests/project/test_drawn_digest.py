"""The digest of the selftests' examples: the same for the same ones, whichever worker draws them."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograd_conformance.selftests.drawn_digest import Examples


def drawn(*, most=100):
    """What one test's report says after some examples."""
    plugin = Examples(None)

    @settings(max_examples=20, derandomize=True, database=None)
    @given(st.integers(0, most))
    def run(_):
        pass

    loop = plugin.pytest_runtestloop()
    next(loop)
    run()
    with pytest.raises(StopIteration):
        loop.send(True)
    making = plugin.pytest_runtest_makereport(SimpleNamespace(when="teardown"))
    next(making)
    with pytest.raises(StopIteration) as made:
        making.send(SimpleNamespace(nodeid="test_it", when="teardown", user_properties=[]))
    return made.value.value


def said(*reports, file=None):
    """The line that a run with these reports ends with."""
    plugin, lines = Examples(SimpleNamespace(option=SimpleNamespace(examples=file))), []
    for report in reports:
        plugin.pytest_runtest_logreport(report)
    plugin.pytest_terminal_summary(SimpleNamespace(write_line=lines.append))
    return lines


def test_the_same_examples_have_the_same_digest():
    assert said(drawn()) == said(drawn()) == said(drawn(), drawn())


def test_other_examples_and_other_tests_have_another_digest():
    other = drawn()
    other.nodeid = "test_other"
    assert len({tuple(said(*reports)) for reports in ([drawn()], [drawn(most=99)], [other], [other, drawn()])}) == 4


def test_a_file_has_the_examples_of_each_test(tmp_path):
    said(drawn(), file=tmp_path / "examples.json")
    found = json.loads((tmp_path / "examples.json").read_text())
    assert list(found) == ["test_it"]
    assert len(found["test_it"]) == 20

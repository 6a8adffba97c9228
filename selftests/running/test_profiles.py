"""The examples of a test depend on its id and the seed alone."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers

from autograd_conformance.harness.testing.drawing import explaining, without_local_constants

# A number of this file, as Hypothesis calls it, and integers among which it is drawn otherwise about never.
OURS, AMONG = 918273645, st.integers(0, 2**40)


def drawn():
    """What a test with a fixed seed draws."""
    found = []

    @seed(0)
    @settings(max_examples=300, database=None, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
    @given(AMONG)
    def keep(number):
        found.append(number)

    keep()
    return found


def test_numbers_of_source_files_are_not_drawn_though_others_drew_them(monkeypatch):
    with without_local_constants():
        before = drawn()
    local = providers.Constants(integers={OURS})
    monkeypatch.setattr(providers, "_get_local_constants", lambda: local)
    monkeypatch.setattr(providers, "CONSTANTS_CACHE", type(providers.CONSTANTS_CACHE)(1024))
    assert OURS in drawn()
    with without_local_constants():
        assert drawn() == before
    assert OURS in drawn()


def test_only_what_is_reported_is_explained():
    explained = []

    @settings(max_examples=100, database=None, derandomize=True)
    @given(AMONG)
    def fails(number):
        explained.append(explaining())
        assert number < 1000

    with pytest.raises(AssertionError):
        fails()
    assert explained[-1]
    assert not any(explained[:-1])
    assert explaining()

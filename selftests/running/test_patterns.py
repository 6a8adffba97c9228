"""Names and globs of properties: some name one test."""

from __future__ import annotations

import pytest

from autograd_conformance.harness.running.patterns import names_test, without_variants


@pytest.mark.parametrize(
    ("patterns", "claim", "variant", "expected"),
    [
        (None, "VJP-FD", "long", True),
        ("VJP-FD", "VJP-FD", "long", True),
        ("VJP-FD/long", "VJP-FD", "long", True),
        ("VJP-FD/long", "VJP-FD", "", False),
        ("VJP-FD/long", "VJP-REF", "long", False),
        ("VJP-REF, VJP-FD/l*", "VJP-FD", "long", True),
        ("VJP-REF, VJP-FD/l*", "VJP-FD", "kinks", False),
        ("VJP-REF, VJP-FD/l*", "VJP-REF", "sizes", True),
        ("*/long", "FWD-VALUE", "long", True),
        ("VMAP-02/nested", "VMAP-02", "nested", True),
    ],
)
def test_a_pattern_with_a_variant_names_its_test_alone(patterns, claim, variant, expected):
    assert names_test(patterns, claim, variant) is expected


def test_properties_are_looked_up_without_variants():
    assert without_variants("VJP-FD/long, FWD-*") == "VJP-FD, FWD-*"
    assert without_variants(None) is None


def test_a_run_of_one_test(command):
    words = ("model", "--functions", "Exp", "--profile", "quick", "--seed", "1", "-n", "0")
    one = command(*words, "--properties", "VJP-REF/sizes")
    assert (one.status, list(one.results)) == (0, ["VJP-REF/sizes[Exp-cpu]"]), one.out + one.err
    none = command(*words, "--properties", "VJP-REF/nonsense")
    assert none.status == 2
    assert "nothing was checked" in none.out + none.err

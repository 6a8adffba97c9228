"""The first line of a verdict shows every option that was given, and nothing else."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.declaration.described import OPTIONS, TITLE, described

ARGUMENTS = ("float[b,n]", "float[b,n]")
TEXT = ", ".join(ARGUMENTS)

# A value for every option, and the words for it.
GIVEN = {
    "reference": (torch.add, "reference"),
    "soft": (torch.add, "soft"),
    "surrogate": (True, "surrogate"),
    "once": (True, "once"),
    "stochastic": (True, "stochastic"),
    "single_backward": (True, "single_backward"),
    "backward_only": (True, "backward_only"),
    "nonlinear": (True, "nonlinear"),
    "up_to": (lambda outputs, _: outputs, "up to a canonical form"),
    "independent": ("b", "independent"),
    "symmetric": ((0, 1), "symmetric"),
    "antisymmetric": ((0, 1), "antisymmetric"),
    "inplace": (0, "inplace"),
    "casts": (True, "casts"),
    "dtypes": (["float32"], "dtypes"),
    "examples": (0.25, "0.25 of the examples"),
    "conditioning": (2, "conditioning 2"),
    "sizes": ({"n": (2, 3)}, "sizes"),
    "also": (["vmap", "compile"], "also vmap and compile"),
    "implementation": ("model", "implementation model"),
}


def declared(**options):
    return described(Declaration(torch.add, *ARGUMENTS, **options))


def test_every_option_has_a_value_here():
    assert {*GIVEN, *TITLE} == set(OPTIONS)


@pytest.mark.parametrize("option", GIVEN)
def test_an_option_that_is_given_is_shown_alone(option):
    value, shown = GIVEN[option]
    assert declared(**{option: value}) == f"{TEXT}; declared: {shown}"


def test_several_options_are_all_shown():
    # These exclude others.
    among = {option: each for option, each in GIVEN.items() if option not in ("up_to", "independent", "symmetric")}
    among = {option: each for option, each in among.items() if option not in ("antisymmetric", "stochastic")}
    shown = declared(**{option: value for option, (value, _) in among.items()})
    assert shown == f"{TEXT}; declared: {', '.join(words for _, words in among.values())}"


def test_what_says_nothing_is_not_shown():
    assert declared() == TEXT
    assert declared(**{**OPTIONS, "conditioning": 1, "also": [], "inplace": [], "name": "Sum", "sizes": {}}) == TEXT

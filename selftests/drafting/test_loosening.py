"""Lengths that never varied: which others forward takes is asked, alone and together with related ones."""

from __future__ import annotations

import itertools
import re

import pytest

from autograd_conformance.harness.drafting.drafts import Draft, Part
from autograd_conformance.harness.drafting.loosening import loosened

LENGTHS = (1, 2, 3, 5, 8)


def draft(*texts, varied=None, limited=False):
    parts = tuple(Part(f"x{n}", "float", tuple(text.split(","))) for n, text in enumerate(texts))
    return Draft(parts, varied=varied or {}, sizes=(varied or {}) if limited else {})


def asks(holds):
    """Whether a forward that takes shapes of which this holds takes all that a draft declares."""

    def takes(draft: Draft) -> bool:
        texts = [",".join(part.dims) for part in draft.parts]
        names = sorted(set(re.findall("[a-z]", " ".join(texts))))
        for lengths in itertools.product(*(draft.sizes.get(name, LENGTHS) for name in names)):
            given = dict(zip(names, lengths, strict=True))
            if not holds(*(eval(f"({text},)", {}, given) for text in texts)):
                return False
        return True

    return takes


def of_rotary(x, table):
    return x[1] <= table[0] and x[2] == 2 * table[1]


CASES = {
    "one alone": (draft("n,4"), lambda *_: True, ["n,m"]),
    "none": (draft("n,4"), lambda x: x[1] == 4, ["n,4"]),
    "two that are equal": (draft("4,n", "4"), lambda x, y: x[0] == y[0], ["m,n", "m"]),
    "two that are equal by accident": (draft("4,n", "4"), lambda _, y: y[0] == 4, ["m,n", "4"]),
    "the double of another": (draft("8", "4"), lambda x, y: x[0] == 2 * y[0], ["2*n", "n"]),
    "the double of one of two that are equal": (
        draft("4,n,8", "16,4", varied={"n": (5, 7)}, limited=True), of_rotary, ["m,n,2*l", "n+k,l"]
    ),
    "one more than another": (draft("4", "5"), lambda x, y: y[0] == x[0] + 1, ["n", "n+1"]),
    "at least as long": (draft("4", "6"), lambda x, y: y[0] >= x[0], ["n", "n+m"]),
    "a sum": (draft("3", "5", "8"), lambda x, y, z: z[0] == x[0] + y[0], ["n", "m", "n+m"]),
    "a product": (draft("3,5", "15"), lambda x, y: y[0] == x[0] * x[1], ["n,m", "n*m"]),
    "multiples": (draft("n,8"), lambda x: x[1] % 4 == 0, ["n,4*m"]),
    "what varied": (draft("n", varied={"n": (8, 24)}, limited=True), lambda x: x[0] % 8 == 0, ["8*m"]),
    "what varied, freely": (draft("n", varied={"n": (8, 24)}, limited=True), lambda *_: True, ["n"]),
    "one of two of a shape": (draft("1,n", "1,n"), lambda _, y: y[0] == 1, ["m,n", "1,n"]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_is_asked(case):
    given, holds, expected = CASES[case]
    found = loosened(given, asks(holds))
    assert [",".join(part.dims) for part in found.parts] == expected
    assert asks(holds)(found)
    assert not found.sizes


def test_what_is_refused_in_any_way_stays_limited():
    given = draft("n", varied={"n": (3, 5)}, limited=True)
    assert loosened(given, asks(lambda x: x[0] in (3, 5))) == given


def test_a_range_ends_where_the_dimension_does():
    parts = (Part("x", "float", ("5",)), Part("i", "int", ("n",), ("(0..4)",)))

    def takes(draft):
        return [*draft.parts[0].dims, *draft.parts[1].tails] in (["5", "(0..4)"], ["m", "(0..m-1)"])

    assert [part.words for part in loosened(Draft(parts), takes).parts] == ["float[m]", "int[n](0..m-1)"]

"""What calls suggest: which lengths share a name, which values are a choice, and what is only a guess."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autograd_conformance.harness.drafting.drafts import Draft
from autograd_conformance.harness.drafting.inferring import drafts
from autograd_conformance.harness.drafting.observed import Argument, Kind, Observed


def tensor(*shape, dtype="float32", grad=True, ranges=(), bounds=(None, None), layout="contiguous"):
    seen = {"tensor": dtype, "shape": list(shape), "grad": grad, "layout": layout, "device": "cpu"}
    return Argument(seen, frozenset(ranges), *bounds)


def indices(*shape, most, least=0, apart=(), below=None):
    return replace(tensor(*shape, dtype="int64", grad=False, bounds=(least, most)), apart=frozenset(apart), below=below)


def value(it):
    return Argument({"value": it})


def made(**seen):
    return Argument(seen)


def words_of(expression, *, made=False):
    return {"expression": expression, "imports": [("torch", "", "")], "made": made}


def found(*calls, parameters=(), inplace=()):
    kinds = [Kind(tuple(args), {}, count=len(calls) - n, inplace=inplace) for n, args in enumerate(calls)]
    return Observed("m:F", "", "m", "F", "m.py", False, tuple(parameters), kinds)


def words(*calls):
    return [[part.words or part.expression for part in draft.parts] for draft in drafts(found(*calls))]


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([(tensor(2, 3), tensor(3, 5)), (tensor(4, 3), tensor(3, 5))], [["float[n,m]", "float[m,k]"]]),
        ([(tensor(2, 2),), (tensor(4, 4),)], [["float[n,n]"]]),
        ([(tensor(2, 1), tensor(2)), (tensor(3, 1), tensor(3))], [["float[n,1]", "float[n]"]]),
        ([(tensor(2), tensor(4)), (tensor(3), tensor(6)), (tensor(5), tensor(10))], [["float[n]", "float[2*n]"]]),
        ([(tensor(2), tensor(4)), (tensor(3), tensor(5)), (tensor(6), tensor(8))], [["float[n]", "float[n+2]"]]),
        # Labels were only 0 and 1; a batch is no number of classes.
        ([(tensor(2), indices(2, most=1)), (tensor(5), indices(5, most=1))], [["float[n]", "int[n](0..1)"]]),
        ([(tensor(5), indices(5, most=3)), (tensor(6), indices(6, most=3))], [["float[n]", "int[n](0..3)"]]),
        ([(tensor(5), indices(5, most=4)), (tensor(6), indices(6, most=5))], [["float[n]", "int[n](0..n-1)"]]),
        ([(tensor(5, 9), indices(5, most=1)), (tensor(6, 9), indices(6, most=1))], [["float[n,m]", "int[n](0..1)"]]),
        ([(tensor(5, 9), indices(5, most=2)), (tensor(6, 9), indices(6, most=2))], [["float[n,m]", "int[n](0..2)"]]),
        ([(tensor(5, 9), indices(5, most=7)), (tensor(6, 9), indices(6, most=6))], [["float[n,m]", "int[n](0..m-1)"]]),
        # Marks of entries that do not count.
        (
            [(tensor(5, 9), indices(5, most=7, apart=[-100])), (tensor(6, 9), indices(6, most=6))],
            [["float[n,m]", "int[n](0..m-1 | -100)"]],
        ),
        (
            [(tensor(5, 9), indices(5, most=255, below=8), value(255)), (tensor(6, 9), indices(6, most=8), value(255))],
            [["float[n,m]", "int[n](0..m-1 | 255)", "255"]],
        ),
        ([(tensor(5), indices(3, most=9, least=-2))], [["float[n]", "int[m](-2..9)"]]),
        # Two lengths of which one is double the other say nothing: there are too few.
        ([(tensor(2), tensor(4)), (tensor(3), tensor(6))], [["float[n]", "float[m]"]]),
        ([(tensor(2),), (tensor(2, 3),), (tensor(),)], [["float[...]"]]),
        (
            [(tensor(2), tensor(2, 3)), (tensor(2, 3), tensor(3))],
            [["float[n]", "float[n,m]"], ["float[n,m]", "float[m]"]],
        ),
        ([(tensor(2, dtype="complex64"),)], [["complex[n]"]]),
        ([(tensor(2), tensor(2, dtype="bool", grad=False))], [["float[n]", "bool[n]"]]),
        ([(tensor(5, 2), indices(3, most=4)), (tensor(6, 2), indices(4, most=5))], [["float[n,m]", "int[k](0..n-1)"]]),
        ([(tensor(5), tensor(3, dtype="int64", grad=False, bounds=(-2, 9)))], [["float[n]", "int[m](-2..9)"]]),
        ([(tensor(2), value(None)), (tensor(3), tensor(3))], [["float[n]", "float[n]?"]]),
        ([(tensor(2, grad=False, ranges=("binary",)),)], [["float[n] binary"]]),
        ([(tensor(2, layout="sparse_coo"),)], [["float[n] sparse"]]),
        ([(tensor(2, 2, ranges=("symmetric", "definite")),)], [["float[n,n] spd"]]),
        ([(tensor(2, 2, ranges=("lower",)),), (value(None),)], [["float[n,n]? lower"]]),
        # A mask is no matrix.
        ([(tensor(2, 2, grad=False, ranges=("binary", "lower")),)], [["float[n,n] binary"]]),
        ([(tensor(2, 2, ranges=("symmetric",)),), (tensor(2, 3, ranges=()),)], [["float[n,m]"]]),
        ([(tensor(2), value(0.5))], [["float[n]", "0.5"]]),
        ([(tensor(2), value("sum")), (tensor(2), value("mean"))], [["float[n]", "'sum' | 'mean'"]]),
        ([(tensor(2), value(True)), (tensor(2), value(1))], [["float[n]", "True"], ["float[n]", "1"]]),
        ([(tensor(2), value(n)) for n in range(2, 12)], [["float[n]", "int(2..11)"]]),
        ([(tensor(2), value(n)) for n in (8, 16, 32)], [["float[n]", "8 | 16 | 32"]]),
        ([(tensor(2), value(n / 8)) for n in range(9)], [["float[n]", "float(0.0..1.0)"]]),
        ([(tensor(2), made(tuple=[{"value": 1}, {"value": 2}]))], [["float[n]", "(1, 2)"]]),
        ([(tensor(2), made(object="dtype", **words_of("torch.float32")))], [["float[n]", "torch.float32"]]),
        (
            [(tensor(2), made(object="Linear", **words_of("torch.nn.Linear(2, 3)", made=True)))],
            [["float[n]", "Factory(lambda seed: torch.nn.Linear(2, 3))"]],
        ),
    ],
)  # fmt: skip
def test_what_calls_suggest(calls, expected):
    assert words(*calls) == expected


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        (tensor(2, dtype="float8_e4m3fn"), "is a tensor of float8_e4m3fn"),
        (made(object="pkg.Config"), "is a pkg.Config"),
        (made(list=[{"tensor": "float32", "shape": [2]}]), "holds tensors"),
    ],
)
def test_what_no_declaration_has_is_said(argument, reason):
    (draft,) = drafts(found((tensor(2), argument)))
    assert reason in draft.missing


def test_keyword_arguments_are_said():
    kinds = [Kind((tensor(2),), {"scale": value(2.0)})]
    (draft,) = drafts(Observed("m:F", "", "m", "F", "m.py", False, (), kinds))
    assert "keyword arguments (scale)" in draft.missing


def test_arguments_have_the_names_of_forward():
    (draft,) = drafts(found((tensor(2), value(1)), parameters=("x", "scale")))
    assert [part.name for part in draft.parts] == ["x", "scale"]


def test_calls_that_change_different_arguments_are_told_apart():
    kinds = [Kind((tensor(2), value(True)), {}, inplace=(0,)), Kind((tensor(2), value(False)), {})]
    several = drafts(Observed("m:F", "", "m", "F", "m.py", False, (), kinds))
    assert [(draft.parts[1].text, draft.inplace) for draft in several] == [("True", (0,)), ("False", ())]


def test_many_dimensions_have_names_that_differ():
    ((first, second),) = words((tensor(*range(2, 14)), tensor(*range(14, 26))))
    names = [*first[6:-1].split(","), *second[6:-1].split(",")]
    assert len(set(names)) == 24


def test_many_ranges_are_not_all_combined():
    many = tuple(tensor(n, bounds=(-2.5, 3.1)) for n in range(2, 22))
    assert len(alternatives(many)) < 600


def test_what_is_changed_in_place_is_declared():
    assert drafts(found((tensor(2),), inplace=(0,)))[0].inplace == (0,)


def alternatives(*calls) -> list[list[str]]:
    (draft,) = drafts(found(*calls))
    return [[part.words for part in each.parts] for each in draft.alternatives()]


def test_any_shape_is_tried_before_the_shapes_that_were_seen():
    found = alternatives((tensor(2, 3),), (tensor(4, 3),))
    assert found == [["float[...]"], ["float[...,n]"], ["float[n,m]"], ["float[n,3]"], ["float[n,3]"]]


def test_a_last_length_that_never_varies_in_many_shapes_is_tried_too():
    shapes, general = [(2, 3), (4, 3), (5, 1, 3), (3,)], [["float[...]"], ["float[...,n]"]]
    assert alternatives(*[(tensor(*shape),) for shape in shapes]) == [*general, ["float[...,3]"]]
    assert alternatives(*[(tensor(*shape),) for shape in shapes[1:]]) == general
    assert alternatives(*[(tensor(*shape),) for shape in [*shapes, (4,)]]) == general


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ((-2.5, 3.1), "float[n]"),
        ((0.0, 0.0), "float[n]"),
        ((0.013, 0.874), "float[n](0.01..0.9)"),
        ((0.0, 1.0), "float[n](0..1)"),
        ((-0.9, 0.5), "float[n](-0.9..0.5)"),
        ((1.04, 3.6), "float[n](1..4)"),
        ((-38.0, -0.2), "float[n](-40..-0.2)"),
        ((0.02, 7.0), "float[n] positive"),
        ((1.0, 1.0), "float[n](0.5..2)"),
        ((-1234.5, -1234.5), "float[n](-3000..-600)"),
    ],
)
def test_the_range_that_was_seen_stays(seen, expected):
    assert words((tensor(3, bounds=seen),), (tensor(4, bounds=seen),)) == [[expected]]


def test_numbers_of_both_signs_have_a_range_if_others_are_refused():
    assert alternatives((tensor(2, bounds=(-2.5, 3.1)),), (tensor(4),))[:2] == [["float[...]"], ["float[...](-3..4)"]]


def test_a_call_that_draws_random_numbers_is_stochastic():
    kinds = [Kind((tensor(2),), {}, random=True), Kind((tensor(3),), {})]
    (draft,) = drafts(Observed("m:F", "", "m", "F", "m.py", False, (), kinds))
    assert draft.stochastic


def test_one_length_is_fixed_and_then_all_are():
    assert alternatives((tensor(2, 3), tensor(7))) == [
        [f"float[{n},{m}]", f"float[{k}]"] for n, m, k in ["nmk", "2mk", "n3k", "nm7", "237"]
    ]


def test_the_last_draft_has_the_lengths_that_were_seen():
    (draft,) = drafts(found((tensor(2, 3),), (tensor(4, 3),), (tensor(5, 3),)))
    assert [*draft.alternatives()][-1].sizes == {"n": (2, 4, 5)}
    (draft,) = drafts(found(*[(tensor(n),) for n in range(1, 50)]))
    assert 2 <= len([*draft.alternatives()][-1].sizes["n"]) <= 8


def test_a_fixed_length_is_a_number_in_ranges_too():
    draft = drafts(found((tensor(5, 2), indices(3, most=4)), (tensor(5, 3), indices(4, most=4))))[0]
    assert [part.words for part in draft.fixing(["n"]).parts] == ["float[5,m]", "int[k](0..4)"]
    assert isinstance(draft, Draft)

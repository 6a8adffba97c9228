"""What declarations promise of other calls is checked: along slices, other axes, and with exchanged arguments."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.declaration import loading
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.selftests.check import user_ops
from autograd_conformance.selftests.check.checking import accuses, faults_of, first_fault
from autograd_conformance.selftests.check.specimens import relations
from autograd_conformance.selftests.support import scripts
from autograd_conformance.selftests.support.warm import started
from autograd_conformance.suites.declared import Checked, checks

NAMES = [f"{wrong.name}-{n}" for n, (wrong, _, _) in enumerate(relations.WRONG)]


@pytest.mark.parametrize(("wrong", "property_id", "right"), relations.WRONG, ids=NAMES)
def test_what_is_wrong_is_found_and_shown(wrong, property_id, right):
    failure = first_fault(wrong, property_id)[0]["failure"]
    if failure["component"]["aspect"] == "shape":
        assert failure["got"] == "output 1 has no dimension n, and differs between slices"
        assert failure["no_script"] == "the outputs of two calls do not fit"
        return
    text = failure["script"]
    assert scripts.status(text) == 1, text
    assert scripts.status(re.sub(rf"\b{wrong.name}\b", right.name, text)) == 0, text


def _mean(x):
    return x.mean(0)


def _flat(x):
    return x.sin().reshape(-1)


def _windows(x, dim):
    return x.unfold(dim, 1, 1)


def _sine(x, *_):
    return x.sin()


TWO = ("float[n]", "float[n]")


@pytest.mark.parametrize(
    ("function", "described", "promised", "says"),
    [
        (_sine, ["float[b,n]"], {"independent": "c"}, "no tensor has this dimension; they have: b, n"),
        (_sine, ["float[b,n]"], {"independent": "..."}, "no tensor has this dimension"),
        (_sine, ["float[n,n]"], {"independent": "n"}, "because a tensor has it twice"),
        (_sine, ["float[n]", "float[2*n]"], {"independent": "n"}, "because it is part of a sum or product"),
        (_sine, ["float[b]", "int[n](0..b-1)"], {"independent": "b"}, "the values of 'int[n](0..b-1)' depend on"),
        (_sine, ["float[b]", "permutation[b]"], {"independent": "b"}, "the values of 'permutation[b]' depend on"),
        (_sine, ["float[b]"], {"independent": "b", "stochastic": True}, "independent= and stochastic=True cannot be"),
        (_sine, ["float[b]"], {"independent": "b", "sizes": {"b": (1,)}}, "only one index to slice"),
        (_mean, ["float[b,n]"], {"independent": "b"}, "output 0 has no dimension b, and differs between slices"),
        (_mean, ["float[...,n]"], {"independent": "..."}, "has no dimension 0 of ..., and differs between slices"),
        (_flat, ["float[b,n]"], {"independent": "n"}, "output 0: no dimension is the sliced one"),
        (_sine, ["axis", "3"], {}, "is an axis of the first tensor, but no argument is a tensor"),
        (_sine, ["float[n]", "axis(0 | 1)"], {}, "1 or -2 is no axis: the first tensor has 1 dimension"),
        (_sine, ["float[n]", "axis(last)"], {}, "the choices of an axis are integers"),
        (_sine, ["float[~]", "axis"], {}, "the shape of 'argument0' is that of a broadcast"),
        (_sine, ["float[n]", "axis", "axis"], {}, "only one argument can be an axis"),
        (_windows, ["float[n]", "axis"], {}, "it has 2 dimensions, which is neither 1"),
        (
            _sine,
            TWO,
            {"symmetric": (0,)},
            "symmetric=(0,): give the positions of two or more tensors, as in symmetric=(0, 1)",
        ),
        (_sine, TWO, {"symmetric": (0, 2)}, "there is no argument 2; the positions are 0 to 1"),
        (_sine, ["float[n]", "float[m]"], {"symmetric": (0, 1)}, "arguments 0 and 1 are described differently"),
        (
            _sine,
            TWO,
            {"symmetric": (0, 1), "antisymmetric": (0, 1)},
            "symmetric= and antisymmetric= cannot be combined",
        ),
        (_sine, ["float[n]", "3"], {"symmetric": (0, 1)}, "argument 1 is not a tensor"),
        (_sine, ["complex[n]", "complex[n] binary"], {}, "a binary tensor is real"),
    ],
)
def test_a_mistake_is_said(function, described, promised, says):
    with pytest.raises(UsageProblem) as problem:
        faults_of(Declaration(function, *described, **promised), "DECL-INDEPENDENT")
    assert says in str(problem.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"symmetric": [5]}, "--symmetric 5: there is no argument 5; the positions are 0 to 1"),
        ({"symmetric": [0]}, "--symmetric 0: give the positions of two or more tensors, as in --symmetric 0"),
        ({"antisymmetric": [0, 0]}, "--antisymmetric 0 --antisymmetric 0: give the positions of two"),
        ({"symmetric": [0, 1], "stochastic": True}, "--symmetric and --stochastic cannot be combined"),
        ({"symmetric": [0, 1], "antisymmetric": [0, 1]}, "--symmetric and --antisymmetric cannot be combined"),
        ({"independent": ["q"]}, "--independent q: no tensor has this dimension; they have: n"),
        ({"dtypes": ["complex64"]}, "--dtypes complex64 does not fit its arguments"),
    ],
)
def test_a_mistake_on_the_command_line_is_said_in_terms_of_its_options(options, says):
    target = f"{user_ops.__name__}:Kept"
    with pytest.raises(UsageProblem) as problem:
        loading.declarations(target, TWO, options)
    # The target names the Function already.
    assert str(problem.value).startswith(f"{target}: {says}")


def _of_two(x):
    if len(x) == 1:
        raise ValueError("two rows are needed")
    return x.sin()


def test_a_slice_that_is_refused_is_no_fault():
    refusing = Declaration(_of_two, "float[b,n]", independent="b", sizes={"b": (2, 3, 4), "n": (1, 2)})
    (line,) = Checked(refusing, profile="quick", seed=0).lines("DECL-INDEPENDENT")
    assert line["outcome"] == "pass"
    assert line["excused"] > 0
    assert "two rows are needed" in line["excuse"]


def test_a_binary_tensor_is_0_or_1():
    seen = set()

    def masked(x, mask):
        seen.update(mask.flatten().tolist())
        return x * mask

    assert accuses(Declaration(masked, "float[n]", "float[n] binary"), "VJP-FD", "VJP-REF", "FWD-VALUE") == []
    assert seen == {0.0, 1.0}


def test_an_axis_has_each_value_that_its_rank_allows():
    seen = set()

    def softmax(x, dim):
        seen.add((x.ndim, dim))
        return torch.softmax(x, dim)

    assert first_fault(Declaration(softmax, "float[...]", "axis"), "FWD-VALUE", "DECL-AXIS") is None
    assert {rank for rank, _ in seen} == {1, 2, 3, 4, 5}
    assert all(-rank <= dim < rank for rank, dim in seen)
    assert {dim for rank, dim in seen if rank == 2} == {-2, -1, 0, 1}


def test_pytest_has_a_test_only_for_what_is_promised():
    promised = checks(Declaration(_sine, "float[b]", independent="b"))
    assert hasattr(promised, "test_DECL_INDEPENDENT")
    with pytest.raises(pytest.skip.Exception):
        promised().test_DECL_AXIS()


def test_the_command_reads_promises(tmp_path):
    words = ["autograd_conformance.selftests.check.specimens.relations:layer_norm_of_columns", "--arg", "float[b,n]"]
    words += ["--arg", "float[n]", "--arg", "float[n]", "--independent", "b", "--properties", "DECL-*"]
    # Not in a fork of this process: torch's autograd does not work in that of one that has used its threads.
    words = ["check", *words, "--profile", "quick", "--seed", "0", "--scripts", str(tmp_path)]
    found = started(*words, folder=tmp_path, torch=True)
    assert found.returncode == 1, found.stdout + found.stderr
    assert "WRONG: DECL-INDEPENDENT" in found.stdout
    assert "with: slices along: b, of length" in found.stdout

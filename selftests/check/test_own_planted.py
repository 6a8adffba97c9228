"""The faults that are planted for each property are found in users' Functions, of which only the code is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("torch")

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.declaration.declaration import REQUESTS
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.harness.outcomes import Broken, UsageProblem, named
from autograd_conformance.selftests.check.checking import each_test_of, faults_in, faults_of, first_fault, lines_of
from autograd_conformance.selftests.faults.properties import PLANTED
from autograd_conformance.selftests.faults.properties.definitions import TORCH
from autograd_conformance.selftests.support import scripts
from autograd_conformance.suites.declared import Checked

# Those that are faults in a Function, and not in the implementation.
IN_FUNCTIONS = [
    p
    for p in PLANTED
    if p.wrong.implementation is p.twin.implementation is TORCH and p.twin.device == "cpu" and p.raises is Broken
]

# What nobody can know who has only the code, each with the reason.
UNKNOWABLE = {
    "OffByNano": "an approximation to half of the digits is taken for what is meant",
    "OneEntryOffByNano": "an approximation to half of the digits is taken for what is meant",
    "HalfRoundedCoarsely": "a few units of half precision may be the rounding of operations inside",
    "EighthLostUnderAutocast": "a few units of bfloat16 may be the rounding of operations inside",
    "ScalarBecomesRow": "which shape the outputs have is what the Function says",
    "NotMaterialized": "whether unused outputs come as None is what the Function says, and shown",
    "NotReduced": "the engine sums a gradient to its input's shape",
    "OneDimensionMore": "the engine sums a gradient to its input's shape",
    "RowForScalar": "the engine sums a gradient to its input's shape",
    "Widened": "the engine casts a gradient to its input's dtype",
    "ScaledUnderAutocast": "two digits of bfloat16, half of which have to be right, leave a quarter open",
    "EmptyGetsNoGradient": "no gradient is as good as zeros",
    "RefusedThoughSupported": "a loud refusal of second derivatives is not a fault, and reported",
    "EmptyRefused": "a loud refusal of tensors without elements is not a fault, and reported",
    "SecondMarkedConstant": "which outputs are differentiable is what the Function says, and shown",
    "NotMarked": "which outputs are differentiable is what the Function says, and shown",
    "HalfAtTheKink": "any convention at a kink is right",
    "SaturatedExcluded": "any convention at a kink is right",
    "TailPast65536Lost": "a user's Function may build all pairs, so that so many elements are not tried",
    "SumsToNothing": "which outputs are finite next to a number that is not finite is what the Function says",
    "MaskedByProduct": "which gradients are finite next to a number that is not finite is what the Function says",
}

# The properties with which a fault in numbers may be found where there is no reference.
NUMBERS = ("VJP-FD", "VJP-REF", "FWD-VALUE")


def _as_users_do(argument):
    """The argument, as a text such as float[n] describes it."""
    if getattr(argument, "values", None) != "any" or argument.dtype is not None:
        return argument
    return replace(argument, values="free", smooth=argument.smooth or "irregular")


def requested(*properties):
    """The requests without which these properties are not checked. The compiler takes seconds."""
    return tuple(word for word, tests in REQUESTS.items() if {test.partition("/")[0] for test in tests} & {*properties})


def declared(function, also=()):
    """A documented Function as a user's: the class and its arguments alone."""
    made = Declaration(
        function.body(TORCH.xp, TORCH.ag),
        *map(_as_users_do, function.arguments),
        name=function.name,
        dtypes=function.dtypes,
        surrogate=function.surrogate,
        once=function.double == "once",
        inplace=function.inplace,
        also=also,
    )
    made.parsed.sizes.update(function.sizes)
    return made


# What is refused in every call that is declared, which the message says.
_REFUSING = "InplaceCopied"


def knowable(planted):
    """Whether the fault can be known; single precision shows where finite differences look, and not in the values."""
    return planted.name not in (*UNKNOWABLE, _REFUSING) and str(planted) != "FWD-VALUE-DoubleInSinglePrecision"


def test_what_no_call_survives_is_said():
    planted = next(p for p in IN_FUNCTIONS if p.name == _REFUSING)
    with pytest.raises(UsageProblem, match="marked as dirty during the forward method were not returned as output"):
        faults_of(declared(planted.wrong.function))


KNOWABLE = list(filter(knowable, IN_FUNCTIONS))


def planted_test(planted):
    """The test for which the fault was planted."""
    return named(planted.id, planted.variant)


def likeliest(planted):
    """The tests that may find the fault, the likeliest first."""
    long = [named(each, "long") for each in NUMBERS] if planted.variant == "sizes" else []
    others = (test for each in (planted.id, *NUMBERS) for test in each_test_of(each))
    return dict.fromkeys([planted_test(planted), *long, *NUMBERS, *others])


def coarse(planted, declaration):
    """Single precision inside double precision shows in no dtype that comes back: discovery finds it."""
    return planted.name.endswith("SinglePrecision") and discover(declaration, TORCH).coarse


@pytest.mark.parametrize("planted", KNOWABLE, ids=str)
def test_the_fault_is_found_and_shown(planted, tmp_path):
    asked_for = declared(planted.wrong.function, requested(planted.id))
    with scripts.importable(asked_for, tmp_path) as declaration:
        known = coarse(planted, declaration)
        found = first_fault(declaration, *([planted_test(planted)] if known else likeliest(planted)))
    assert found or known, planted.words
    if found:
        shown(planted, found[0]["id"], found[0]["failure"])


@pytest.mark.parametrize("planted", KNOWABLE, ids=str)
def test_every_test_that_finds_the_fault_shows_it_in_the_smallest_call(planted, tmp_path):
    asked_for = declared(planted.wrong.function, requested(planted.id))
    with scripts.importable(asked_for, tmp_path) as declaration:
        found = faults_of(declaration, planted.id, *NUMBERS)
    assert found or coarse(planted, declaration), planted.words
    for line, _ in found:
        shown(planted, line["id"], line["failure"])


# What these remember of earlier calls, or find in memory, may show in the numbers of a call that is right alone.
STATEFUL = (
    "CallsCounted", "EveryOtherCallDoubled", "FirstEntryNotWritten", "GradientNotWritten", "RememberedByShape",
    "ScratchNotWritten", "SharedOutput", "SharedScratch", "StateOfTheLastCall",
)  # fmt: skip

# Findings without a script, with words of the reason.
NO_SCRIPT = {
    "VJP-REPEAT": "earlier calls",
    "VJP-CHAIN/instances": "several calls",
    "ENV-SETTINGS": "settings of the process",
    "ENV-SETTINGS/seeds": "settings of the process",
    "ENV-THREADS": "threads",
    "FWD-VALUE/averages": "average",
    "VJP-REF/averages": "average",
}


def shown(planted, test_id, failure):
    """Assert that the script for a failure, if there has to be one, shows the fault and accepts its correct twin."""
    test = test_id.partition("[")[0]
    if "script" not in failure:
        drawing = "draws random numbers" if planted.id == "ENV-RANDOM" else ""
        # What memory holds, or earlier calls left, may show in any test.
        anything = "" if planted.name in STATEFUL else None
        reason = "fails only sometimes" if failure.get("flaky") else drawing or NO_SCRIPT.get(test, anything)
        assert reason is not None, test_id
        assert reason in failure["no_script"]
        return
    text = failure["script"]
    if planted.name not in STATEFUL:
        function = declared(planted.wrong.function)
        # Noise shows in most calls, not in each.
        ends = {scripts.status(text, DECLARED=function) for _ in range(10 if planted.name == "Noisy" else 1)}
        assert scripts.shown_by(failure) in ends, text
    assert scripts.status(text, DECLARED=declared(planted.twin.function)) == 0, text


@pytest.mark.parametrize("planted", [p for p in IN_FUNCTIONS if p.name in UNKNOWABLE], ids=str)
def test_what_cannot_be_known_is_not_guessed(planted):
    made = declared(planted.wrong.function, requested(planted.id))
    checked = Checked(made, profile="quick", seed=0, shrink=False)
    assert list(faults_in(lines_of(checked, *each_test_of(planted.id), *NUMBERS))) == []


TWINS = {planted.twin.function.name: planted.twin.function for planted in IN_FUNCTIONS}


@pytest.mark.parametrize("name", TWINS)
def test_the_twin_is_accepted(name):
    its = [planted for planted in IN_FUNCTIONS if planted.twin.function.name == name]
    made = declared(TWINS[name], requested(*(planted.id for planted in its)))
    checked = Checked(made, profile="quick", seed=0, shrink=False)
    assert list(faults_in(lines_of(checked, *dict.fromkeys(map(planted_test, its)), *NUMBERS))) == []


@pytest.mark.parametrize("name", TWINS)
def test_of_the_twin_nothing_is_wrong(name):
    assert faults_of(declared(TWINS[name], also=("vmap", "checkpoint"))) == []

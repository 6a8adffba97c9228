"""The gate: what it lets through, and what it says."""

from __future__ import annotations

import json

import jsonschema
import pytest

from autograd_conformance.harness.catalogue import PACKAGE
from autograd_conformance.harness.outcomes import FAILING, OUTCOMES
from autograd_conformance.harness.reports import gate
from autograd_conformance.selftests.support.reports import ALL_PASS, FINDING, HEADER, IDS, lines, result

SCHEMA = json.loads((PACKAGE / "harness" / "reports" / "report.schema.json").read_text())


def test_the_lines_made_here_are_those_of_a_report():
    for line in lines([result(id, outcome) for id in IDS for outcome in ("pass", "fail", "vacuous")]):
        jsonschema.Draft202012Validator(SCHEMA).validate(line | ({"failure": FINDING} if "fail" in line else {}))


def test_every_pair_of_outcomes_has_a_verdict():
    names = (*OUTCOMES, "absent")
    assert set(gate.KIND_OF) == {(old, new) for old in names for new in names}
    assert set(gate.KIND_OF.values()) <= set(gate.KINDS)


def fails(old, new):
    return gate.KINDS[gate.KIND_OF[old, new]].fails


def test_what_a_gate_must_not_let_through():
    fine = ("pass", "emulated")
    for old in (*OUTCOMES, "absent"):
        assert all(fails(old, new) for new in FAILING if new != old)
        # On a machine with an accelerator the tests of accelerators are not skipped, and have other ids.
        assert fails(old, "absent") == (old not in ("absent", "skip"))
        assert not fails(old, old)
    for old in (*fine, "known", "fixed"):
        assert fails(old, "unsupported")
        assert fails(old, "skip")
    assert fails("pass", "emulated")
    assert fails("pass", "known")
    assert all(fails(old, new) for old in ("fail", "error", "vacuous", "known") for new in fine)
    assert not any(fails("absent", new) for new in (*fine, "known", "unsupported", "skip"))


@pytest.mark.parametrize("of_report", [False, True])
def test_two_runs_alike_hold(held, of_report):
    status, out = held(ALL_PASS, ALL_PASS, of_report=of_report)
    assert (status, out) == (0, "gate: holds: 4 same\n")


def test_what_failed_before_may_fail_again(held):
    failing = {**ALL_PASS, IDS[0]: "fail", IDS[2]: "vacuous"}
    assert held(failing, failing)[0] == 0


@pytest.mark.parametrize("of_report", [False, True])
@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({IDS[0]: "fail"}, ("broken: VJP-REF[Exp-cpu] no longer holds", "gate: fails: 1 broken, 3 same")),
        ({IDS[2]: "vacuous"}, ("broken: NIG-01[cpu]", "reason: so")),
        ({IDS[0]: "unsupported"}, ("dropped: VJP-REF[Exp-cpu] is no longer checked",)),
        ({IDS[0]: "skip"}, ("dropped: ",)),
        ({IDS[0]: "emulated"}, ("helped: VJP-REF[Exp-cpu] holds only with the adapter's help",)),
        ({IDS[0]: "known"}, ("broken: ", "before: pass", "now: known")),
        (
            {IDS[0]: "fixed"},
            ("recovered: ", "VJP-REF[Exp-cpu]: pass -> fixed", "autograd-conformance accept new.ndjson"),
        ),
        ({"VJP-REF[Cube-cpu]": "fail"}, ("added: VJP-REF[Cube-cpu] is new and does not hold",)),
    ],
)
def test_what_is_worse_fails_and_is_reported(held, change, shown, of_report):
    status, out = held(ALL_PASS, {**ALL_PASS, **change}, of_report=of_report)
    assert status == 1
    assert all(part in out for part in shown), out


def test_a_baseline_that_comes_with_the_suite_is_not_to_be_replaced(held, said, tmp_path):
    held(ALL_PASS, {**ALL_PASS, IDS[0]: "fail"})
    shipped = tmp_path / "implementations" / "baselines" / "mine.txt"
    shipped.parent.mkdir(parents=True)
    shipped.write_text((tmp_path / "base.txt").read_text())
    accept = "to take this run as the baseline: autograd-conformance accept new.ndjson -o "
    assert f"{accept}base.txt" in said("compare", "base.txt", "new.ndjson")[1]
    out = said("compare", str(shipped), "new.ndjson")[1]
    assert accept in out
    assert str(shipped) not in out
    assert ".baseline" in out.partition(accept)[2]


def test_what_holds_next_to_a_regression_may_be_its_side_effect(held):
    side_effect = "; this may be a side effect of what is broken above: look at that first"
    for also, expected in (({IDS[2]: "fail"}, True), ({}, False)):
        out = held(ALL_PASS, {**ALL_PASS, IDS[0]: "fixed", **also})[1]
        assert "recovered: " in out
        assert (side_effect in out) is expected, out


def test_a_regression_is_reported_with_sentence_counterexample_and_replay(held):
    out = held(ALL_PASS, {**ALL_PASS, IDS[0]: "fail"}, of_report=True)[1]
    for shown in (
        "equal the reference VJP", "call: Call('Exp')", "what: gradient of argument 0 (x)", "got: 1", "expected: 2",
        "before: pass, over 25 examples, on 1.2", "now: fail (gradient of argument 0 (x))",
        "rerun: autograd-conformance run mine.py --profile replay --replay new.ndjson --properties VJP-REF "
        "--device cpu --functions Exp",
    ):  # fmt: skip
        assert shown in out, out


def test_the_replay_imports_what_the_run_imported(held):
    imported = {**HEADER["implementation"], "package": "mine.torch", "added": {"accelerator": "1.0"}}
    out = held(ALL_PASS, {**ALL_PASS, IDS[0]: "fail"}, implementation=imported)[1]
    assert "--properties VJP-REF --package mine.torch --import accelerator --device cpu" in out


def test_another_part_that_is_missing_is_new(held, tmp_path):
    one, other = (result(IDS[0], "missing", reason=f"needs torch.{part}") for part in ("conj", "imag"))
    assert held({IDS[0]: one}, {IDS[0]: one})[0] == 0
    assert "VJP-REF[Exp-cpu]  missing  25/25 f64 f32  needs torch.conj\n" in (tmp_path / "base.txt").read_text()
    status, out = held({IDS[0]: one}, {IDS[0]: other})
    assert status == 1
    assert "other: VJP-REF[Exp-cpu] still fails, but in another way" in out
    assert "before: missing (needs torch.conj)" in out


def test_another_fault_at_the_same_id_is_new(held):
    other = result(IDS[0], "fail", failure={**FINDING, "what": "shape of gradient"})
    status, out = held({**ALL_PASS, IDS[0]: "fail"}, {**ALL_PASS, IDS[0]: other})
    assert status == 1
    assert "other: VJP-REF[Exp-cpu] still fails, but in another way" in out
    died = result(IDS[0], "error", failure={"type": "Death", "message": "m", "traceback": []})
    hung = result(IDS[0], "error", failure={"type": "Hang", "message": "m", "traceback": []})
    assert held({IDS[0]: died}, {IDS[0]: died})[0] == 0
    assert held({IDS[0]: died}, {IDS[0]: hung})[0] == 1


def raised(kind, message):
    finding = {**FINDING, "what": "the call", "got": f"{kind}: {message}", "kind": "raised"}
    return result(IDS[0], "fail", failure={**finding, "raised": {"type": kind, "at": ""}})


def died(message):
    return result(IDS[0], "error", failure={"type": "Death", "message": message, "traceback": []})


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        (raised("TypeError", "x"), raised("IndexError", "x"), 1),
        (raised("TypeError", "x"), raised("TypeError", "y"), 0),
        (raised("Unsupported", "x"), raised("InternalTorchDynamo", "x"), 1),
        (died("the process died: Segmentation fault"), died("the process died: Aborted"), 1),
        (died("lost /a1/b at 0x7f00 after 3.5 s"), died("lost /home/c at 0x8e11 after 12 s"), 0),
    ],
)
def test_exceptions_and_deaths_are_reported_apart_and_their_numbers_are_not(held, old, new, status):
    assert held({IDS[0]: old}, {IDS[0]: new})[0] == status


def test_what_refuses_more_than_before_is_worse(held):
    before, now = (result(IDS[0], "pass", excused=refused) for refused in (3, 9))
    status, out = held({IDS[0]: before}, {IDS[0]: now})
    assert status == 1
    assert "refusing: VJP-REF[Exp-cpu] refuses more than before" in out
    status, out = held({IDS[0]: now}, {IDS[0]: before})
    assert status == 0
    assert "1 better" in out
    assert held({IDS[0]: now}, {IDS[0]: now})[0] == 0


def test_the_worst_place_in_a_tensor_is_not_another_fault(held):
    found = [
        result(
            IDS[0],
            "fail",
            failure={**FINDING, "what": f"gradient at ({n},)", "component": {"what": "gradient", "index": [n]}},
        )
        for n in (0, 1)
    ]
    assert held({IDS[0]: found[0]}, {IDS[0]: found[1]})[0] == 0


def test_an_id_that_was_not_run_fails(held):
    status, out = held(ALL_PASS, dict.fromkeys(IDS[1:], "pass"))
    assert status == 1
    assert "VJP-REF[Exp-cpu]: pass -> absent" in out


def test_what_holds_now_is_to_be_accepted(held, said):
    status, out = held({**ALL_PASS, IDS[0]: "fail"}, ALL_PASS)
    assert status == 1
    command = "autograd-conformance accept new.ndjson -o base.txt"
    assert command in out
    status, out = said(*command.split()[1:])
    assert status == 0
    assert "VJP-REF[Exp-cpu]: fail (gradient of argument 0 (x)) -> pass" in out
    assert said("compare", "base.txt", "new.ndjson")[0] == 0


def test_a_new_id_that_holds_is_reported_and_passes(held):
    status, out = held(ALL_PASS, {**ALL_PASS, "VJP-REF[Cube-cpu]": "pass"})
    assert status == 0
    assert "VJP-REF[Cube-cpu]: absent -> pass" in out


@pytest.mark.parametrize(
    ("now", "way"),
    [
        ({"dtypes": ["float64"]}, "without float32"),
        ({"examples": 6}, "with less than a quarter of the examples"),
        ({"checks": 6}, "with less than a quarter of the checks"),
        ({"inconclusive": 19}, "with less than a quarter of the checks"),
        ({"dtypes": [], "examples": 1}, "without float64, float32 and with less than a quarter of the examples"),
    ],
)
@pytest.mark.parametrize("of_report", [False, True])
def test_what_is_asked_less_is_worse(held, now, way, of_report):
    status, out = held(ALL_PASS, {**ALL_PASS, IDS[0]: result(IDS[0], **now)}, of_report=of_report)
    assert status == 1
    assert f"asked less: {way}: {IDS[0]}" in out
    assert "  before: pass, 25 examples and 25 checks in float64, float32" in out
    assert "  now: pass, " in out
    assert "gate: fails: 1 asked less, 3 same" in out


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (result(IDS[0]), result(IDS[0], examples=7, checks=7)),
        (result(IDS[0], examples=5, checks=5), result(IDS[0], examples=1, checks=1)),
        (result(IDS[0]), result(IDS[0], dtypes=["float32", "bfloat16", "float64"], examples=90)),
        # A failure ends a test wherever it is found, and hangs and deaths count nothing.
        (result(IDS[0], "fail"), result(IDS[0], "fail", examples=1, checks=1)),
        (result(IDS[0], "known"), result(IDS[0], "known", examples=1, checks=1)),
    ],
)
def test_what_differs_by_chance_is_as_before(held, old, new):
    assert held({IDS[0]: old}, {IDS[0]: new}) == (0, "gate: holds: 1 same\n")


def test_what_is_asked_less_in_the_same_way_is_shown_once(held):
    status, out = held(ALL_PASS, {id: result(id, dtypes=["float64"]) for id in IDS}, claims=["float64"])
    assert status == 1
    assert "asked less: the adapter does not claim double_backward, float32 any more\n" in out
    assert out.count("without float32") == 1
    assert all(id in out for id in IDS)
    assert "gate: fails: 4 asked less, 2 not claimed any more" in out
    assert held(ALL_PASS, ALL_PASS, claims=["double_backward", "float32", "float64", "jvp"])[0] == 0


def test_something_worse_is_not_hidden_by_what_is_asked_less(held):
    status, out = held(ALL_PASS, {**ALL_PASS, IDS[0]: result(IDS[0], "fail", dtypes=["float64"])})
    assert status == 1
    assert "broken: VJP-REF[Exp-cpu]" in out

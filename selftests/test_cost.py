"""What a call costs: a slower one is noticed, an unchanged one is not, also while the machine is busy."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner

from autograd_conformance import implementations
from autograd_conformance.harness import cli
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.reports.cost_changes import Change
from autograd_conformance.harness.running import cost
from autograd_conformance.selftests.reports import write
from autograd_conformance.selftests.test_report import LINES

PARTS = (
    "apply", "backward", "save_for_backward", "needs_input_grad", "set_materialize_grads", "mark_non_differentiable",
    "mark_dirty",
)  # fmt: skip

HEAD = """
from autograd_conformance.implementations.model import ModelImplementation
from autograd_conformance.reference import model


class Changed(ModelImplementation):
    pass


def work(numbers):
    return sum(number for number in range(numbers))
"""

# Work that takes about as long as a call: the machine that runs this may be busy with other tests.
FAULTS = {
    "apply": """

def slow(own):
    def apply(*args):
        work(600)
        return own(*args)

    return apply


Changed.function = lambda self, cls: slow(cls.apply)
""",
    "backward": """

def slower(self, cls):
    own = cls.backward

    def backward(*args):
        work(400)
        return own(*args)

    cls.backward = staticmethod(backward)
    return cls.apply


Changed.function = slower
""",
    "save_for_backward": """

def slow(ctx, *tensors, own=model.Context.save_for_backward):
    work(1200)
    return own(ctx, *tensors)


model.Context.save_for_backward = slow
""",
}


@pytest.fixture(scope="module")
def adapters(tmp_path_factory):
    """An adapter for each fault, by what is slower, and one without any under the empty name."""
    folder = tmp_path_factory.mktemp("adapters")
    for what, fault in {"": "", **FAULTS}.items():
        (folder / f"changed_{what}.py").write_text(HEAD + fault)
    return {what: str(folder / f"changed_{what}.py") for what in ("", *FAULTS)}


def busy():
    """Processes that take what they get of every core."""
    words = [sys.executable, "-c", "while True: sum(range(10**6))"]
    stack = ExitStack()
    for _ in range(2 * (os.cpu_count() or 1)):
        process = stack.enter_context(subprocess.Popen(words))
        stack.callback(process.kill)
    return stack


def measured(adapter):
    """The costs of an adapter, as a clock measures them."""
    return {line["what"]: line for line in cost.measured(adapter, processes=3)}


@pytest.fixture
def counted(monkeypatch):
    """Measures the costs of an adapter in calls of functions, in this process: no other work can change them."""
    calls = [0]

    def count(_frame, event, _argument):
        calls[0] += event in ("call", "c_call")

    def ratios(adapter):
        sys.setprofile(count)
        try:
            return cost.ratios(implementations.load(adapter))
        finally:
            sys.setprofile(None)

    monkeypatch.setattr(cost, "perf_counter", lambda: float(calls[0]))
    for name in ("ROUNDS", "REPETITIONS"):
        monkeypatch.setattr(cost, name, 1)
    monkeypatch.setattr(cost, "_in_a_process", ratios)
    return lambda adapter: {line["what"]: line for line in cost.measured(adapter, processes=1)}


def test_the_same_costs_as_many_calls(adapters, counted):
    first, again = counted(adapters[""]), counted(adapters[""])
    assert first == again
    assert list(first) == list(PARTS)
    assert worse(first, again) == set()


@pytest.mark.parametrize("what", FAULTS)
def test_what_takes_more_calls_is_found_and_named(adapters, counted, what):
    old, new = counted(adapters[""]), counted(adapters[what])
    assert (worse(old, new), worse(new, old)) == ({what}, set())


# By the clock of this machine.


@pytest.fixture(scope="module")
def unchanged(adapters):
    """What the same costs, time and again, and the last two times while the machine is busy."""
    alone = [measured(adapters[""]) for _ in range(3)]
    with busy():
        return [*alone, *(measured(adapters[""]) for _ in range(2))]


def worse(old, new):
    return {what for what in old if Change(old[what], new[what]).worse}


def test_the_same_is_not_worse(unchanged):
    assert [worse(old, new) for old, new in itertools.permutations(unchanged, 2)] == [set()] * 20


@pytest.mark.parametrize(
    ("what", "around"), [*((what, ExitStack) for what in FAULTS), pytest.param("apply", busy, id="apply-busy")]
)
def test_what_is_slower_is_found_and_named(adapters, unchanged, what, around):
    with around():
        new = measured(adapters[what])
    assert [worse(old, new) for old in unchanged] == [{what}] * len(unchanged)
    assert [worse(new, old) for old in unchanged] == [set()] * len(unchanged)


def test_every_part_that_is_claimed_is_measured():
    hips = pytest.importorskip("autograd_conformance.implementations.hips", exc_type=ImportError)
    assert list(cost.ratios(hips.HipsImplementation())) == ["apply", "backward", "needs_input_grad"]


@pytest.mark.parametrize(("between", "within"), [(0.0, 0.1), (0.05, 0.1), (0.05, 0.0)])
def test_the_interval_holds_the_mean_of_processes(between, within):
    rng = np.random.default_rng(1)
    caught = 0
    for _ in range(100):
        processes = 2 + between * rng.standard_normal((5, 1))
        low, high = cost.interval(processes + within * rng.standard_normal((5, 40)))
        caught += low <= 2 <= high
    # A bootstrap of five is somewhat narrow.
    assert caught >= 85


@pytest.fixture(scope="module")
def reports(command, adapters):
    """Reports of runs with costs and without, and the first with a higher cost of apply."""
    words = ("--functions", "Exp", "--properties", "VJP-REF", "-n", "0")
    same, without = command(adapters[""], *words, "--cost"), command(adapters[""], *words)
    apply, *others = same.footer["costs"]
    higher = {**apply, **{name: 1.5 * apply[name] + 1 for name in ("ratio", "low", "high")}}
    slow = replace(same, path=with_costs(same, same.path.with_name("slow.ndjson"), [higher, *others]))
    return same, slow, without


def with_costs(run, path, costs, **header):
    """The report of a run with other costs, at a path."""
    first, *results, footer = ndjson.read(run.path)
    kept = [{**first, **header}, *results]
    return write(path, [*kept, ndjson.footer(kept, footer["all"], footer["seconds"], costs)])


def compare(*words):
    done = CliRunner().invoke(cli.main, ["compare", *map(str, words)])
    return done.exit_code, done.output


def test_a_report_shows_the_costs(reports):
    same, slow, without = reports
    LINES.validate(same.footer)
    assert [line["what"] for line in same.footer["costs"]] == list(PARTS)
    assert "= costs =" in same.out
    assert "costs" not in without.footer
    # The gate does not look at them.
    assert same.footer["digest"] == slow.footer["digest"] == without.footer["digest"]
    assert compare(same.path, slow.path)[0] == 0
    broken = {**same.footer, "costs": [{**same.footer["costs"][0], "ratio": "high"}]}
    with pytest.raises(jsonschema.ValidationError):
        LINES.validate(broken)


def test_compare_says_what_is_worse(reports):
    same, slow, _ = reports
    assert compare("--cost", same.path, same.path)[0] == 0
    status, out = compare("--cost", same.path, slow.path)
    assert status == 1
    first, *others = out.splitlines()
    assert first.startswith("worse: apply ")
    assert all(line.startswith("same: ") for line in others)


def test_what_is_not_measured_any_more_is_worse(reports, tmp_path):
    less = with_costs(reports[0], tmp_path / "less.ndjson", reports[0].footer["costs"][:-1])
    status, out = compare("--cost", reports[0].path, less)
    assert status == 1
    assert out.startswith("worse: mark_dirty ")
    assert compare("--cost", less, reports[0].path)[0] == 0


def test_costs_that_cannot_be_compared(reports, tmp_path):
    same, _, without = reports
    status, out = compare("--cost", same.path, without.path)
    assert status == 2
    assert f"{without.path} has no costs; write a report with costs with: autograd-conformance run --cost" in out
    (tmp_path / "half").write_text("".join(f"{line}\n" for line in same.path.read_text().splitlines()[:-1]))
    assert "half is not the report of a complete run" in compare("--cost", same.path, tmp_path / "half")[1]
    (tmp_path / "base.txt").write_text("# autograd-conformance baseline: 1\n")
    assert compare("--cost", tmp_path / "base.txt", same.path)[0] == 2
    named = {**same.header["implementation"], "name": "other"}
    other = with_costs(same, tmp_path / "other.ndjson", same.footer["costs"], implementation=named)
    status, out = compare("--cost", same.path, other)
    assert status == 2
    assert "costs of model, and" in out


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("\n\nChanged.function = lambda self, cls: int('no')\n", "ValueError: "),
        ("\n\nChanged.ag = None\n", "Error"),
    ],
)
def test_what_cannot_be_measured_is_reported(tmp_path, text, problem):
    (tmp_path / "broken.py").write_text(HEAD + text)
    with pytest.raises(UsageProblem, match=r"broken\.py cannot be measured: ") as raised:
        cost.measured(str(tmp_path / "broken.py"))
    assert problem in str(raised.value)


@pytest.mark.usefixtures("one_process")
def test_a_shard_has_no_costs(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli.main, ["run", "model", "--cost", "--shard", "1/2"])
    assert done.exit_code == 2
    assert "--cost does not go with --shard 1/2" in done.output

"""What is not claimed is run, too: a wrong result without an error is said, and fails no run."""

from __future__ import annotations

import copy
import warnings
from functools import cache
from itertools import islice
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

from autograd_conformance.harness.running import results, unclaimed
from autograd_conformance.harness.running.claimed_first import ClaimedFirst
from autograd_conformance.harness.testing import drawing
from autograd_conformance.harness.testing.clauses import ClauseSubject
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.implementations.protocol import CAPABILITIES
from autograd_conformance.implementations.torch import TorchImplementation
from autograd_conformance.selftests.faults.clauses import FAULTS
from autograd_conformance.selftests.faults.clauses.definitions import TORCH, checks_of
from autograd_conformance.selftests.faults.properties import PLANTED, checks
from autograd_conformance.selftests.gate.attacking import accept

# A capability has at least so many faults.
FAULTS_EACH = 3


def without_claims(implementation):
    """The implementation, claiming nothing."""
    found = copy.copy(implementation)
    found.capabilities = frozenset()
    return found


def outcome_of(claim, test, subject):
    """The outcome of a test on an implementation that claims nothing."""
    needs = claim.needs | subject.needs
    subject = unclaimed.claiming(subject, needs)
    drawing.prepare(test, subject.key["id"], 0, shrink=False)
    error = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            test(subject)
        subject.record.verify_exercised()
    except (Exception, AssertionError) as raised:  # noqa: BLE001 - what a fault raises
        error = raised
    return results.result_line(subject, error, needs)["outcome"]


def of_property(planted):
    """What the tests of a planted fault's property need, and what becomes of them."""
    wrong = planted.wrong
    implementation = without_claims(wrong.implementation)
    for claim, test in checks.tests_of(planted.id, wrong.function, wrong.implementation, wrong.device):
        if claim.variant == planted.variant:

            def subject(claim=claim):
                return Subject(
                    implementation, wrong.function, wrong.device, claim.property_id, variant=claim.variant,
                    allowed=claim.dtypes,
                )  # fmt: skip

            yield claim.needs | subject().needs, lambda c=claim, t=test, s=subject: outcome_of(c, t, s())


def of_clause(fault):
    """The same for a fault of a clause."""
    for claim, test in checks_of(fault.id):
        if not claim.accelerator:

            def run(claim=claim, test=test):
                subject = ClauseSubject(without_claims(TORCH), claim.clause, "cpu", claim.variant)
                with fault.install():
                    return outcome_of(claim, test, subject)

            yield claim.needs, run


@cache
def faults():
    """What each fault's tests need, with a way to run them; those with the fewest needs first."""
    found = [each for planted in PLANTED if planted.twin.device == "cpu" for each in of_property(planted)]
    found += [each for fault in FAULTS for each in of_clause(fault)]
    return sorted(found, key=lambda each: len(each[0]))


@pytest.mark.parametrize("count", [1, FAULTS_EACH])
@pytest.mark.parametrize("capability", CAPABILITIES)
def test_faults_of_what_is_not_claimed_are_silent(capability, count):
    """Faults of each capability, in an engine that claims nothing."""
    found = (run() for needs, run in faults() if capability in needs)
    silent = islice((each for each in found if each in ("silent", "dies")), count)
    assert len(list(silent)) == count


@pytest.mark.parametrize("name", ["CotangentChanged", "SavedInputChanged", "ChangedBehindTheCounter"])
def test_changed_values_are_found_whatever_is_claimed(name):
    (planted,) = (each for each in PLANTED if each.name == name)
    assert [run() for needs, run in of_property(planted) if not needs] == ["fail"]


# A run.

TOY = """
import os

from autograd_conformance.implementations.model import ModelImplementation


class Toy(ModelImplementation):
    name = "toy"
    capabilities = ModelImplementation.capabilities - {"jvp", "inplace", "threads", "views"}

    def jvp(self, f, primals, tangents):
        outputs, moved = super().jvp(f, primals, tangents)
        return outputs, tuple(t if t is None else t * FACTOR for t in moved)

    def version(self, tensor):
        os._exit(0)

    def fill_(self, tensor, value):
        raise RuntimeError("this toy changes no tensor")
"""
CHOICE = (
    "--functions", "MyCube,Inplace",
    "--properties", "VJP-REF,JVP-REF,BATCH-VMAP,FWD-PURE,VJP-PURE,FWD-LAYOUT,ENV-THREADS",
)  # fmt: skip
OUTCOMES = {
    "VJP-REF[MyCube-cpu]": "pass",
    "JVP-REF[MyCube-cpu]": "silent",
    "BATCH-VMAP[MyCube-cpu]": "unsupported",
    "VJP-PURE/owned[MyCube-cpu]": "refuses",
    "FWD-PURE[Inplace-cpu]": "dies",
    "ENV-THREADS[MyCube-cpu]": "holds",
}


def toy(folder, factor=2):
    (folder / "toy.py").write_text(TOY.replace("FACTOR", str(factor)))
    return folder


@pytest.mark.parametrize("workers", ["1", "2"])
def test_what_is_not_claimed_is_said_and_fails_no_run(command, tmp_path, workers):
    run = command("toy.py", *CHOICE, "-n", workers, folder=toy(tmp_path))
    assert run.status == 0, run.out
    assert {id: run.outcomes[id] for id in OUTCOMES} == OUTCOMES
    line = run.results["JVP-REF[MyCube-cpu]"]
    assert line["unclaimed"] == ["jvp"]
    assert line["failure"]["what"].startswith("tangent of output 0")
    assert run.results["BATCH-VMAP[MyCube-cpu]"]["reason"] == "not claimed, and the adapter has no method vmap"
    assert "silent: JVP-REF[MyCube-cpu]" in run.out
    assert "dies: FWD-PURE[Inplace-cpu]" in run.out
    assert run.footer["verdict"] == "holds"
    # Nothing that may break the process comes before what is claimed.
    order = ["unclaimed" in line for line in run.results.values()]
    assert workers == "2" or order == sorted(order)


def test_no_seed_and_no_profile_says_what_becomes_of_it(command, tmp_path):
    """Some examples are wrong: which one is met first is the same, and so is the outcome."""
    toy(tmp_path, "(2 if self.numpy(primals[0]).size > 4 else 1)")
    choice = ("--functions", "MyCube", "--properties", "JVP-REF", "-n", "1")
    runs = [
        command("toy.py", *choice, "--profile", "quick", "--seed", seed, folder=tmp_path).results for seed in ("1", "2")
    ]
    one, other = (found["JVP-REF[MyCube-cpu]"] for found in runs)
    assert one["outcome"] == other["outcome"] == "silent"
    assert one["examples"] == other["examples"] > 5
    assert one["grade"] == "not claimed"
    assert (one["failure"]["call"], one["failure"]["drawn"]) == (other["failure"]["call"], other["failure"]["drawn"])


def test_without_workers_it_is_not_run(command, tmp_path):
    """A death would end the run."""
    run = command("toy.py", *CHOICE, "-n", "0", folder=toy(tmp_path))
    assert run.status == 0
    assert {line["outcome"] for line in run.results.values() if "unclaimed" in line} == {"skip", "unsupported"}
    assert run.outcomes["VJP-REF[MyCube-cpu]"] == "pass"


def test_a_loud_small_example_hides_no_silent_one(command, tmp_path):
    path = toy(tmp_path) / "toy.py"
    raising = "if not primals[0].shape:\n            raise RuntimeError('no scalars')"
    path.write_text(path.read_text().replace("outputs, moved =", f"{raising}\n        outputs, moved =", 1))
    run = command("toy.py", *CHOICE, "-n", "1", folder=tmp_path)
    assert run.outcomes["JVP-REF[MyCube-cpu]"] == "silent"


def test_the_gate_fails_for_what_gets_worse(command, tmp_path):
    choice = ("--functions", "MyCube", "--properties", "VJP-REF,JVP-REF", "-n", "1")
    assert command("toy.py", *choice, folder=toy(tmp_path, 1)).status == 0
    accept(tmp_path, "b.txt")
    held = command("toy.py", *choice, "--baseline", "b.txt", folder=tmp_path)
    assert held.status == 0
    worse = command("toy.py", *choice, "--baseline", "b.txt", folder=toy(tmp_path))
    assert worse.status == 1
    assert "is not claimed, and does worse than before" in worse.out


def test_an_adapter_may_compute_its_claims():
    class Computing(TorchImplementation):
        @property
        def capabilities(self):
            return frozenset({"requires_grad"})

    subject = unclaimed.claiming(Subject(Computing(), PLANTED[0].wrong.function, "cpu"), {"jvp"})
    assert subject.implementation.capabilities == {"requires_grad", "jvp"}


@pytest.mark.parametrize("counts", [(6, 4, 2), (0, 4, 2), (3, 0, 1), (5, 5, 3)])
def test_workers_get_it_when_nothing_else_is_left(counts):
    """A simulation of workers that end their tests in turn."""
    claimed, later, workers = counts
    names = [f"t[{n}]" for n in range(claimed)] + [f"t[{n}-unclaimed]" for n in range(later)]
    config = SimpleNamespace(getvalue={"tx": ["popen"] * workers}.get)
    schedule = ClaimedFirst(config)
    nodes = [Worker(schedule, f"gw{n}") for n in range(workers)]
    for node in nodes:
        schedule.add_node(node)
        schedule.add_node_collection(node, names)
    schedule.schedule()
    done = []
    while any(node.run(done) for node in nodes):
        pass
    assert sorted(done) == list(range(len(names)))
    assert schedule.tests_finished
    # Each worker ends what is claimed first.
    for node in nodes:
        assert [n >= claimed for n in node.done] == sorted(n >= claimed for n in node.done)


class Worker:
    """A worker as the schedule knows it."""

    def __init__(self, schedule, name):
        self.schedule, self.gateway, self.shutting_down = schedule, SimpleNamespace(id=name), False
        self.queue, self.done, self.asked_for = [], [], None

    def send_runtest_some(self, numbers):
        self.queue += numbers

    def send_steal(self, numbers):
        self.asked_for = numbers

    def shutdown(self):
        self.shutting_down = True

    def run(self, done):
        """End a test, if the next one is known or none will come. Returns whether something happened."""
        if self.asked_for is not None:
            given, self.asked_for = [n for n in self.asked_for if n in self.queue[1:]], None
            self.queue = [n for n in self.queue if n not in given]
            self.schedule.remove_pending_tests_from_node(self, given)
            return True
        if not self.queue or (len(self.queue) == 1 and not self.shutting_down):
            return False
        done.append(self.queue[0])
        self.done.append(self.queue.pop(0))
        self.schedule.mark_test_complete(self, self.done[-1])
        return True

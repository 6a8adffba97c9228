"""State around users' Functions: tensors on ctx, memory never written, random numbers, settings of the process."""

from __future__ import annotations

import gc
import itertools

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.harness.check.report.facts_in_words import in_words
from autograd_conformance.harness.check.report.grouping import headlines
from autograd_conformance.selftests.check.checking import accuses
from autograd_conformance.selftests.check.specimens.functions import custom
from autograd_conformance.selftests.check.specimens.state import (
    SOURCES,
    UNCHANGING,
    Intermediate,
    Saved,
    Skipped,
    dropping,
    seldom,
)
from autograd_conformance.selftests.conftest import unchanged_settings
from autograd_conformance.selftests.support import scripts
from autograd_conformance.suites.declared import Checked

# Most of the faults below break most of these.
COMPARING = ("MEM-WRITTEN", "ENV-RANDOM", "FWD-VALUE", "VJP-FD", "VJP-REPEAT")

TORCH = implementations.load("torch")


class Rare(Intermediate):
    """Keeps its input itself, if it has six elements."""

    @staticmethod
    def forward(ctx, x):
        ctx.kept = {"twice": (x if x.numel() == 6 else x.clone(),)}
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * Intermediate.backward(ctx, g)


def test_tensors_on_ctx_get_more_examples():
    saved, kept, rare = (
        next(Checked(Declaration(cls, "float[...]"), seed=0, profile="quick").lines("VJP-INPLACE-SAFE"))
        for cls in (Saved, Intermediate, Rare)
    )
    assert [line["outcome"] for line in (saved, kept, rare)] == ["pass", "pass", "fail"]
    assert kept["examples"] > 4 * saved["examples"]


# Memory that was never written.


class Returned(Saved):
    """Returns memory, of which it writes what is positive."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        y = torch.empty_like(x)
        y[x > 0] = (x * x)[x > 0]
        return y


class Accumulated(Saved):
    """Adds its gradient to new memory."""

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return x.new_empty(x.shape).mul_(0).add_(2 * g * x)


class Chosen(Saved):
    """Takes elements by indices that it does not choose."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        index = torch.empty(x.numel(), dtype=torch.int64).clamp(0, max(x.numel() - 1, 0))
        return (x * x).reshape(-1)[index].reshape(x.shape)


@pytest.fixture
def used_memory(monkeypatch):
    """Lets torch allocate memory that holds something else each time, and in each run of this test the same."""
    numbers = itertools.count(1)

    def used(allocate):
        def allocated(*args, **kwargs):
            found = allocate(*args, **kwargs)
            if not torch.are_deterministic_algorithms_enabled():
                with torch.no_grad():
                    found.fill_(next(numbers) % 7)
            return found

        return allocated

    for owner, name in ((torch, "empty"), (torch, "empty_like"), (torch.Tensor, "new_empty")):
        monkeypatch.setattr(owner, name, used(getattr(owner, name)))


@pytest.mark.usefixtures("used_memory")
@pytest.mark.parametrize("function", [Returned, Accumulated, Skipped, Chosen])
def test_memory_that_was_never_written_is_one_fault(function):
    found = accuses(Declaration(function, "float[...]"), *COMPARING)
    assert ("MEM-WRITTEN", "") in {(line["property"], v.follows) for line, v in found}
    assert [line["id"] for line in headlines(found)] == [f"MEM-WRITTEN[{function.__name__}-cpu]"]


def test_a_counter_is_not_taken_for_memory():
    calls = itertools.count(1)

    def forward(ctx, x):
        ctx.calls = next(calls)
        return x * ctx.calls

    counted = custom("Counted", forward=forward, backward=lambda ctx, g: g * ctx.calls)
    found = accuses(Declaration(counted, "float[...]"), *COMPARING)
    assert "MEM-WRITTEN" not in {name for line, v in found for name in (line["property"], v.follows)}
    assert [line["property"] for line in headlines(found)] == ["VJP-REPEAT"]


def test_what_changes_now_and_then_is_not_taken_for_memory():
    calls = itertools.count(1)
    fifth = custom("Fifth", Saved, backward=lambda ctx, g: Saved.backward(ctx, g) * (2 if next(calls) % 5 == 0 else 1))
    for _ in range(5):
        assert not discover(Declaration(fifth, "float[...]"), TORCH).reads_new_memory
        next(calls)


# Random numbers.


@pytest.mark.parametrize("source", [*SOURCES, "seldom"])
def test_random_numbers_are_a_fact(source):
    facts = discover(Declaration(dropping(SOURCES.get(source, seldom)), "float[n]"), TORCH)
    assert any("draws random numbers; they are seeded" in fact for fact in in_words(facts))


@pytest.mark.parametrize("name", UNCHANGING)
def test_random_numbers_that_do_not_change_results_are_none(name):
    assert not discover(Declaration(dropping(UNCHANGING[name]), "float[n]"), TORCH).draws


# Settings.


def test_a_selftest_that_leaves_a_setting_changed_fails():
    with pytest.raises(pytest.fail.Exception, match="deterministic algorithms: 0 became 2"), unchanged_settings():
        torch.use_deterministic_algorithms(True)
    assert not torch.are_deterministic_algorithms_enabled()
    with unchanged_settings(), torch.no_grad():
        torch.rand(3)


def test_a_script_leaves_no_setting_changed():
    script = "import gc, torch; torch.use_deterministic_algorithms(True); torch.set_grad_enabled(False); gc.disable()"
    with unchanged_settings():
        assert scripts.status(script) == 0
    assert gc.isenabled()

"""State around users' Functions: tensors on ctx, memory never written, random numbers, settings of the process."""

from __future__ import annotations

import gc
import itertools
import random

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.harness.check.report import printing
from autograd_conformance.harness.check.report.grouping import headlines
from autograd_conformance.selftests import scripts
from autograd_conformance.selftests.checking import accuses, faults_in, faults_of, first_fault
from autograd_conformance.selftests.conftest import unchanged_settings
from autograd_conformance.suites.declared import Checked

# Most of the faults below break most of these.
COMPARING = ("MEM-WRITTEN", "ENV-RANDOM", "FWD-VALUE", "VJP-FD", "VJP-REPEAT")

TORCH = implementations.load("torch")


class Saved(torch.autograd.Function):
    """The square, which saves its input."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]


class Intermediate(torch.autograd.Function):
    """The square, which keeps on ctx what nobody else holds."""

    @staticmethod
    def forward(ctx, x):
        ctx.kept = {"twice": (2 * x,)}
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * ctx.kept["twice"][0]


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
    saved, kept = (
        next(Checked(Declaration(cls, "float[...]"), seed=0, profile="quick").lines("VJP-INPLACE-SAFE"))
        for cls in (Saved, Intermediate)
    )
    assert saved["outcome"] == kept["outcome"] == "pass"
    assert kept["examples"] > 4 * saved["examples"]
    checked = Checked(Declaration(Rare, "float[...]"), seed=0, profile="quick")
    assert next(checked.lines("VJP-INPLACE-SAFE"))["outcome"] == "fail"


def test_what_is_kept_right_is_not_accused():
    class Indices(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            order = x.argsort(dim=-1, stable=True)
            ctx.order = order.clone()
            ctx.mark_non_differentiable(order)
            return x.gather(-1, order), order

        @staticmethod
        def backward(ctx, g, _):
            return torch.zeros_like(g).scatter(-1, ctx.order, g)

    for declaration in (Declaration(Intermediate, "number[...]"), Declaration(Indices, "float[b,n] separated")):
        assert accuses(declaration, "VJP-INPLACE-SAFE") == []


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


class Skipped(Saved):
    """Leaves out what is not positive, in a backward that allocates by a method of the cotangent."""

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        gradient = g.new_empty(x.shape)
        gradient[x > 0] = (2 * g * x)[x > 0]
        return gradient


class Chosen(Saved):
    """Takes elements by indices that it does not choose."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        index = torch.empty(x.numel(), dtype=torch.int64).clamp(0, max(x.numel() - 1, 0))
        return (x * x).reshape(-1)[index].reshape(x.shape)


class Written(Saved):
    """Writes all of the memory that it allocates, in several ways."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        y = torch.empty_like(x).copy_(x)
        z = torch.empty(0, dtype=x.dtype).resize_(x.shape)
        torch.mul(x, y, out=z)
        return torch.addmm(x.new_empty(1, 1), z.reshape(-1, 1), x.new_ones(1, 1), beta=0).reshape(x.shape)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        gradient = x.new_empty((2, *x.shape))
        gradient[0] = gradient[1] = g * x.conj()
        return gradient.sum(0)


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


@pytest.mark.parametrize("seed", range(5), ids="seed{}".format)
def test_memory_that_was_never_written_is_found_in_any_call(seed):
    found = faults_of(Declaration(Skipped, "float[n]"), "MEM-WRITTEN", seed=seed)
    assert [line["failure"]["expected"] for line, _ in found] == ["0.0"]


def test_memory_that_is_written_is_no_fault():
    assert accuses(Declaration(Written, "number[...]")) == []


class Counted(torch.autograd.Function):
    """Differs from call to call, and allocates nothing."""

    calls = 0

    @staticmethod
    def forward(ctx, x):
        Counted.calls += 1
        ctx.calls = Counted.calls
        return x * ctx.calls

    @staticmethod
    def backward(ctx, g):
        return g * ctx.calls


def test_a_counter_is_not_taken_for_memory():
    found = accuses(Declaration(Counted, "float[...]"), *COMPARING)
    assert found
    assert "MEM-WRITTEN" not in {name for line, v in found for name in (line["property"], v.follows)}
    assert [line["property"] for line in headlines(found)] == ["VJP-REPEAT"]


def test_what_changes_now_and_then_is_not_taken_for_memory():
    class Fifth(Saved):
        calls = 0

        @staticmethod
        def backward(ctx, g):
            Fifth.calls += 1
            return Saved.backward(ctx, g) * (2 if Fifth.calls % 5 == 0 else 1)

    for _ in range(5):
        assert not discover(Declaration(Fifth, "float[...]"), TORCH).reads_new_memory
        Fifth.calls += 1


# Random numbers.


def _dropping(draw):
    """Dropout with this source of random numbers."""

    class Dropping(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            mask = (draw(x) < 0.5).to(x.dtype)
            ctx.save_for_backward(mask)
            return x * mask

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    return Dropping


def _own_generator(x):
    return torch.rand(x.shape, generator=torch.Generator().manual_seed(3))


def _forked(x):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return torch.rand(x.shape)


def _useless(x):
    torch.rand(3)
    return torch.zeros(x.shape)


def _converged(x):
    """A random start that no longer shows in the result."""
    start = torch.rand(x.shape, dtype=torch.float64)
    for _ in range(60):
        start = (start + 0.25) / 2
    return start


DRAWS = {
    "torch": torch.rand_like,
    "numpy": lambda x: torch.from_numpy(np.random.random(tuple(x.shape))),
    "python": lambda x: torch.full(x.shape, random.random()),
}


@pytest.mark.parametrize("source", DRAWS)
def test_random_numbers_that_are_not_declared_are_one_fault(source, tmp_path):
    declaration = Declaration(_dropping(DRAWS[source]), "float[n]", name="Dropping")
    checked = Checked(declaration, profile="quick", seed=0, shrink=False)
    lines = list(checked.lines(*COMPARING, "VJP-CHAIN"))
    assert [(line["property"], v.word) for line, v in faults_in(lines)] == [("ENV-RANDOM", "wrong")]
    drawn = [line for line in lines if line["property"] == "ENV-RANDOM"]
    text = " ".join(printing.rows("Dropping", discover(declaration, TORCH), drawn, tmp_path))
    assert "draws random numbers; they are seeded" in text
    assert "declare stochastic=True" in text


def test_random_numbers_that_are_declared_are_no_fault():
    for draw in DRAWS.values():
        declaration = Declaration(_dropping(draw), "float[n]", stochastic=True, name="Dropping")
        assert accuses(declaration, *COMPARING, "ENV-SETTINGS") == []


@pytest.mark.parametrize("draw", [_own_generator, _forked, _useless, _converged])
def test_random_numbers_that_do_not_change_results_are_no_fault(draw):
    declaration = Declaration(_dropping(draw), "float[n]", name="Dropping")
    assert not discover(declaration, TORCH).draws
    assert accuses(declaration, "ENV-RANDOM", "ENV-SETTINGS", "VJP-REPEAT") == []


# Settings.


def _with(change, where="forward"):
    """The square, which runs ``change`` in forward or in backward."""

    class Changing(Saved):
        @staticmethod
        def forward(ctx, x):
            if where == "forward":
                change()
            return Saved.forward(ctx, x)

        @staticmethod
        def backward(ctx, g):
            if where == "backward":
                change()
            return Saved.backward(ctx, g)

    return Changing


def _inside():
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16), np.errstate(all="ignore"):
        torch.ones(2, 2) @ torch.ones(2, 2)


LEFT = {
    "autocast on cpu": lambda: torch.set_autocast_enabled("cpu", True),
    "default device": lambda: torch.set_default_device("meta"),
    "error handling of NumPy": lambda: np.seterr(over="raise"),
    "deterministic algorithms": lambda: torch.use_deterministic_algorithms(True, warn_only=True),
    "flushing of small numbers to zero": lambda: torch.set_flush_denormal(True),
}


@pytest.mark.parametrize("what", LEFT)
@pytest.mark.parametrize("where", ["forward", "backward"])
def test_a_setting_that_stays_changed_is_named_and_set_back(what, where):
    before = [setting.get() for setting in TORCH.settings]
    found = accuses(Declaration(_with(LEFT[what], where), "float[n]"), "ENV-SETTINGS")
    if where == "backward" and what in ("autocast on cpu", "default device"):
        # The engine sets them back.
        assert found == []
    else:
        assert [v.word for _, v in found] == ["mutates"]
        assert f"{what} by {where}: " in found[0][0]["failure"]["got"]
    assert [setting.get() for setting in TORCH.settings] == before


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


def test_a_callable_may_not_leave_grad_mode_off():
    def switching(x):
        y = x * x
        torch.set_grad_enabled(False)
        return y

    (found,) = accuses(Declaration(switching, "float[n]"), "ENV-SETTINGS")
    assert "grad mode by forward: True became False" in found[0]["failure"]["got"]


@pytest.mark.parametrize("change", [_inside, lambda: torch.set_grad_enabled(False), lambda: torch.rand(3)])
@pytest.mark.parametrize("where", ["forward", "backward"])
def test_what_is_set_back_is_no_fault(change, where):
    assert accuses(Declaration(_with(change, where), "float[n]"), "ENV-SETTINGS") == []


class Bounded(torch.autograd.Function):
    """A backward that sets entries of its cotangent to 0, most often none."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.abs() > 100)
        return x.clamp(-100, 100)

    @staticmethod
    def backward(ctx, g):
        (outside,) = ctx.saved_tensors
        with torch.no_grad():
            g[outside] = 0
        return g.clone()


class Halving(Bounded):
    """A backward that changes the values of its cotangent."""

    @staticmethod
    def backward(_, g):
        with torch.no_grad():
            return g.mul_(0.5).clone()


def test_what_was_written_to_with_its_own_values_is_said_to_be():
    name = "cotangent of output 0 (output)"
    for function, says in ((Bounded, f"{name} (was written to in place, with the same values)"), (Halving, name)):
        line, found = first_fault(Declaration(function, "float[n]"), "VJP-PURE")
        assert (found.word, line["failure"]["got"]) == ("mutates", f"[{says!r}]")

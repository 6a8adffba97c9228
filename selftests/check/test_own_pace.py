"""A Function whose calls take long is checked in fewer examples, at the borders of blocks first, and this is said."""

from __future__ import annotations

import sys
import time
from types import ModuleType, SimpleNamespace

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.declaration import interpreted
from autograd_conformance.harness.check.declaration.loading import imported
from autograd_conformance.harness.check.discovery import cost
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.harness.check.discovery.interpreter import GARBLED
from autograd_conformance.harness.check.discovery.long_tensors import BORDERS, LENGTHS
from autograd_conformance.harness.check.report.facts_in_words import in_words
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.selftests.check.checking import RESULT, lines_of
from autograd_conformance.selftests.check.specimens.functions import custom, function
from autograd_conformance.suites.declared import Checked

TORCH = implementations.load("torch")
SQUARE = function(torch.square, lambda g, _, x: 2 * x * g)


def timed(monkeypatch, seconds, of=SQUARE):
    """What discovery finds out if each call takes so long."""
    monkeypatch.setattr(cost, "Watch", lambda: SimpleNamespace(seconds=seconds))
    return discover(Declaration(of, "float[n]"), TORCH, errors=False, timed=True)


@pytest.mark.parametrize(
    ("seconds", "share"),
    [(0.0, 1), (0.002, 1), (0.0021, 1 / 2), (0.004, 1 / 2), (0.0041, 1 / 4), (0.03, 1 / 16), (60.0, 1 / 32)],
)
def test_the_share_is_halved_where_the_time_doubles(monkeypatch, seconds, share):
    facts = timed(monkeypatch, seconds)
    assert (facts.share, facts.paced) == (share, share < 1)
    said = [sentence for sentence in in_words(facts) if "of the examples" in sentence]
    assert [f"1/{round(1 / share)} of the examples" in sentence for sentence in said] == [True] * facts.paced


def test_a_slow_function_of_several_outputs_is_timed(monkeypatch):
    def two(ctx, x):
        ctx.save_for_backward(x)
        return x * x, x * 2

    both = custom(forward=two, backward=lambda ctx, g, h: 2 * g * ctx.saved_tensors[0] + 2 * h)
    facts = timed(monkeypatch, 0.004, both)
    assert (facts.share, facts.own_faults) == (1 / 2, ())


def test_a_slow_backward_that_raises_is_left_to_the_tests(monkeypatch):
    raising = function(torch.square, lambda g, *_: (g, g), name="Raising")
    assert timed(monkeypatch, 1.0, raising).outputs


def test_a_call_that_raises_says_nothing_about_the_others(monkeypatch):
    monkeypatch.setattr(cost, "Watch", lambda: SimpleNamespace(seconds=0.1))
    fast, raising = SimpleNamespace(run=lambda: None), SimpleNamespace(run=lambda: 1 / 0)
    assert cost.typical([fast, raising]) == cost.typical([fast]) == 0.1
    assert cost.typical([raising]) == 0


def test_a_slow_function_gets_lengths_at_the_borders_of_blocks(monkeypatch):
    for seconds, lengths in ((0.0001, LENGTHS), (0.003, BORDERS)):
        found = {max(shape) for (shape,) in timed(monkeypatch, seconds).long_shapes}
        assert found == set(lengths)


def test_the_clock_decides_nothing_where_a_share_is_declared_or_nobody_asks(monkeypatch):
    monkeypatch.setattr(cost, "Watch", lambda: SimpleNamespace(seconds=1.0))
    assert discover(Declaration(SQUARE, "float[n]"), TORCH, errors=False).share == 1
    for share in (1, 0.25):
        facts = discover(Declaration(SQUARE, "float[n]", examples=share), TORCH, errors=False, timed=True)
        assert (facts.share, facts.paced) == (share, False)


def test_time_that_goes_by_counts_in_part():
    watch = cost.Watch()
    time.sleep(0.2)
    assert watch.seconds >= 0.02


def test_there_are_as_many_examples_as_the_share_says():
    whole, part = (
        next(lines_of(Checked(Declaration(SQUARE, "float[...]", examples=share), seed=0), "VJP-FD"))
        for share in (1, 0.25)
    )
    assert part["examples"] == whole["examples"] // 4
    assert ("share" in whole, part["share"]) == (False, 0.25)
    RESULT.validate(part)


@pytest.mark.parametrize("share", [0, -1, 2, "half"])
def test_a_share_is_part_of_a_whole(share):
    with pytest.raises(UsageProblem, match="must be a share of the examples: a number above 0, and at most 1"):
        Declaration(SQUARE, "float[n]", examples=share)


# Kernels in blocks of 64 entries.


def blocks(multiply):
    """The square by a kernel; backward calls ``multiply(out, x, y)``, which fills the memory."""

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        out = torch.empty_like(x)
        multiply(out.reshape(-1), 2 * x.reshape(-1), g.reshape(-1))
        return out

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    return custom("Blocks", forward=forward, backward=torch.autograd.function.once_differentiable(backward))


def right(out, x, y):
    torch.mul(x, y, out=out)


def first_block_alone(out, x, y):
    torch.mul(x[:64], y[:64], out=out[:64])


def whole_last_block_forgotten(out, x, y):
    torch.mul(x, y, out=out)
    if len(x) % 64 == 0:
        out[-64:] = 0


def wrong_factor(out, x, y):
    torch.mul(x, 1.5 * y, out=out)


KERNELS = {
    right: set(),
    first_block_alone: {"VJP-FD/long", "MEM-WRITTEN"},
    whole_last_block_forgotten: {"VJP-FD/long"},
    wrong_factor: {"VJP-FD", "VJP-FD/long"},
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_few_examples_find_what_a_kernel_forgets(kernel):
    declaration = Declaration(blocks(kernel), "float[n]", once=True, examples=0.25)
    checked = Checked(declaration, seed=0, shrink=False)
    lines = lines_of(checked, "VJP-FD", "VJP-FD/long", "MEM-WRITTEN")
    assert {line["id"].partition("[")[0] for line in lines if line["outcome"] == "fail"} == KERNELS[kernel]


def test_a_failing_call_of_a_slow_function_is_made_smaller_in_few_calls():
    calls = []
    counting = blocks(lambda out, x, y: (calls.append(1), wrong_factor(out, x, y)))
    (line,) = lines_of(Checked(Declaration(counting, "float[...]", examples=0.25), seed=0), "VJP-LINEAR")
    assert line["outcome"] == "pass"
    calls.clear()
    (line,) = lines_of(Checked(Declaration(counting, "float[...]", examples=0.25), seed=0), "VJP-FD")
    assert line["outcome"] == "fail"
    assert line["examples"] < 60


# Triton's interpreter, simulated: it has one place for the kernel that runs, and no bfloat16.


class Grid:
    """Runs one kernel; a second one at the same time raises, as in the interpreter."""

    running = False

    def __call__(self, kernel, *tensors):
        assert not Grid.running, "two kernels at once"
        Grid.running = True
        time.sleep(0.0005)
        Grid.running = False
        return kernel(*tensors)


@pytest.fixture
def launch(monkeypatch):
    """A function that runs a kernel by the simulated interpreter."""

    class GridExecutor(Grid):
        __call__ = Grid.__call__

    module = ModuleType("triton.runtime.interpreter")
    module.GridExecutor = GridExecutor
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return GridExecutor()


def _of_one_call(launch):
    return lambda ctx, x: (ctx.save_for_backward(x), launch(torch.square, x))[1]


def _by_saved(launch):
    return lambda ctx, g: launch(lambda g, x: 2 * g * x, g, *ctx.saved_tensors)


def test_threads_do_not_blame_a_right_kernel_for_the_interpreter(launch):
    mine = custom("Mine", forward=_of_one_call(launch), backward=_by_saved(launch))
    before = interpreted.kernels()
    (line,) = lines_of(Checked(Declaration(mine, "float[...]", once=True), profile="quick", seed=0), "ENV-THREADS")
    assert line["outcome"] == "pass"
    assert interpreted.kernels() > before
    assert discover(Declaration(mine, "float[...]"), TORCH, errors=False).interpreted


def test_threads_still_find_what_a_kernel_s_function_shares(launch):
    held = []

    def forward(_, x):
        held[:] = [x]
        return launch(torch.square, x)

    mine = custom("Mine", forward=forward, backward=lambda _, g: launch(lambda g, x: 2 * g * x, g, *held))
    (line,) = lines_of(Checked(Declaration(mine, "float[...]", once=True), seed=0), "ENV-THREADS")
    assert line["outcome"] == "fail"


def _bits(x):
    """What the interpreter makes of a square in bfloat16."""
    if x.dtype != torch.bfloat16:
        return x * x
    bits = x.view(torch.int16)
    return (bits * bits).view(torch.bfloat16)


def test_bfloat16_is_left_out_where_the_interpreter_has_none(launch):
    for square, wide in ((_bits, False), (torch.square, True)):
        mine = function(lambda x, square=square: launch(square, x), lambda g, _, x: 2 * g * x)
        facts = discover(Declaration(mine, "float[...]"), TORCH, errors=False)
        assert ("bfloat16" in facts.dtypes) == wide
        assert facts.refused == ({} if wide else {"bfloat16": GARBLED})


@pytest.mark.parametrize(
    ("compiler", "said"),
    [
        ("nosuch -O2", "there is no C++ compiler nosuch; install one, or name another one in CXX"),
        (sys.executable, "main.cpp:3:5: error: 'y' was not declared"),
    ],
)
def test_why_an_extension_cannot_be_built(tmp_path, monkeypatch, compiler, said):
    printed = (
        "[1/2] c++ main.cpp\nmain.cpp: In function 'f':\nmain.cpp:3:5: error: 'y' was not declared\nninja: stopped"
    )
    (tmp_path / "extended.py").write_text(f'raise RuntimeError("""Error building extension \'ext\': {printed}""")')
    monkeypatch.setenv("CXX", compiler)
    with pytest.raises(UsageProblem, match="cannot be imported: the extension ext cannot be built: ") as raised:
        imported(str(tmp_path / "extended.py"))
    assert said in str(raised.value)
    assert "ninja" not in str(raised.value)

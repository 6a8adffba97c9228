"""Drafts of ``record`` that nobody edits: right Functions hold, and wrong ones are found."""

from __future__ import annotations

import re

import pytest

from autograd_conformance.selftests.drafting.test_recording import HEAD, declared, recorded
from autograd_conformance.selftests.support.warm import started

TURNED = (
    HEAD
    + """
def turned(ctx, x, angles):
    if len(angles) < len(x):
        raise ValueError("too few angles")
    ctx.save_for_backward(angles)
    return x * angles[: len(x)].repeat(1, 3)


def back(ctx, g):
    (angles,) = ctx.saved_tensors
    return FACTOR * g * angles[: len(g)].repeat(1, 3), None


Turned = function(turned, back, "Turned")

if __name__ == "__main__":
    for n in (2, 3):
        Turned.apply(torch.ones(n, 12, requires_grad=True), torch.ones(12, 4)).sum().backward()
"""
)


@pytest.mark.parametrize("factor", ["1", "2"], ids=["right", "wrong"])
def test_lengths_are_tried_with_related_ones(tmp_path, factor):
    _, text = recorded(tmp_path, TURNED.replace("FACTOR", factor))
    assert "float[n,3*" in text, text
    assert "Calls with others raise" not in text
    done = started("check", "declared.py", "--profile", "quick", "--seed", "0", folder=tmp_path, torch=True)
    assert "DECLARED BUT REFUSED" not in done.stdout
    assert done.returncode == (factor != "1"), done.stdout


OF_CODE = (
    HEAD
    + """
import random


def dropped(ctx, x):
    ctx.mask = (torch.rand_like(x) > 0.01) / 0.99
    return x * ctx.mask


def chosen(ctx, x):
    ctx.factor = 1 + random.randrange(2)
    return x * ctx.factor


def powers(ctx, alpha):
    ctx.save_for_backward(alpha)
    return torch.where(alpha < 1, alpha / (1 - alpha), 0)


def of_powers(ctx, g):
    (alpha,) = ctx.saved_tensors
    return FACTOR * g / (1 - alpha) ** 2


def loss(ctx, logp, target):
    keep = (target >= 0).to(logp.dtype)
    ctx.save_for_backward(target, keep)
    ctx.shape = logp.shape
    return logp.gather(1, target.clamp(0)[:, None])[:, 0] * keep


def of_loss(ctx, g):
    target, keep = ctx.saved_tensors
    grad = g.new_zeros(ctx.shape).scatter(1, target.clamp(0)[:, None], (FACTOR * g * keep)[:, None])
    return grad, None


Dropped = function(dropped, lambda ctx, g: FACTOR * g * ctx.mask, "Dropped")
Chosen = function(chosen, lambda ctx, g: FACTOR * g * ctx.factor, "Chosen")
Powers = function(powers, of_powers, "Powers")
Loss = function(loss, of_loss, "Loss")
Once = function(
    lambda ctx, x: ctx.save_for_backward(x) or x * x,
    torch.autograd.function.once_differentiable(lambda ctx, g: FACTOR * 2 * g * ctx.saved_tensors[0].detach()),
    "Once",
)

if __name__ == "__main__":
    for n in (4, 5, 6):
        x = torch.randn(n, 3, requires_grad=True)
        Dropped.apply(x), Chosen.apply(x), Once.apply(x)
        Powers.apply(torch.rand(n, 3) * 0.9 * x.sum() / x.sum())
        Loss.apply(x, torch.tensor([0, -100, *range(n - 2)]).clamp(-100, 2))
"""
)


@pytest.mark.parametrize("factor", ["1", "2"], ids=["right", "wrong"])
def test_what_the_code_says_and_what_was_seen_is_believed(tmp_path, factor):
    done, text = recorded(tmp_path, OF_CODE.replace("FACTOR", factor))
    assert text.count("stochastic=True") == 2, text + done.stderr
    assert text.count("once=True") == 1
    assert re.search(r'"float\[...\]\(0\S*\.\.0.9\)",  # alpha: float32, requires grad; drop the range', text)
    assert declared(text)["loss"] == ["float[n,m]", "int[n](0..m-1 | -100)"]
    done = started("check", "declared.py", "--profile", "quick", "--seed", "0", folder=tmp_path, torch=True)
    assert f"5 Functions: {5 if factor == '1' else 0} without a fault" in done.stdout or factor == "2", done.stdout
    assert done.returncode == (factor != "1")
    assert factor == "1" or "5 wrong" in done.stdout


MEANT = (
    HEAD
    + """
Spike = function(lambda ctx, x: (x > 0).to(x.dtype), lambda ctx, g: g * 0.3, "Spike")
Square = function(
    lambda ctx, x: (ctx.save_for_backward(x), x * x)[1], lambda ctx, g: 2 * g * ctx.saved_tensors[0], "Square"
)

if __name__ == "__main__":
    for each in (Spike, Square):
        each.apply(torch.randn(3, requires_grad=True)).sum().backward()
"""
)
TABLE = """[tool.autograd-conformance.functions]
"*:Square" = { conditioning = 100, casts = false }
"""


def test_what_pyproject_says_is_written_and_assumed(tmp_path):
    tmp_path.joinpath("pyproject.toml").write_text(TABLE)
    _, text = recorded(tmp_path, MEANT)
    assert "    conditioning=100,  # pyproject.toml says so\n" in text, text
    assert "casts" not in text
    assert text.count("pyproject.toml says so") == 1
    done = started("check", "program.py", "--profile", "quick", "--seed", "0", folder=tmp_path, torch=True)
    assert 'square = Declaration(Square, "float[...]", conditioning=100)' in done.stdout


def test_a_table_that_cannot_be_read_is_named_before_the_program_runs(tmp_path):
    tmp_path.joinpath("pyproject.toml").write_text(TABLE.replace("conditioning", "condition"))
    tmp_path.joinpath("program.py").write_text(MEANT + "print('it ran')\n")
    for words in (("record", "--", "program.py"), ("check", "program.py")):
        done = started(*words, folder=tmp_path, torch=True)
        assert done.returncode == 2
        assert "unknown word 'condition'; choose from: surrogate" in done.stderr
    assert "it ran" not in started("record", "--", "program.py", folder=tmp_path, torch=True).stdout

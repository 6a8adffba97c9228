"""A program that is watched, and what is found in it."""

from __future__ import annotations

import json
from pathlib import Path

from autograd_conformance.selftests.support.warm import started

HEAD = """
import os, sys, threading, time
import torch
from torch.autograd import Function

def made(name, forward=None, backward=None, **methods):
    found = {"forward": forward or square, "backward": backward or gradient, **methods}
    return type(name, (Function,), {**{n: staticmethod(f) for n, f in found.items()}, "__module__": __name__,
                                    "__qualname__": name})

def square(ctx, x, *others):
    ctx.save_for_backward(x)
    ctx.others = len(others)
    return x * x

def gradient(ctx, g):
    return (2 * g * ctx.saved_tensors[0], *[None] * ctx.others)

x = torch.ones(3, requires_grad=True)
"""

# As much time as the checks want, however busy the machine is.
AMPLE = ("--budget", "10000")


def watched(folder: Path, program: str, *words: str, command: tuple[str, ...] = ("program.py",), **more):
    """What the command prints of a program, its exit status, and its report as the Functions by name."""
    folder.joinpath("program.py").write_text(program)
    done = started("watch", *words, "--report", "r.json", "--", *command, folder=folder, **more)
    document = json.loads((folder / "r.json").read_text())
    return done, {each["name"].rpartition(":")[2]: each for each in document["functions"]}, document


def rows_of(text: str) -> dict[str, str]:
    """The rows of the table at the end, by the Function's name."""
    found = (line.split(None, 1) for line in text.splitlines() if line.startswith("  __main__:"))
    return {name.rpartition(":")[2]: row for name, row in found}

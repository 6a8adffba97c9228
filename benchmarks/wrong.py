"""What a wrong Function costs beside the right one: CPU seconds of ``check``, and how soon the first fault is named.

``python benchmarks/wrong.py`` checks two pairs of Functions in turn, ``--times`` times, and prints the medians: a right
one and one with a plain wrong factor, and a right one and one with several faults. ``--package FOLDER`` is another
checkout, a folder named autograd_conformance, to compare the installed package with in the same sitting.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tabulate import tabulate

FUNCTIONS = """
import torch
from autograd_conformance import Declaration


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0] * g


class WrongFactor(Square):
    @staticmethod
    def backward(ctx, g):
        return 3 * ctx.saved_tensors[0] * g


class Power(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, p):
        ctx.p = p
        ctx.save_for_backward(x, y)
        return x**p * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return ctx.p * x ** (ctx.p - 1) * y * g, g * x**ctx.p, None


class SeveralFaults(Power):
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        gx = ctx.p * x ** (ctx.p - 1) * y * g
        if ctx.p == 3:
            gx = gx * 2
        # It writes into what is not its own.
        g.mul_(x**ctx.p)
        if y.shape[-1] % 2 == 0:
            g = g * 1.5
        return gx, g, None


square = Declaration(Square, "float[n, m]")
wrong_factor = Declaration(WrongFactor, "float[n, m]")
power = Declaration(Power, "float[n, m]", "float[n, m]", "1 | 2 | 3")
several_faults = Declaration(SeveralFaults, "float[n, m]", "float[n, m]", "1 | 2 | 3")
"""
NAME = "autograd_conformance"
NAMES = ("Square", "WrongFactor", "Power", "SeveralFaults")
TWINS = {"WrongFactor": "Square", "SeveralFaults": "Power"}


def measured(package: Path | None, folder: Path, name: str) -> tuple[float, float, float]:
    """The CPU seconds of a check with all its processes, its seconds, and those until the first fault is named."""
    words = [sys.executable, "-m", "autograd_conformance", "check", "functions.py", "--functions", name, "--seed", "0"]
    path = {} if package is None else {"PYTHONPATH": str(package.absolute().parent)}
    environment = {**os.environ, **path, "PYTHONUNBUFFERED": "1"}
    started = time.monotonic()
    first = float("inf")
    with subprocess.Popen(words, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("found:"):
                first = min(first, time.monotonic() - started)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != int(name in TWINS):
        sys.exit(f"{name}: exit status {process.returncode}")
    return used.ru_utime + used.ru_stime, time.monotonic() - started, first


def main() -> None:
    parser = argparse.ArgumentParser(description="what a wrong Function costs beside the right one")
    parser.add_argument("--times", type=int, default=3, help="so many runs of each; default: 3")
    parser.add_argument("--package", type=Path, action="append", default=[], help="another checkout to compare with")
    given = parser.parse_args()
    for package in given.package:
        if not (package / "__init__.py").exists() or package.absolute().name != NAME:
            parser.error(f"--package must be a checkout in a folder named {NAME}, got {package}")
    packages = [None, *given.package]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "functions.py").write_text(FUNCTIONS, encoding="utf-8")
        runs = [
            (package, each, measured(package, folder, each))
            for _ in range(given.times) for package in packages for each in NAMES
        ]  # fmt: skip
    for package in packages:
        medians = {
            each: [statistics.median(run[n] for p, e, run in runs if (p, e) == (package, each)) for n in range(3)]
            for each in NAMES
        }
        rows = [
            (
                each,
                f"{medians[each][0]:.1f}",
                f"{medians[each][0] / medians[TWINS.get(each, each)][0]:.2f}",
                f"{medians[each][2] / medians[TWINS[each]][1]:.2f}" if each in TWINS else "",
            )
            for each in NAMES
        ]
        print(package or "the installed package")
        print(tabulate(rows, ("Function", "CPU seconds", "beside the right one", "first fault after, of its seconds")))


if __name__ == "__main__":
    main()

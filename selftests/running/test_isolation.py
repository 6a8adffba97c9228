"""An implementation that crashes, hangs, leaves, eats memory or raises odd things costs one test id each time."""

from __future__ import annotations

import pytest

from autograd_conformance.harness.processes.memory import GIB, default_limit

ODD = """
import ctypes
import os
import sys
import time

from autograd_conformance.implementations.model import ModelImplementation


class Unspeakable(Exception):
    def __str__(self):
        raise ValueError("no words")


def raising(error):
    def raise_it(*_):
        raise error

    return raise_it


def looping(*_):
    while True:
        time.sleep(1)


def eating(*_):
    eaten = []
    while True:
        eaten.append(b"x" * 2**26)


ODDITIES = {
    "Exp": lambda *_: ctypes.string_at(0),
    "Square": looping,
    "Cube": lambda *_: os._exit(0),
    "Sinh": eating,
    "ReLU": raising(SystemExit(0)),
    "MulConstant": raising(KeyboardInterrupt()),
    "Sort": raising(Unspeakable()),
    "SimpleFunc": lambda *_: sys.exit(3),
    "NumpyMul": raising(GeneratorExit()),
    "GradientScaler": raising(RecursionError("too deep")),
    "SaveForBackward": lambda *_: ctypes.PyDLL(None).pause(),  # holds the interpreter
}


class OddImplementation(ModelImplementation):
    name = "odd"

    def function(self, cls):
        return ODDITIES.get(cls.__name__, cls.apply)
"""

SHOWN = {
    "Exp": ("error", "Segmentation fault"),
    "Square": ("error", "time limit of 0:00:10"),
    "Cube": ("error", "ended without a word"),
    "Sinh": ("error", "memory limit of 0.7 GiB exceeded"),
    "ReLU": ("error", "SystemExit"),
    "MulConstant": ("error", "KeyboardInterrupt"),
    "Sort": ("fail", "Unspeakable"),
    "SimpleFunc": ("error", "SystemExit"),
    "NumpyMul": ("error", "GeneratorExit"),
    "GradientScaler": ("fail", "RecursionError: too deep"),
    "SaveForBackward": ("error", "time limit of 0:00:10"),
    "MyCube": ("pass", ""),
    "Conv2D": ("pass", ""),
}


@pytest.fixture(scope="module")
def odd(command, tmp_path_factory):
    folder = tmp_path_factory.mktemp("odd")
    (folder / "odd.py").write_text(ODD)
    limits = ("--time-limit", "10", "--memory-limit", "0.7", "-n", "2", "--profile", "quick", "--seed", "1")
    only = ("--properties", "VJP-REF", *limits, "--", "-k", "not sizes and not specials")
    return command("odd.py", "--functions", ",".join(SHOWN), *only, folder=folder)


def test_the_run_ends_and_its_report_is_whole(odd):
    assert (odd.status, odd.footer is not None) == (1, True), odd.out + odd.err
    assert len(odd.results) == len(SHOWN)


@pytest.mark.parametrize(("function", "outcome", "shown"), [(name, *expected) for name, expected in SHOWN.items()])
def test_each_oddity_costs_its_own_id(odd, function, outcome, shown):
    line = odd.results[f"VJP-REF[{function}-cpu]"]
    assert line["outcome"] == outcome
    assert shown in str(line.get("failure", ""))


@pytest.mark.parametrize(("said", "limit"), [(str(8 * GIB), 3.2), ("max", None), ("", None)])
def test_the_memory_of_a_container_is_shared_like_that_of_a_machine(tmp_path, said, limit):
    (tmp_path / "memory.max").write_text(said)
    found = default_limit(2, [tmp_path / "memory.max", tmp_path / "absent"])
    assert found == (limit or default_limit(2, []))

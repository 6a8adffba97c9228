"""Exceptions that steer pytest or Hypothesis: the code under test must not end a test with one of them."""

from __future__ import annotations

import traceback
import unittest
from itertools import pairwise
from pathlib import Path

import _pytest
import hypothesis
import pytest
from _pytest.outcomes import OutcomeException
from hypothesis.errors import HypothesisException, StopTest

from autograd_conformance.harness.catalogue import is_part_of

STEERING = (OutcomeException, pytest.exit.Exception, unittest.SkipTest, HypothesisException, StopTest)

# The folders of what raises these exceptions for whoever calls it.
RAISING = tuple(str(Path(str(module.__file__)).parent) for module in (hypothesis, _pytest, unittest))

# The module whose functions call the tests.
_MARKS = str(Path("harness", "testing", "marks.py"))

_SUITE = ("harness", "suites", "strategies")


def steers(raised: BaseException) -> bool:
    """Whether the code under test raised an exception that skips a test, ends the run, or discards an example."""
    return isinstance(raised, STEERING) and not _by_suite(raised)


def _by_suite(raised: BaseException) -> bool:
    """Whether a test or the suite called the function of pytest or Hypothesis that raised the exception."""
    files = [frame.filename for frame in traceback.extract_tb(raised.__traceback__)]
    if not files or not files[-1].startswith(RAISING):
        # Code without frames, such as a compiled module, raises it itself.
        return False
    caller = next((file for file in reversed(files) if not file.startswith(RAISING)), "")
    return is_part_of(caller, *_SUITE) or caller in _tests(files)


def _tests(files: list[str]) -> list[str]:
    """The file of the test in the files of a traceback; it may be elsewhere than the suite."""
    return [file for before, file in pairwise(files) if before.endswith(_MARKS)][-1:]

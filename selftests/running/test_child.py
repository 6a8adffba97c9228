"""Processes that may hang or die: what they say, and how they ended."""

from __future__ import annotations

import signal
import time
import warnings

import pytest

from autograd_conformance.harness.processes import child
from autograd_conformance.selftests.running import senders

SAYS = f"""
print("a framework writes this", end="")
print('\\n{child.MARK} {{"n": 1}}')
print("{child.MARK} and the code under test this")
print("{child.MARK} [1]")
print('{child.MARK} {{"n": 2', end="")
"""


def test_only_whole_messages_of_a_command_count():
    said, ended = child.command(["-c", SAYS], seconds=60)
    assert said == [{"n": 1}]
    assert not ended.late


@pytest.mark.parametrize(
    ("code", "how"),
    [
        ("import sys; sys.exit('no device')", "ended the process (exit status 1): no device"),
        ("import os; os.kill(os.getpid(), 9)", "ended the process (SIGKILL): it printed nothing"),
        ("import os; os.kill(os.getpid(), 36)", "ended the process (signal 36): it printed nothing"),
    ],
)
def test_how_a_command_ended(code, how):
    assert child.command(["-c", code], seconds=60) == ([], child.Ended(how))


def test_a_command_that_hangs_keeps_what_it_said():
    code = f"import time; print('{child.MARK} {{}}', flush=True); time.sleep(60)"
    assert child.command(["-c", code], seconds=2) == ([{}], child.Ended("did not end within 2 s", late=True))


@pytest.mark.parametrize(
    ("work", "fork", "seconds", "last"),
    [
        (senders.twice, True, 60, {"n": 2}),
        (senders.twice, False, 60, {"n": 2}),
        (senders.dying, True, 60, child.Ended("ended the process (SIGABRT)")),
        (senders.dying, False, 60, child.Ended("ended the process (SIGABRT)")),
        (senders.breaking_off, True, 60, child.Ended("ended the process (exit status 3)")),
        (senders.hanging, True, 3, child.Ended("did not end within 3 s", late=True)),
    ],
)
def test_the_messages_of_a_function(capfd, work, fork, seconds, last):
    found = list(child.messages(work, fork=fork, seconds=seconds))
    assert (found[0], found[-1]) == ({"n": 1}, last)
    assert capfd.readouterr().out == ""


def warned(send):
    with warnings.catch_warnings(record=True) as found:
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    send({"found": len(found)})


def test_a_fork_hears_the_same_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert list(child.messages(warned, fork=True, seconds=10)) == [{"found": 1}]


def test_a_process_ends_with_its_context():
    with child.started(time.sleep, 60, fork=True) as process:
        assert process.is_alive()
    assert process.exitcode == -signal.SIGKILL

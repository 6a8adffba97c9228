"""An implementation in a process of its own: what it cannot change from there, and what its messages cannot do."""

from __future__ import annotations

import importlib
import json
import pkgutil
import socket
import subprocess
import sys

import jsonschema
import numpy as np
import psutil
import pytest

from autograd_conformance.harness.catalogue import PACKAGE
from autograd_conformance.harness.checking.marks import Claim, claims_in
from autograd_conformance.harness.checking.subject import Subject
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.running import separation
from autograd_conformance.harness.views import describe
from autograd_conformance.implementations import separate
from autograd_conformance.implementations.separate_messages import Channel, Lost, Malformed, Message, Raised, packed
from autograd_conformance.reference.functions import FUNCTIONS
from autograd_conformance.selftests.attacking import accept, checked, mine
from autograd_conformance.selftests.conftest import COMMAND, outside_with
from autograd_conformance.suites import functions

SCHEMA = json.loads((PACKAGE / "harness" / "reports" / "report.schema.json").read_text())

# What a fork does to the suite in its own process, so that its wrong tanh is green there.
IN_ITS_PROCESS = {
    "the comparison": """
import autograd_conformance.harness.checking.assertions as assertions
assertions.difference = lambda *_, **__: None
""",
    "the recorder": """
import autograd_conformance.harness.running.results as results
results._outcome = lambda *_: {"outcome": "pass"}
""",
    "the references": """
import numpy as np
from autograd_conformance.harness.checking.expected import Expected
wide = lambda found: tuple(None if each is None else each.widened(np.inf) for each in found)
# The adapter is imported twice.
if hasattr(Expected.outputs, "func"):
    outputs, gradients = Expected.outputs.func, Expected.gradients
    Expected.outputs = property(lambda self: wide(outputs(self)))
    Expected.gradients = lambda self, *given: wide(gradients(self, *given))
""",
}

# Notes each process that imports torch, and changes torch and the suite there before the adapter reads them.
PATCHED = """
import sys

class Finder:
    def find_spec(self, name, *_):
        if name == "torch":
            open({log!r}, "a").write(" ".join(sys.orig_argv) + "\\n")
        if {wrong} and name == "autograd_conformance.implementations.torch":
            import torch
            right = torch.tanh
            torch.tanh = lambda x: 1.01 * right(x)
            try:
                import autograd_conformance.harness.checking.assertions as assertions
                assertions.difference = lambda *_, **__: None
            except ImportError:
                pass

sys.meta_path.insert(0, Finder())
"""

# Spoils what the process under test sends.
SPOILING = """
import struct

from autograd_conformance.implementations import separate_messages as messages

packed, sent = messages.packed, []

def spoiling(message):
    text, body = packed(message)
    sent.append(0)
    if len(sent) > {after}:
        {spoilt}
    return text, body

messages.packed = spoiling
"""
SPOILT = {
    "no JSON": "text = b'{'",
    "no object": "text = b'[1]'",
    "deep": "text = b'[' * 100000",
    "very long": """messages._LENGTHS = type("Long", (), {"pack": lambda *_: struct.pack("<QQ", 2**60, 0)})()""",
    "cut off": "body = body[:-1] if body else b'x'",
    "an array of objects": """text = text.replace(b'"float64", [', b'"object", [')""",
    "a negative side": """text = text.replace(b'"float64", [', b'"float64", [-1, ')""",
    "another shape": """text = text.replace(b'"float64", [', b'"float64", [1, ')""",
    "an unknown tag": """text = text.replace(b'"tensor"', b'"module"')""",
    "an unknown dtype": """text = text.replace(b'"float32"', b'"float33"')""",
    "no field": """text = text.replace(b'"returned"', b'"said"')""",
    "a number for an array": """text = text.replace(b'{"array": 0}', b'0')""",
    "an exception without a type": """text = text.replace(b'"returned": ', b'"raised": ')""",
    "a function that there is not": """text = text.replace(b'"returned": ', b'"call": 99999, "given": ')""",
    "numbers that are lists": """text = text.replace(b'"tensor": [', b'"tensor": [[], ')""",
}


def results(folder):
    return {line["id"]: line for line in ndjson.read(folder / "autograd-conformance.ndjson") if "outcome" in line}


@pytest.mark.parametrize("target", IN_ITS_PROCESS)
def test_what_is_changed_in_the_process_of_a_fork_decides_nothing(tmp_path, target):
    forged = checked(tmp_path, "-n", "0", wrong=True, at_import=IN_ITS_PROCESS[target])
    assert forged.returncode == 0, forged.stdout
    done = checked(tmp_path, "-n", "0", "--separate", wrong=True, at_import=IN_ITS_PROCESS[target])
    assert done.returncode == 1, done.stdout + done.stderr
    assert {id: line["outcome"] for id, line in results(tmp_path).items()} == {
        "FWD-VALUE[LLTM-cpu]": "fail",
        "VJP-REF[LLTM-cpu]": "fail",
    }


def of_torch(folder, *words, wrong):
    """A run of torch, in which each process that imports it is noted, and its tanh may be wrong."""
    (folder / "sitecustomize.py").write_text(PATCHED.format(log=str(folder / "log"), wrong=wrong))
    narrow = ("--functions", "LLTM", "--properties", "VJP-REF,FWD-VALUE")
    return subprocess.run(
        [COMMAND, "run", "torch", *narrow, *words], cwd=folder, env=outside_with(folder), capture_output=True,
        text=True, timeout=300, check=False,
    )  # fmt: skip


def verify_importers(folder, workers):
    """Torch was imported by the process under test of the run and of each worker, and by the smoke stage alone."""
    started = (folder / "log").read_text().splitlines()
    assert sum("implementations.separate_process" in words for words in started) == 1 + workers
    assert all("implementations.separate_process" in words or "running.smoke" in words for words in started)


def test_no_process_of_the_suite_imports_torch(tmp_path):
    pytest.importorskip("torch")
    done = of_torch(tmp_path, "--separate", "-n", "1", wrong=False)
    assert done.returncode == 0, done.stdout + done.stderr
    verify_importers(tmp_path, workers=1)


def test_a_changed_torch_decides_nothing(tmp_path):
    pytest.importorskip("torch")
    assert of_torch(tmp_path, "-n", "0", wrong=True).returncode == 0
    (tmp_path / "log").unlink()
    done = of_torch(tmp_path, "-n", "1", "--separate", wrong=True)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 of 2 test ids can be separated" in done.stdout
    verify_importers(tmp_path, workers=1)
    assert {line["outcome"] for line in results(tmp_path).values()} == {"fail"}


WRONG = """
right = Mine.vjp

def wrong(self, *args, **kwargs):
    outputs, pullback = right(self, *args, **kwargs)
    factor = 1.01 if Mine.calls > 20 else 1
    return outputs, lambda *given, **how: tuple(g if g is None else g * factor for g in pullback(*given, **how))

Mine.vjp = wrong
"""


def test_wrong_gradients_are_named_by_the_property(tmp_path):
    assert checked(tmp_path, "-n", "0", "--separate").returncode == 0
    assert checked(tmp_path, "-n", "0", "--separate", at_import=WRONG).returncode == 1
    found = results(tmp_path)
    assert found["FWD-VALUE[LLTM-cpu]"]["outcome"] == "pass"
    failure = found["VJP-REF[LLTM-cpu]"]["failure"]
    assert failure["what"].startswith("gradient of argument")
    assert failure["component"]["aspect"] == "value"


@pytest.mark.parametrize("type", ["RuntimeError", "KeyboardInterrupt", "pytest.skip.Exception"])
def test_what_it_raises_is_a_failure(tmp_path, type):
    done = checked(
        tmp_path, "-n", "0", "--separate", during=f"if Mine.calls > 20: raise {type}('boom')", at_import="import pytest"
    )
    assert done.returncode == 1, done.stdout + done.stderr
    for line in results(tmp_path).values():
        assert (line["outcome"], line["failure"]["kind"]) == ("fail", "raised")
        assert "boom" in line["failure"]["got"]


@pytest.mark.parametrize(
    ("attack", "how"),
    [
        ("os._exit(0)", "the process under test ended with exit status 0"),
        ("signal.raise_signal(signal.SIGSEGV)", "the process under test was ended by SIGSEGV"),
        ("os.closerange(3, 64)", "the process under test ended with exit status 0"),
    ],
)
def test_its_end_costs_the_test_id(tmp_path, attack, how):
    during = f"if Mine.calls > 20: {attack}"
    assert checked(tmp_path, "-n", "0", "--separate", during=during).returncode == 2
    done = checked(tmp_path, "-n", "1", "--separate", during=during)
    assert done.returncode == 1, done.stdout + done.stderr
    for line in results(tmp_path).values():
        assert (line["outcome"], line["failure"]["type"]) == ("error", "Death")
        assert how in line["failure"]["message"]


def test_its_memory_has_the_limit_of_a_worker(tmp_path):
    during = "if Mine.calls > 20: Mine.kept = bytearray(b'1') * 2**30; signal.pause()"
    # What stands for the process under test where it is a fork of the server needs no memory.
    done = checked(tmp_path, "-n", "1", "--separate", "--memory-limit", "0.5", during=during, fresh=True)
    assert done.returncode == 1, done.stdout + done.stderr
    for line in results(tmp_path).values():
        assert (line["outcome"], line["failure"]["type"]) == ("error", "Death")
        assert "memory limit of 0.5 GiB exceeded" in line["failure"]["message"]


def test_its_hang_costs_the_test_id_and_leaves_no_process(tmp_path):
    during = "while Mine.calls > 20: signal.pause()"
    done = checked(tmp_path, "-n", "1", "--separate", "--time-limit", "4", during=during)
    assert done.returncode == 1, done.stdout + done.stderr
    assert {line["failure"]["type"] for line in results(tmp_path).values()} == {"Hang"}
    left = [p for p in psutil.process_iter(["cwd"]) if p.info["cwd"] == str(tmp_path)]
    assert left == []


class Ended(BaseException):
    """The process under test is not asked any more."""


@pytest.fixture
def separated(tmp_path, monkeypatch):
    """Starts an adapter in a process of its own, and ends it with the test."""
    monkeypatch.chdir(tmp_path)
    started = []

    def start(**what):
        started.append(separate.Separate(mine(tmp_path, **what)))
        started[0].lost = lost
        return started[0]

    def lost(reason):
        raise Ended(reason)

    yield start
    for each in started:
        each.close()


@pytest.mark.parametrize("how", SPOILT)
def test_a_message_that_is_not_well_formed_ends_the_test(separated, how):
    found = separated(at_import=SPOILING.format(after=20, spoilt=SPOILT[how]))
    subject = Subject(found, FUNCTIONS["LLTM"], "cpu", property_id="FWD-VALUE")
    _, checks = claims()["FWD-VALUE"]
    with pytest.raises(Ended, match=r"the process under test (sent what cannot be read|sent no|called a function)"):
        checks(subject=subject)
    assert not psutil.pid_exists(found.number)


@pytest.mark.parametrize(("after", "workers", "status"), [(0, "0", 2), (40, "0", 2), (40, "1", 1)])
def test_such_a_run_is_no_success(tmp_path, after, workers, status):
    spoiling = SPOILING.format(after=after, spoilt=SPOILT["another shape"] if after else SPOILT["no JSON"])
    done = checked(tmp_path, "-n", workers, "--separate", at_import=spoiling)
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "the process under test sent" in (done.stderr if workers == "0" else done.stdout)


def test_a_fork_that_claims_less_does_not_pass_the_gate(tmp_path):
    assert checked(tmp_path, "-n", "0", "--separate").returncode == 0
    accept(tmp_path)
    assert checked(tmp_path, "-n", "0", "--separate", "--baseline", "base.txt").returncode == 0
    less = "Mine.dtypes = ('float64',)"
    done = checked(tmp_path, "-n", "0", "--separate", "--baseline", "base.txt", at_import=less)
    assert done.returncode == 1
    assert "asked less" in done.stdout
    other = checked(tmp_path, "-n", "0", "--baseline", "base.txt")
    assert other.returncode == 2
    assert "its separate is yes, and this run's is all" in other.stderr


@pytest.mark.parametrize("claim", ["name = '../up'", "dtypes = ('float33',)", "share_of_examples = 0.0"])
def test_claims_that_cannot_be_end_the_run(tmp_path, claim):
    late = f"if 'separate_process' in ' '.join(sys.orig_argv): Mine.{claim}"
    done = checked(tmp_path, "-n", "0", "--separate", at_import=late)
    assert done.returncode == 2
    assert "the process under test claims what cannot be" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--separate", "--cost"), "--cost does not go with --separate"),
        (("--separate", "--expect", "mine"), "--expect does not go with --separate"),
        (("--python", "python3"), "--python python3 is about --separate"),
        (("--separate", "--python", "./nowhere"), "./nowhere cannot be started"),
    ],
)
def test_options_that_do_not_go_together(command, words, said):
    run = command("model", "--functions", "Exp", "-n", "0", *words)
    assert run.status == 2
    assert said in run.err


def test_a_separate_run_asserts_as_much(command):
    """The results of what can be separated are those of an ordinary run, to the last rounding error."""
    words = ("model", "--profile", "quick", "--seed", "1", "--functions", "Exp,LinearFunction,Sort,Inplace", "-n", "1")
    usual, apart = command(*words), command(*words, "--separate", "--python", sys.executable)
    assert (usual.status, apart.status) == (0, 0), apart.out
    assert (usual.header.get("separate"), apart.header["separate"]) == (None, True)
    jsonschema.Draft202012Validator(SCHEMA).validate(apart.header)
    assert " --separate " in describe.rerun(next(iter(apart.results.values())), apart.header)
    assert usual.results.keys() == apart.results.keys()
    for id, line in apart.results.items():
        if line["outcome"] == "unsupported":
            # A process of its own is asked for nothing that it does not claim. An ordinary run asks an adapter that
            # has the method.
            absent = "the adapter has no method" in usual.results[id].get("reason", "")
            assert usual.results[id]["outcome"] == ("unsupported" if absent else "refuses")
        elif ndjson.test_of(line) in separation.SEPARABLE:
            same = [
                {k: v for k, v in each.items() if k not in ("seconds", "link")} for each in (usual.results[id], line)
            ]
            assert same[0] == same[1]
        else:
            assert (line["outcome"], line["checks"]) == ("skip", 0)
            assert line["reason"] == f"cannot be separated: {separation.LEFT_OUT[ndjson.test_of(line)]}"


def test_each_test_can_be_separated_or_has_a_reason_why_not():
    assert not set(separation.SEPARABLE) & separation.LEFT_OUT.keys()
    assert {*separation.SEPARABLE, *separation.LEFT_OUT} == claims().keys()
    assert separation.why_not("VJP-MINE") != ""


def claims():
    """The tests of properties of documented Functions, by property and variant."""
    names = [f"{functions.__name__}.{found.name}" for found in pkgutil.iter_modules(functions.__path__)]
    pairs = [pair for name in names for pair in claims_in(importlib.import_module(name))]
    return {claim.test: (claim, test) for claim, test in pairs if isinstance(claim, Claim) and not claim.own}


# What these look at is in the suite's process, where there is nothing.
IN_VAIN = ("ENV-SETTINGS", "ENV-SETTINGS/seeds", "MEM-FREE", "ENV-THREADS")


@pytest.fixture(scope="module")
def left_alone(tmp_path_factory):
    """An adapter in a process of its own, for all tests that are left out."""
    folder = tmp_path_factory.mktemp("left")
    found = separate.Separate(str(folder / mine(folder)))
    yield found
    found.close()


@pytest.mark.parametrize("test", [name for name in separation.LEFT_OUT if name not in IN_VAIN])
def test_only_what_cannot_be_separated_is_left_out(left_alone, test):
    claim, checks = claims()[test]
    function = next(f for f in FUNCTIONS.values() if claim.where(f))
    subject = Subject(left_alone, function, "cpu", property_id=claim.property_id, allowed=claim.dtypes)
    with pytest.raises((separate.NotSeparable, AttributeError)):
        checks(subject=subject)


VALUES = [
    None,
    (1, [2.5, "three", True], ()),
    np.arange(6.0).reshape(2, 3).T,
    np.zeros((0, 2), "int8"),
    np.array(1 + 2j, "complex64"),
    np.array([True, False]),
    (1 + 2j, slice(None, 4, 2), ..., np.float64(0.5), float("inf")),
]


@pytest.fixture
def ends():
    """Both ends of a connection."""
    one, other = socket.socketpair()
    with one, other:
        yield Channel(one), Channel(other)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_message_has_what_was_sent(ends, value):
    one, other = ends
    message = Message({"do": "it"})
    message.put("args", value, lambda _: None)
    one.send(message)
    found = other.receive().get("args", lambda *_: None)
    np.testing.assert_equal(found, value)
    if isinstance(value, np.ndarray):
        assert (found.dtype, found.shape) == (value.dtype, value.shape)


def test_what_cannot_be_sent_is_refused():
    for value in (object(), np.array([object()]), {"a": 1}):
        with pytest.raises(TypeError, match="cannot be sent to another process"):
            Message().put("args", value, lambda _: None)


def test_a_closed_end_is_lost(ends):
    one, other = ends
    one.close()
    with pytest.raises(Lost):
        other.receive()


@pytest.mark.parametrize("data", [None, {}, ["Error"], ["no name", "", True, 1], ["Error", "", 1, 1]])
def test_an_exception_has_a_type_and_a_message(data):
    assert Raised.read(["Error", "said", True, 1]).message == "said"
    with pytest.raises(Malformed):
        Raised.read(data)


def test_the_bytes_of_arrays_are_those_that_are_described():
    message = Message(arrays=[np.zeros((2, 3)), np.zeros(4, "bool")])
    text, body = packed(message)
    assert len(body) == 52
    assert b'"arrays": [["float64", [2, 3]], ["bool", [4]]]' in text

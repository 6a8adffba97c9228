"""Joining an implementation: how it is named, what is wrong with an adapter, and the worked example."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from autograd_conformance import implementations
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.probing import smoke
from autograd_conformance.implementations.deviations import Cause, Deviation, Found, Grade
from autograd_conformance.implementations.model import ModelImplementation
from autograd_conformance.implementations.protocol import Unavailable
from autograd_conformance.selftests.conftest import OUTSIDE

ROOT = Path(__file__).resolve().parents[2]

HEAD = "from autograd_conformance.implementations.model import ModelImplementation\n"
ONE = f"{HEAD}class Mine(ModelImplementation):\n    name = 'mine'\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


# How an implementation is named.


def test_a_file_joins_by_its_path(folder):
    (folder / "mine.py").write_text(ONE)
    assert implementations.load("mine.py").name == "mine"
    assert implementations.load(str(folder / "mine.py")).name == "mine"


def test_of_several_adapters_in_a_file_one_is_named(folder):
    (folder / "two.py").write_text(f"{ONE}class Other(Mine):\n    name = 'other'\nmade = Mine()\n")
    assert implementations.load("two.py:Other").name == "other"
    assert implementations.load("two.py:made").name == "mine"
    with pytest.raises(Unavailable, match="defines: Mine, Other"):
        implementations.load("two.py")


def test_what_only_looks_like_a_class_is_no_adapter(folder):
    # In Python 3.10 the first one says so, too.
    proxy = "class Proxy:\n    __class__ = property(lambda _: type)\n"
    (folder / "typed.py").write_text(f"{ONE}Shape = list[int]\n{proxy}lazy = Proxy()\n")
    assert implementations.load("typed.py").name == "mine"


def test_a_module_joins_by_module_and_attribute(folder):
    (folder / "joined_module.py").write_text(ONE)
    assert implementations.load("joined_module:Mine").name == "mine"


def test_a_package_joins_by_an_entry_point(folder, monkeypatch):
    (folder / "joined_package.py").write_text(ONE)
    point = metadata.EntryPoint("mine", "joined_package:Mine", implementations.ENTRY_POINTS)
    monkeypatch.setattr(implementations.metadata, "entry_points", lambda group: [point] if group == point.group else [])
    assert implementations.load("mine").name == "mine"
    with pytest.raises(Unavailable, match=r"choose from: .*torch.*, mine"):
        implementations.load("nine")


@pytest.mark.parametrize(
    ("given", "text", "shown"),
    [
        (
            "torhc",
            "",
            "unknown implementation 'torhc'; choose from: model, torch.*module:attribute.*path of a .py file",
        ),
        ("none.py", "", "no file none.py"),
        ("missing.py", "import no_such_framework", "cannot be imported .*no_such_framework"),
        ("no_such_module:Mine", "", "cannot be imported .*no_such_module"),
        ("broken.py", "class (", "cannot be imported .SyntaxError"),
        ("raising.py", "raise SystemError('numpy 2')", "cannot be imported .SystemError: numpy 2"),
        ("empty.py", "", "defines: none"),
        ("other.py:Nothing", ONE, "no 'Nothing'; it defines Mine"),
        ("text.py:ONE", "ONE = 'text'", "is a str, which is not derived from Implementation"),
        (
            "abstract.py",
            "from autograd_conformance.implementations.protocol import Implementation\n"
            "class Half(Implementation):\n    name = 'half'\n    def vjp(self): pass\n",
            "abstract methods .*array.*numpy",
        ),
    ],
)
def test_what_cannot_be_loaded_is_reported_in_a_sentence(folder, given, text, shown):
    if text or given == "empty.py":
        (folder / given.partition(":")[0]).write_text(text)
    with pytest.raises(Unavailable, match=shown) as raised:
        implementations.load(given)
    assert "\n" not in str(raised.value)


def test_a_version_that_the_adapter_does_not_support_is_refused():
    old = type("Old", (ModelImplementation,), {"supported": ">=99"})()
    with pytest.raises(Unavailable, match=r"model .* is not supported; the adapter needs >=99"):
        implementations.check_version(old)


def test_an_adapter_whose_package_has_no_version_is_told_so(folder):
    text = f"{HEAD}from types import SimpleNamespace\nfrom autograd_conformance.implementations.protocol import "
    text += (
        "Implementation\nclass Mine(ModelImplementation):\n    package = SimpleNamespace(__name__='no_such_thing')\n"
    )
    (folder / "mine.py").write_text(f"{text}    environment = Implementation.environment\n")
    with pytest.raises(UsageProblem, match=r"no_such_thing has no __version__.* give it one, or override environment"):
        smoke.verify("mine.py")


# The smoke stage.


CAUSE = Cause(grade=Grade.DIFFERENCE, reason="r", link="l", seen=("1.0",))


def wrong(**changes):
    """The model's adapter with other attributes and methods."""
    return type("Wrong", (ModelImplementation,), changes)()


def without(space, *names):
    found = {name: getattr(space, name) for name in dir(space) if name not in names}
    return SimpleNamespace(**found)


def swapped(self, f, primals, *, track=None):
    outputs, pullback = ModelImplementation.vjp(self, f, primals, track=track)
    return outputs, lambda *given, **options: pullback(*given, **options)[::-1]


def never_none(self, f, primals, *, track=None):
    outputs, _ = ModelImplementation.vjp(self, f, primals, track=track)
    return outputs, ModelImplementation.vjp(self, f, primals)[1]


def once(self, f, primals, *, track=None):
    outputs, pullback = ModelImplementation.vjp(self, f, primals, track=track)
    given = []
    return outputs, lambda *now, **options: given or given.extend(pullback(*now, **options)) or tuple(given)


def unconjugated(self, f, primals, *, track=None):
    outputs, pullback = ModelImplementation.vjp(self, f, primals, track=track)

    def pull(cotangents, *rest, **options):
        conj = [None if g is None else self.xp.conj(g) for g in cotangents]
        return tuple(None if g is None else self.xp.conj(g) for g in pullback(conj, *rest, **options))

    return outputs, pull


def narrow(self, values, dtype, device):
    return ModelImplementation.array(self, values, "float32" if dtype == "float64" else dtype, device)


def shared(name, function):
    space = without(ModelImplementation.xp)
    setattr(space, name, function)
    return space


@pytest.mark.parametrize(
    ("adapter", "shown"),
    [
        (wrong(capabilities=frozenset({"teleport"})), "unknown capability teleport; choose from: .*needs_input_grad"),
        (wrong(emulated=frozenset({"vmap"})), "emulates vmap without claiming it"),
        (wrong(dtypes=("float64", "float8")), "dtypes has float8; choose from: float64"),
        (wrong(dtypes=("float32",)), "no float64"),
        (wrong(capabilities=frozenset({"vmap", "compile"})), "claims compile and lacks the method compile"),
        (wrong(xp=without(ModelImplementation.xp, "exp", "flip")), "xp lacks exp, flip"),
        (wrong(ag=SimpleNamespace(Function=object)), "ag lacks once_differentiable"),
        (wrong(deviations=(Deviation(("NIG-99",), (Found("x"),), CAUSE),)), "deviation from NIG-99"),
        (wrong(array=narrow), "describe gives .*float32.*made as .*float64"),
        (wrong(numpy=lambda _, x: x.data[..., None]), "numpy.array.* is .* instead of"),
        (wrong(is_tensor=lambda *_: True), "is_tensor must be True for"),
        (wrong(devices=lambda _: ("tpu",)), "describe gives .*made as .*tpu"),
        (wrong(xp=shared("max", lambda x, axis: ModelImplementation.xp.argmax(x, axis=axis))), "xp.max"),
        (wrong(xp=shared("flip", lambda *_, **__: 1 / 0)), r"xp.flip.x, axis=1. raises ZeroDivisionError"),
        (wrong(vjp=swapped), "pullback with no options is .* instead of"),
        (wrong(vjp=once), "pullback with no options is .* instead of"),
        (wrong(vjp=never_none), "vjp with track=.True, False. gives .* instead of None"),
        (wrong(vjp=unconjugated), "which is their product with 3.4j conjugated"),
        (wrong(vjp=lambda *_, **__: (None, None)), "gradients of plain operations: TypeError"),
        (wrong(jvp=lambda _, f, x, __: ((f(*x),), (None,))), "jvp of a Function that triples gives None"),
        (wrong(function=lambda _, cls: lambda x: cls.apply(x) * 1.0 + 1.0), "a Function that triples"),
    ],
)  # fmt: skip
def test_a_mistake_of_the_adapter_is_reported(adapter, shown):
    found = smoke.found_in(adapter)
    assert any(re.search(shown, each) for each in found), found


def test_right_adapters_pass():
    assert smoke.found_in(ModelImplementation()) == []
    assert smoke.problems("torch") == []


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
        ("import os; os._exit(5)", "exit status 5"),
        ("while True: pass", "it did not end within 5 s"),
    ],
)
def test_an_adapter_that_dies_in_the_smoke_stage_is_reported(folder, body, shown):
    text = f"{ONE}    def devices(self):\n        {body}\n"
    (folder / "dying.py").write_text(text)
    (found,) = smoke.problems("dying.py", seconds=5)
    assert shown in found


FORKED = """
import os, subprocess, time
from autograd_conformance.harness.processes import child
from autograd_conformance.harness.probing import smoke

said = f'{{child.MARK}} {{{{"found": ["it is wrong"]}}}}\\n'.encode()
subprocess.run = lambda *words, **options: subprocess.CompletedProcess(words, 0, said, b"")
{plant}
print(smoke.problems("torch", seconds={seconds}))
"""


@pytest.mark.parametrize(
    ("plant", "shown"),
    [
        ("", "[]"),
        ("smoke.found_in = lambda i: ['not this']", "['it is wrong']"),
        ("smoke.found_in = lambda i: os.abort()", "['it is wrong']"),
        ("smoke.found_in = lambda i: os._exit(0)", "['it is wrong']"),
        ("smoke.found_in = lambda i: time.sleep(60)", "['it is wrong']"),
    ],
)
def test_a_fork_of_the_run_is_enough_for_torch(tmp_path, plant, shown):
    """It imports nothing again. Only a process of its own says what is wrong: not everything survives a fork."""
    text = FORKED.format(plant=plant, seconds=20 if "sleep" in plant else 100)
    words = [sys.executable, "-W", "error", "-c", text]
    done = subprocess.run(words, cwd=tmp_path, env=OUTSIDE, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, shown), done.stderr


ENDLESS = """
import sys, types
from autograd_conformance.harness.probing import smoke

def load(name):
    while True:
        pass

smoke.implementations.load = load
smoke.problems("torch", seconds=1)
"""


def test_an_import_that_does_not_end_is_ended_with_its_stack(tmp_path):
    words = [sys.executable, "-c", ENDLESS]
    done = subprocess.run(words, cwd=tmp_path, env=OUTSIDE, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("Timeout (0:00:01)!")
    assert " in load" in done.stderr


def test_an_adapter_that_dies_when_it_is_imported_is_reported(command, folder):
    (folder / "dying.py").write_text("import ctypes; ctypes.string_at(0)")
    run = command("dying.py", "-n", "0", folder=folder)
    assert run.status == 2
    assert "the adapter dying.py does not pass the smoke stage" in run.err
    assert "SIGSEGV" in run.err


def test_what_a_framework_prints_is_not_taken_for_the_result(folder):
    (folder / "loud.py").write_text(f"import atexit\nprint([1])\natexit.register(print, '[2]')\n{ONE}")
    assert smoke.problems("loud.py") == []


def test_a_framework_that_is_not_installed_is_no_mistake_of_the_adapter(folder):
    (folder / "absent.py").write_text(f"import no_such_framework\n{ONE}")
    with pytest.raises(UsageProblem, match=r"absent.py cannot be imported .*no_such_framework"):
        smoke.verify("absent.py")


def test_a_run_says_so_before_it_checks_anything(command, folder):
    (folder / "mine.py").write_text(f"{ONE}    capabilities = frozenset({{'teleport'}})\n")
    run = command("mine.py", "-n", "0", folder=folder)
    assert run.status == 2
    assert "the adapter mine.py does not pass the smoke stage" in run.err
    assert "unknown capability teleport" in run.err
    assert not run.path.exists()


# The worked example.


TOY_OUTCOMES = {"pass", "known", "unsupported", "refuses", "holds", "silent"}


@pytest.mark.parametrize(
    "words",
    [("--functions", "Exp,LinearFunction,Sort,Inplace"), ("--properties", "NIG-*,ND-*,SAVE-*"), ()],
    ids=" ".join,
)
def test_the_toy_joins_and_keeps_all_but_what_it_lists(command, words):
    run = command(str(ROOT / "docs" / "toy.py"), "--profile", "quick", "--seed", "1", "-n", "1", *words)
    assert run.status == 0, run.out + run.err
    assert {"pass"} <= set(run.outcomes.values()) <= TOY_OUTCOMES
    assert words or set(run.outcomes.values()) == TOY_OUTCOMES


def test_a_bug_in_the_toy_is_found(command, folder):
    text = (ROOT / "docs" / "toy.py").read_text()
    bug = text.replace("and x.tracked for x in args", "and x.tracked for x in args[::-1]")
    assert bug != text
    (folder / "toy.py").write_text(bug)
    run = command("toy.py", "--profile", "gate", "-n", "0", "--properties", "VJP-NEEDS", folder=folder)
    assert run.status == 1
    assert run.outcomes["VJP-NEEDS[LinearFunction-cpu]"] == "fail"

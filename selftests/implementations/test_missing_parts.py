"""Packages that lack a part of torch: it is named where it is used, and nothing else stops."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from ast import literal_eval
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from autograd_conformance.harness.views import summary
from autograd_conformance.implementations import IMPORTS, PACKAGE, load
from autograd_conformance.implementations.importing import aliases
from autograd_conformance.implementations.importing.missing import Missing, Placeholder, StandIns, missing_part
from autograd_conformance.implementations.importing.piecewise import executed
from autograd_conformance.implementations.protocol import Unavailable
from autograd_conformance.implementations.torch import memory
from autograd_conformance.selftests.conftest import outside_with


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with few parts, and a module of the suite that wants more."""
    files = {
        "scant/__init__.py": """
            from . import inner
            class Tensor: pass
            class Broken:
                def fail(self): return self.gone
            """,
        "scant/inner.py": "HERE = 1",
        "wanting.py": """
            import scant
            import scant.absent.deeper
            from scant.inner import HERE, THERE
            LAYOUTS = {scant.dense: 1}
            class Derived(scant.Base):
                pass
            @scant.decorated
            def unused(): pass
            """,
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(str(tmp_path))
    # What is asked for there counts as asked for by the suite.
    monkeypatch.setattr("autograd_conformance.implementations.importing.missing._SUITE", tmp_path / "wanting.py")
    before = set(sys.modules)
    yield "scant"
    for name in set(sys.modules) - before:
        del sys.modules[name]


def imported(package):
    stand_ins = StandIns(package)
    with stand_ins.until_the_end():
        return stand_ins, stand_ins.importing(lambda: import_module("wanting"))


def test_a_module_is_imported_whatever_is_missing(package):
    stand_ins, module = imported(package)
    assert set(stand_ins.names) == {
        "scant.absent", "scant.absent.deeper", "scant.inner.THERE", "scant.dense", "scant.Base", "scant.decorated",
    }  # fmt: skip
    assert module.HERE == 1


def test_what_raises_otherwise_costs_what_needs_it(package, tmp_path):
    path = tmp_path / "wanting.py"
    path.write_text(
        "import scant\nBAD = scant.inner.HERE.real.of()\nRIGHT, WRONG = 1, 1 / 0\ndef used(): return BAD[1]\n"
    )
    with pytest.raises(AttributeError):
        imported(package)
    stand_ins = StandIns(package)
    with stand_ins.until_the_end():
        module = executed("wanting", path, stand_ins)
    assert module.scant.inner.HERE == 1
    with pytest.raises(Missing, match=r"needs wanting.py:2, which raises AttributeError: 'int' object"):
        module.used()
    with pytest.raises(Missing, match=r"needs wanting.py:3, which raises ZeroDivisionError"):
        module.RIGHT()


@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.THERE(), lambda m: m.THERE.part(1), lambda m: bool(m.THERE), lambda m: m.THERE[0],
        lambda m: m.Derived(), lambda m: m.Derived.apply(1), lambda m: m.unused(),
    ],
)  # fmt: skip
def test_a_use_of_it_names_the_part(package, use):
    _, module = imported(package)
    with pytest.raises(Missing, match=r"needs scant\."):
        use(module)


def test_what_only_the_adapter_reads_has_a_default():
    assert memory.kind(SimpleNamespace(layout=torch.strided)) == ""


def test_nothing_stays_in_the_package(package):
    _, module = imported(package)
    assert not any(isinstance(value, Placeholder) for value in vars(module.scant).values())
    assert not any(isinstance(value, Placeholder) for value in vars(module.scant.inner).values())
    assert "scant.absent" not in sys.modules


def test_what_a_package_lacks_inside_itself_is_its_own_fault(package):
    stand_ins = StandIns(package)
    with pytest.raises(AttributeError, match="gone"), stand_ins.until_the_end():
        stand_ins.importing(lambda: import_module("scant").Broken().fail())


def test_a_package_that_is_not_there_is_not_made_up():
    with pytest.raises(ModuleNotFoundError):
        StandIns("nowhere").importing(lambda: import_module("nowhere"))


def raised_by(action):
    with pytest.raises(Exception) as raised:  # noqa: PT011
        action()
    return raised.value


def test_parts_of_tensors_and_of_derived_classes_are_named(package, monkeypatch):
    scant = import_module(package)
    monkeypatch.setattr("autograd_conformance.implementations.importing.missing._SUITE", Path(__file__))
    derived = type("Mine", (scant.Tensor,), {})
    assert missing_part(raised_by(lambda: scant.Tensor().mT), package) == "scant.Tensor.mT"
    assert missing_part(raised_by(lambda: derived.setup), package) == "scant.Tensor.setup"
    assert missing_part(raised_by(lambda: SimpleNamespace().mT), package) is None
    assert missing_part(raised_by(lambda: scant.Tensor().mT), "") is None
    assert missing_part(KeyError("mT"), package) is None


def test_an_import_error_in_a_packages_own_words_is_its_own_fault(package, monkeypatch):
    monkeypatch.setattr("autograd_conformance.implementations.importing.missing._SUITE", Path(__file__))
    scant = import_module(package)

    def lazily(name):
        raise ImportError(f"no {name} without its other half", name=package)

    scant.__getattr__ = lazily
    assert missing_part(raised_by(lambda: scant.part), package) is None


@pytest.mark.parametrize(
    ("outcomes", "counts"),
    [
        (("pass", "emulated", "skip"), (1, 0, 1)), (("pass", "fail"), (0, 1, 1)), (("missing", "error"), (0, 1, 1)),
        (("missing", "vacuous"), (0, 0, 2)), (("pass", "missing"), (0, 0, 2)), (("pass", "known"), (0, 0, 1)),
        (("skip",), (0, 0, 1)),
    ],
)  # fmt: skip
def test_a_sentence_is_kept_if_all_of_its_ids_hold(outcomes, counts):
    lines = [{"clause": "SAVE-06", "outcome": outcome} for outcome in outcomes]
    kept, broken, lacking = counts
    expected = f"sentences: {kept} kept, {broken} broken, {lacking} about what is missing"
    assert summary.score([*lines, {"property": "VJP-REF", "outcome": "missing"}]) == expected
    assert summary.score([line for line in lines if line["outcome"] != "missing"]) == ""


def test_another_package_stands_for_a_name(package, monkeypatch):
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    aliases.use("other", package)
    assert import_module("other") is import_module(package)
    assert import_module("other.inner") is import_module("scant.inner")
    with pytest.raises(ModuleNotFoundError, match=r"other\.nothing"):
        import_module("other.nothing")


# What stands for torch, with native code.
STANDING = {
    "__init__": """
        from types import SimpleNamespace
        from . import autograd
        __version__ = "1.0.0"
        _C = SimpleNamespace(__file__="_C.abi3.so")
        class Tensor: pass
        """,
    "autograd/__init__": "from . import function",
    "autograd/function": "class Function: pass",
}

SAYS = """
from autograd_conformance import implementations
found = implementations.load("torch")
imports = found.script.imports
print([found.drop_in, found.environment().version, found.checked(), imports["torch"], imports["fwAD"]])
"""


def said_of(folder, **environment):
    words, environment = [sys.executable, "-c", SAYS], {**outside_with(folder), **environment}
    return literal_eval(subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout)


def test_native_code_makes_no_torch_of_another_package(tmp_path):
    for name, text in STANDING.items():
        path = tmp_path / "standing" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    scripts = ["import standing as torch", "import standing.autograd.forward_ad as fwAD"]
    assert said_of(tmp_path, **{PACKAGE: "standing"}) == ["torch", "1.0.0+standing", (), *scripts]


@pytest.mark.parametrize("package", ["", "torch"])
def test_torch_is_torch_by_its_own_name(tmp_path, package):
    drop_in, *_, releases, torch, forward = said_of(tmp_path, **{PACKAGE: package})
    assert (drop_in, torch, forward) == ("", "import torch", "import torch.autograd.forward_ad as fwAD")
    assert "2.13.0" in releases


@pytest.mark.parametrize(
    ("variable", "value", "name", "said"),
    [
        (
            PACKAGE,
            "scant",
            "model",
            "--package scant goes with torch, torch-compile, torch-inductor, torch-func, torch-library, torch-cpp, "
            "and not with model",
        ),
        (PACKAGE, "nowhere", "torch", "nowhere of --package cannot be imported"),
        (IMPORTS, "nowhere", "model", "nowhere of --import cannot be imported"),
    ],
)
def test_what_cannot_be_imported_is_said(monkeypatch, variable, value, name, said):
    monkeypatch.setenv(variable, value)
    with pytest.raises(Unavailable, match=said):
        load(name)


SUITE = """
from autograd_conformance.harness.testing.marks import holds, keeps
from autograd_conformance.implementations.importing.missing import Missing


@holds("VJP-REF")
def test_right(subject, data):
    example = subject.example(data.draw(subject.calls(), label="call"))
    subject.assert_close(example.call, example.names, got=example.run()[1], expected=example.expected.gradients())


@holds("VJP-FD")
def test_lacking(subject, data):
    subject.example(data.draw(subject.calls(), label="call"))
    raise Missing("torch.func.vmap")
"""


def test_a_run_names_what_is_missing_and_fails(command, tmp_path):
    folder = tmp_path / "suite"
    folder.mkdir()
    (folder / "test_lacking.py").write_text(SUITE)
    run = command("model", "--suite", str(folder), "--functions", "Exp,Square", "-n", "0")
    assert run.status == 1
    assert set(run.outcomes.values()) == {"pass", "missing"}
    assert {line["reason"] for line in run.results.values() if line["outcome"] == "missing"} == {
        "needs torch.func.vmap"
    }
    assert "missing: torch.func.vmap, for 2 test ids" in run.out
    assert "sentences: 1 kept, 0 broken, 1 about what is missing" in run.out


HIDING = """
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.implementations.importing.missing import Missing


@keeps("SAVE-06")
def test_clause(subject, data):
    # The smallest number that fails is 26, but for what is missing.
    number = subject.draw(data, st.integers(0, 100), "number")
    if number == 26:
        raise Missing("torch.conj")
    subject.assert_equal("number", got=number > 25, expected=False)
"""


def test_what_is_missing_in_a_smaller_example_hides_no_failure(command, tmp_path):
    folder = tmp_path / "suite"
    folder.mkdir()
    (folder / "test_hiding.py").write_text(HIDING)
    run = command("model", "--suite", str(folder), "-n", "0")
    assert set(run.outcomes.values()) == {"fail"}
    assert "what: number" in run.out

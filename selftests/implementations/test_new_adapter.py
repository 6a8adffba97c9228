"""A new adapter: what it says before it is filled in, and each mistake that can be made in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from autograd_conformance import implementations
from autograd_conformance.harness import cli
from autograd_conformance.harness.probing import adapter_checks
from autograd_conformance.implementations.adapting import template, template_over
from autograd_conformance.implementations.adapting.filling import FILL_IN, NAME, Unfilled, unfilled
from autograd_conformance.implementations.protocol import CAPABILITIES, Implementation
from autograd_conformance.reference.namespace import ARRAY_NAMES
from autograd_conformance.reference.uses import ALWAYS, FUNCTIONS

ROOT = Path(__file__).resolve().parents[2]
ENGINE = (ROOT / "selftests" / "implementations" / "joining_engine.py").read_text().partition('"""\n')[2]

_RECORDED = {
    "broadcast_to": "lambda x, shape: record(lambda a: np.broadcast_to(a, shape), lambda g: (g,), x)",
    "copy": "lambda x: record(np.copy, lambda g: (g,), x)",
    "permute_dims": "lambda x, axes: record(\n"
    "        lambda a: a.transpose(axes), lambda g: (g.transpose(np.argsort(axes)),), x)",
    "reshape": "lambda x, shape: record(lambda a: a.reshape(shape), lambda g: (g.reshape(x.shape),), x)",
    "sum": "lambda x, axis=None, keepdims=False: \n"
    "        record(np.sum, lambda g: (np.broadcast_to(g, x.shape),), x) if axis is None\n"
    "        else constant(np.sum)(x, axis=axis, keepdims=keepdims)",
}
_OTHERS = {
    "arange": "lambda *ends, device=None: Value(np.arange(*ends))",
    "concat": "lambda xs, axis=0: Value(np.concatenate([x.data for x in xs], axis))",
    "stack": "lambda xs, axis=0: Value(np.stack([x.data for x in xs], axis))",
    "matrix_transpose": "constant(lambda a: np.swapaxes(a, -1, -2))",
    "zeros": "lambda shape, dtype=float, device=None: Value(np.zeros(shape, dtype))",
}
_NAMES = {name: f"constant(np.{name})" for name in ARRAY_NAMES} | _RECORDED | _OTHERS

_METHODS = {
    "array": "return Value(np.array(values, dtype))",
    "as_numpy": "return tensor.data",
    "is_tensor": "return isinstance(value, Value)",
    "_is_tensor": "return isinstance(value, Value)",
    "differentiate": """leaves = [Value(x.data, Node() if t else None) for x, t in zip(primals, tracked, strict=True)]
        outputs = f(*leaves)

        def pull(cotangents, wanted, differentiable):
            given = [(y, g) for y, g in zip(outputs, cotangents, strict=True) if g is not None]
            return gradients([y for y, _ in given], [g for _, g in given], leaves)

        return outputs, pull""",
    "pulled": """leaves = [Value(x.data, Node()) for x in primals]
        outputs = f(*leaves)

        def pull(cotangents):
            given = [(y, g) for y, g in zip(outputs, cotangents, strict=True) if g is not None]
            return gradients([y for y, _ in given], [g for _, g in given], leaves)

        return outputs, pull""",
    "_apply": """needs = [x.node is not None for x in lowered.tensors]
    outputs, ctx = lowered.forward([Value(x.data) for x in lowered.tensors], needs)
    pull = lambda gs: map(raw, lowered.backward(ctx, list(map(Value, gs))))
    return lowered.returned(linked(map(raw, outputs), lowered.tensors, pull))""",
}
_VALUES = {"Function": "Function", "once_differentiable": "lambda backward: backward"}


def filled(kind):
    """A new adapter in one file with the engine, as its author fills it in."""
    text = template.text("mine", kind).replace("from types", f"import sys\n{ENGINE}\nfrom types", 1)
    text = text.replace(f"package = {NAME}", "package = sys.modules[__name__]")
    for name, value in (_NAMES | _VALUES).items():
        text = text.replace(f"    {name}={NAME},", f"    {name}={value},")
    raised = f"raise {NAME}"
    while raised in text:
        method = re.findall(r"def (\w+)\(", text.partition(raised)[0])[-1]
        text = text.replace(raised, _METHODS[method], 1)
    return text


def mistakes(folder, text):
    """What the smoke stage says of an adapter with this text."""
    (folder / "mine.py").write_text(text)
    return adapter_checks.found_in(implementations.load(str(folder / "mine.py")))


# Before it is filled in.


@pytest.mark.parametrize("kind", template.KINDS)
def test_a_new_adapter_says_in_one_screen_all_that_is_missing(command, tmp_path, kind):
    assert CliRunner().invoke(cli.main, ["new-adapter", str(tmp_path / "mine.py"), "--like", kind]).exit_code == 0
    run = command("mine.py", "-n", "0", folder=tmp_path)
    assert run.status == 2
    assert len(run.err.splitlines()) < 24
    lines = (tmp_path / "mine.py").read_text().splitlines()
    expected = set(ARRAY_NAMES) | {"copy", "package", "array", "as_numpy"}
    expected |= {"differentiate", "is_tensor", "Function"} if kind == "torch" else {"pulled", "_is_tensor", "_apply"}
    for name in expected:
        assert re.search(rf"\b{name}\b", run.err), name
    # The first line of each place that is named has the name.
    for place, name in re.findall(r"mine.py, line (\d+): (?:write the function|fill in) (\w+)", run.err):
        assert NAME in lines[int(place) - 1], name
    assert not run.path.exists()


@pytest.mark.parametrize("kind", template.KINDS)
def test_a_new_adapter_lists_every_capability_and_method(kind):
    text = template.text("mine", kind)
    assert all(f'# "{name}",  # ' in text for name in CAPABILITIES)
    assert all(len(line) <= 120 for line in text.splitlines())
    (words,) = {Implementation.array.__doc__}
    assert words in text


def test_a_part_of_the_rest_is_checked_before_all_is_filled_in(tmp_path):
    text = filled("torch").replace("return isinstance(value, Value)", f"raise {NAME}")
    text = text.replace("frozenset({\n", 'frozenset({\n        "teleport",\n')
    found = mistakes(tmp_path, text)
    assert len(found) == 2
    assert "write the function is_tensor" in found[0]
    assert "unknown capability teleport" in found[1]


# What sits on top of torch: right, and once it loses the graph.
OVERLAYS = {
    "return apply": "",
    "return lambda *args: apply(*args)": "",
    "return lambda *args: apply(*(a.detach() if hasattr(a, 'detach') else a for a in args))": "gives None instead of",
    "return lambda *args: apply(*args) * 2 if args[1:] == () else apply(*args)": "instead of",
}


@pytest.mark.parametrize(("call", "mistake"), OVERLAYS.items())
def test_what_sits_on_top_of_torch_is_called_through_it(tmp_path, command, call, mistake):
    path = tmp_path / "over.py"
    text = template_over.text("over", "torch")
    path.write_text(text)
    assert unfilled(implementations.load(str(path))) == [
        "over.py, line 21: fill in package",
        "over.py, line 37: write the function call: A function of the arguments of apply that calls it through the "
        "package: package.jit(apply), say.",
    ]
    (tmp_path / "overlay.py").write_text("__version__ = '0.3'\n")
    text = text.replace("import torch\n", "import overlay\nimport torch\n", 1)
    path.write_text(text.replace(f"package = {NAME}", "package = overlay").replace(f"raise {NAME}", call))
    done = command("over.py", "--profile", "quick", "--functions", "Exp", "--properties", "VJP-REF", folder=tmp_path)
    assert (done.status, mistake in done.err) == ((2, True) if mistake else (0, True)), done.err
    if not mistake:
        assert "over 0.3: 3 of 3 test ids hold" in done.out


def test_what_is_to_be_filled_in_can_only_be_raised():
    with pytest.raises(Unfilled):
        FILL_IN(1)
    with pytest.raises(Unfilled):
        _ = FILL_IN.apply
    assert not hasattr(FILL_IN, "__wrapped__")


# How the file is written.


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("mine.py",), "mine.py exists, and is not overwritten"),
        (("new.py", "--like", "touch"), "unknown kind --like 'touch'; choose from: torch, jax (did you mean torch?)"),
        (("new.py", "--over", "torhc"), "unknown kind --over 'torhc'; choose from: torch"),
        (
            ("new.py", "--over", "torch", "--like", "jax"),
            "--like jax and --over torch write different adapters; give one",
        ),
        (("new",), "give one, as in: new-adapter new.py"),
        (("new.py", "--name", "a b"), "--name 'a b' is not a word"),
        (("nowhere/new.py",), "nowhere/new.py cannot be written: No such file"),
        (("new.py", "--name", ""), "--name is empty"),
    ],
)
def test_what_cannot_be_written_is_said_in_a_sentence(tmp_path, monkeypatch, words, shown):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("mine")
    done = CliRunner().invoke(cli.main, ["new-adapter", *words])
    assert (done.exit_code, done.stdout) == (2, "")
    assert shown in done.stderr
    assert Path("mine.py").read_text() == "mine"
    assert not Path("new.py").exists()


@pytest.mark.parametrize("name", ["mine", "my-engine", "class", "2nd", "über"])
def test_every_name_makes_a_class(tmp_path, name):
    (tmp_path / "new.py").write_text(template.text(name, "torch"))
    assert implementations.load(str(tmp_path / "new.py")).name == name


# Filled in.


@pytest.mark.parametrize("kind", template.KINDS)
def test_a_new_adapter_is_right_once_it_is_filled_in(command, tmp_path, kind):
    text = filled(kind)
    assert NAME not in text.replace(f"import {NAME}", "").replace(f"Replace each {NAME}", "")
    assert mistakes(tmp_path, text) == []
    ids = "FWD-VALUE,VJP-REF,VJP-CHAIN,VJP-MASK,FN-03,ENG-04,GRAD-14"
    run = command("mine.py", "-n", "0", "--profile", "quick", "--seed", "1", "--properties", ids, folder=tmp_path)
    assert run.status == 0, run.out + run.err
    assert sum(outcome == "pass" for outcome in run.outcomes.values()) > 30


def test_an_adapter_finds_its_engine_beside_it(command, tmp_path):
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "engine_beside.py").write_text(ENGINE)
    text = filled("torch").replace(
        ENGINE, "import engine_beside\nfrom engine_beside import *\nfrom engine_beside import np\n"
    )
    (tmp_path / "beside" / "mine.py").write_text(text.replace("sys.modules[__name__]", "engine_beside"))
    run = command("beside/mine.py", "-n", "0", "--properties", "FWD-VALUE", "--functions", "Exp", folder=tmp_path)
    assert run.status == 0, run.out + run.err


# Mistakes: what is changed, into what, and what is said of it.
PLANTED = {
    "no reflected operator": ("Value.__rsub__", "Value.other", "2 - x raises TypeError"),
    "no negative": ("    def __neg__", "    def negative", "-x raises TypeError: bad operand"),
    "a wrong gradient of an operator": (
        "g * raw(other), g * self.data",
        "g * self.data, g * raw(other)",
        r"pullback with no options is \[.*\] instead of",
    ),
    "a wrong value": ("constant(np.max)", "constant(np.min)", r"xp.max\(y, axis=0\) is \[.*\] instead of"),
    "a function of NumPy itself": ("constant(np.tanh)", "np.tanh", r"xp.tanh\(y\) raises TypeError"),
    "memory that is shared with what comes in": (
        "return Value(np.array(values, dtype))",
        "return Value(np.asarray(values, dtype))",
        "array shares memory with the NumPy array that it gets.*copy it",
    ),
    "memory that is shared with what goes out": (
        "    def as_numpy",
        "    def numpy(self, tensor):\n        return tensor.data\n\n    def as_numpy",
        "numpy returns memory of the tensor.*return a copy",
    ),
    "wrong names of dtypes": (
        "lambda self: self.data.dtype)",
        "lambda self: self.data.dtype.str)",
        "describe gives Description.*dtype='<f8'.* for a tensor made as .*dtype='float64'",
    ),
    "gradients that are None": (
        "return gradients([y for",
        "return [None for _ in leaves] or ([y for",
        "pullback with no options gives None instead",
    ),
    "gradients that are missing": (
        "given], leaves)",
        "given], leaves)[:1]",
        "gradients of plain operations: ValueError",
    ),
    "a name that is missing": ("    flip=", "    flop=", "xp lacks flip; see reference/namespace.py"),
    "a capability without its method": (
        "frozenset({\n",
        'frozenset({\n        "compile",\n',
        "it claims compile and lacks the method compile",
    ),
}


@pytest.mark.parametrize("mistake", PLANTED)
def test_a_mistake_is_named(tmp_path, mistake):
    before, after, shown = PLANTED[mistake]
    text = filled("torch")
    assert before in text
    found = mistakes(tmp_path, text.replace(before, after))
    assert any(re.search(shown, each) for each in found), found


def test_several_mistakes_are_named_at_once(tmp_path):
    text, planted = filled("torch"), [
        "no reflected operator", "no negative", "a wrong value", "a function of NumPy itself",
        "memory that is shared with what comes in", "a name that is missing", "a capability without its method",
    ]  # fmt: skip
    for mistake in planted:
        text = text.replace(*PLANTED[mistake][:2])
    found = mistakes(tmp_path, text)
    assert [m for m in planted if not any(re.search(PLANTED[m][2], each) for each in found)] == [], found
    assert len(found) <= 24


# The document.


def test_the_document_says_what_bodies_use_and_what_is_differentiated():
    text = (ROOT / "docs" / "adding-an-implementation.md").read_text()
    assert text.index("new-adapter") < text.index("## 1.")
    rows = re.findall(r"^\| (whatever is claimed|`double_backward`|also `tuples`|also `sparse`) \|(.*)", text, re.M)
    said = {claimed: set(re.findall(r"`(\w+)`", row)) for claimed, row in rows}
    assert said["whatever is claimed"] == {use.name for use in FUNCTIONS if use.differentiated == ALWAYS}
    twice = {use.name for use in FUNCTIONS if use.differentiated == "double_backward"}
    # Those of which some calls are differentiated anyway are named again.
    assert twice >= said["`double_backward`"] >= twice - said["whatever is claimed"]
    assert said["also `sparse`"] == {use.name for use in FUNCTIONS if use.differentiated == "double_backward sparse"}

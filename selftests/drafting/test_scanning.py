"""Packages in which nothing is declared: what is assumed of each Function, and that check finds faults with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autograd_conformance.selftests.support.warm import started

HEAD = "import torch\nfrom torch import Tensor\nFunction = torch.autograd.Function\n"


def function(name: str, forward: str, result: str, backward: str, *, saved: str = "", extra: str = "") -> str:
    """The source of a Function that saves these tensors and returns these gradients."""
    save = f"        ctx.save_for_backward({saved})\n" if saved else ""
    read = f"        {saved}, = ctx.saved_tensors\n" if saved else ""
    return (
        f"class {name}(Function):\n    @staticmethod\n    def forward(ctx, {forward}):\n{extra}{save}"
        f"        return {result}\n"
        f"    @staticmethod\n    def backward(ctx, g):\n{read}        return {backward}\n"
    )


KEPT = "        ctx.kept = {}\n"
# The source of a Function, and the declaration that is assumed.
FUNCTIONS = {
    "of any shape": (function("F", "x", "x.exp()", "g * x.exp()", saved="x"), '"float[...]"'),
    "positive": (function("F", "x", "x.log()", "g / x", saved="x"), '"float[...] positive"'),
    "linear": (
        function("F", "x, w, b=None", "x @ w.t() if b is None else x @ w.t() + b",
                 "g @ w, g.t() @ x, g.sum(0) if ctx.needs_input_grad[2] else None", saved="x, w"),
        '"float[n,m]", "float[k,m]", "float[k]?"',
    ),
    "along columns": (
        function("F", "x, w", "x * w", "g * w, (g * x).sum(0)", saved="x, w"), '"float[n,m]", "float[m]"'
    ),
    "rows by index": (
        function("F", "x, index", "x[index]",
                 "torch.zeros(ctx.kept, dtype=g.dtype).index_add_(0, index, g), None",
                 saved="index", extra=KEPT.format("x.shape")),
        '"float[n,m]", "int[k](0..n-1)"',
    ),
    "a default": (
        function("F", "x, factor=3.0", "x * factor", "g * ctx.kept, None", extra=KEPT.format("factor")),
        '"float[...]", "3.0 | 6.0"',
    ),
    "an object": (
        "class Options:\n    def __init__(self, factor):\n        self.factor = factor\n\n"
        + function("F", "x, options=Options(3)", "x * options.factor", "g * ctx.kept, None",
                   extra=KEPT.format("options.factor")),
        '"float[...]", Factory(lambda seed: Options(factor=3))',
    ),
    "two numbers in a row": (
        function("F", "z", "(z[..., 0] ** 2 + z[..., 1] ** 2).sqrt()", "z * (g / z.norm(dim=-1))[..., None]",
                 saved="z"),
        '"float[n,2]"',
    ),
    "a flag": (
        function("F", "x, twice=False", "x * (1 + twice)", "g * (1 + ctx.kept), None", extra=KEPT.format("twice")),
        '"float[...]", "bool"',
    ),
    "a flag that needs a dimension": (
        function("F", "x, padded=False", "x * 2 if padded else x * 3", "g * ctx.kept, None",
                 extra=KEPT.format("2 if padded and x.shape[0] else 3")),
        '"float[...,n]", "bool"',
    ),
    "an annotation": (
        function("F", "x: Tensor, k: int", "x * k", "g * ctx.kept, None", extra=KEPT.format("k")),
        '"float[...]", "1 | 2"',
    ),
    "words": (
        function("F", "x, how", "x.sum() if how == 'sum' else x.mean()",
                 "(g if ctx.kept[0] == 'sum' else g / ctx.kept[1].numel()).expand(ctx.kept[1]), None",
                 extra="        assert how in ('sum', 'mean')\n" + KEPT.format("(how, x.shape)")),
        '"float[...]", "\'sum\'"',
    ),
    "a dimension": (
        function("F", "x, dim", "x.softmax(dim)", "y * (g - (g * y).sum(-1, keepdim=True)), None",
                 saved="y", extra="        y = x.softmax(dim)\n").replace("return x.softmax(dim)", "return y"),
        '"float[...]", "-1"',
    ),
    "in place": (
        function("F", "x", "x.add_(1)", "g", extra="        ctx.mark_dirty(x)\n"), '"float[...]", inplace=(0,)'
    ),
    "a mask": (
        function("F", "x, mask", "x * mask", "g * mask, None", saved="mask"), '"float[...]", "float[...] binary"'
    ),
    "a mask of booleans": (
        function("F", "x, mask=None", "x if mask is None else x.masked_fill(mask, 0)",
                 "g if ctx.kept is None else g.masked_fill(ctx.kept, 0), None", extra=KEPT.format("mask")).replace(
            "return x if", "return x.clone() if"
        ),
        '"float[...]", "bool[...]?"',
    ),
    "a probability": (
        function("F", "x, p", "x / (1 - p)", "g / (1 - ctx.kept), None", extra=KEPT.format("p")),
        '"float[...]", "0.25 | 0.5"',
    ),
    "images": (
        function("F", "x, w", "conv(x, w)", "of_input(x.shape, w, g), of_weight(x, w.shape, g)", saved="x, w",
                 extra="        n, m, k, l = x.shape\n") + "from torch.nn.functional import conv2d as conv\n"
        "from torch.nn.grad import conv2d_input as of_input, conv2d_weight as of_weight\n",
        '"float[n,m,k,l]", "float[n,m,k,l]"',
    ),
    "square": (
        function("F", "a", "torch.linalg.inv(a)", "-y.mT @ g @ y.mT", saved="y",
                 extra="        y = torch.linalg.inv(a)\n").replace("return torch.linalg.inv(a)", "return y"),
        '"float[n,n] full_rank"',
    ),
    "points": (
        function("F", "q, p", "q[..., :3] * q[..., 3:] + p * 0",
                 "torch.cat([g * q[..., 3:], (g * q[..., :3]).sum(-1, keepdim=True)], -1), 0 * g", saved="q"),
        '"float[n,4]", "float[n,3]"',
    ),
    "noise": (
        function("F", "x", "x * noise", "g * noise", saved="noise", extra="        noise = torch.rand_like(x)\n"),
        '"float[...]", stochastic=True',
    ),
    "rare noise": (
        function("F", "x", "x * noise", "g * noise", saved="noise",
                 extra="        noise = (torch.rand_like(x) > 0.001).to(x.dtype)\n"),
        '"float[...]", stochastic=True',
    ),
    "differentiated once": (
        function("F", "x", "x * x", "2 * g * x.detach()", saved="x").replace(
            "    def backward", "    @torch.autograd.function.once_differentiable\n    def backward"
        ),
        '"float[...]", once=True',
    ),
    "binary labels": (
        function("F", "x, labels", "torch.where(labels == 1, x.sigmoid(), -x.sigmoid())",
                 "g * torch.where(labels == 1, 1.0, -1.0).to(g.dtype) * y * (1 - y), None", saved="labels, y",
                 extra="        y = x.sigmoid()\n"),
        '"float[...]", "int[...](0..1)"',
    ),
    "the nearest level": (
        function("F", "x, levels", "levels[(x[..., None] - levels).abs().argmin(-1)]", "g, None",
                 extra="        assert levels.ndim == 1 == len(set(x.shape[-1:] + levels.shape))\n"),
        '"float[n,m]", "float[m] constant", surrogate=True',
    ),
    "a step": (function("F", "x", "(x > 0.3).to(x.dtype)", "g"), '"float[...]", surrogate=True'),
    "a reversed gradient": (
        function("F", "x, scale", "x.view_as(x)", "-ctx.kept * g, None", extra=KEPT.format("scale")),
        '"float[...]", "1 | 2", surrogate=True',
    ),
}  # fmt: skip


def checked(folder: Path, source: str, *words: str):
    folder.joinpath("ops.py").write_text(HEAD + source)
    done = started("check", "ops.py", "--profile", "quick", "--seed", "0", *words, folder=folder, torch=True)
    return done, re.findall(r"^  \w+ = Declaration\((?:\w+|torch\.ops\S+), (.*)\)$", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_assumed_fits_and_accuses_nothing(tmp_path, name):
    source, expected = FUNCTIONS[name]
    done, assumed = checked(tmp_path, source, "--properties", "VJP-FD,VJP-FIT,VJP-NONE")
    assert done.returncode == 0, done.stdout + done.stderr
    assert assumed == [expected]
    assert "autograd-conformance-scripts/assumed_ops.py" in done.stdout


# Where forward looks for the mark, and the mark that is assumed; where another argument is it, what that is.
MARKS = {
    "a constant": ("", "IGNORE", "-1"),
    "a number": ("", "-7", "-7"),
    "of the class": ("", "F.IGNORE", "-2"),
    "a default": (", ignore_index=-100", "ignore_index", "-100"),
    "a default that is a class": (", pad=0", "pad", "0"),
    "an argument": (", ignore_index", "ignore_index", "-100"),
}


@pytest.mark.parametrize("name", MARKS)
@pytest.mark.parametrize("right", [True, False], ids=["right", "wrong"])
def test_a_value_that_the_code_compares_with_occurs(tmp_path, name, right):
    parameter, word, mark = MARKS[name]
    counted = "g * keep" if right else "g + 0 * keep"
    gradient = f"torch.zeros_like(logp).scatter(1, target.clamp(0)[:, None], ({counted})[:, None])"
    source = function(
        "F", f"logp, target{parameter}", "logp.gather(1, target.clamp(0)[:, None])[:, 0] * keep",
        gradient + ", None" * (1 + bool(parameter)), saved="logp, target, keep",
        extra=f"        keep = target != {word}\n",
    )  # fmt: skip
    source = "IGNORE = -1\n" + source.replace("(Function):\n", "(Function):\n    IGNORE = -2\n")
    done, assumed = checked(tmp_path, source, "--properties", "VJP-FD")
    number = f', "{mark}"' * bool(parameter)
    assert assumed == [f'"float[n,m]", "int[n](0..m-1 | {mark})"{number}']
    assert done.returncode == (not right), done.stdout


@pytest.mark.parametrize(
    "forward",
    [
        "        if inplace:\n            ctx.mark_dirty(x)\n            return x.add_(1)\n        return x + 1\n",
        "        if not inplace:\n            return x + 1\n        ctx.mark_dirty(x)\n        return x.add_(1)\n",
    ],
)
@pytest.mark.parametrize("default", ["", "=False"])
def test_what_a_flag_changes_in_place_has_two_declarations(tmp_path, forward, default):
    source = function("F", f"x, inplace{default}", "0", "g, None").replace("        return 0\n", forward)
    done, assumed = checked(tmp_path, source, "--properties", "VJP-FD,FWD-PURE,VJP-NONE")
    assert assumed == ['"float[...]", "True", inplace=(0,)', '"float[...]", "False"']
    assert done.returncode == 0, done.stdout


FORGETTING = {
    "softmax": function("F", "x", "y", "g * y", saved="y", extra="        y = x.softmax(-1)\n"),
    "a mean": function("F", "x", "x - x.mean()", "g"),
    "a clamp": function("F", "x", "x.clamp(-1000, 1000)", "2 * g"),
    "a factor": function("F", "x, k", "x * k", "g, None"),
    "a factor that is 1": function("F", "x, k=1.0", "x * k", "g, None"),
    "other ranks": function("F", "x", "x * 3", "3 * g if g.ndim == 2 else g"),
    "a transpose": function("F", "a", "y", "-y @ g @ y", saved="y", extra="        y = torch.linalg.inv(a)\n"),
}


@pytest.mark.parametrize("name", FORGETTING)
def test_what_a_backward_forgets_is_not_taken_for_granted(tmp_path, name):
    done, assumed = checked(tmp_path, FORGETTING[name], "--properties", "VJP-FD")
    assert done.returncode == 1, done.stdout
    assert "surrogate" not in assumed[0]


@pytest.mark.parametrize("name", ["of any shape", "linear", "along columns", "rows by index", "a flag"])
def test_a_faulty_backward_is_found_without_a_declaration(tmp_path, name):
    source, _ = FUNCTIONS[name]
    faulty = re.sub(r"(    def backward\(ctx, g\):\n)", r"\1        g = 2 * g\n", source)
    done, _ = checked(tmp_path, faulty, "--properties", "VJP-FD")
    assert done.returncode == 1, done.stdout
    assert re.search("(WRONG|DIFFERS): VJP-FD", done.stdout)


TWO = """
class Slopes(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return FIRST * g * y, 2 * g * x
"""


@pytest.mark.parametrize(("first", "word"), [(2, "DIFFERS"), (1, "WRONG")], ids=["every", "one"])
def test_a_gradient_that_differs_everywhere_may_be_meant(tmp_path, first, word):
    source = TWO.replace("FIRST", str(first))
    done, _ = checked(tmp_path, source, "--properties", "VJP-*")
    assert done.returncode == 1
    assert f"found: Slopes: {word}: VJP-FD" in done.stdout
    assert f"  {word}: VJP-FD" in done.stdout
    line = '"ops:Slopes" = { surrogate = true }'
    assert line in done.stdout.replace("\n      ", " ")
    tmp_path.joinpath("pyproject.toml").write_text(f"[tool.autograd-conformance.functions]\n{line}\n")
    done, assumed = checked(tmp_path, source, "--properties", "VJP-*")
    assert "surrogate=True" in assumed[0]
    assert "VJP-FD" not in done.stdout


def test_those_that_differ_are_counted_apart(tmp_path):
    source = "".join(TWO.replace("FIRST", str(n)).replace("Slopes", f"Slopes{n}") for n in (1, 2))
    done, _ = checked(tmp_path, source, "--properties", "VJP-FD")
    assert "2 Functions: 1 wrong (Slopes1), 1 with another gradient than the derivative (Slopes2)" in done.stdout


@pytest.mark.parametrize("way", ["saved", "kept"])
def test_a_tensor_without_a_gradient_is_assumed_to_be_constant(tmp_path, way):
    extra = KEPT.format("weight") if way == "kept" else ""
    gradient = "g * ctx.kept, None" if way == "kept" else "g * weight, None"
    source = function("F", "x, weight", "x * weight", gradient, saved="weight" * (way == "saved"), extra=extra)
    done, assumed = checked(tmp_path, source, "--properties", "VJP-FD")
    assert assumed == ['"float[...]", "float[...] constant"']
    assert "no gradient is checked for: weight" in done.stdout


def test_what_may_be_a_tensor_or_a_number_is_said(tmp_path):
    source = function("F", "x, amount", "x * amount", "g * ctx.kept, None", extra=KEPT.format("amount"))
    done, assumed = checked(tmp_path, source, "--properties", "VJP-FD")
    assert assumed == ['"float[...]", "1 | 2"']
    assert "a guess, for backward returns None: amount is no tensor" in done.stdout


def test_places_are_those_of_the_function(tmp_path):
    source = FUNCTIONS["of any shape"][0].replace("g * x.exp()", "g + x.exp()")
    done, _ = checked(tmp_path, source, "--properties", "VJP-FD")
    assert re.search(r"^F \(\S*/ops.py:4\): float\[...\]$", done.stdout, re.MULTILINE), done.stdout
    assert "script: autograd-conformance-scripts/assumed_ops/F-VJP-FD.py" in done.stdout
    raising = source.replace("        return g + x", "        raise ValueError('no')\n        return g + x")
    done, _ = checked(tmp_path, raising + function("G", "x", "x * 2", "g * 2"))
    assert "/../" not in done.stdout + done.stderr
    assert "ops.py:12 in backward" in done.stdout + done.stderr


def test_the_assumed_declarations_can_be_checked_as_a_file(tmp_path):
    checked(tmp_path, FUNCTIONS["of any shape"][0], "--properties", "VJP-FD")
    path = tmp_path / "autograd-conformance-scripts" / "assumed_ops.py"
    done = started("check", path, "--properties", "VJP-FD", folder=tmp_path, torch=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_cannot_be_called_is_left_out_with_the_reason(tmp_path):
    source = FUNCTIONS["of any shape"][0] + function("Strange", "x, config", "x * config.factor", "g, None")
    done, assumed = checked(tmp_path, source, "--properties", "VJP-FD")
    assert done.returncode == 2
    assert len(assumed) == 1
    assert "ops:Strange is left out: forward took none of the calls that were tried" in done.stderr
    assert "1 without a fault, 1 not verified (ops:Strange)" in done.stdout


GROUP = "__import__('torch').distributed.get_rank()"
LEFT_OUT = {
    "a rank": ("x", "x.sum(dim=(2, 3, 4))", "        n, m, k, l, p = x.shape\n", "it needs a tensor of rank 5"),
    "a process group": ("x", f"x * {GROUP}", "", "it needs a process group: check it by in_processes"),
    "an object": ("x, f", "x * f.factor", "", "it needs an object with the attribute factor"),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_is_left_out_says_where_with_which_call_and_what_next(tmp_path, name):
    parameters, result, extra, needed = LEFT_OUT[name]
    source = function("F", parameters, result, "g" + ", None" * parameters.count(","), extra=extra)
    done, _ = checked(tmp_path, source)
    assert done.returncode == 2
    assert re.search(r"one raised \w+: .* \(at \S*ops.py:\d+ in forward\) for x of shape \(", done.stderr), done.stderr
    assert needed in done.stderr
    path = "autograd-conformance-scripts/assumed_ops.py"
    assert f"complete its block in a copy of {path}, or let a program that calls it write one" in done.stderr
    assert "# f = Declaration(\n" in (tmp_path / path).read_text()


def test_a_backward_that_always_raises_is_left_out_unless_it_is_wrong_in_any_case(tmp_path):
    other = function("Other", "x, f", "x * 2", "ctx.kept(g), None", extra=KEPT.format("f"))
    miscounted = function("Miscounted", "x, k", "x * k", "g * ctx.kept", extra=KEPT.format("k"))
    done, assumed = checked(tmp_path, other + miscounted, "--properties", "VJP-NONE")
    assert done.returncode == 1
    assert assumed == ['"float[...]", "1 | 2"']
    assert "Miscounted-VJP-NONE.py" in done.stdout
    assert "ops:Other is left out: backward raised in each of the calls that were tried" in done.stderr


def test_a_call_that_ends_the_process_costs_one_function(tmp_path):
    ending = function("Ending", "x", "x + __import__('os')._exit(3)", "g")
    done, assumed = checked(tmp_path, ending + FUNCTIONS["of any shape"][0], "--properties", "VJP-FD")
    assert done.returncode == 2
    assert assumed == ['"float[...]"']
    assert "ops:Ending is left out: a call that was tried ended the process (exit status 3)" in done.stderr


PACKAGE = {
    "__init__.py": "",
    "inner/__init__.py": "",
    "inner/one.py": HEAD + FUNCTIONS["of any shape"][0].replace("class F", "class One"),
    "broken.py": "raise ValueError('no')\n",
    "optional.py": "import no_such_module\n",
    "test_skipped.py": "import pytest\npytest.skip('not here', allow_module_level=True)\n",
    "operators.py": HEAD
    + """
@torch.library.custom_op("scanned::twice", mutates_args=())
def twice(x: Tensor, factor: float) -> Tensor:
    return x * 2 * factor


def keep(ctx, inputs, output):
    ctx.factor = inputs[1]


twice.register_autograd(lambda ctx, g: (g * 2 * ctx.factor, None), setup_context=keep)
""",
}  # fmt: skip


def test_a_package_is_walked(tmp_path):
    for name, text in PACKAGE.items():
        path = tmp_path / "pkg" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    done = started(
        "check", "pkg", "--profile", "quick", "--properties", "VJP-FD", "--seed", "0", folder=tmp_path, torch=True
    )
    assert 'one = Declaration(One, "float[...]")' in done.stdout, done.stderr
    assert 'twice = Declaration(torch.ops.scanned.twice, "float[...]", "0.5 | 2.0")' in done.stdout
    assert "pkg.broken is left out: it cannot be imported: ValueError: no" in done.stderr
    assert "Not looked at are modules that need what is not installed: no_such_module (1)" in done.stdout
    assert done.returncode == 2


@pytest.mark.parametrize("source", ["", "def plain(x):\n    return x\n"], ids=["empty", "no Function"])
def test_a_module_without_functions_is_an_error(tmp_path, source):
    done, _ = checked(tmp_path, source)
    assert done.returncode == 2
    assert "ops.py has no declarations and no custom Functions; add NAME = Declaration(" in done.stderr

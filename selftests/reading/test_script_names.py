"""Scripts show the fault whatever the Function and its arguments are called."""

from __future__ import annotations

import ast
import itertools
import json
from dataclasses import replace

import pytest

pytest.importorskip("torch")

from autograd_conformance.harness.outcomes import Broken, named
from autograd_conformance.harness.running.results import json_of
from autograd_conformance.harness.scripts.names import Names
from autograd_conformance.harness.scripts.script import script_for
from autograd_conformance.harness.testing.source import Source
from autograd_conformance.reference.definitions import Array
from autograd_conformance.selftests.faults.properties import PLANTED
from autograd_conformance.selftests.faults.properties.definitions import TORCH
from autograd_conformance.selftests.faults.test_planted_faults import NO_SCRIPT, outcome
from autograd_conformance.selftests.support import scripts

# One fault for each way to write a script, those with the most arguments, which have the most names.
SHOWN = {
    named(p.id, p.variant): p
    for p in sorted(PLANTED, key=lambda p: len(p.wrong.function.arguments))
    if p.raises is Broken and p.wrong.implementation is TORCH and str(p) not in NO_SCRIPT
}
# Names that an argument may get from elsewhere, and those of which a script makes others.
ODD = ("class", "1st", "a b", "torch", "np", "grad_x", "direction_x", "grad_grad_x")


def names_of(text):
    """Every name in a program."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        for field in ("id", "arg", "name", "asname"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                found.add(name)
    return sorted({*found, *ODD})


def renamed(planted, failure, words):
    """The Function and the failure, with other names of its differentiable tensors."""
    pairs = [
        (argument, word if isinstance(argument, Array) and argument.dtype is None else argument.name)
        for argument, word in zip(planted.wrong.function.arguments, words, strict=True)
    ]
    text = json.dumps(failure)
    for number, (argument, word) in enumerate(pairs):
        text = text.replace(f"argument {number} ({argument.name})", f"argument {number} ({word})")
    arguments = tuple(replace(argument, name=word) for argument, word in pairs)
    return replace(planted.wrong.function, arguments=arguments), json.loads(text)


@pytest.mark.parametrize("test", SHOWN)
def test_no_name_of_an_argument_or_of_the_function_changes_what_a_script_shows(test):
    planted = SHOWN[test]
    failure = json_of(outcome(planted).finding.as_json())
    plain, _ = script_for(planted.wrong.implementation, planted.wrong.function, test, failure, scripts.SOURCE)
    bodies = [scripts.body_of(planted.wrong.function), scripts.body_of(planted.twin.function)]
    words = names_of(plain)
    count = len(planted.wrong.function.arguments)
    for number, word in enumerate(words):
        given = list(itertools.islice(itertools.cycle(words), number, number + count))
        function, found = renamed(planted, failure, given)
        # A Function that a user imports can be called anything, too.
        name = word if word.isidentifier() and word != "class" else "Function"
        source = Source(f"from {scripts.MODULE} import {name}\n", f"{name}.apply")
        text, reason = script_for(planted.wrong.implementation, function, test, found, source)
        assert text, f"{given}: {reason}"
        ends = [scripts.status(text, **{name: body}) for body in bodies]
        assert ends == [scripts.shown_by(failure), 0], text


def test_a_name_is_changed_only_where_it_hides_another_one():
    names = Names()
    lines, known = names.imported("import sys\nfrom ops import run\nloss = runpy.run_path('ops.py')['loss']\n")
    x, t, grad, made = (names.new(word) for word in ("x", "t", "grad_x", "grad_x"))
    program = (
        f"{lines}def run({x}):\n    return {known['run']}({x})\n\n\n"
        f"def slope(t):\n    return {x} + t\n\n\n"
        f"grad_{x}, {t}, {grad}, {made} = run(1), slope(2), {known['loss']}, 3\nprint('t', {t}, '{x}')\n"
    )
    assert names.settled(program) == (
        "import sys\nfrom ops import run as run_0\nloss = runpy.run_path('ops.py')['loss']\n"
        "def run(x):\n    return run_0(x)\n\n\n"
        "def slope(t):\n    return x + t\n\n\n"
        "grad_x, t, grad_x_0, grad_x_1 = run(1), slope(2), loss, 3\nprint('t', t, 'x')\n"
    )

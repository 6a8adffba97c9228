"""Mutants are small edits of functions, each of another text, and each can be compiled."""

from __future__ import annotations

import ast
import textwrap

import pytest
import torch

from autograd_conformance.benchmarks.engine import reasons
from autograd_conformance.benchmarks.engine_map import Scope, lines_of, tree_of
from autograd_conformance.benchmarks.mutations import mutants

MODULE = '''
LIMIT = 3

def saved(ctx, x, *, limit=4):
    """A docstring."""
    if x is None or limit > 2:
        ctx.saved = x.detach()
    for y in (x, x * 2):
        if not y:
            continue
        check(y, limit, strict=True)
    try:
        with guard():
            return x + 1, x
    except ValueError:
        pass
    finally:
        restore()

class Node:
    def raises(self):
        warn(f"no {1 + 1}", 5)
        raise ValueError(7 + 8)
'''

# The function, the kind, and what stands there before and after.
EXPECTED = (
    ("saved", "weakened", "x is None or limit > 2", "x is None"),
    ("saved", "weakened", "x is None or limit > 2", "limit > 2"),
    ("saved", "negated", "x is None or limit > 2", "not (x is None or limit > 2)"),
    ("saved", "negated", "x is None", "x is not None"),
    ("saved", "off by one", "limit > 2", "limit >= 2"),
    ("saved", "constant", "2", "3"),
    ("saved", "assignment dropped", "ctx.saved = x.detach()", "pass"),
    ("saved", "forgotten", "x.detach()", "x"),
    ("saved", "no iteration", "for y in (x, x * 2):", "for y in ():"),
    ("saved", "element dropped", "(x, x * 2)", "(x,)"),
    ("saved", "swapped", "(x, x * 2)", "(x * 2, x)"),
    ("saved", "negated", "not y", "y"),
    ("saved", "continue dropped", "continue", "pass"),
    ("saved", "continue", "continue", "break"),
    ("saved", "call dropped", "check(y, limit, strict=True)", "pass"),
    ("saved", "strict= dropped", "check(y, limit, strict=True)", "check(y, limit)"),
    ("saved", "swapped", "check(y, limit, strict=True)", "check(limit, y, strict=True)"),
    ("saved", "without", "with guard():", "if True:"),
    ("saved", "returns None", "return (x + 1, x)", "return None"),
    ("saved", "arithmetic", "x + 1", "x - 1"),
    ("saved", "finally dropped", "try:", "try:"),
    ("saved", "not handled", "except ValueError:", "except ValueError:"),
    ("Node.raises", "not raised", "raise ValueError(7 + 8)", "pass"),
)


def _made():
    return list(mutants("module.py", ast.parse(MODULE)))


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda row: f"{row[1]}-{row[3]}")
def test_an_edit_is_made(expected):
    assert expected in {(m.function, m.kind, m.before, m.after) for m in _made()}


def test_every_mutant_has_a_text_of_its_own():
    texts = [str(mutant) for mutant in _made()]
    assert len(texts) == len(set(texts))


def test_every_mutant_is_another_module():
    tree = ast.parse(MODULE)
    plain = compile(tree, "module.py", "exec")
    for n in range(len(_made())):
        tree = ast.parse(MODULE)
        mutant = list(mutants("module.py", tree))[n]
        assert mutant.code(tree, "module.py") != plain, str(mutant)


@pytest.mark.parametrize("text", ["A docstring", "LIMIT", "limit=4", "1 + 1 ->", "7 + 8 ->", "5 ->"])
def test_what_is_only_said_or_runs_at_import_is_left_as_it_is(text):
    assert not [str(mutant) for mutant in _made() if text in f"{mutant.before} ->"]


SCOPE = textwrap.dedent(
    """
    # a comment
    whole.py
      - private.* only for tests
    part.py
      + Kept.*
      + kept
      - Kept.old of an older release
    """
)


@pytest.mark.parametrize(
    ("path", "function", "counts"),
    [
        ("whole.py", "public", True),
        ("whole.py", "private.inner", False),
        ("part.py", "other", False),
        ("part.py", "Kept.new", True),
        ("part.py", "Kept.old", False),
        ("part.py", "kept", True),
        ("part.py", "kept.inner", True),
    ],
)
def test_the_scope_says_which_functions_count(path, function, counts):
    assert Scope(SCOPE).counts(path, function) is counts


def test_statements_are_left_out_with_what_is_in_them():
    scope = Scope("~ raise AssertionError* # torch's own\nautograd/forward_ad.py\n  ~ if level is None:* # a default\n")
    tree = tree_of("autograd/forward_ad.py")
    own = [n for n in ast.walk(tree) if isinstance(n, ast.If) and ast.unparse(n.test) == "level is None"]
    left_out = scope.left_out("autograd/forward_ad.py")
    assert {line for n in own for line in range(n.body[0].lineno, n.body[-1].end_lineno + 1)} <= left_out
    assert not {n.lineno for n in own} & left_out


@pytest.mark.skipif(not torch.__version__.startswith("2.13.0"), reason="the reasons are about another release of torch")
def test_each_survivor_with_a_reason_is_a_mutant_that_counts():
    paths = {text.split(" ")[0] for text in reasons()}
    made = {str(m) for path in sorted(paths) for m in mutants(path, tree_of(path)) if m.line in lines_of(path)}
    assert not set(reasons()) - made
    assert all(reasons().values())

"""What a project says of its Functions in pyproject.toml, and what their code says."""

from __future__ import annotations

import pytest

from autograd_conformance.harness.check.declaration import intentions
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.watching.sayings import saying

TABLE = "[tool.autograd-conformance.functions]\n"


def test_the_nearest_file_says_what_is_meant(tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    assert intentions.read(inner) == {}
    (tmp_path / "pyproject.toml").write_text(f'{TABLE}"ops:*" = {{ surrogate = true, conditioning = 10 }}\n')
    assert intentions.read(inner) == {"ops:*": {"surrogate": True, "conditioning": 10}}
    (inner / "pyproject.toml").write_text("[project]\nname = 'other'\n")
    assert intentions.read(inner) == {}


def test_the_line_that_is_advised_is_read(tmp_path):
    line = intentions.line_for("ops:Spike", "surrogate")
    (tmp_path / "pyproject.toml").write_text(f"[{intentions.TABLE}]\n{line}\n")
    assert intentions.read(tmp_path) == {"ops:Spike": {"surrogate": True}}


MISTAKES = {
    '"ops:A" = { surogate = true }': "unknown word 'surogate'; choose from: surrogate",
    '"ops:A" = { surrogate = "yes" }': "ops:A: surrogate must be true or false, got 'yes'",
    '"ops:A" = { conditioning = 0.5 }': "conditioning must be a number, and at least 1, got 0.5",
    '"ops:A" = { conditioning = true }': "conditioning must be a number, and at least 1, got True",
    '"ops:A" = "surrogate"': "ops:A must be a table of words, such as {surrogate = true}, got 'surrogate'",
    '"ops:A" =': "cannot be read: ",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_mistakes_are_named_with_the_file(tmp_path, line):
    path = tmp_path / "pyproject.toml"
    path.write_text(f"{TABLE}{line}\n")
    with pytest.raises(UsageProblem) as raised:
        intentions.read(tmp_path)
    assert str(raised.value).startswith(str(path))
    assert MISTAKES[line] in str(raised.value)


CODE = '''
class Plain(Function):
    """Adds things, x * x."""

    def forward(ctx, x):
        estimate = x * 2
        return estimate

# A straight-through estimator.
@decorated
class Through(Function):
    pass

class Spike(Function):
    """A spike.

    Its gradient is a surrogate.
    """
'''


@pytest.mark.parametrize(
    ("line", "said"),
    [(2, ""), (11, "A straight-through estimator."), (10, "A straight-through estimator."), (14, "Its gradient is a")],
)
def test_what_the_code_says_of_a_gradient_is_quoted(tmp_path, line, said):
    path = tmp_path / "ops.py"
    path.write_text(CODE)
    found = saying(f"{path}:{line}")
    assert said in found
    assert bool(said) == bool(found)


@pytest.mark.parametrize("where", ["", "ops", "nothing.py:3"])
def test_a_place_that_cannot_be_read_says_nothing(where):
    assert saying(where) == ""

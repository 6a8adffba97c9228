"""Users' Functions at kinks, ties and zeros: what is wrong there is found, and every convention is accepted."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from torch.nn import functional

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.reports.ndjson import Line
from autograd_conformance.selftests import scripts
from autograd_conformance.selftests.checking import DRAWS, lines_of
from autograd_conformance.suites.declared import Checked, claims

ONE, ROWS, TWO = ("float[...]",), ("float[b,n]",), ("float[n,m]", "float[n,m]")
SPARSE = ("float[n,m] sparse", "float[m,k]")


def _function(forward, gradients):
    """A Function whose backward is ``gradients(g, y, *inputs)``."""

    def run(ctx, *inputs):
        y = forward(*inputs)
        ctx.save_for_backward(y, *inputs)
        return y

    methods = {"forward": run, "backward": lambda ctx, g: gradients(g, *ctx.saved_tensors)}
    return type("Kinked", (torch.autograd.Function,), {name: staticmethod(f) for name, f in methods.items()})


def _column(y):
    return y.unsqueeze(-1)


def _split(g, y, x):
    ties = (x == _column(y)).to(x.dtype)
    return _column(g) * ties / ties.sum(-1, keepdim=True)


def _of_norm(g, y, x):
    y = _column(y)
    return _column(g) * torch.where(y == 0, 0, x / torch.where(y == 0, 1, y))


def _norm(at_zero):
    """The norm of each row, with that gradient of a row of zeros."""

    def gradients(g, y, x):
        zero = torch.zeros_like(x) + torch.tensor([*at_zero, *[0.0] * x.shape[-1]], dtype=x.dtype)[: x.shape[-1]]
        return _column(g) * torch.where(_column(y) == 0, zero, x / _column(torch.where(y == 0, 1, y)))

    return _function(lambda x: x.norm(dim=-1), gradients)


def _polar(a):
    u, _, vh = torch.linalg.svd(a, full_matrices=False)
    return u @ vh


def _nuclear(a):
    return torch.linalg.svdvals(a).sum()


def _of_sinc(g, y, x):
    inner = torch.where(x == 0, 1, x)
    return g * torch.where(x == 0, 0, (x.cos() - y) / inner)


def _sinc(x):
    return torch.where(x == 0, 1, x.sin() / torch.where(x == 0, 1, x))


def _of_sparse(g, _, a, b):
    a = a.coalesce()
    values = (g[a.indices()[0]] * b[a.indices()[1]]).sum(-1)
    return torch.sparse_coo_tensor(a.indices(), values, a.shape, is_coalesced=True), a.t() @ g


def _of_sparse_at_one(g, y, a, b):
    found, other = _of_sparse(g, y, a, b)
    values = found.values() * (a.coalesce().values() != 1)
    return torch.sparse_coo_tensor(found.indices(), values, a.shape, is_coalesced=True), other


def _relu(at_zero):
    return _function(torch.relu, lambda g, _, x: g * torch.where(x == 0, at_zero, (x > 0).to(x.dtype)))


def _abs(at_zero):
    return _function(torch.abs, lambda g, _, x: g * torch.where(x == 0, at_zero, x.sign()))


def _amax(x):
    return x.amax(-1)


WRONG = {
    "no gradient at zero": (_function(lambda x: 3 * x, lambda g, _, x: 3 * g * (x != 0)), ONE),
    "every tie gets all": (_function(_amax, lambda g, y, x: _column(g) * (x == _column(y))), ROWS),
    "five at the kink of abs": (_abs(5.0), ONE),
    "a fifth too much at the kink of abs": (_abs(1.2), ONE),
    "one at the flat zero": (
        _function(lambda x: x * x.abs(), lambda g, _, x: g * torch.where(x == 0, 1, 2 * x.abs())),
        ONE,
    ),
    "neither of two equal ones": (_function(torch.maximum, lambda g, _, x, y: (g * (x > y), g * (y > x))), TWO),
    "both of two equal ones": (_function(torch.maximum, lambda g, _, x, y: (g * (x >= y), g * (y >= x))), TWO),
    "a product divided by its factor": (
        _function(lambda x: x.prod(-1), lambda g, y, x: torch.nan_to_num(_column(g * y) / x, 0.0, 0.0, 0.0)),
        ROWS,
    ),
    "equal neighbours skipped": (
        _function(lambda x: x.square(), lambda g, _, x: 2 * g * x * (x.diff(dim=-1, prepend=x[..., :1] - 1) != 0)),
        ROWS,
    ),
    "at the norm of zeros, longer than 1": (_norm([1.0, 1.0]), ROWS),
    "at one": (_function(torch.sin, lambda g, _, x: g * x.cos() * (x != 1)), ONE),
    "complex at zero": (_function(lambda x: x * (1 + 2j), lambda g, _, x: g * (1 - 2j) * (x != 0)), ("complex[...]",)),
    "an entry of a sparse tensor at one": (_function(torch.sparse.mm, _of_sparse_at_one), SPARSE),
}
TWIN = {
    "an entry of a sparse tensor at one": _function(torch.sparse.mm, _of_sparse),
    "no gradient at zero": _function(lambda x: 3 * x, lambda g, *_: 3 * g),
    "every tie gets all": _function(_amax, _split),
    "five at the kink of abs": _abs(0.0),
}
RIGHT = {
    "relu 0": (_relu(0.0), ONE),
    "relu 0.5": (_relu(0.5), ONE),
    "relu 1": (_relu(1.0), ONE),
    "maximum, halves": (torch.maximum, TWO),
    "maximum, the first": (_function(torch.maximum, lambda g, _, x, y: (g * (x >= y), g * (y > x))), TWO),
    "amax, split evenly": (_function(_amax, _split), ROWS),
    "max, one index": (lambda x: x.max(-1).values, ROWS),
    "median": (torch.median, ONE),
    "abs": (torch.abs, ONE),
    "complex abs": (torch.abs, ("complex[...]",)),
    "clamp": (lambda x: x.clamp(-1, 1), ONE),
    "leaky relu": (functional.leaky_relu, ONE),
    "hinge": (lambda x, y: torch.relu(1 - x * y).mean(), TWO),
    "weighted relus that cancel": (lambda x, y: (torch.relu(x) - torch.relu(y)).sum(), TWO),
    "softshrink": (functional.softshrink, ONE),
    "hardshrink, which jumps": (functional.hardshrink, ONE),
    "sort": (lambda x: torch.sort(x, dim=-1, stable=True).values, ROWS),
    "cummax": (lambda x: x.cummax(-1).values, ROWS),
    "floor": (_function(torch.floor, lambda g, *_: 0 * g), ONE),
    "norm": (_function(lambda x: x.norm(dim=-1), _of_norm), ROWS),
    "norm, as long as it may be at 0": (_norm([1.0]), ROWS),
    "nuclear norm": (_function(_nuclear, lambda g, _, a: g * _polar(a)), ("float[n,m]",)),
    "sinc": (_function(_sinc, _of_sinc), ONE),
    "another value at zero": (lambda x: torch.where(x == 0, 1.0, 3 * x), ONE),
    "square root of abs": (lambda x: x.abs().sqrt(), ONE),
    "sparse product": (torch.sparse.mm, SPARSE),
    "sparse product with a dense gradient": (
        _function(torch.sparse.mm, lambda g, _, a, b: (g @ b.t(), a.t() @ g)),
        SPARSE,
    ),
    "all pairs": (lambda x, y: (x[:, None] - y[None]).abs().sum(-1).amin(1).sum(), TWO),
}


def at_kinks(declaration, seed=0, *, profile="gate") -> Line:
    """The result of the test at kinks."""
    (line,) = lines_of(Checked(declaration, profile=profile, seed=seed, shrink=False), "VJP-FD/kinks")
    return line


@pytest.mark.parametrize("fault", WRONG)
def test_what_is_wrong_at_a_kink_is_found(fault):
    function, arguments = WRONG[fault]
    line = at_kinks(Declaration(function, *arguments))
    assert line["outcome"] == "fail"
    assert line["failure"]["what"] == "slope where entries are special or equal"
    assert "follows" not in line["failure"]


@pytest.mark.parametrize("fault", TWIN)
def test_a_script_shows_it_and_accepts_any_convention(fault, tmp_path):
    function, arguments = WRONG[fault]
    with scripts.importable(Declaration(function, *arguments), tmp_path) as declaration:
        text = at_kinks(declaration)["failure"]["script"]
        assert scripts.status(text, DECLARED=declaration) == 1, text
        assert scripts.status(text, DECLARED=Declaration(TWIN[fault], *arguments)) == 0, text


@pytest.mark.parametrize(("profile", "seed"), DRAWS)
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_accepted(name, profile, seed):
    function, arguments = RIGHT[name]
    assert at_kinks(Declaration(function, *arguments), seed, profile=profile)["outcome"] == "pass"


_SINGLE = [name for name, (_, arguments) in WRONG.items() if arguments != ("complex[...]",)]


@pytest.mark.parametrize("fault", _SINGLE)
def test_single_precision_is_enough_to_find_it(fault):
    function, arguments = WRONG[fault]
    assert at_kinks(Declaration(function, *arguments, dtypes="float32"))["outcome"] == "fail"


@pytest.mark.parametrize(("profile", "seed"), DRAWS)
@pytest.mark.parametrize("name", [name for name, (_, arguments) in RIGHT.items() if arguments != ("complex[...]",)])
def test_single_precision_accuses_nothing_right(name, profile, seed):
    function, arguments = RIGHT[name]
    assert at_kinks(Declaration(function, *arguments, dtypes="float32"), seed, profile=profile)["outcome"] == "pass"


def test_a_script_in_single_precision(tmp_path):
    function, arguments = WRONG["no gradient at zero"]
    with scripts.importable(Declaration(function, *arguments, dtypes="float32"), tmp_path) as declaration:
        text = at_kinks(declaration)["failure"]["script"]
        assert scripts.status(text, DECLARED=declaration) == 1, text
        right = Declaration(TWIN["no gradient at zero"], *arguments, dtypes="float32")
        assert scripts.status(text, DECLARED=right) == 0, text


def test_a_surrogate_is_not_asked():
    function = _function(torch.floor, lambda g, *_: g)
    checked = Checked(Declaration(function, *ONE, surrogate=True), seed=0)
    claim = next(claim for claim, _ in claims().values() if claim.test == "VJP-FD/kinks")
    assert list(checked.subjects(claim)) == []


def scaled_in(dtype):
    """Eight times x in one precision alone, with the right gradient."""

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # noqa: ARG004 - the interface
            if x.dtype != dtype:
                raise TypeError(f"only {dtype}")
            return 8 * x

        @staticmethod
        def backward(ctx, g):  # noqa: ARG004 - the interface
            return 8 * g

    return Scaled


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_a_lower_precision_has_larger_steps_or_none(dtype):
    """The numbers of half precision are further apart than the points that are compared."""
    checked = Checked(Declaration(scaled_in(dtype), "float[n,m]"), profile="quick", seed=1)
    lines = list(checked.lines("VJP-FD"))
    held = ["pass"] if dtype is torch.float32 else []
    assert [line["outcome"] for line in lines if line.get("variant") == "kinks"] == held
    assert not any(line["outcome"] == "fail" for line in lines)

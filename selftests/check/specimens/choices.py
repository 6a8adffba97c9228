"""Right Functions, declared as users declare theirs: nothing may be found wrong with them."""

from __future__ import annotations

import numpy as np
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from autograd_conformance.harness.check import Declaration
from autograd_conformance.selftests.check.specimens import right, wrong
from autograd_conformance.selftests.check.specimens.fields import DECLARATIONS
from autograd_conformance.selftests.check.specimens.functions import custom


class Rounded(Function):
    """Rounds to steps, with the gradient of a learned step size."""

    @staticmethod
    def forward(ctx, x, step):
        ctx.save_for_backward(x, step)
        return torch.round(x / step) * step

    @staticmethod
    def backward(ctx, g):
        x, step = ctx.saved_tensors
        return g, (g * ((x / step).round() - x / step)).sum_to_size(step.shape)


class Signed(Function):
    """Has the gradient of hardtanh."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sign(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x.abs() <= 1)


class Relu(Function):
    """Has the gradient 1 at 0, where torch has 0."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x >= 0)


class Largest(Function):
    """Divides the gradient among ties; 0 where there are no elements."""

    @staticmethod
    def forward(ctx, x):
        y = x.amax(-1) if x.shape[-1] else x.new_zeros(x.shape[:-1])
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        chosen = (x == y.unsqueeze(-1)).to(g.dtype)
        return g.unsqueeze(-1) * chosen / chosen.sum(-1, keepdim=True)


class Cholesky(Function):
    """Gives the whole gradient to the lower triangle, which alone is read."""

    @staticmethod
    def forward(ctx, a):
        lower = torch.linalg.cholesky(a)
        ctx.save_for_backward(lower)
        return lower

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (lower,) = ctx.saved_tensors
        p = (lower.mT @ g).tril()
        p = p - 0.5 * torch.diag_embed(p.diagonal(dim1=-2, dim2=-1))
        p = torch.linalg.solve_triangular(lower.mT, p, upper=True)
        p = torch.linalg.solve_triangular(lower, p, upper=False, left=False)
        return (p + p.mT).tril(-1) + torch.diag_embed(p.diagonal(dim1=-2, dim2=-1))


class Joined(Function):
    """Passes views of one cotangent on to both arguments."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.shape = a.shape
        return a.reshape(-1) + b.reshape(-1)

    @staticmethod
    def backward(ctx, g):
        return g.reshape(ctx.shape), g.reshape(ctx.shape)


class First(Function):
    """Has no gradient for an argument that does not count."""

    @staticmethod
    def forward(_ctx, a, _):
        return 2 * a

    @staticmethod
    def backward(_ctx, g):
        return 2 * g, None


class Released(Function):
    """Frees what it saved, its output, so that backward runs once."""

    @staticmethod
    def forward(ctx, x):
        y = torch.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        if y.numel() and not y.untyped_storage().size():
            raise RuntimeError("backward runs once")
        gradient = g * y
        y.untyped_storage().resize_(0)
        return gradient


class Sorted(Function):
    """Its order of equal elements depends on their place in memory."""

    @staticmethod
    def forward(ctx, x):
        y, order = torch.sort(x, dim=-1)
        ctx.save_for_backward(order)
        ctx.mark_non_differentiable(order)
        return y, order

    @staticmethod
    def backward(ctx, g, _):
        (order,) = ctx.saved_tensors
        return torch.zeros_like(g).scatter(-1, order, g)


class Winner(Function):
    """Takes one of the largest elements."""

    @staticmethod
    def forward(ctx, x):
        index = torch.argsort(x, dim=-1, descending=True)[..., :1]
        ctx.save_for_backward(index)
        ctx.count = x.shape[-1]
        return x.gather(-1, index)

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        return g.new_zeros(*g.shape[:-1], ctx.count).scatter(-1, index, g)


class Chamfer(Function):
    """Sums the squared distances of points to the nearest ones."""

    @staticmethod
    def forward(ctx, a, b):
        distances = ((a[:, None] - b[None]) ** 2).sum(-1)
        (to_b, i), (to_a, j) = distances.min(1), distances.min(0)
        ctx.save_for_backward(a, b, i, j)
        return to_b.sum() + to_a.sum()

    @staticmethod
    def backward(ctx, g):
        a, b, i, j = ctx.saved_tensors
        ahead, back = 2 * g * (a - b[i]), 2 * g * (b - a[j])
        return ahead.index_add(0, j, -back), back.index_add(0, i, -ahead)


def _warped(costs):
    """The least cost of a path through a matrix, and the path."""
    count, length = costs.shape
    least, came = {(0, 0): costs.new_zeros(())}, {}
    for i in range(1, count + 1):
        for j in range(1, length + 1):
            ways = [p for p in ((i - 1, j - 1), (i - 1, j), (i, j - 1)) if p in least]
            came[i, j] = min(ways, key=lambda p: float(least[p]))
            least[i, j] = costs[i - 1, j - 1] + least[came[i, j]]
    path, place = [], (count, length)
    while place != (0, 0):
        path.append((place[0] - 1, place[1] - 1))
        place = came[place]
    return least[count, length].clone(), path


class Warped(Function):
    """Dynamic time warping."""

    @staticmethod
    def forward(ctx, x, y):
        cost, ctx.path = _warped((x[:, None] - y[None]).abs())
        ctx.save_for_backward(x, y)
        return cost

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        gx, gy = torch.zeros_like(x), torch.zeros_like(y)
        for i, j in ctx.path:
            sign = torch.sign(x[i] - y[j]) * g
            gx[i] += sign
            gy[j] -= sign
        return gx, gy


def _rounded(x, step):
    return torch.round(x / step) * step


_FEW = {"b": (1, 2), "n": (0, 1, 2, 3)}
_MANY = {"n": (1, 2, 17, 40)}

# Compared with a reference.
REFERRED = (
    Declaration(Rounded, "float[n]", "float[] positive", surrogate=True, reference=_rounded),
    Declaration(Signed, "float[...]", soft=torch.nn.functional.hardtanh, reference=torch.sign),
    Declaration(Relu, "float[...]", reference=torch.relu),
    Declaration(Largest, "float[b,n]", sizes=_FEW, reference=lambda x: x.max(-1).values),
    Declaration(Cholesky, "float[n,n] spd", sizes={"n": (1, 2, 3)}, reference=torch.linalg.cholesky),
)
# With gradients that the engine makes, or that are not there.
PASSING = (
    Declaration(Joined, "float[n,m]", "float[n,m]"),
    Declaration(lambda a, b: 2 * (a.reshape(-1) + b.reshape(-1)), "float[n,m]", "float[n,m]", name="joined"),
    Declaration(First, "float[n]", "float[n]"),
)
released = Declaration(Released, "float[n]", single_backward=True, once=True)
# With discrete choices.
CHOOSING = (
    Declaration(torch.sort, "float[n]", name="sort"),
    Declaration(Sorted, "float[n]", sizes=_MANY),
    Declaration(Winner, "float[n]", sizes=_MANY),
    Declaration(Chamfer, "float[n,d]", "float[m,d]", sizes={"n": (1, 3), "m": (1, 2), "d": (1, 2)}),
    Declaration(Warped, "float[n]", "float[m]", sizes={"n": (1, 2, 4), "m": (1, 3)}, once=True),
)


def _tripled(base):
    """The Function with three times its gradient."""
    return custom("Tripled", base, backward=lambda ctx, g: 3 * base.backward(ctx, g))


class ZeroAtZero(torch.autograd.Function):
    """Three times its input, without a gradient at 0."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 3 * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * g * (x != 0)


_VALUES = ("FWD-VALUE", "FWD-LAYOUT", "FWD-EMPTY", "VJP-REF", "VJP-FD", "VJP-CHAIN", "VJP-COTANGENT-LAYOUT")
_ENGINE = ("VJP-PURE", "VJP-FIT", "VJP-NONE", "VJP-ACCUMULATE")
_WRONG = (
    ("VJP-REF", Declaration(_tripled(Relu), "float[...]", reference=torch.relu, name="TripledRelu")),
    (
        "VJP-REF",
        Declaration(_tripled(Cholesky), "float[n,n] spd", reference=torch.linalg.cholesky, name="TripledCholesky"),
    ),
    ("VJP-REF", Declaration(ZeroAtZero, "float[...]", reference=lambda x: 3 * x)),
    ("FWD-VALUE", Declaration(Relu, "float[...]", reference=torch.nn.functional.leaky_relu)),
    ("FWD-VALUE", Declaration(Relu, "float[...]", reference=lambda x: np.maximum(x, 0.5), name="ReluOfNumPy")),
    ("FWD-VALUE", Declaration(Rounded, "float[n]", "float[] positive", surrogate=True, reference=lambda x, _: x)),
)


def _standardised(ctx, x):
    """In half precision it computes in single precision, as its second and third output show."""
    wide = x.float() if x.element_size() < 4 else x
    mean = wide.mean(-1, keepdim=True)
    scale = ((wide - mean).square().mean(-1, keepdim=True) + 1).rsqrt()
    y = (wide - mean) * scale
    ctx.save_for_backward(y, scale)
    ctx.mark_non_differentiable(mean, scale)
    return y.to(x.dtype), mean, scale


def _standardised_in_single(ctx, x):
    """The differentiable output has the wrong dtype as well."""
    y, mean, scale = _standardised(ctx, x)
    return y.to(scale.dtype), mean, scale


def _of_standardised(ctx, g, *_):
    y, scale = ctx.saved_tensors
    g = g.to(y.dtype)
    return scale * (g - g.mean(-1, keepdim=True) - y * (g * y).mean(-1, keepdim=True))


def _dtypes(first):
    """How the outputs are shown, of which the first one has that dtype."""
    shown = (f"Description(shape=(1, 1), dtype='{dtype}', device='cpu')" for dtype in (first, "float32", "float32"))
    return f"[{', '.join(shown)}]"


STATISTICS = {"sizes": {"n": (1, 2, 5)}}


def _one_buffer(ctx, g):
    """Both arguments get views of one buffer."""
    buffer = g.clone()
    return buffer.reshape(ctx.shape), buffer.reshape(ctx.shape)


def _multiplied(ctx, x, y):
    ctx.save_for_backward(x, y)
    return x * y


def _wrong_under_masks(ctx, g):
    x, y = ctx.saved_tensors
    return g * y * (1 if ctx.needs_input_grad[1] else 2), g * x


def _wrong_in_layouts(ctx, g):
    x, y = ctx.saved_tensors
    return g * y * (1 if g.is_contiguous() else 2), g * x


_MISSED = "FWD-VALUE FWD-LAYOUT VJP-REF VJP-FD VJP-MASK VJP-COTANGENT-LAYOUT VJP-CHAIN"
_TWO = ("float[n,m]", "float[n,m]")
# The root's gradient at 0 is 0 / 0 for a cotangent of 0, as that of torch's own is.
ROOT = DECLARATIONS["RootOfAny"]

SPECIMENS = (
    right("an infinite slope", "VJP-UNUSED* VJP-LINEAR* VJP-FINITE* VJP-FD*", ROOT, decided=False),
    right(
        "statistics of half precision in single precision",
        "FWD-DTYPE* FWD-VALUE* VJP-FIT* VJP-REF* VJP-FD*",
        custom("Standardised", forward=_standardised, backward=_of_standardised),
        "float[b,n]",
        **STATISTICS,
        decided=False,
    ),
    wrong(
        "all outputs of half precision in single precision",
        "FWD-DTYPE",
        custom("Standardised", forward=_standardised_in_single, backward=_of_standardised),
        "float[b,n]",
        **STATISTICS,
        tests="FWD-DTYPE*",
        word="misfits",
        alone=True,
        profile="quick",
        exactly={"got": _dtypes("float32"), "expected": _dtypes("float16")},
    ),
    wrong(
        "a buffer for two gradients",
        "VJP-PURE/leaves",
        custom("OneBuffer", Joined, backward=_one_buffer),
        *_TWO,
        tests="VJP-PURE*",
        word="shares memory",
        alone=True,
        profile="quick",
    ),
    # Observing a Function that frees what it saved changes nothing.
    wrong(
        "an output that is freed",
        "VJP-PURE",
        released,
        tests=" ".join(f"{name}*" for name in (*_VALUES, "VJP-PURE", "VJP-REPEAT")),
        profile="quick",
        alone=True,
    ),
    # A forward that misses the reference hides no other fault.
    *(
        wrong(
            f"another reference, {head}",
            f"FWD-VALUE {head}",
            custom(name, forward=_multiplied, backward=backward),
            *("float[n]",) * 2,
            reference=lambda x, y: x * y + x,
            tests=_MISSED,
            shrink=True,
        )
        for name, backward, head in (
            ("WrongUnderMasks", _wrong_under_masks, "VJP-MASK"),
            ("WrongInLayouts", _wrong_in_layouts, "VJP-COTANGENT-LAYOUT"),
        )
    ),
    *(right(d.name, " ".join(_VALUES), d, decided=False) for d in (*REFERRED, *CHOOSING)),
    *(right(d.name, " ".join(_ENGINE), d, decided=False) for d in PASSING),
    *(wrong(f"{d.name} ({head})", head, d, tests=f"{head}*", word="wrong", says="reference=") for head, d in _WRONG),
)

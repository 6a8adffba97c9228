"""Right Functions whose results are not unique, declared with what is free in them, and wrong ones next to them."""

from __future__ import annotations

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.declaration.freedom import signs
from autograd_conformance.selftests.check.specimens import right, whole, wrong


def _odd(x):
    """Whether something that must not matter says so: the layout of a tensor, or its dtype."""
    return not x.is_contiguous() or x.dtype == torch.float32


class Eigh(Function):
    """Eigenvalues and eigenvectors; the signs of these depend on the layout and the dtype."""

    @staticmethod
    def forward(ctx, a):
        values, vectors = torch.linalg.eigh(a)
        if _odd(a):
            vectors = vectors * (1 - 2 * (torch.arange(a.shape[-1]) % 2)).to(a.dtype)
        ctx.save_for_backward(values, vectors)
        return values, vectors

    @staticmethod
    def inner(values, vectors, to_values, to_vectors):
        gaps = values.unsqueeze(-2) - values.unsqueeze(-1)
        gaps.diagonal(dim1=-2, dim2=-1).fill_(torch.inf)
        return torch.diag_embed(to_values) + (vectors.mT.conj() @ to_vectors) / gaps

    @classmethod
    def backward(cls, ctx, to_values, to_vectors):
        values, vectors = ctx.saved_tensors
        return vectors @ cls.formula(values, vectors, to_values, to_vectors) @ vectors.mT.conj()

    formula = inner


class EighOfSymmetric(Eigh):
    """Gives the gradient symmetrically to both triangles."""

    @classmethod
    def backward(cls, ctx, to_values, to_vectors):
        gradient = super().backward(ctx, to_values, to_vectors)
        return (gradient + gradient.mT.conj()) / 2


class WrongSign(Eigh):
    """The gaps between eigenvalues have the other sign."""

    @staticmethod
    def formula(values, vectors, to_values, to_vectors):
        return Eigh.inner(-values, vectors, to_values, to_vectors)


class NoGaps(Eigh):
    """The eigenvectors are taken for constants."""

    @staticmethod
    def formula(values, vectors, to_values, to_vectors):
        return Eigh.inner(values, vectors, to_values, torch.zeros_like(to_vectors))


class Halved(Eigh):
    """The part of the eigenvectors is half as large."""

    @staticmethod
    def formula(values, vectors, to_values, to_vectors):
        return Eigh.inner(values, vectors, to_values, to_vectors / 2)


class Absolute(Eigh):
    """The gaps between eigenvalues have no sign."""

    @staticmethod
    def formula(values, vectors, to_values, to_vectors):
        gaps = (values.unsqueeze(-2) - values.unsqueeze(-1)).abs()
        gaps.diagonal(dim1=-2, dim2=-1).fill_(torch.inf)
        return torch.diag_embed(to_values) + (vectors.mT.conj() @ to_vectors) / gaps


class Transposed(Eigh):
    """Uses the eigenvectors as if they were rows."""

    @classmethod
    def backward(cls, ctx, to_values, to_vectors):
        values, vectors = ctx.saved_tensors
        return vectors.mT.conj() @ cls.formula(values, vectors, to_values, to_vectors) @ vectors


def svd(a):
    """The singular value decomposition; signs depend on the layout."""
    u, s, vh = torch.linalg.svd(a, full_matrices=False)
    sign = -1 if _odd(a) else 1
    return sign * u, s, sign * vh


def svd_with_one_sign(a):
    """The sign of U alone depends on the layout, so that U S V is another matrix."""
    u, s, vh = torch.linalg.svd(a, full_matrices=False)
    return (-u if _odd(a) else u), s, vh


def svd_with_phases(a):
    u, s, vh = torch.linalg.svd(a, full_matrices=False)
    phase = torch.polar(torch.ones_like(s), torch.arange(s.numel()).reshape(s.shape).to(s) + _odd(a)).to(a.dtype)
    return u * phase.unsqueeze(-2), s, vh * phase.conj().unsqueeze(-1)


def svd_with_equal_phases(a):
    """Vh gets the phases of U, and not the conjugate ones."""
    u, s, vh = torch.linalg.svd(a, full_matrices=False)
    phase = torch.polar(torch.ones_like(s), torch.ones_like(s) * _odd(a)).to(a.dtype)
    return u * phase.unsqueeze(-2), s, vh * phase.unsqueeze(-1)


class Topk(Function):
    """The two largest numbers and their places, in any order."""

    @staticmethod
    def forward(ctx, x):
        values, places = torch.topk(x, 2, dim=-1)
        if _odd(x):
            values, places = values.flip(-1), places.flip(-1)
        ctx.save_for_backward(places)
        ctx.shape = x.shape
        ctx.mark_non_differentiable(places)
        return values, places

    @staticmethod
    def backward(ctx, g, _):
        (places,) = ctx.saved_tensors
        return g.new_zeros(ctx.shape).scatter(-1, places, g)


class TopkApart(Topk):
    """The values come in another order than their places."""

    @staticmethod
    def forward(ctx, x):
        values, places = Topk.forward(ctx, x)
        return (values.flip(-1) if _odd(x) else values), places


class TopkFlipped(Topk):
    """The gradients go to the places in the wrong order."""

    @staticmethod
    def backward(ctx, g, _):
        return Topk.backward(ctx, g.flip(-1), None)


def factor(a):
    """A factor L with a = L L^T, which one depends on the dtype and the layout."""
    if not _odd(a):
        return torch.linalg.cholesky(a)
    values, vectors = torch.linalg.eigh(a)
    return vectors * values.sqrt().unsqueeze(-2)


def wrong_factor(a):
    """Only one of the factors is right."""
    return factor(a) * (1.5 if _odd(a) else 1)


class NullSpace(Function):
    """An orthonormal basis of what a wide matrix maps to zero."""

    @staticmethod
    def forward(ctx, a):
        basis = null_space(a)
        ctx.save_for_backward(torch.linalg.pinv(a), basis)
        return basis

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        inverse, basis = ctx.saved_tensors
        return -inverse.mT @ g @ basis.mT


def null_space(a):
    """The same, with torch's derivative: it takes these singular vectors for constants."""
    return torch.linalg.svd(a, full_matrices=True)[2][..., a.shape[-2] :, :].mT


def row_space(a):
    """A basis of another space with the same shape where the layout is another."""
    vh = torch.linalg.svd(a, full_matrices=True)[2]
    return (vh[..., : a.shape[-1] - a.shape[-2], :] if _odd(a) else vh[..., a.shape[-2] :, :]).mT


class AnySolution(Function):
    """A solution of a x = b with more unknowns than equations; its part in the null space is arbitrary."""

    @staticmethod
    def forward(ctx, a, b):
        inverse = torch.linalg.pinv(a)
        free = torch.full_like(a[0], 3.0 if _odd(a) else 0.5)
        x = inverse @ b + free - inverse @ (a @ free)
        ctx.save_for_backward(inverse, x)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        inverse, x = ctx.saved_tensors
        to_b = inverse.mT @ g
        return -to_b.unsqueeze(-1) * x, to_b


class NegatedSolution(AnySolution):
    """The gradient of the matrix has the other sign."""

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        to_a, to_b = AnySolution.backward(ctx, g)
        return -to_a, to_b


def solved(outputs, inputs):
    """What a solution is right for: the product with the matrix."""
    return ((inputs[0] @ outputs[0].unsqueeze(-1)).squeeze(-1),)


class Beside(Function):
    """Two tensors, of which the first loses its second column."""

    factor = 2

    @staticmethod
    def forward(_, x, y):
        return x * x.new_tensor([1.0, 0.0]), 2 * y

    @classmethod
    def backward(cls, _, g, h):
        return g * g.new_tensor([1.0, 0.0]), h * h.new_tensor([2.0, cls.factor])


class WrongBeside(Beside):
    """The gradient is wrong in the second column, of which the first tensor has nothing."""

    factor = 7


def _declared(function, *arguments, name="", **options):
    return Declaration(function, *arguments, name=name or f"free_{function.__name__}", **options)


def spanned(outputs, _):
    """What columns span, and how: free is a rotation."""
    return outputs[0] @ outputs[0].mH


def ordered(outputs, _):
    """All outputs in the order of the first."""
    order = torch.view_as_real(outputs[0])[..., 0] if outputs[0].is_complex() else outputs[0]
    order = order.argsort(dim=-1)
    return tuple(y.gather(-1, order.unsqueeze(-2).expand_as(y) if y.dim() > order.dim() else order) for y in outputs)


def ordered_pairs(outputs, inputs):
    """Eigenvalues in order, and their vectors up to a phase."""
    return EIGH(ordered(outputs, inputs), inputs)


EIGH, _SVD = signs(None, -1), signs(-1, None, -2)
_WIDE = {"k": (1, 2)}

FREE = (
    _declared(Beside, "float[n,2]", "float[n,2]", up_to=signs(-1, -1)),
    _declared(torch.linalg.eigh, "float[n,n] symmetric", up_to=EIGH),
    _declared(torch.linalg.eigh, "number[b,n,n] spd", up_to=EIGH, name="eigh_of_numbers"),
    _declared(Eigh, "float[n,n] spd", up_to=EIGH, reference=torch.linalg.eigh),
    _declared(EighOfSymmetric, "float[b,n,n] symmetric", up_to=EIGH),
    _declared(svd, "float[n,m]", up_to=_SVD),
    _declared(svd_with_phases, "complex[n,m] full_rank", up_to=_SVD),
    _declared(torch.linalg.qr, "float[m+k,m] full_rank", up_to=signs(-1, -2)),
    _declared(Topk, "float[...,n] separated", sizes={"n": (2, 3, 5)}, up_to=ordered),
    _declared(factor, "float[n,n] spd", up_to=spanned),
    _declared(NullSpace, "float[m,m+k] full_rank", up_to=spanned, sizes=_WIDE, once=True),
    _declared(AnySolution, "float[m,m+k] full_rank", "float[m]", up_to=solved, once=True),
    _declared(
        torch.linalg.eig, "complex[n,n] full_rank",
        up_to=ordered_pairs,
    ),
)  # fmt: skip

# Each with the properties of which one must find what is wrong.
WRONG = (
    (_declared(WrongBeside, "float[n,2]", "float[n,2]", up_to=signs(-1, -1)), "VJP-FD"),
    *(
        (_declared(function, "float[n,n] spd", up_to=EIGH), "VJP-FD")
        for function in (WrongSign, NoGaps, Halved, Absolute, Transposed)
    ),
    (_declared(svd_with_one_sign, "float[n,m] full_rank", up_to=_SVD), "FWD-LAYOUT"),
    (_declared(svd_with_equal_phases, "complex[n,m] full_rank", up_to=_SVD), "FWD-LAYOUT"),
    (_declared(TopkApart, "float[...,n] separated", sizes={"n": (3, 5)}, up_to=ordered), "FWD-LAYOUT"),
    (_declared(TopkFlipped, "float[...,n] separated", sizes={"n": (3, 5)}, up_to=ordered), "VJP-FD"),
    (_declared(wrong_factor, "float[n,n] spd", up_to=spanned), "FWD-LAYOUT"),
    (_declared(null_space, "float[m,m+k] full_rank", up_to=spanned, sizes=_WIDE), "VJP-FD"),
    (_declared(row_space, "float[m,m+k] full_rank", up_to=spanned, sizes=_WIDE), "FWD-LAYOUT"),
    (_declared(NegatedSolution, "float[m,m+k] full_rank", "float[m]", up_to=solved, once=True), "VJP-FD"),
)


def _of_low_rank(a):
    """Zero is an eigenvalue twice or three times: its eigenvectors are free up to a rotation."""
    return torch.linalg.eigh(a @ a.mT)


def _values_by_layout(a):
    """The eigenvalues are wrong if the matrix is not contiguous; of the eigenvectors nothing is known."""
    values, vectors = _of_low_rank(a)
    return values * (1 if a.is_contiguous() else 2), vectors


def _degenerate(function, up_to=EIGH):
    return _declared(function, "float[m+k,m] full_rank", up_to=up_to, sizes={"m": (1, 2), "k": (2, 3)})


degenerate = _degenerate(_of_low_rank)
always_degenerate = _degenerate(lambda a: _of_low_rank(a)[1], up_to=signs(-1))

_DECISIVE = "VJP-FD VJP-REF FWD-LAYOUT"
SPECIMENS = (
    # Nothing is claimed at a degenerate spectrum.
    right("a degenerate spectrum", f"{_DECISIVE} DBL-CORRECT", degenerate, decided=False),
    whole(degenerate),
    wrong(
        "a degenerate output beside a wrong one", "FWD-LAYOUT", _degenerate(_values_by_layout), tests="FWD-LAYOUT*",
        says="output 0", alone=True, profile="quick",
    ),
    wrong("a sign without its freedom", "FWD-LAYOUT", Eigh, "float[n,n] spd"),
    wrong("another reference up to the same", "FWD-VALUE", Eigh, "float[n,n] spd", up_to=EIGH,
          reference=lambda a: torch.linalg.eigh(2 * a)),
    *(right(d.name, _DECISIVE, d) for d in FREE),
    *map(whole, FREE),
    *(wrong(d.name, head, d, tests=f"{head}*", word="wrong") for d, head in WRONG),
)  # fmt: skip

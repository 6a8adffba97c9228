"""Torch's own differentiable functions, declared as users would: nothing may be found wrong with them.

What is wrong with some is left out on purpose: ``det`` gets the transposed gradient of a matrix that is lazily negated,
or that saved-tensor hooks lay out otherwise than it was, and
``normalize`` and ``cosine_similarity`` of zeros are NaN in float16, where their eps is 0.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody has it

from autograd_conformance.harness.check import Declaration
from autograd_conformance.selftests.check.specimens import whole

_M = "float[...,n,n]"


def _declared(name, function, *arguments, **options):
    return Declaration(function, *arguments, name=name, **options)


def _solve_triangular(a, b):
    return torch.linalg.solve_triangular(a, b, upper=False)


def _index_put(x, i, v):
    return x.clone().index_put((i,), v, accumulate=True)


_NAMED = {
    "exp": (torch.exp, "number[...]"),
    "sin": (torch.sin, "number[...]"),
    "tanh": (torch.tanh, "number[...]"),
    "sigmoid": (torch.sigmoid, "float[...]"),
    "softplus": (F.softplus, "float[...]"),
    "relu": (F.relu, "float[...]"),
    "leaky_relu": (F.leaky_relu, "float[...]", "float(0..1)"),
    "elu": (F.elu, "float[...]"),
    "gelu": (F.gelu, "float[...]"),
    "silu": (F.silu, "float[...]"),
    "hardtanh": (F.hardtanh, "float[...]"),
    "abs": (torch.abs, "float[...]"),
    "sqrt": (torch.sqrt, "float[...] positive"),
    "log": (torch.log, "float[...] positive"),
    "log1p": (torch.log1p, "float[...] positive"),
    "expm1": (torch.expm1, "float[...]"),
    "erf": (torch.erf, "float[...]"),
    "lgamma": (torch.lgamma, "float[...] positive"),
    "digamma": (torch.digamma, "float[...] positive"),
    "atan2": (torch.atan2, "float[~] nonzero", "float[~] nonzero"),
    "reciprocal": (torch.reciprocal, "number[...] nonzero"),
    "mul": (torch.mul, "number[~]", "number[~]"),
    "div": (torch.div, "number[~] nonzero", "number[~] nonzero"),
    "add": (torch.add, "number[~]", "number[~]"),
    "pow": (torch.pow, "float[...] positive", "int(0..3)"),
    "maximum": (torch.maximum, "float[~]", "float[~]"),
    "where": (torch.where, "bool[n,m]", "float[n,m]", "float[n,m]"),
    "clamp": (lambda x: torch.clamp(x, -0.5, 0.75), "float[...]"),
    "softmax": (F.softmax, "float[...,n]", "-1"),
    "log_softmax": (F.log_softmax, "float[...,n]", "-1"),
    "logsumexp": (torch.logsumexp, "float[...,n]", "-1"),
    "sum": (torch.sum, "number[...,n]", "-1"),
    "mean": (torch.mean, "number[...,n]", "-1"),
    "var": (lambda x: torch.var(x, -1), "float[...,n]"),
    "prod": (torch.prod, "float[...,n]", "-1"),
    "cumsum": (torch.cumsum, "number[...,n]", "-1"),
    "cumprod": (torch.cumprod, "float[...,n]", "-1"),
    "norm": (torch.linalg.vector_norm, "float[...]"),
    "frobenius": (torch.linalg.matrix_norm, "float[...,n,m]"),
    "normalize": (F.normalize, "float[b,n] nonzero"),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (x.shape[-1],), w, b), "float[...,n]", "float[n]", "float[n]"),
    "amax": (torch.amax, "float[n,m]", "0 | 1"),
    "sort": (torch.sort, "float[...,n] separated"),
    "topk": (torch.topk, "float[n] separated", "1"),
    "cholesky": (torch.linalg.cholesky, "float[n,n] spd"),
    "solve": (torch.linalg.solve, "float[n,n] spd", "float[n,m]"),
    "inv": (torch.linalg.inv, "float[n,n] spd"),
    "det": (lambda a: torch.linalg.det(a.resolve_neg().contiguous()), "float[n,n] lower"),
    "slogdet": (lambda a: torch.linalg.slogdet(a)[1], "float[n,n] spd"),
    "eigvalsh": (torch.linalg.eigvalsh, "float[n,n] spd"),
    "eigh": (lambda a: torch.linalg.eigh(a)[0], "float[n,n] spd"),
    "solve_triangular": (_solve_triangular, "float[n,n] lower", "float[n,m]"),
    "matmul": (torch.matmul, "number[n,k]", "number[k,m]"),
    "bmm": (torch.bmm, "float[b,n,k]", "float[b,k,m]"),
    "linear": (F.linear, "float[n,k]", "float[m,k]", "float[m]?"),
    "bilinear": (F.bilinear, "float[n,a]", "float[n,b]", "float[c,a,b]"),
    "einsum": (lambda a, b: torch.einsum("ij,jk->ki", a, b), "float[n,k]", "float[k,m]"),
    "conv1d": (F.conv1d, "float[n,c,t+k-1]", "float[o,c,k]", "float[o]?"),
    "conv2d": (F.conv2d, "float[n,c,h+1,w+1]", "float[o,c,2,2]"),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), "float[n,c,4,4]"),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), "float[n,c,h,w]"),
    "embedding": (lambda i, w: F.embedding(i, w), "int[b](0..n-1)", "float[n,d]"),
    "gather": (lambda x, i: torch.gather(x, 0, i), "float[n,m]", "int[k,m](0..n-1)"),
    "index_put": (_index_put, "float[n]", "int[k](0..n-1)", "float[k]"),
    "index_select": (lambda x, i: torch.index_select(x, 0, i), "float[n,m]", "int[k](0..n-1)"),
    "fft": (torch.fft.fft, "complex[...,n]"),
    "rfft": (torch.fft.rfft, "float[...,n]"),
    "ifft": (torch.fft.ifft, "complex[...,n]"),
    "mse_loss": (F.mse_loss, "float[...]", "float[...]"),
    "cross_entropy": (F.cross_entropy, "float[b,c]", "int[b](0..c-1)"),
    "bce": (F.binary_cross_entropy, "float[...] unit", "float[...] unit constant"),
    "kl_div": (F.kl_div, "float[...]", "float[...] unit"),
    "cosine_similarity": (F.cosine_similarity, "float[b,n] nonzero", "float[b,n] nonzero"),
    "cdist": (torch.cdist, "float[n,k]", "float[m,k]"),
    "outer": (torch.outer, "number[n]", "number[m]"),
    "roll": (torch.roll, "number[...,n]", "int(0..3)"),
    "pad": (lambda x: F.pad(x, (1, 2)), "float[...,n]"),
    "transpose": (lambda x: x.mT, "number[...,n,m]"),
    "logit": (torch.logit, "float[...] unit"),
    "asin": (torch.asin, "float[n] ball"),
    "unbind": (lambda x: torch.unbind(x, 0), "float[2,n]"),
    "diff": (torch.diff, "float[n] sorted"),
    "kthvalue": (lambda x: torch.kthvalue(x, 1), "float[n] separated"),
    "median": (lambda x: torch.median(x, -1), "float[...,n] separated"),
    "relu_inplace": (lambda x: F.relu(x.clone(), inplace=True), "float[...]"),
}  # fmt: skip

# One of each kind: elementwise, with kinks, with whole numbers, complex, reducing, choosing, with indices, in place, of
# matrices, with an optional argument.
EACH_KIND = ("tanh", "clamp", "pow", "fft", "logsumexp", "topk", "index_put", "relu_inplace", "cholesky", "linear")

# Sizes for which the function means something.
_OPTIONS = {"amax": {"sizes": {"n": (1, 2, 3), "m": (1, 2, 3)}}}

BUILTINS = {name: _declared(name, *given, **_OPTIONS.get(name, {})) for name, given in _NAMED.items()}
SPECIMENS = tuple(whole(declaration, passing=21) for declaration in BUILTINS.values())

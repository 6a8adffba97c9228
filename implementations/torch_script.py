"""Python text with which a failure on torch is shown without this suite."""

from __future__ import annotations

from autograd_conformance.implementations.protocol import ScriptText
from autograd_conformance.implementations.torch_demonstrations import DEMONSTRATIONS

IMPORTS = """\
import sys
from math import inf, nan
from types import SimpleNamespace

import numpy as np
import torch
"""

# The names of the array namespace that torch spells otherwise; see `TorchImplementation.xp` in torch.py.
NAMES = {
    "copy": "torch.clone",
    "expand_dims": "lambda x, axis: torch.unsqueeze(x, axis)",
    "flip": "lambda x, axis: torch.flip(x, (axis,) if isinstance(axis, int) else axis)",
    "from_numpy": 'lambda a, like: torch.from_numpy(np.array(a, order="C")).to(like.device)',
    "matrix_transpose": "lambda x: x.mT",
    "max": "torch.amax",
    "permute_dims": "torch.permute",
    "sparse_matmul": "lambda i, v, shape, b: torch.sparse_coo_tensor(i, v, shape, check_invariants=True) @ b",
    "take": "lambda x, indices, axis: torch.index_select(x, axis, indices)",
    "take_along_axis": "lambda x, indices, axis: torch.take_along_dim(x, indices, axis)",
    "to_numpy": "lambda x: x.detach().cpu().numpy()",
}

TOOLS = '''\
tensors = [arguments[slot] for slot in slots]
wrong = []


def call(*tensors):
    """The outputs for other tensors; arguments changed in place are copied first."""
    args = list(arguments)
    for slot, tensor in zip(slots, tensors):
        args[slot] = tensor.clone() if slot in inplace else tensor
    outputs = Function.apply(*args)
    return outputs if isinstance(outputs, tuple) else (outputs,)


def vjp(f=call, tensors=tensors, mask=mask, cotangents=cotangents, pick=None, create_graph=False, times=1):
    """The outputs, and the gradients as the last of so many backward passes gives them."""
    leaves = [t if t.requires_grad else t.detach().requires_grad_(m) for t, m in zip(tensors, mask)]
    outputs = f(*leaves)
    ends = [(y, g) for y, g in zip(outputs, cotangents) if g is not None and y.requires_grad]
    pick = mask if pick is None else pick
    inputs = [leaf for leaf, wanted in zip(leaves, pick) if wanted]
    if not ends or not inputs:
        return outputs, [None] * len(leaves)
    ys, gs = zip(*ends)
    keep = create_graph or times > 1
    for _ in range(times):
        found = iter(torch.autograd.grad(ys, inputs, gs, keep, create_graph, allow_unused=True))
    return outputs, [next(found) if wanted else None for wanted in pick]


def numbers(x):
    """A NumPy array in double precision."""
    if isinstance(x, torch.Tensor):
        x = x.detach().cpu().resolve_conj().resolve_neg()
        x = (x.to(torch.complex128) if x.is_complex() else x.double() if x.is_floating_point() else x).numpy()
    return np.asarray(x)


def same(what, got, expected):
    """Print both, and whether they are equal."""
    print(f"{what}: got {got}, expected {expected}: {'right' if got == expected else 'WRONG'}")
    if got != expected:
        wrong.append(what)


def check(what, got, expected, bound=0.0):
    """Print both where they differ most, and whether that is within the bound."""
    if got is None or expected is None:
        return same(what, "None" if got is None else "a tensor", "None" if expected is None else "a tensor")
    if isinstance(got, torch.Tensor) and got.is_meta:
        return same(f"shape of {what}", tuple(got.shape), tuple(expected.shape))
    got, expected = numbers(got), numbers(expected)
    if got.shape != expected.shape or not got.size:
        return same(f"shape of {what}", got.shape, expected.shape)
    bound = np.broadcast_to(bound, got.shape)
    with np.errstate(all="ignore"):
        off = np.abs(got * 1.0 - expected * 1.0)
        fine = (got == expected) | (np.isnan(got) & np.isnan(expected)) | (off <= bound) | ~np.isfinite(bound)
        excess = np.where(fine, -1.0, np.nan_to_num(off / np.maximum(bound, 1e-300)))
    place = np.unravel_index(np.argmax(excess), off.shape)
    print(f"{what} at {tuple(map(int, place))}: got {got[place]}, expected {expected[place]}, "
          f"bound {bound[place]:.3g}: {'right' if fine.all() else 'WRONG'}")
    if not fine.all():
        wrong.append(what)


def check_outputs(outputs):
    """Against the reference."""
    for n, (got, (value, bound)) in enumerate(zip(outputs, expected_outputs)):
        check(f"output {n}", got, value, bound)


def check_gradients(gradients, expected=None, title=""):
    """Against the reference, or against other gradients, as exactly as that allows."""
    for n, (slot, reference) in enumerate(zip(slots, expected_gradients)):
        value, bound = reference or (None, 0.0)
        what = f"gradient of argument {slot}{title}"
        check(what, gradients[n], value if expected is None else expected[n], bound)
'''

DEVICES = {
    "lazy": """\
import torch._lazy.ts_backend

torch._lazy.ts_backend.init()
"""
}

SCRIPT = ScriptText(
    imports=IMPORTS,
    devices=DEVICES,
    names=NAMES,
    name="torch.{}",
    ag="torch.autograd.function",
    tensor="torch.tensor({values}, dtype=torch.{dtype}{device})",
    tools=TOOLS,
    demonstrations=DEMONSTRATIONS,
)

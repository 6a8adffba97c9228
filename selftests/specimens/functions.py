"""Functions made of a formula and its gradient, for specimens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

HALF = {"float16": torch.float16, "bfloat16": torch.bfloat16}


def function(forward: Callable[..., Any], gradients: Callable[..., Any]) -> type[torch.autograd.Function]:
    """A Function whose backward is ``gradients(g, y, *inputs)``."""

    def run(ctx, *inputs):
        y = forward(*inputs)
        ctx.save_for_backward(y, *inputs)
        return y

    methods = {"forward": run, "backward": lambda ctx, g: gradients(g, *ctx.saved_tensors)}
    return type("Made", (torch.autograd.Function,), {name: staticmethod(f) for name, f in methods.items()})


def opaque(compute: Callable[[np.ndarray], np.ndarray]) -> Callable[..., Any]:
    """A forward of which no operation is seen: it computes with NumPy."""

    def forward(x):
        wide = torch.float32 if x.dtype is torch.bfloat16 else x.dtype
        with np.errstate(all="ignore"):
            return torch.as_tensor(compute(x.detach().to(wide).numpy())).to(x.dtype)

    return forward


def wide(x: torch.Tensor) -> torch.Tensor:
    """The tensor in single precision if it has half precision."""
    return x.float() if x.dtype in HALF.values() else x


def in_single(compute: Callable[..., Any]) -> Callable[..., Any]:
    """The same in single precision where inputs have half precision, as kernels compute."""

    return lambda *inputs: compute(*map(wide, inputs)).to(inputs[-1].dtype)


def column(y: torch.Tensor) -> torch.Tensor:
    """The tensor with a last dimension of length one."""
    return y.unsqueeze(-1)

"""Faults in what a Function takes from the process and leaves there: memory, random numbers, settings."""

# The hooks of a body take parameters that not each of them uses.
# ruff: noqa: ARG001

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from autograd_conformance.selftests.planted.definitions import SQUARE, planted, square_with


def _partly_written(xp: Any, ctx: Any, x: Any, y: Any) -> Any:
    found = y.new_empty(y.shape)
    found.view(-1)[1:] = y.reshape(-1)[1:]
    return found


def _with_scratch(xp: Any, ctx: Any, g: Any, x: Any, right: Any) -> Any:
    return x.new_empty(x.shape).mul_(0).add_(right)


def _not_written(xp: Any, ctx: Any, g: Any, x: Any, right: Any) -> Any:
    return _partly_written(xp, ctx, x, right)


def _noisy(xp: Any, ctx: Any, x: Any, y: Any) -> Any:
    return y + torch.rand(x.shape).to(x.dtype) / 8


def _noisy_gradient(xp: Any, ctx: Any, g: Any, x: Any, right: Any) -> Any:
    return right * (1 + torch.rand(()).item())


def _leaving(change: Callable[[], Any]) -> dict[str, Callable[..., Any]]:
    def output(xp: Any, ctx: Any, x: Any, y: Any) -> Any:
        change()
        return y

    def gradient(xp: Any, ctx: Any, g: Any, x: Any, right: Any) -> Any:
        change()
        return right

    return {"output": output, "gradient": gradient}


def _switch(name: str, what: str, change: Callable[[], Any]) -> list[Any]:
    """The setting is changed by forward, and by backward."""
    return [
        planted(
            "ENV-SETTINGS",
            SQUARE,
            f"{name}By{stage.capitalize()}",
            square_with(**{hook: _leaving(change)[hook]}),
            f"{stage} leaves the {what} changed",
            f"{what} by {stage}",
        )
        for stage, hook in (("forward", "output"), ("backward", "gradient"))
    ]


def _seeding(xp: Any, ctx: Any, x: Any, y: Any) -> Any:
    torch.manual_seed(0)
    return y


def _remember(xp: Any, ctx: Any, x: Any) -> None:
    ctx.save_for_backward(x)
    ctx.state = torch.get_rng_state()
    torch.rand(1)


def _rewinding(xp: Any, ctx: Any, g: Any, x: Any, right: Any) -> Any:
    torch.set_rng_state(ctx.state)
    torch.rand(1)
    return right


STATE = (
    planted(
        "MEM-WRITTEN",
        SQUARE,
        "FirstEntryNotWritten",
        square_with(_partly_written),
        "the first entry of the output is never written",
        "output 0 (output)",
        "new memory was filled with NaN",
    ),
    planted(
        "MEM-WRITTEN",
        SQUARE,
        "ScratchNotWritten",
        square_with(gradient=_with_scratch),
        "backward multiplies new memory by zero instead of writing zeros",
        "gradient of argument 0 (x)",
    ),
    planted(
        "MEM-WRITTEN",
        SQUARE,
        "GradientNotWritten",
        square_with(gradient=_not_written),
        "the first entry of the gradient is never written",
        "gradient of argument 0 (x)",
    ),
    planted(
        "ENV-RANDOM",
        SQUARE,
        "NoiseAdded",
        square_with(_noisy),
        "forward adds random numbers",
        "output 0 (output)",
        "seeded with 1, and then with 2",
    ),
    planted(
        "ENV-RANDOM",
        SQUARE,
        "GradientScaledAtRandom",
        square_with(gradient=_noisy_gradient),
        "backward multiplies by a random number",
        "gradient of argument 0 (x)",
    ),
    *_switch("DefaultDtype", "default dtype", lambda: torch.set_default_dtype(torch.float64)),
    *_switch("Threads", "number of threads", lambda: torch.set_num_threads(3)),
    *_switch("Anomaly", "anomaly mode", lambda: torch.set_anomaly_enabled(True, False)),
    planted(
        "ENV-SETTINGS",
        SQUARE,
        "SeededByForward",
        square_with(_seeding),
        "forward seeds the random numbers of the process",
        "torch's random numbers by forward",
        variant="seeds",
    ),
    planted(
        "ENV-SETTINGS",
        SQUARE,
        "RewoundByBackward",
        square_with(save=_remember, gradient=_rewinding),
        "backward draws forward's numbers again, and leaves the generator where forward did",
        "torch's random numbers by backward",
        variant="seeds",
    ),
)

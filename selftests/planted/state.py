"""Faults in what a Function takes from the process and leaves there: memory, random numbers, settings."""

from __future__ import annotations

import torch

from autograd_conformance.selftests.planted.definitions import in_gradient, in_output, in_square, square_with


def _partly_written(x, y):
    found = y.new_empty(y.shape)
    found.view(-1)[1:] = y.reshape(-1)[1:]
    return found


def _switch(name, what, change):
    """The setting is changed by forward, and by backward."""
    title = "ENV-SETTINGS {}By{}: {} leaves the {} changed".format
    return (
        in_output(title(name, "Forward", "forward", what), lambda _, y: (change(), y)[1], f"{what} by forward"),
        in_gradient(
            title(name, "Backward", "backward", what), lambda g, x, right: (change(), right)[1], f"{what} by backward"
        ),
    )


def _remember(xp, ctx, x):
    ctx.save_for_backward(x)
    ctx.state = torch.get_rng_state()
    torch.rand(1)


def _rewinding(xp, ctx, g, x, right):
    torch.set_rng_state(ctx.state)
    torch.rand(1)
    return right


STATE = (
    in_output(
        "MEM-WRITTEN FirstEntryNotWritten: the first entry of the output is never written",
        _partly_written,
        "output 0 (output)",
        "new memory was filled with NaN",
    ),
    in_gradient(
        "MEM-WRITTEN ScratchNotWritten: backward multiplies new memory by zero instead of writing zeros",
        lambda g, x, right: x.new_empty(x.shape).mul_(0).add_(right),
    ),
    in_gradient(
        "MEM-WRITTEN GradientNotWritten: the first entry of the gradient is never written",
        lambda g, x, right: _partly_written(x, right),
    ),
    in_output(
        "ENV-RANDOM NoiseAdded: forward adds random numbers",
        lambda x, y: y + torch.rand(x.shape).to(x.dtype) / 8,
        "output 0 (output)",
        "seeded with 1, and then with 2",
    ),
    in_gradient(
        "ENV-RANDOM GradientScaledAtRandom: backward multiplies by a random number",
        lambda g, x, right: right * (1 + torch.rand(()).item()),
    ),
    *_switch("DefaultDtype", "default dtype", lambda: torch.set_default_dtype(torch.float64)),
    *_switch("Threads", "number of threads", lambda: torch.set_num_threads(3)),
    *_switch("Anomaly", "anomaly mode", lambda: torch.set_anomaly_enabled(True, False)),
    in_output(
        "ENV-SETTINGS/seeds SeededByForward: forward seeds the random numbers of the process",
        lambda x, y: (torch.manual_seed(0), y)[1],
        "torch's random numbers by forward",
    ),
    in_square(
        "ENV-SETTINGS/seeds RewoundByBackward: backward draws forward's numbers again, "
        "and leaves the generator where forward did",
        square_with(save=_remember, gradient=_rewinding),
        "torch's random numbers by backward",
    ),
)

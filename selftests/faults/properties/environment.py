"""Faults that show under a compiler, autocast, hooks or on another device, or change what the process has."""

from __future__ import annotations

from dataclasses import replace

import torch

from autograd_conformance.reference.definitions import Array
from autograd_conformance.selftests.faults.properties.definitions import (
    SQUARE,
    custom,
    in_gradient,
    in_output,
    in_square,
    misbehaving,
    planted,
    square_with,
    unary,
)
from autograd_conformance.selftests.faults.properties.engines import engine


def _compiled_by(factor):
    """Square whose gradient is multiplied where it is compiled."""
    return unary(
        lambda x: x * x,
        lambda g, x: 2 * g * torch.conj(x) * factor if torch.compiler.is_compiling() else 2 * g * torch.conj(x),
    )


COMPILED = replace(SQUARE, name="Compiled", body=_compiled_by(1.0), dtypes=("float64",))


def _marked(xp, ctx, x):
    kept = x * 1
    kept.factor = 2
    ctx.save_for_backward(kept)


def _matmul_with(gradients):
    def forward(xp, ctx, x, w):
        ctx.save_for_backward(x, w)
        ctx.lowered = torch.is_autocast_enabled("cpu")
        return x @ w

    def backward(xp, ctx, g):
        x, w = ctx.saved_tensors
        return gradients(ctx, g.to(x.dtype), x, w)

    return custom(forward=forward, backward=backward)


MATMUL = replace(
    SQUARE,
    name="Matmul",
    body=_matmul_with(lambda ctx, g, x, w: (g @ w.mT, x.mT @ g)),
    arguments=(Array(name="x", dims="n i"), Array(name="w", dims="i o")),
    forward=lambda x, w: (x @ w,),
    vjp=lambda cotangents, x, w: (cotangents[0] @ w.T, x.T @ cotangents[0]),
    dtypes=("float64", "float32"),
)


def _checkpointed(twice):
    def body(xp, ag):
        calls = []

        def save(xp, ctx, x):
            calls.append(1)
            ctx.save_for_backward(x)
            ctx.factor = twice(len(calls))

        return square_with(save=save, gradient=lambda xp, ctx, g, x, right: right * ctx.factor)(xp, ag)

    return body


def _replaying(compile, f):
    """A compiler whose code gives again what it gave first."""
    first = []

    def replay(*args):
        now = f(*args)
        first.append(now.detach())
        return now + (first[0] - first[-1])

    return replay


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


ENVIRONMENT = (
    misbehaving(
        "ENV-COMPILE Replaying: values are baked into what is compiled", engine("compile", _replaying), "output 0"
    ),
    planted(
        "ENV-COMPILE DoubledWhenCompiled: takes another path while it is traced",
        COMPILED,
        _compiled_by(2.0),
        "gradient of argument 0 (x)",
    ),
    planted(
        "ENV-AUTOCAST ScaledUnderAutocast: a gradient is scaled where the forward ran under autocast",
        MATMUL,
        _matmul_with(lambda ctx, g, x, w: (g @ w.mT, x.mT @ g * (1.25 if ctx.lowered else 1))),
        "gradient of argument 1 (w)",
    ),
    in_output(
        "ENV-AUTOCAST EighthLostUnderAutocast: computes in eight bits under autocast",
        lambda x, y: y.to(torch.float8_e4m3fn).to(x.dtype) if torch.is_autocast_enabled("cpu") else y,
    ),
    in_square(
        "ENV-SAVED-HOOKS AttributeOfSavedTensor: keeps a factor as an attribute of a saved tensor, which packing loses",
        square_with(
            save=_marked,
            gradient=lambda xp, ctx, g, x, right: g * getattr(ctx.saved_tensors[0], "factor", 1) * xp.conj(x),
        ),
        "under saved-tensor hooks",
    ),
    in_square(
        "ENV-SAVED-HOOKS/checkpoint EveryOtherCallDoubled: every other call is doubled, and a recomputation is a call",
        _checkpointed(lambda count: 2 - count % 2),
        "under checkpointing",
    ),
    in_output(
        "ENV-DEVICE OutputOnTheHost: the output comes back on the host", lambda x, y: y.cpu(), "device", device="lazy"
    ),
    in_gradient(
        "ENV-DEVICE GradientOnTheHost: the gradient comes back on the host",
        lambda g, x, right: right.cpu(),
        "device",
        device="lazy",
    ),
    in_gradient(
        "ENV-DEVICE OtherDeviceNegated: another device has another sign",
        lambda g, x, right: right if x.device.type == "cpu" else -right,
        device="lazy",
    ),
    in_square(
        "ENV-DEVICE ThroughNumpy: computes in NumPy, which a tensor without values does not have",
        square_with(lambda xp, ctx, x, y: xp.from_numpy(xp.to_numpy(xp.copy(x)) ** 2, x)),
        "the call raised",
        device="meta",
    ),
    in_output(
        "ENV-DEVICE ShapeOfAnotherDevice: the shape is another where there are no values",
        lambda x, y: y.new_empty((1, *y.shape)) if x.device.type == "meta" else y,
        "shape",
        device="meta",
    ),
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

"""PyLayers made from functions, the tensors that they compute with, and processes of their own."""

import faulthandler
import os
import pickle
import signal

import numpy as np
import paddle
from hypothesis import strategies as st

from autograd_conformance.suites.dialects.shared.linear import Spelling

INTEGERS = st.integers(-4, 4).filter(bool).map(float)
WEIGHTS = st.lists(INTEGERS, min_size=1, max_size=4)
SHAPES = st.sampled_from(((), (1,), (3,), (2, 3), (0,)))
DTYPES = ("float64", "float32")


def layer(forward, backward):
    """A PyLayer with these methods."""
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type(paddle.autograd.PyLayer)("Layer", (paddle.autograd.PyLayer,), methods)


def custom(forward, backward, materialize=None):
    """A PyLayer that saves its inputs, by its ``apply``."""

    def saving(ctx, *xs):
        if materialize is not None:
            ctx.set_materialize_grads(materialize)
        ctx.save_for_backward(*xs)
        return forward(*xs)

    return layer(saving, lambda ctx, *gs: backward(ctx.saved_tensor(), gs)).apply


PADDLE = {"PyLayer": Spelling(custom)}


def scaling(weights):
    """A PyLayer that returns its only input times each weight."""
    return layer(
        lambda _, x: tuple(w * x for w in weights),
        lambda _, *cotangents: sum(w * g for w, g in zip(weights, cotangents, strict=True)),
    )


def summing(weights, *, returned=tuple):
    """A PyLayer that returns the sum of its inputs, each times its weight."""
    return layer(
        lambda _, *xs: sum(w * x for w, x in zip(weights, xs, strict=True)),
        lambda _, g: returned(w * g for w in weights),
    )


def leaf(values, dtype="float64"):
    """A tensor that requires a gradient."""
    return paddle.to_tensor(np.array(values), dtype=dtype, stop_gradient=False)


def constant(values, dtype="float64"):
    """A tensor without history."""
    return paddle.to_tensor(np.array(values), dtype=dtype)


def values(data, subject, shape, label):
    """An array of small integers."""
    count = int(np.prod(shape))
    drawn = subject.draw(data, st.lists(INTEGERS, min_size=count, max_size=count), label)
    return np.array(drawn).reshape(shape)


def in_a_child(action):
    """Run the action in a child process: its result, the name of its exception, or of the signal that ended it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        # The framework prints a long report for a signal.
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        try:
            answer = action()
        except Exception as raised:  # noqa: BLE001 - whatever the framework raises
            answer = type(raised).__name__
        os.write(writing, pickle.dumps(answer))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    return pickle.loads(answer) if answer else signal.Signals(os.WTERMSIG(status)).name

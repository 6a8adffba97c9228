"""Functions with a custom gradient, where they run, and tapes that differentiate them."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from autograd_conformance.suites.dialects.shared.linear import SHAPES, Case, Spelling

# Where a function runs: eagerly, compiled under an eager tape, or compiled together with its tape.
EAGER, COMPILED, WITHIN = "eager", "under tf.function", "with its tape under tf.function"
MODES = (EAGER, COMPILED, WITHIN)
UNCONNECTED = tuple(tf.UnconnectedGradients)


def custom(forward: Callable[..., Any], backward: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """The function with the custom gradient ``backward(inputs, cotangents)``."""

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def function(*xs: Any) -> Any:
        return forward(*xs), lambda *gs: backward(xs, gs)

    made: Callable[..., Any] = function
    return made


def compiled(f: Callable[..., Any]) -> Any:
    """The function under tf.function, which only traces it."""
    return tf.function(f, autograph=False)


def taped(f: Callable[..., Any], inputs: Any, **options: Any) -> tuple[Any, Any]:
    """A tape that watches the inputs, and the function's outputs under it."""
    with tf.GradientTape(**options) as tape:
        tape.watch(inputs)
        outputs = f(*inputs)
    return tape, outputs


def outputs_and_gradients(
    f: Callable[..., Any], inputs: Any, cotangents: Any = None, mode: str = EAGER, **options: Any
) -> tuple[Any, Any]:
    """The outputs and the gradients of a function of these inputs, in a mode."""
    called = compiled(f) if mode == COMPILED else f

    def run() -> tuple[Any, Any]:
        tape, outputs = taped(called, inputs)
        return outputs, tape.gradient(outputs, inputs, cotangents, **options)

    result: tuple[Any, Any] = (compiled(run) if mode == WITHIN else run)()
    return result


def _pulled(subject: Any, f: Any, xs: Any, cotangents: Any, mode: str = EAGER) -> tuple[Any, Any]:
    """The outputs that have a cotangent, and the gradients."""

    def used(*xs: Any) -> Any:
        return [y for y, g in zip(f(*xs), cotangents, strict=True) if g is not None]

    return outputs_and_gradients(used, xs, [g for g in cotangents if g is not None], mode)


SPELLINGS = {mode: Spelling(custom, partial(_pulled, mode=mode), wordless=mode != EAGER) for mode in MODES}
EAGERLY = {EAGER: SPELLINGS[EAGER]}
OUTSIDE = {mode: SPELLINGS[mode] for mode in (EAGER, COMPILED)}


class TensorFlowCase(Case):
    """A drawn linear function with a custom gradient, in one of the modes."""

    def __init__(self, subject: Any, data: Any, modes: Sequence[str] = (EAGER,), **restrictions: Any) -> None:
        self.mode = subject.draw(data, modes, "mode") if len(modes) > 1 else modes[0]
        usual = {"shapes": (*SHAPES, (0,))}
        super().__init__(subject, data, {self.mode: SPELLINGS[self.mode]}, **{**usual, **restrictions})

    def differentiated(self, f: Any, cotangents: Any = None, **options: Any) -> tuple[Any, Any]:
        """The outputs and the gradients at the points; without cotangents, of the sum of the outputs."""
        return outputs_and_gradients(f, self.points, cotangents, self.mode, **options)

    def assert_gradients_of_sum(self, got: Any, times: int = 1) -> None:
        """Assert that the gradients are so many times those of the sum of the outputs."""
        self.assert_gradients(got, [times * g for g in self.linear.ones])


def permuted(subject: Any, data: Any) -> tuple[Any, Any]:
    """Distinct small integers as a tensor and an array."""
    values = np.array(subject.draw(data, st.permutations((-2.0, 1.0, 3.0)), "x"))
    return subject.tensor(values), values

"""Faults of TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import tensorflow as tf
from tensorflow.python.ops.custom_gradient import Bind

from autograd_conformance.selftests.faults.dialects.gradients import filled
from autograd_conformance.selftests.faults.planting import Plant, fault, replaced, wrapped

flatten = tf.nest.flatten


def decorating(change: Callable[[Any], Any]) -> Plant:
    """tf.custom_gradient decorates what ``change`` makes of a function."""
    return wrapped(tf, "custom_gradient", lambda original, f: original(change(f)))


def calling(change: Callable[..., Any]) -> Plant:
    """A call of a function with a custom gradient is ``change(call, args, kwargs)``."""

    def decorate(original: Any, f: Any) -> Any:
        call = original(f)
        return lambda *args, **kwargs: change(call, args, kwargs)

    return wrapped(tf, "custom_gradient", decorate)


def ruled(rule: Callable[..., Any]) -> Plant:
    """What a grad_fn gives is ``rule(original, inputs, cotangents)``."""

    def change(f: Any) -> Any:
        def function(*xs: Any) -> Any:
            outputs, original = f(*xs)
            return outputs, lambda *cotangents: rule(original, flatten(xs), cotangents)

        return function

    return decorating(change)


def ruled_with_variables(rule: Callable[..., Any]) -> Plant:
    """What a grad_fn gives is ``rule(original, inputs, cotangents, variables)``, None if there are none."""

    def change(f: Any) -> Any:
        def function(*xs: Any) -> Any:
            outputs, original = f(*xs)

            def grad_fn(*cotangents: Any, variables: Any = None) -> Any:
                return rule(original, flatten(xs), cotangents, variables)

            return outputs, grad_fn

        return function

    return decorating(change)


@contextmanager
def _inner_ones_scaled() -> Iterator[None]:
    """Functions decorated while another one, or its rule, runs have their custom gradients scaled by two."""
    depth = [0]

    def deeper(f: Any) -> Any:
        def run(*args: Any) -> Any:
            depth[0] += 1
            try:
                return f(*args)
            finally:
                depth[0] -= 1

        return run

    def change(f: Any) -> Any:
        factor = 2 if depth[0] else 1

        def function(*xs: Any) -> Any:
            outputs, rule = deeper(f)(*xs)
            if factor == 1:
                return outputs, deeper(rule)
            return outputs, lambda *gs: [factor * g for g in flatten(rule(*gs))]

        return function

    with decorating(change)():
        yield


def tape(name: str, method: Callable[..., Any]) -> Plant:
    """A tape's method is ``method(original, tape, ...)``."""
    return wrapped(tf.GradientTape, name, method)


def jvp(method: Callable[..., Any]) -> Plant:
    return wrapped(tf.autodiff.ForwardAccumulator, "jvp", method)


def _or(default: Any, error: type[Exception], call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    try:
        return call(*args, **kwargs)
    except error:
        return default


def _without(name: str) -> Callable[..., Any]:
    """A call that ignores a keyword."""
    return lambda call, *args, **kwargs: call(*args, **{k: v for k, v in kwargs.items() if k != name})


def _is_zero(g: Any) -> bool:
    return tf.executing_eagerly() and bool(tf.reduce_all(g == 0))


def _refuse_keywords(call: Any, args: Any, kwargs: Any) -> Any:
    if kwargs:
        raise TypeError("no keywords")
    return call(*args)


def _keywords_by_position(call: Any, args: Any, kwargs: Any) -> Any:
    return call(*args, **kwargs) if tf.executing_eagerly() else call(*args, *kwargs.values())


def _automatic(_: Any, f: Any) -> Any:
    return lambda *args: f(*args)[0]


def _shortened(g: Any) -> Any:
    return tf.IndexedSlices(g.values[:-1], g.indices[:-1], g.dense_shape) if isinstance(g, tf.IndexedSlices) else g


def _stopped_function(original: Any, f: Any, **options: Any) -> Any:
    return original(lambda *args: tf.nest.map_structure(tf.stop_gradient, f(*args)), **options)


def _of_the_class(self: Any, _: Any, owner: Any) -> Any:
    return lambda *args: self._d(self._f, (owner, *args), {})


def _no_keyword(original: Any, _: Any, cotangents: Any, variables: Any) -> Any:
    found = original(*cotangents)
    return (found, [None] * len(variables)) if variables else found


def _fitted(original: Any, _: Any, cotangents: Any, variables: Any) -> Any:
    found, mine = original(*cotangents, variables=variables)
    return found, [*mine, *[None] * len(variables)][: len(variables)]


def _reversed_variables(original: Any, _: Any, cotangents: Any, variables: Any) -> Any:
    found, mine = original(*cotangents, variables=variables)
    return found, mine[::-1]


def _with_arguments(original: Any, inputs: Any, cotangents: Any, variables: Any) -> Any:
    given = [x for x in inputs if isinstance(x, tf.Variable)]
    return original(*cotangents, variables=[*(variables or ()), *given])


def _once(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    asked = self.__dict__.setdefault("_asked", [])
    asked.append(1)
    return original(self, *args, **kwargs) if len(asked) == 1 else None


def _constants(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    return [None if g is None else tf.constant(g.numpy()) for g in original(self, *args, **kwargs)]


def _unless_a_variable(original: Any, self: Any, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
    found = original(self, target, sources, *args, **kwargs)
    return [tf.zeros_like(x) if isinstance(x, tf.Variable) else g for x, g in zip(sources, found, strict=True)]


def _unless_unused(original: Any, self: Any) -> Any:
    return nullcontext() if self._tape is None else original(self)


def _kept_for_ever(kept: list[Any]) -> Callable[..., Any]:
    def gradient(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        kept.append(self._tape)
        return original(self, *args, **kwargs)

    return gradient


def _transposed(original: Any, self: Any, target: Any, sources: Any, **options: Any) -> Any:
    found = original(self, target, sources, **options)
    rank = len(target.shape)
    return [tf.transpose(j, [*range(rank, 2 * rank), *range(rank)]) for j in found]


def _detached(f: Any) -> Any:
    @tf.custom_gradient
    def function(*xs: Any) -> Any:
        def grad_fn(*cotangents: Any) -> Any:
            with tf.GradientTape() as inner:
                inner.watch(xs)
                outputs = f(*xs)
            return [tf.stop_gradient(g) for g in inner.gradient(outputs, xs, cotangents)]

        return f(*xs), grad_fn

    return function


def _wrapped_elsewhere(original: Any, f: Any) -> Any:
    made = original(f)
    made.__wrapped__ = lambda *args: f(*args)
    return made


def _backwards(original: Any, f: Any, elements: Any) -> Any:
    return original(f, tf.reverse(elements, [0]))


def _any_name(self: Any, op_type: Any) -> None:
    self._op_type = op_type


FAULTS = (
    fault("TENSORFLOW-GRAD-01", ruled(lambda rule, _, gs: [2 * g for g in flatten(rule(*gs))]), "gradients"),
    fault("TENSORFLOW-GRAD-02", ruled(lambda rule, _, gs: rule(*gs[::-1])), "gradients"),
    fault("TENSORFLOW-GRAD-03", ruled(lambda rule, _, gs: flatten(rule(*gs))[::-1]), "gradients"),
    fault("TENSORFLOW-GRAD-04", ruled(lambda rule, xs, gs: flatten(rule(*gs))[: len(xs)]), "gradients for", "no error"),
    fault(
        "TENSORFLOW-GRAD-05",
        ruled(lambda rule, _, gs: rule(*(tf.ones_like(g) if _is_zero(g) else g for g in gs))),
        "cotangents",
    ),
    fault(
        "TENSORFLOW-GRAD-06",
        ruled(lambda rule, xs, gs: filled(rule(*gs), xs, tf.ones_like)),
        "gradients",
    ),
    fault("TENSORFLOW-GRAD-07", calling(_refuse_keywords)),
    fault("TENSORFLOW-GRAD-08", calling(_keywords_by_position), "a call with keywords", "no error"),
    fault(
        "TENSORFLOW-GRAD-09",
        calling(lambda call, args, _: call(*(tf.nest.map_structure(tf.convert_to_tensor, args)))),
        "whether they are tensors",
    ),
    fault(
        "TENSORFLOW-GRAD-10",
        calling(lambda call, args, _: call(*(0.0 if x is None else x for x in args))),
        "an argument that cannot become a tensor",
        "None",
    ),
    fault("TENSORFLOW-GRAD-11", replaced(Bind, "__get__", lambda _: _of_the_class)),
    fault("TENSORFLOW-GRAD-12", wrapped(tf, "custom_gradient", _automatic), "captured"),
    fault("TENSORFLOW-GRAD-13", ruled(lambda rule, _, gs: (rule(*gs), rule(*gs))[1]), "runs of grad_fn"),
    fault(
        "TENSORFLOW-GRAD-14",
        wrapped(tf, "function", _stopped_function),
        "a function with an operation without gradient",
    ),
    fault(
        "TENSORFLOW-GRAD-15",
        ruled(lambda rule, xs, gs: _or([None] * len(xs), Exception, rule, *gs)),
        "a backward that raises",
        "no error",
    ),
    fault("TENSORFLOW-GRAD-16", ruled(lambda *given: given[2]), "gradient"),
    fault("TENSORFLOW-GRAD-17", ruled(lambda rule, _, gs: _shortened(rule(*gs))), "gradient"),
    fault("TENSORFLOW-VAR-01", ruled_with_variables(_reversed_variables), "gradients"),
    fault("TENSORFLOW-VAR-02", ruled_with_variables(_no_keyword), "grad_fn that does not take them", "no error"),
    fault("TENSORFLOW-VAR-03", ruled_with_variables(_fitted), "variables", "no error"),
    fault("TENSORFLOW-VAR-04", ruled_with_variables(_with_arguments), "variables that grad_fn gets"),
    fault(
        "TENSORFLOW-VAR-05",
        ruled_with_variables(lambda rule, _, gs, variables: rule(*gs, variables=variables or [])),
        "what grad_fn gets as variables",
    ),
    fault(
        "TENSORFLOW-NEST-01",
        ruled(lambda rule, _, gs: [tf.stop_gradient(g) for g in flatten(rule(*gs))]),
        "second derivative",
    ),
    fault("TENSORFLOW-NEST-02", _inner_ones_scaled, "second derivative, position 1"),
    fault("TENSORFLOW-NEST-04", _inner_ones_scaled, "cotangent, position 1"),
    fault(
        "TENSORFLOW-FWD-01",
        jvp(lambda original, self, ys: tf.nest.map_structure(lambda t: 2 * t, original(self, ys))),
        "tangents",
    ),
    fault("TENSORFLOW-FWD-02", jvp(_once), "tangents, position 1"),
    fault(
        "TENSORFLOW-FWD-03",
        jvp(lambda original, self, ys, **_: original(self, ys, unconnected_gradients="zero")),
        "tangents",
    ),
    fault("TENSORFLOW-FWD-04", tape("gradient", _constants), "Hessian-vector product"),
    fault(
        "TENSORFLOW-TAPE-01",
        tape("gradient", lambda *args, **options: _or(None, RuntimeError, *args, **options)),
        "a second gradient",
        "no error",
    ),
    fault("TENSORFLOW-TAPE-02", tape("gradient", _without("unconnected_gradients")), "gradients"),
    fault(
        "TENSORFLOW-TAPE-03",
        tape("gradient", lambda original, *args: flatten(original(*args))),
        "the structure of the gradients",
    ),
    fault("TENSORFLOW-TAPE-04", tape("gradient", lambda original, *args: original(*args[:3])), "gradients"),
    fault("TENSORFLOW-TAPE-05", tape("stop_recording", lambda *_: nullcontext()), "gradients"),
    fault("TENSORFLOW-TAPE-06", tape("stop_recording", _unless_unused), "stop_recording", "no error"),
    fault("TENSORFLOW-TAPE-07", tape("reset", lambda *_: None), "gradients"),
    fault(
        "TENSORFLOW-TAPE-08",
        tape("watch", lambda *args: _or(None, ValueError, *args)),
        "watching a non-tensor",
        "no error",
    ),
    fault(
        "TENSORFLOW-TAPE-09",
        tape("gradient", lambda *args, **options: _or(None, TypeError, *args, **options)),
        "the gradient of None",
        "no error",
    ),
    fault("TENSORFLOW-TAPE-12", tape("__init__", _without("watch_accessed_variables")), "gradients of the variables"),
    fault(
        "TENSORFLOW-TAPE-13",
        tape("watched_variables", lambda original, self: original(self)[::-1]),
        "watched variables",
    ),
    fault("TENSORFLOW-TAPE-14", tape("gradient", _kept_for_ever([])), "whether what grad_fn keeps"),
    fault("TENSORFLOW-TAPE-15", tape("jacobian", _transposed), "Jacobians"),
    fault(
        "TENSORFLOW-TAPE-16",
        tape("batch_jacobian", lambda original, *args, **options: original(*args, **options)[::-1]),
        "batch Jacobian",
    ),
    fault("TENSORFLOW-MAP-01", wrapped(tf, "vectorized_map", _backwards), "outputs"),
    fault("TENSORFLOW-MAP-02", replaced(tf, "map_fn", lambda _: tf.vectorized_map), "gradient"),
    fault("TENSORFLOW-RECOMPUTE-01", wrapped(tf, "recompute_grad", lambda _, f: f), "runs after"),
    fault("TENSORFLOW-RECOMPUTE-02", tape("gradient", _unless_a_variable), "gradients", "position 1"),
    fault("TENSORFLOW-RECOMPUTE-03", wrapped(tf, "recompute_grad", _wrapped_elsewhere), "__wrapped__"),
    fault("TENSORFLOW-RECOMPUTE-04", wrapped(tf, "recompute_grad", lambda _, f: f), "forward mode"),
    fault(
        "TENSORFLOW-RECOMPUTE-04",
        wrapped(tf, "recompute_grad", lambda _, f: _detached(f)),
        words="second derivatives through recompute_grad are lost",
    ),
    fault("TENSORFLOW-PASS-01", wrapped(tf, "grad_pass_through", lambda _, f: f), "gradients"),
    fault("TENSORFLOW-STOP-01", replaced(tf, "stop_gradient", lambda _: tf.identity), "gradients"),
    fault(
        "TENSORFLOW-REG-01",
        wrapped(tf.Graph, "gradient_override_map", lambda *_: nullcontext()),
        "within",
        "position 1",
    ),
    fault("TENSORFLOW-REG-02", replaced(tf.RegisterGradient, "__init__", lambda _: _any_name)),
    fault(
        "TENSORFLOW-REG-03",
        wrapped(tf.RegisterGradient, "__call__", lambda *args: _or(None, KeyError, *args)),
        "a second registration",
        "no error",
    ),
)

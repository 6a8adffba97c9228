"""Faults of TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import tensorflow as tf
from tensorflow.python.ops.custom_gradient import Bind

from autograd_conformance.selftests.planting import Fault

Planted = AbstractContextManager[Any]
flatten = tf.nest.flatten


def replaced(owner: Any, name: str, change: Callable[[Any], Any]) -> Planted:
    """``owner.name`` is ``change(what it was)``."""
    return patch.object(owner, name, change(getattr(owner, name)))


def around(owner: Any, name: str, call: Callable[..., Any]) -> Planted:
    """A call of ``owner.name`` is ``call(original, *args, **kwargs)``."""
    return replaced(owner, name, lambda original: lambda *args, **kwargs: call(original, *args, **kwargs))


def decorating(change: Callable[[Any], Any]) -> Planted:
    """tf.custom_gradient decorates what ``change`` makes of a function."""
    return around(tf, "custom_gradient", lambda original, f: original(change(f)))


def calling(change: Callable[..., Any]) -> Planted:
    """A call of a function with a custom gradient is ``change(call, args, kwargs)``."""

    def decorate(original: Any, f: Any) -> Any:
        call = original(f)
        return lambda *args, **kwargs: change(call, args, kwargs)

    return around(tf, "custom_gradient", decorate)


def ruled(rule: Callable[..., Any]) -> Planted:
    """What a grad_fn gives is ``rule(original, inputs, cotangents)``."""

    def change(f: Any) -> Any:
        def function(*xs: Any) -> Any:
            outputs, original = f(*xs)
            return outputs, lambda *cotangents: rule(original, flatten(xs), cotangents)

        return function

    return decorating(change)


def ruled_with_variables(rule: Callable[..., Any]) -> Planted:
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

    with decorating(change):
        yield


def tape(name: str, method: Callable[..., Any]) -> Planted:
    """A tape's method is ``method(original, tape, ...)``."""
    return around(tf.GradientTape, name, method)


def jvp(method: Callable[..., Any]) -> Planted:
    return around(tf.autodiff.ForwardAccumulator, "jvp", method)


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
    Fault("TENSORFLOW-GRAD-01", lambda: ruled(lambda rule, _, gs: [2 * g for g in flatten(rule(*gs))]), ("gradients",)),
    Fault("TENSORFLOW-GRAD-02", lambda: ruled(lambda rule, _, gs: rule(*gs[::-1])), ("gradients",)),
    Fault("TENSORFLOW-GRAD-03", lambda: ruled(lambda rule, _, gs: flatten(rule(*gs))[::-1]), ("gradients",)),
    Fault(
        "TENSORFLOW-GRAD-04",
        lambda: ruled(lambda rule, xs, gs: flatten(rule(*gs))[: len(xs)]),
        ("gradients for", "no error"),
    ),
    Fault(
        "TENSORFLOW-GRAD-05",
        lambda: ruled(lambda rule, _, gs: rule(*(tf.ones_like(g) if _is_zero(g) else g for g in gs))),
        ("cotangents",),
    ),
    Fault(
        "TENSORFLOW-GRAD-06",
        lambda: ruled(
            lambda rule, xs, gs: [tf.ones_like(x) if g is None else g for x, g in zip(xs, rule(*gs), strict=True)]
        ),
        ("gradients",),
    ),
    Fault("TENSORFLOW-GRAD-07", lambda: calling(_refuse_keywords)),
    Fault("TENSORFLOW-GRAD-08", lambda: calling(_keywords_by_position), ("a call with keywords", "no error")),
    Fault(
        "TENSORFLOW-GRAD-09",
        lambda: calling(lambda call, args, _: call(*(tf.nest.map_structure(tf.convert_to_tensor, args)))),
        ("whether they are tensors",),
    ),
    Fault(
        "TENSORFLOW-GRAD-10",
        lambda: calling(lambda call, args, _: call(*(0.0 if x is None else x for x in args))),
        ("an argument that cannot become a tensor", "None"),
    ),
    Fault("TENSORFLOW-GRAD-11", lambda: replaced(Bind, "__get__", lambda _: _of_the_class)),
    Fault("TENSORFLOW-GRAD-12", lambda: around(tf, "custom_gradient", _automatic), ("captured",)),
    Fault("TENSORFLOW-GRAD-13", lambda: ruled(lambda rule, _, gs: (rule(*gs), rule(*gs))[1]), ("runs of grad_fn",)),
    Fault(
        "TENSORFLOW-GRAD-14",
        lambda: around(tf, "function", _stopped_function),
        ("a function with an operation without gradient",),
    ),
    Fault(
        "TENSORFLOW-GRAD-15",
        lambda: ruled(lambda rule, xs, gs: _or([None] * len(xs), Exception, rule, *gs)),
        ("an exception of the rule", "no error"),
    ),
    Fault("TENSORFLOW-GRAD-16", lambda: ruled(lambda *given: given[2]), ("gradient",)),
    Fault("TENSORFLOW-GRAD-17", lambda: ruled(lambda rule, _, gs: _shortened(rule(*gs))), ("gradient",)),
    Fault("TENSORFLOW-VAR-01", lambda: ruled_with_variables(_reversed_variables), ("gradients",)),
    Fault(
        "TENSORFLOW-VAR-02", lambda: ruled_with_variables(_no_keyword), ("grad_fn that does not take them", "no error")
    ),
    Fault("TENSORFLOW-VAR-03", lambda: ruled_with_variables(_fitted), ("variables", "no error")),
    Fault("TENSORFLOW-VAR-04", lambda: ruled_with_variables(_with_arguments), ("variables that grad_fn gets",)),
    Fault(
        "TENSORFLOW-VAR-05",
        lambda: ruled_with_variables(lambda rule, _, gs, variables: rule(*gs, variables=variables or [])),
        ("what grad_fn gets as variables",),
    ),
    Fault(
        "TENSORFLOW-NEST-01",
        lambda: ruled(lambda rule, _, gs: [tf.stop_gradient(g) for g in flatten(rule(*gs))]),
        ("second derivative",),
    ),
    Fault("TENSORFLOW-NEST-02", _inner_ones_scaled, ("second derivative, position 1",)),
    Fault("TENSORFLOW-NEST-04", _inner_ones_scaled, ("cotangent, position 1",)),
    Fault(
        "TENSORFLOW-FWD-01",
        lambda: jvp(lambda original, self, ys: tf.nest.map_structure(lambda t: 2 * t, original(self, ys))),
        ("tangents",),
    ),
    Fault("TENSORFLOW-FWD-02", lambda: jvp(_once), ("tangents, position 1",)),
    Fault(
        "TENSORFLOW-FWD-03",
        lambda: jvp(lambda original, self, ys, **_: original(self, ys, unconnected_gradients="zero")),
        ("tangents",),
    ),
    Fault("TENSORFLOW-FWD-04", lambda: tape("gradient", _constants), ("Hessian-vector product",)),
    Fault(
        "TENSORFLOW-TAPE-01",
        lambda: tape("gradient", lambda *args, **options: _or(None, RuntimeError, *args, **options)),
        ("a second gradient", "no error"),
    ),
    Fault("TENSORFLOW-TAPE-02", lambda: tape("gradient", _without("unconnected_gradients")), ("gradients",)),
    Fault(
        "TENSORFLOW-TAPE-03",
        lambda: tape("gradient", lambda original, *args: flatten(original(*args))),
        ("the structure of the gradients",),
    ),
    Fault("TENSORFLOW-TAPE-04", lambda: tape("gradient", lambda original, *args: original(*args[:3])), ("gradients",)),
    Fault("TENSORFLOW-TAPE-05", lambda: tape("stop_recording", lambda *_: nullcontext()), ("gradients",)),
    Fault("TENSORFLOW-TAPE-06", lambda: tape("stop_recording", _unless_unused), ("stop_recording", "no error")),
    Fault("TENSORFLOW-TAPE-07", lambda: tape("reset", lambda *_: None), ("gradients",)),
    Fault(
        "TENSORFLOW-TAPE-08",
        lambda: tape("watch", lambda *args: _or(None, ValueError, *args)),
        ("watching a non-tensor", "no error"),
    ),
    Fault(
        "TENSORFLOW-TAPE-09",
        lambda: tape("gradient", lambda *args, **options: _or(None, TypeError, *args, **options)),
        ("the gradient of None", "no error"),
    ),
    Fault(
        "TENSORFLOW-TAPE-12",
        lambda: tape("__init__", _without("watch_accessed_variables")),
        ("gradients of the variables",),
    ),
    Fault(
        "TENSORFLOW-TAPE-13",
        lambda: tape("watched_variables", lambda original, self: original(self)[::-1]),
        ("watched variables",),
    ),
    Fault("TENSORFLOW-TAPE-14", lambda: tape("gradient", _kept_for_ever([])), ("whether what grad_fn keeps",)),
    Fault("TENSORFLOW-TAPE-15", lambda: tape("jacobian", _transposed), ("Jacobians",)),
    Fault(
        "TENSORFLOW-TAPE-16",
        lambda: tape("batch_jacobian", lambda original, *args, **options: original(*args, **options)[::-1]),
        ("batch Jacobian",),
    ),
    Fault("TENSORFLOW-MAP-01", lambda: around(tf, "vectorized_map", _backwards), ("outputs",)),
    Fault("TENSORFLOW-MAP-02", lambda: replaced(tf, "map_fn", lambda _: tf.vectorized_map), ("gradient",)),
    Fault("TENSORFLOW-RECOMPUTE-01", lambda: around(tf, "recompute_grad", lambda _, f: f), ("runs after",)),
    Fault("TENSORFLOW-RECOMPUTE-02", lambda: tape("gradient", _unless_a_variable), ("gradients", "position 1")),
    Fault("TENSORFLOW-RECOMPUTE-03", lambda: around(tf, "recompute_grad", _wrapped_elsewhere), ("__wrapped__",)),
    Fault("TENSORFLOW-RECOMPUTE-04", lambda: around(tf, "recompute_grad", lambda _, f: f), ("forward mode",)),
    Fault(
        "TENSORFLOW-RECOMPUTE-04",
        lambda: around(tf, "recompute_grad", lambda _, f: _detached(f)),
        words="second derivatives through recompute_grad are lost",
    ),
    Fault("TENSORFLOW-PASS-01", lambda: around(tf, "grad_pass_through", lambda _, f: f), ("gradients",)),
    Fault("TENSORFLOW-STOP-01", lambda: replaced(tf, "stop_gradient", lambda _: tf.identity), ("gradients",)),
    Fault(
        "TENSORFLOW-REG-01",
        lambda: around(tf.Graph, "gradient_override_map", lambda *_: nullcontext()),
        ("within", "position 1"),
    ),
    Fault("TENSORFLOW-REG-02", lambda: replaced(tf.RegisterGradient, "__init__", lambda _: _any_name)),
    Fault(
        "TENSORFLOW-REG-03",
        lambda: around(tf.RegisterGradient, "__call__", lambda *args: _or(None, KeyError, *args)),
        ("a second registration", "no error"),
    ),
)

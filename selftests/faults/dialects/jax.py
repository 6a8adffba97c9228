"""Faults of JAX's functions with custom rules."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import jax
import numpy as np
from jax import numpy as jnp
from jax._src import core, custom_batching, custom_derivatives
from jax.custom_batching import custom_vmap
from jax.custom_derivatives import CustomVJPPrimal, SymbolicZero
from jax.interpreters import ad

from autograd_conformance.selftests.faults.dialects.gradients import filled, fitted
from autograd_conformance.selftests.faults.planting import Plant, fault, put, wrapped

_tree = jax.tree_util


def _without_rule(kind: Any) -> Plant:
    return put(kind, "__call__", lambda self, *args, **kwargs: self.fun(*args, **kwargs))


def _reverse_rule(change: Callable[[Any, Any, Any], tuple[Any, Any]]) -> Plant:
    """fwd and bwd are ``change(function, fwd, bwd)``."""

    def defvjp(original: Any, self: Any, fwd: Any, bwd: Any, **options: Any) -> Any:
        return original(self, *change(self, fwd, bwd), **options)

    return wrapped(jax.custom_vjp, "defvjp", defvjp)


def _forward_rule(change: Callable[[Any, Any], Any]) -> Plant:
    """The rule is ``change(function, rule)``."""

    def defjvp(original: Any, self: Any, rule: Any, **options: Any) -> Any:
        original(self, change(self, rule), **options)
        return rule

    return wrapped(jax.custom_jvp, "defjvp", defjvp)


def _bwd(change: Callable[..., Any]) -> Plant:
    """bwd is ``change(bwd, *args)``."""
    return _reverse_rule(lambda _, fwd, bwd: (fwd, lambda *args: change(bwd, *args)))


def _bwd_knowing_arguments(change: Callable[..., Any]) -> Plant:
    """What bwd returns is ``change(found, arguments)``."""

    def changed(_: Any, fwd: Any, bwd: Any) -> tuple[Any, Any]:
        known: list[Any] = []

        def forward(*args: Any) -> Any:
            known[:] = args
            return fwd(*args)

        return forward, lambda *args: change(bwd(*args), known)

    return _reverse_rule(changed)


def _jvp(change: Callable[..., Any]) -> Plant:
    """The JVP rule is ``change(rule, *args)``."""
    return _forward_rule(lambda _, rule: lambda *args: change(rule, *args))


def _backwards(tree: Any) -> Any:
    leaves, structure = _tree.tree_flatten(tree)
    return _tree.tree_unflatten(structure, leaves[::-1])


def _dense(tree: Any) -> Any:
    return _tree.tree_map(lambda g: jnp.zeros(g.shape, g.dtype) if isinstance(g, SymbolicZero) else g, tree)


def _runs_fwd_too(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    self.fwd(*args, **kwargs)
    return original(self, *args, **kwargs)


def _runs_the_rule_too(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    self.jvp(args, args)
    return original(self, *args, **kwargs)


def _vjp_again(original: Any, f: Any, *xs: Any, **options: Any) -> Any:
    outputs, _ = original(f, *xs, **options)
    return outputs, lambda cotangents: original(f, *xs, **options)[1](cotangents)


def _vjp_of_integers(original: Any, f: Any, *xs: Any, **options: Any) -> Any:
    outputs, pull = original(f, *xs, **options)

    def whole(g: Any) -> Any:
        return np.zeros(g.shape, int) if g.dtype == jax.dtypes.float0 else g

    return outputs, lambda cotangents: _tree.tree_map(whole, pull(cotangents))


def _vjp_without_rule(original: Any, f: Any, *xs: Any, **options: Any) -> Any:
    with _without_rule(jax.custom_jvp)():
        return original(f, *xs, **options)


@contextmanager
def _without_checks() -> Iterator[None]:
    jax.config.update("jax_disable_bwd_checks", True)
    try:
        yield
    finally:
        jax.config.update("jax_disable_bwd_checks", False)


def _filled(found: Any, args: Any) -> Any:
    return filled(found, args, lambda x: _tree.tree_map(jnp.ones_like, x))


def _scalars_for_zeros(bwd: Any, residuals: Any, cotangents: Any) -> Any:
    return bwd(residuals, tuple(g if np.any(g) else jnp.zeros((), "float32") for g in cotangents))


def _swapped(self: Any, rule: Any) -> Any:
    """The rule with the non-differentiable arguments in the opposite order."""
    count = len(self.nondiff_argnums)
    return lambda *args: rule(*args[:count][::-1], *args[count:])


def _flipped_in_batches(bwd: Any, residuals: Any, cotangents: Any) -> Any:
    function = custom_vmap(bwd)

    @function.def_vmap
    def rule(size: int, batched: Any, *args: Any) -> Any:
        axes = _tree.tree_map(lambda flag: 0 if flag else None, tuple(batched))
        found = jax.vmap(bwd, axes, axis_size=size)(*args)
        return _tree.tree_map(lambda g: jnp.flip(g, 0), found), _tree.tree_map(lambda _: True, found)

    return function(residuals, cotangents)


def _all_take_part(_: Any, fwd: Any, bwd: Any) -> tuple[Any, Any]:
    return lambda *xs: fwd(*(CustomVJPPrimal(x.value, True) for x in xs)), bwd


def _residuals_shared(_: Any, fwd: Any, bwd: Any) -> tuple[Any, Any]:
    last: list[Any] = []

    def forward(*xs: Any) -> Any:
        outputs, last[:] = fwd(*xs)
        time.sleep(0.01)
        return outputs, None

    return forward, lambda _, cotangents: bwd(tuple(last), cotangents)


def _pair_of_anything(_: Any, fwd: Any, bwd: Any) -> tuple[Any, Any]:
    def forward(*xs: Any) -> Any:
        found = fwd(*xs)
        return found if isinstance(found, tuple) and len(found) == 2 else (found, None)

    return forward, bwd


def _no_residuals(fun: Any, debug: Any, fwd: Any, *_: Any, **__: Any) -> Any:
    def forward(*xs: Any) -> Any:
        outputs, residuals = fwd(*xs)
        return outputs, _tree.tree_map(jnp.zeros_like, residuals)

    return forward


def _called_without_a_rule(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    return original(self, *args, **kwargs) if self.fwd else self.fun(*args, **kwargs)


def _last_argument_alone(original: Any, self: Any, *jvps: Any) -> Any:
    return original(self, *[None] * (len(jvps) - 1), jvps[-1])


def _nothing_is_static(original: Any, self: Any, *jvps: Any) -> Any:
    self.nondiff_argnums = ()
    return original(self, *jvps)


def _plain_within(rule: Any, *args: Any) -> Any:
    with _without_rule(jax.custom_jvp)():
        return rule(*args)


def _tangents_backwards(rule: Any, primals: Any, tangents: Any) -> Any:
    return rule(primals, tuple(map(_backwards, tangents)))


def _negative(original: Any, f: Any, *args: Any, **options: Any) -> Any:
    slope = original(f, *args, **options)
    return lambda *xs: _tree.tree_map(jnp.negative, slope(*xs))


def _first_intermediate_values(original: Any, fun: Any) -> Any:
    rules: list[Any] = []

    def kept(*args: Any) -> Any:
        value, rule = fun(*args)
        rules.append(rule)
        return value, lambda g: rules[0](g)

    return original(kept)


def _rule_at_one(original: Any, fun: Any) -> Any:
    def scaled(*args: Any) -> Any:
        value, rule = fun(*args)
        return value, lambda g: _tree.tree_map(lambda c: c * g, rule(1.0))

    return original(scaled)


def _negated_call(original: Any, fun: Any, transpose: Any, residuals: Any, inputs: Any) -> Any:
    return original(lambda r, x: _tree.tree_map(jnp.negative, fun(r, x)), transpose, residuals, inputs)


def _any_structure(original: Any, fun: Any, transpose: Any, residuals: Any, inputs: Any) -> Any:
    leaves, structure = _tree.tree_flatten(inputs)

    def fitted(r: Any, cotangents: Any) -> Any:
        found = [*_tree.tree_leaves(transpose(r, cotangents)), *map(jnp.zeros_like, leaves)]
        return _tree.tree_unflatten(structure, found[: len(leaves)])

    return original(fun, fitted, residuals, inputs)


def _batching_rule(change: Callable[..., Any]) -> Plant:
    """The batching rule is ``change(rule, axis_size, in_batched, *args)``."""

    def def_vmap(original: Any, self: Any, rule: Any) -> Any:
        return original(self, lambda *args: change(rule, *args))

    return wrapped(custom_vmap, "def_vmap", def_vmap)


def _repeated(rule: Any, size: int, batched: Any, *xs: Any) -> Any:
    ys, flags = rule(size, batched, *xs)
    pairs = zip(ys, flags, strict=True)
    return tuple(y if flag else jnp.stack([y] * size) for y, flag in pairs), flags


def _rule_without_a_batch(original: Any, self: Any, *args: Any) -> Any:
    return self.vmap_rule(1, [False] * len(args), *args)[0]


def _whole_batch(_: Any, f: Any) -> Any:
    function = custom_vmap(f)

    @function.def_vmap
    def rule(size: int, batched: Any, *xs: Any) -> Any:
        found = f(*xs)
        return found, _tree.tree_map(lambda _: True, found)

    return function


def _as_written(fun: Any, args: Any, kwargs: Any) -> Any:
    return (*args, *kwargs.values())


_KEYWORDS_AS_WRITTEN = put(custom_derivatives, "resolve_kwargs", _as_written)


FAULTS = (
    fault("JAX-VJP-01", _without_rule(jax.custom_vjp), "gradient"),
    fault("JAX-VJP-01", _bwd(lambda bwd, *args: tuple(bwd(*args))[::-1]), words="the cotangents in opposite order"),
    fault("JAX-VJP-02", wrapped(jax.custom_vjp, "__call__", _runs_fwd_too), "parts of the rule"),
    fault("JAX-VJP-03", wrapped(jax, "vjp", _vjp_again), "parts of the rule"),
    fault("JAX-VJP-04", _bwd(lambda bwd, r, g: bwd(_tree.tree_leaves(r), g)), "structure"),
    fault("JAX-VJP-05", _bwd_knowing_arguments(fitted), "a rule that returns"),
    fault("JAX-VJP-06", _without_checks, "another shape"),
    fault("JAX-VJP-07", _bwd_knowing_arguments(_filled), "gradients"),
    fault("JAX-VJP-08", _bwd(lambda bwd, r, g: bwd(r, _backwards(g))), "gradients"),
    fault("JAX-VJP-09", _KEYWORDS_AS_WRITTEN, "with:"),
    fault("JAX-VJP-10", _without_rule(jax.custom_vjp), "forward mode"),
    fault("JAX-VJP-11", _reverse_rule(lambda f, fwd, bwd: (fwd, _swapped(f, bwd))), "non-differentiable"),
    fault("JAX-VJP-11", _reverse_rule(lambda f, fwd, bwd: (_swapped(f, fwd), bwd)), words="swapped in fwd"),
    fault("JAX-VJP-12", put(custom_derivatives, "_check_for_tracers", lambda _: None), "a tracer among the arguments"),
    fault("JAX-VJP-13", wrapped(jax, "vjp", _vjp_of_integers), "float0"),
    fault("JAX-VJP-14", _reverse_rule(_all_take_part), "perturbed"),
    fault("JAX-VJP-15", _bwd(lambda bwd, r, g: bwd(r, _dense(g))), "symbolic zeros"),
    fault("JAX-VJP-16", _bwd(_scalars_for_zeros), "cotangents"),
    fault(
        "JAX-VJP-18", _bwd(lambda bwd, *args: _tree.tree_map(jax.lax.stop_gradient, bwd(*args))), "second derivative"
    ),
    fault("JAX-VJP-20", _bwd(_flipped_in_batches), "gradients"),
    fault("JAX-VJP-21", _without_rule(jax.custom_vjp), "closes over"),
    fault("JAX-VJP-22", wrapped(jax, "checkpoint", lambda _, f: f), "residuals"),
    fault("JAX-VJP-23", put(custom_derivatives, "optimize_remat_of_custom_vjp_fwd", _no_residuals), "gradients"),
    fault("JAX-VJP-24", _reverse_rule(_residuals_shared), "gradients"),
    fault("JAX-VJP-25", wrapped(jax.custom_vjp, "__call__", _called_without_a_rule), "without a rule"),
    fault("JAX-VJP-26", _reverse_rule(_pair_of_anything), "no pair"),
    fault("JAX-VJP-27", put(jax.lax, "stop_gradient", lambda x: x), "gradients"),
    fault("JAX-JVP-01", _without_rule(jax.custom_jvp), "tangents"),
    fault("JAX-JVP-01", _jvp(lambda rule, x, t: rule(x, t[::-1])), words="the tangents in opposite order"),
    fault("JAX-JVP-02", wrapped(jax, "vjp", _vjp_without_rule), "gradients"),
    fault(
        "JAX-JVP-03",
        lambda: patch.dict(ad.primitive_transposes, {jax.lax.exp_p: lambda g, *_, **__: [g]}),
        "exp of a tangent",
    ),
    fault("JAX-JVP-04", wrapped(jax.custom_jvp, "defjvps", _last_argument_alone), "with:"),
    fault("JAX-JVP-05", wrapped(jax.custom_jvp, "defjvps", _nothing_is_static), "nondiff_argnums"),
    fault("JAX-JVP-06", _jvp(_plain_within), "derivative"),
    fault("JAX-JVP-07", _forward_rule(_swapped), "before the primals"),
    fault("JAX-JVP-08", _jvp(lambda rule, x, t: rule(x, _dense(t))), "symbolic zeros"),
    fault("JAX-JVP-09", _KEYWORDS_AS_WRITTEN, "with:"),
    fault("JAX-JVP-10", _jvp(_tangents_backwards), "tangents"),
    fault("JAX-JVP-11", put(core, "typematch", lambda *_, **__: True), "a rule that returns"),
    fault("JAX-JVP-12", _forward_rule(lambda _, rule: jax.jit(rule)), "control flow"),
    fault("JAX-JVP-13", wrapped(jax.custom_jvp, "__call__", _runs_the_rule_too), "rules that ran"),
    fault("JAX-JVP-14", wrapped(jax, "jacfwd", _negative), "derivatives"),
    fault("JAX-GRADIENT-01", put(jax, "custom_gradient", lambda fun: lambda *xs: fun(*xs)[0]), "gradients"),
    fault("JAX-GRADIENT-02", wrapped(jax, "custom_gradient", _first_intermediate_values), "with:"),
    fault("JAX-GRADIENT-03", wrapped(jax, "custom_gradient", _rule_at_one), "control flow"),
    fault("JAX-LINEAR-01", wrapped(jax.custom_derivatives, "linear_call", _negated_call), "outputs"),
    fault(
        "JAX-LINEAR-02",
        put(jax.custom_derivatives, "linear_call", lambda fun, _, residuals, x: fun(residuals, x)),
        "with:",
    ),
    fault("JAX-LINEAR-03", wrapped(jax.custom_derivatives, "linear_call", _any_structure), "a transpose with"),
    fault("JAX-CLOSURE-01", put(jax, "closure_convert", lambda f, *_: (f, [])), "with:"),
    fault(
        "JAX-VMAP-01",
        _batching_rule(lambda rule, size, flags, *xs: rule(size, [True] * len(flags), *xs)),
        "which arguments are batched",
    ),
    fault("JAX-VMAP-02", wrapped(custom_vmap, "__call__", _rule_without_a_batch), "outputs"),
    fault("JAX-VMAP-03", _batching_rule(_repeated), "outputs"),
    fault("JAX-VMAP-04", _without_rule(custom_vmap), "batch"),
    fault(
        "JAX-VMAP-05",
        put(custom_batching, "check_vmap_rule_trees", lambda *_: None),
        "a batching rule that returns",
    ),
    fault("JAX-VMAP-06", wrapped(jax.custom_batching, "sequential_vmap", _whole_batch), "shapes that it sees"),
)

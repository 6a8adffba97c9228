"""Faults planted into HIPS autograd, one for every clause or more."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

import autograd
import numpy as np
from autograd import builtins, core, extend, test_util, tracer
from autograd.numpy import numpy_boxes

from autograd_conformance.selftests.faults.planting import Plant, all_of, fault, put, replaced, wrapped


def _rules(name: str, change: Callable[[Any], Any]) -> Plant:
    """The rule that ``extend.name`` and ``core.name`` register is ``change(rule)``."""
    return lambda: all_of(
        *(wrapped(owner, name, lambda old, fun, rule: old(fun, change(rule))) for owner in (extend, core))
    )


def rule_of_vjps(change: Callable[[Any], Any]) -> Plant:
    """The maker that `defvjp_argnums` registers, ``maker(argnums, ans, args, kwargs)``, is ``change(maker)``."""
    return _rules("defvjp_argnums", change)


def rule_of_jvps(change: Callable[[Any], Any]) -> Plant:
    """The rule that `defjvp_argnums` registers, ``rule(argnums, gs, ans, args, kwargs)``, is ``change(rule)``."""
    return _rules("defjvp_argnums", change)


def around_result(name: str, change: Callable[[Any], Any]) -> Plant:
    """What the function that ``autograd.name(fun, argnum)`` returns gives is ``change`` of it."""

    def call(old: Any, *given: Any, **options: Any) -> Any:
        made = old(*given, **options)
        return lambda *xs, **named: change(made(*xs, **named))

    return wrapped(autograd, name, call)


def _frozen(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


def _writes_refused() -> Plant:
    """What a primitive computes with cannot be changed."""
    zeros = np.zeros
    return wrapped(extend, "primitive", lambda old, f: old(lambda *xs, **named: _under_frozen(zeros, f, xs, named)))


def _under_frozen(zeros: Any, f: Any, xs: Any, named: Any) -> Any:
    with patch.object(np, "zeros", lambda *given, **more: _frozen(zeros(*given, **more))):
        return f(*map(_frozen, xs), **named)


def _running_always(extension: Any, f: Any) -> Any:
    """A primitive whose VJP maker runs in untraced calls too."""

    def called(*xs: Any, **named: Any) -> Any:
        ans = f(*xs, **named)
        if made in core.primitive_vjps:
            core.primitive_vjps[made]((0,), ans, xs, named)
        return ans

    made = extension(called)
    return made


def _kept_outside(old: Any, value: Any, trace: int, node: Any) -> Any:
    return old(value, trace, node) if type(value) in tracer.Box.type_mappings else value


class _ForgivingRules(dict):  # type: ignore[type-arg]
    """Rules of which a missing one is that of a constant."""

    def __missing__(self, fun: Any) -> Any:
        def rule(argnums: Any, *rest: Any) -> Any:
            if len(rest) == 3:
                return lambda g: tuple(0.0 * g for _ in argnums)
            return 0.0 * rest[1]

        return rule


def _zero_if_undefined(fun: Any, *makers: Any, **named: Any) -> Any:
    present = dict(zip(named.get("argnums", range(len(makers))), makers, strict=False))
    core.defvjp(fun, *(present.get(i) for i in range(9)))


def _one_at_a_time(maker: Any) -> Any:
    def each(argnums: Any, *rest: Any) -> Any:
        made = [maker((i,), *rest) for i in argnums]
        return lambda g: tuple(next(iter(one(g))) for one in made)

    return each


def _making_all(maker: Any) -> Any:
    def run(argnums: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        maker(tuple(range(len(args))), ans, args, kwargs)
        return maker(argnums, ans, args, kwargs)

    return run


def _again_in_each_pass(maker: Any) -> Any:
    return lambda *given: (maker(*given), lambda g: tuple(maker(*given)(g)))[1]


def _holding(maker: Any) -> Any:
    def made(*given: Any) -> Any:
        rule = maker(*given)
        return lambda g: (given, rule(g))[1]

    return made


def _first_for_output(maker: Any) -> Any:
    return lambda argnums, ans, args, kwargs: maker(argnums, args[argnums[0]], args, kwargs)


def _without_history(maker: Any) -> Any:
    return lambda argnums, ans, args, kwargs: maker(
        argnums, tracer.getval(ans), tuple(map(tracer.getval, args)), kwargs
    )


def _none_is_identity(fun: Any, *makers: Any, **named: Any) -> Any:
    core.defvjp(fun, *(maker or (lambda *_, **__: lambda g: g) for maker in makers), **named)


def _first_stays(old: Any) -> Any:
    done: list[Any] = []

    def defvjp(fun: Any, *makers: Any, **named: Any) -> None:
        if not any(fun is each for each in done):
            done.append(fun)
            old(fun, *makers, **named)

    return defvjp


def _in_place(old: Any, previous: Any, g: Any) -> Any:
    if previous and isinstance(g, np.ndarray) and isinstance(previous[0], np.ndarray):
        np.add(previous[0], g, out=previous[0], casting="unsafe")
        return previous
    return old(previous, g)


def _filled_with_used(old: Any) -> Any:
    """The zeros of containers are ones."""
    return lambda space: space._map(lambda vs: vs.zeros() + 1 if hasattr(vs, "dtype") else vs.zeros())


def _first_contribution(rule: Any) -> Any:
    return lambda argnums, gs, *rest: rule(argnums[:1], gs[:1], *rest)


def _backwards(rule: Any) -> Any:
    return lambda position, g, ans, xs, named: rule(len(xs) - 1 - position, g, ans, xs, named)


def _all_together(fun: Any) -> None:
    def moved(argnums: Any, gs: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        given = dict(zip(argnums, gs, strict=True))
        return fun(*(given.get(i, x) for i, x in enumerate(args)), **kwargs)

    core.defjvp_argnums(fun, moved)


def _same_is_identity(fun: Any, *rules: Any, **named: Any) -> Any:
    core.defjvp(fun, *((lambda g, *_, **__: g) if rule == "same" else rule for rule in rules), **named)


def _jvps_without_history(rule: Any) -> Any:
    return lambda argnums, gs, ans, args, kwargs: rule(
        argnums, gs, tracer.getval(ans), tuple(map(tracer.getval, args)), kwargs
    )


def _conjugated(gradient: Any) -> Any:
    return np.conj(gradient) if np.iscomplexobj(gradient) else gradient


def _conjugating(maker: Any) -> Any:
    def made(*given: Any) -> Any:
        rule = maker(*given)
        return lambda g: rule(_conjugated(g))

    return made


def _listless(value: Any) -> Any:
    return tuple(value) if type(value) is list else value


def _summing(old: Any, fun: Any, *given: Any) -> Any:
    return old(lambda *xs, **named: autograd.numpy.sum(autograd.numpy.real(fun(*xs, **named))), *given)


def _keywordless(old: Any, *given: Any) -> Any:
    return lambda *xs, **named: old(*given)(*xs)


def _of_both(fun: Any, argnum: int = 0) -> Any:
    def both(*xs: Any) -> Any:
        ans, aux = fun(*xs)
        return ans + autograd.numpy.sum(aux)

    return lambda *xs: (autograd.grad(both, argnum)(*xs), fun(*xs)[1])


class _Quiet:
    warn = staticmethod(lambda *given: None)


def _elsewhere(fun: Any) -> Any:
    def maker(i: int, ans: Any, xs: Any, named: Any) -> Any:
        return autograd.make_vjp(fun, i)(*(x + 1.0 for x in xs), **named)[0]

    wrapped = extend.primitive(fun)
    core.defvjp_argnum(wrapped, maker)
    return wrapped


@contextmanager
def _one_level() -> Any:
    """All traces are at one level."""

    class Stack:
        top = 0

        @contextmanager
        def new_trace(self) -> Any:
            yield 0

    with patch.object(tracer, "trace_stack", Stack()):
        yield


def _always_true() -> AbstractContextManager[None]:
    return all_of(
        put(tracer.Box, "__bool__", lambda self: True), put(numpy_boxes.ArrayBox, "__gt__", lambda self, other: True)
    )


def _assigning(self: Any, index: Any, value: Any) -> None:
    self._value[index] = value


def _copying(maker: Any) -> Any:
    def copied(x: Any) -> Any:
        return x.copy() if isinstance(x, np.ndarray) else x

    return lambda argnums, ans, args, kwargs: maker(argnums, ans, tuple(map(copied, args)), kwargs)


@contextmanager
def _with_registered_rules(change: Callable[[Any], Any]) -> Any:
    """`rule_of_vjps` for the rules that are defined already too."""
    changed = {fun: change(maker) for fun, maker in core.primitive_vjps.items()}
    with patch.dict(core.primitive_vjps, changed), rule_of_vjps(change)():
        yield


def _one_level_off(f: Any) -> Any:
    return lambda *xs, **named: f(*(x._value if tracer.isbox(x) else x for x in xs), **named)


def _unregistered(old: Any, value: Any) -> Any:
    return core.VSpace(value) if type(value).__name__ == "_Length" else old(value)


@contextmanager
def _told_backwards() -> Any:
    """Tracers get the positions of the traced arguments in reverse."""
    found = tracer.find_top_boxed_args

    def reversed_arguments(args: Any) -> Any:
        boxed, *rest = found(args)
        return (boxed[::-1] if len(boxed) > 1 else [(i + 1, box) for i, box in boxed], *rest)

    with patch.object(tracer, "find_top_boxed_args", reversed_arguments):
        yield


def _first_order(old: Any, f: Any, argnums: Any, modes: Any, order: Any) -> Any:
    return old(f, argnums, modes=modes, order=1)


FAULTS = (
    fault("HIPS-PRIM-01", put(extend, "primitive", lambda f: f), "gradients"),
    fault("HIPS-PRIM-02", _writes_refused(), "read-only"),
    fault(
        "HIPS-PRIM-03",
        rule_of_vjps(lambda maker: lambda *given: maker(*given[:3], {})),
        "whether each got what was passed",
    ),
    fault("HIPS-PRIM-04", wrapped(extend, "primitive", _running_always), "number of VJP makers that ran"),
    fault("HIPS-PRIM-05", wrapped(tracer, "new_box", _kept_outside), "a primitive whose output has no box", "no error"),
    fault(
        "HIPS-PRIM-06",
        lambda: all_of(
            put(core, "primitive_vjps", _ForgivingRules(core.primitive_vjps)),
            put(core, "primitive_jvps", _ForgivingRules(core.primitive_jvps)),
        ),
        "differentiating a primitive without a rule",
        "no error",
    ),
    fault("HIPS-PRIM-07", replaced(builtins.ContainerVSpace, "zeros", _filled_with_used), "gradients"),
    fault("HIPS-VJP-01", rule_of_vjps(_first_for_output), "output that a maker gets"),
    fault("HIPS-VJP-02", rule_of_vjps(_again_in_each_pass), "what happens"),
    fault("HIPS-VJP-03", rule_of_vjps(_holding), "alive after the forward pass"),
    fault("HIPS-VJP-04", put(extend, "defvjp", _none_is_identity), "gradients"),
    fault(
        "HIPS-VJP-05",
        wrapped(extend, "defvjp", lambda old, fun, *makers, **named: old(fun, *makers)),
        "Polynomial",
    ),
    fault("HIPS-VJP-06", put(extend, "defvjp", _zero_if_undefined), "an argument without a VJP", "no error"),
    fault("HIPS-VJP-07", rule_of_vjps(_one_at_a_time), "each call of the maker"),
    fault(
        "HIPS-VJP-08",
        wrapped(extend, "defvjp_argnum", lambda old, fun, maker: old(fun, lambda i, *given: maker(0, *given))),
        "each call of the maker",
    ),
    fault("HIPS-VJP-09", rule_of_vjps(_making_all), "makers that ran"),
    fault("HIPS-VJP-10", wrapped(core, "add_outgrads", _in_place), "gradient"),
    fault("HIPS-VJP-11", rule_of_vjps(_without_history), "derivative"),
    fault("HIPS-VJP-12", replaced(extend, "defvjp", _first_stays), "gradients"),
    fault("HIPS-VJP-13", put(core, "warnings", _Quiet()), "of a primitive", "no warning"),
    fault("HIPS-JVP-01", rule_of_jvps(_first_contribution), "tangent"),
    fault("HIPS-JVP-02", put(extend, "defjvp", _same_is_identity), "tangent"),
    fault("HIPS-JVP-03", put(extend, "def_linear", _all_together), "tangent"),
    fault("HIPS-JVP-04", rule_of_jvps(_jvps_without_history), "derivative"),
    fault(
        "HIPS-JVP-05",
        wrapped(extend, "defjvp_argnum", lambda old, fun, rule: old(fun, _backwards(rule))),
        "each call of the rule",
    ),
    fault("HIPS-CPLX-01", around_result("grad", _conjugated), "gradient"),
    fault("HIPS-CPLX-02", rule_of_vjps(_conjugating), "gradient"),
    fault("HIPS-CPLX-03", around_result("elementwise_grad", lambda found: found + 0j), "complex", "True"),
    fault("HIPS-OP-01", around_result("grad", _listless), "containers"),
    fault("HIPS-OP-02", wrapped(autograd, "grad", _summing), "no error"),
    fault("HIPS-OP-03", wrapped(autograd, "grad", _keywordless), "gradients"),
    fault(
        "HIPS-OP-04",
        replaced(
            autograd,
            "elementwise_grad",
            lambda old: lambda fun: lambda x: old(fun)(x) / np.size(fun(x)),
        ),
        "gradient",
    ),
    fault("HIPS-OP-05", around_result("jacobian", np.transpose), "Jacobian"),
    fault("HIPS-OP-06", around_result("hessian", lambda found: np.diag(np.diag(found))), "Hessian"),
    fault("HIPS-OP-07", put(autograd, "grad_and_aux", _of_both), "gradient next to another output"),
    fault("HIPS-OP-08", put(tracer, "warnings", _Quiet()), "a constant", "no warning"),
    fault("HIPS-OP-09", put(autograd, "multigrad_dict", lambda fun: lambda *xs: {})),
    fault("HIPS-CKPT-01", put(autograd, "checkpoint", _elsewhere), "gradients"),
    fault("HIPS-CKPT-02", put(autograd, "checkpoint", lambda f: f), "what happens"),
    fault("HIPS-FLOW-01", _always_true, "value and gradient"),
    fault("HIPS-FLOW-02", _one_level, "value and gradient"),
    fault("HIPS-BOX-01", put(builtins, "isinstance", isinstance), "isinstance"),
    fault(
        "HIPS-BOX-02",
        lambda: all_of(*(put(builtins, each.__name__, each) for each in (list, tuple, dict))),
        "Polynomial",
    ),
    fault("HIPS-BOX-03", put(numpy_boxes.ArrayBox, "__setitem__", _assigning), "an assignment", "no error"),
    fault("HIPS-BOX-04", lambda: _with_registered_rules(_copying), "gradient"),
    fault("HIPS-BOX-05", put(tracer, "notrace_primitive", _one_level_off), "nested derivatives"),
    fault("HIPS-BOX-06", wrapped(core, "vspace", _unregistered), "factors"),
    fault("HIPS-BOX-07", _told_backwards, "traced"),
    fault("HIPS-CHECK-01", wrapped(test_util, "check_grads", _first_order), "check_grads to second order", "no error"),
    fault(
        "HIPS-CHECK-01",
        put(test_util, "check_vjp", lambda f, x: None),
        "check_grads",
        "no error",
        words="reverse mode is not checked",
    ),
)

"""Faults planted into HIPS autograd, one for every clause or more."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import autograd
import numpy as np
from autograd import builtins, core, extend, test_util, tracer
from autograd.numpy import numpy_boxes

from autograd_conformance.selftests.planting import Fault

Installed = AbstractContextManager[Any]


def replaced(owner: Any, name: str, change: Callable[[Any], Any]) -> Installed:
    """``owner.name`` is ``change(what it was)``."""
    return patch.object(owner, name, change(getattr(owner, name)))


@contextmanager
def every(*installed: Installed) -> Any:
    """All of these at once."""
    with ExitStack() as stack:
        for each in installed:
            stack.enter_context(each)
        yield


def rule_of_vjps(change: Callable[[Any], Any]) -> Installed:
    """The maker that `defvjp_argnums` registers, ``maker(argnums, ans, args, kwargs)``, is ``change(maker)``."""

    def planted(original: Any) -> Any:
        return lambda fun, maker: original(fun, change(maker))

    return every(replaced(extend, "defvjp_argnums", planted), replaced(core, "defvjp_argnums", planted))


def rule_of_jvps(change: Callable[[Any], Any]) -> Installed:
    """The rule that `defjvp_argnums` registers, ``rule(argnums, gs, ans, args, kwargs)``, is ``change(rule)``."""

    def planted(original: Any) -> Any:
        return lambda fun, rule: original(fun, change(rule))

    return every(replaced(extend, "defjvp_argnums", planted), replaced(core, "defjvp_argnums", planted))


def around_operator(name: str, change: Callable[[Any], Any]) -> Installed:
    """What ``autograd.name(fun, argnum)`` returns is ``change`` of it."""
    return replaced(autograd, name, lambda old: lambda *given, **named: change(old(*given, **named)))


def around_result(name: str, change: Callable[[Any], Any]) -> Installed:
    """What the function that ``autograd.name(fun, argnum)`` returns gives is ``change`` of it."""
    return around_operator(name, lambda made: lambda *xs, **named: change(made(*xs, **named)))


def around_gradients(change: Callable[[Any], Any]) -> Installed:
    """What a VJP by ``autograd.make_vjp`` gives is ``change`` of it."""
    return around_result("make_vjp", lambda found: (lambda g: change(found[0](g)), found[1]))


def _frozen(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


def _writes_refused() -> Installed:
    """What a primitive computes with cannot be changed."""
    zeros = np.zeros
    return replaced(
        extend, "primitive", lambda old: lambda f: old(lambda *xs, **named: _under_frozen(zeros, f, xs, named))
    )


def _under_frozen(zeros: Any, f: Any, xs: Any, named: Any) -> Any:
    with patch.object(np, "zeros", lambda *given, **more: _frozen(zeros(*given, **more))):
        return f(*map(_frozen, xs), **named)


def _running_always(extension: Any) -> Any:
    """A primitive whose VJP maker runs in untraced calls too."""

    def primitive(f: Any) -> Any:
        def called(*xs: Any, **named: Any) -> Any:
            ans = f(*xs, **named)
            if made in core.primitive_vjps:
                core.primitive_vjps[made]((0,), ans, xs, named)
            return ans

        made = extension(called)
        return made

    return primitive


def _kept_outside(old: Any) -> Any:
    def new_box(value: Any, trace: int, node: Any) -> Any:
        return old(value, trace, node) if type(value) in tracer.Box.type_mappings else value

    return new_box


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


def _in_place(old: Any) -> Any:
    def add(previous: Any, g: Any) -> Any:
        if previous and isinstance(g, np.ndarray) and isinstance(previous[0], np.ndarray):
            np.add(previous[0], g, out=previous[0], casting="unsafe")
            return previous
        return old(previous, g)

    return add


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


def _summing(old: Any) -> Any:
    return lambda fun, *given: old(
        lambda *xs, **named: autograd.numpy.sum(autograd.numpy.real(fun(*xs, **named))), *given
    )


def _keywordless(old: Any) -> Any:
    return lambda *given: lambda *xs, **named: old(*given)(*xs)


def _of_both(old: Any) -> Any:
    def grad_and_aux(fun: Any, argnum: int = 0) -> Any:
        def both(*xs: Any) -> Any:
            ans, aux = fun(*xs)
            return ans + autograd.numpy.sum(aux)

        return lambda *xs: (autograd.grad(both, argnum)(*xs), fun(*xs)[1])

    return grad_and_aux


@contextmanager
def _silent() -> Any:
    """The tracer does not warn."""
    with patch.object(tracer, "warnings", _Quiet()):
        yield


class _Quiet:
    warn = staticmethod(lambda *given: None)


def _elsewhere(old: Any) -> Any:
    def checkpoint(fun: Any) -> Any:
        wrapped = extend.primitive(fun)
        core.defvjp_argnum(
            wrapped, lambda i, ans, xs, named: autograd.make_vjp(fun, i)(*(x + 1.0 for x in xs), **named)[0]
        )
        return wrapped

    return checkpoint


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


@contextmanager
def _always_true() -> Any:
    """A comparison of what is traced always holds."""
    with (
        patch.object(tracer.Box, "__bool__", lambda self: True),
        patch.object(numpy_boxes.ArrayBox, "__gt__", lambda self, other: True),
    ):
        yield


def _assigning(self: Any, index: Any, value: Any) -> None:
    self._value[index] = value


def _copying(maker: Any) -> Any:
    def copied(x: Any) -> Any:
        return x.copy() if isinstance(x, np.ndarray) else x

    return lambda argnums, ans, args, kwargs: maker(argnums, ans, tuple(map(copied, args)), kwargs)


@contextmanager
def _registered_rules(change: Callable[[Any], Any]) -> Any:
    """`rule_of_vjps` for the rules that are defined already too."""
    changed = {fun: change(maker) for fun, maker in core.primitive_vjps.items()}
    with patch.dict(core.primitive_vjps, changed), rule_of_vjps(change):
        yield


def _one_level_off(f: Any) -> Any:
    return lambda *xs, **named: f(*(x._value if tracer.isbox(x) else x for x in xs), **named)


def _unregistered(old: Any) -> Any:
    return lambda value: core.VSpace(value) if type(value).__name__ == "_Length" else old(value)


@contextmanager
def _told_backwards() -> Any:
    """Tracers get the positions of the traced arguments in reverse."""
    found = tracer.find_top_boxed_args

    def reversed_arguments(args: Any) -> Any:
        boxed, *rest = found(args)
        return (boxed[::-1] if len(boxed) > 1 else [(i + 1, box) for i, box in boxed], *rest)

    with patch.object(tracer, "find_top_boxed_args", reversed_arguments):
        yield


def _first_order(old: Any) -> Any:
    return lambda f, argnums, modes, order: old(f, argnums, modes=modes, order=1)


FAULTS = (
    Fault(
        "HIPS-PRIM-01",
        install=lambda: patch.object(extend, "primitive", lambda f: f),
        says=("gradients",),
    ),
    Fault("HIPS-PRIM-02", install=_writes_refused, says=("read-only",)),
    Fault(
        "HIPS-PRIM-03",
        install=lambda: rule_of_vjps(lambda maker: lambda *given: maker(*given[:3], {})),
        says=("whether each got what was passed",),
    ),
    Fault(
        "HIPS-PRIM-04",
        install=lambda: replaced(extend, "primitive", _running_always),
        says=("number of VJP makers that ran",),
    ),
    Fault(
        "HIPS-PRIM-05",
        install=lambda: replaced(tracer, "new_box", _kept_outside),
        says=("a primitive whose output has no box", "no error"),
    ),
    Fault(
        "HIPS-PRIM-06",
        install=lambda: every(
            patch.object(core, "primitive_vjps", _ForgivingRules(core.primitive_vjps)),
            patch.object(core, "primitive_jvps", _ForgivingRules(core.primitive_jvps)),
        ),
        says=("differentiating a primitive without a rule", "no error"),
    ),
    Fault(
        "HIPS-PRIM-07",
        install=lambda: replaced(builtins.ContainerVSpace, "zeros", _filled_with_used),
        says=("gradients",),
    ),
    Fault("HIPS-VJP-01", install=lambda: rule_of_vjps(_first_for_output), says=("output that a maker gets",)),
    Fault("HIPS-VJP-02", install=lambda: rule_of_vjps(_again_in_each_pass), says=("what happens",)),
    Fault("HIPS-VJP-03", install=lambda: rule_of_vjps(_holding), says=("alive after the forward pass",)),
    Fault("HIPS-VJP-04", install=lambda: patch.object(extend, "defvjp", _none_is_identity), says=("gradients",)),
    Fault(
        "HIPS-VJP-05",
        install=lambda: replaced(extend, "defvjp", lambda old: lambda fun, *makers, **named: old(fun, *makers)),
        says=("Polynomial",),
    ),
    Fault(
        "HIPS-VJP-06",
        install=lambda: patch.object(extend, "defvjp", _zero_if_undefined),
        says=("an argument without a VJP", "no error"),
    ),
    Fault("HIPS-VJP-07", install=lambda: rule_of_vjps(_one_at_a_time), says=("each call of the maker",)),
    Fault(
        "HIPS-VJP-08",
        install=lambda: replaced(
            extend, "defvjp_argnum", lambda old: lambda fun, maker: old(fun, lambda i, *given: maker(0, *given))
        ),
        says=("each call of the maker",),
    ),
    Fault("HIPS-VJP-09", install=lambda: rule_of_vjps(_making_all), says=("makers that ran",)),
    Fault("HIPS-VJP-10", install=lambda: replaced(core, "add_outgrads", _in_place), says=("gradient",)),
    Fault("HIPS-VJP-11", install=lambda: rule_of_vjps(_without_history), says=("derivative",)),
    Fault("HIPS-VJP-12", install=lambda: replaced(extend, "defvjp", _first_stays), says=("gradients",)),
    Fault(
        "HIPS-VJP-13",
        install=lambda: patch.object(core, "warnings", _Quiet()),
        says=("of a primitive", "no warning"),
    ),
    Fault("HIPS-JVP-01", install=lambda: rule_of_jvps(_first_contribution), says=("tangent",)),
    Fault("HIPS-JVP-02", install=lambda: patch.object(extend, "defjvp", _same_is_identity), says=("tangent",)),
    Fault("HIPS-JVP-03", install=lambda: patch.object(extend, "def_linear", _all_together), says=("tangent",)),
    Fault("HIPS-JVP-04", install=lambda: rule_of_jvps(_jvps_without_history), says=("derivative",)),
    Fault(
        "HIPS-JVP-05",
        install=lambda: replaced(extend, "defjvp_argnum", lambda old: lambda fun, rule: old(fun, _backwards(rule))),
        says=("each call of the rule",),
    ),
    Fault("HIPS-CPLX-01", install=lambda: around_result("grad", _conjugated), says=("gradient",)),
    Fault("HIPS-CPLX-02", install=lambda: rule_of_vjps(_conjugating), says=("gradient",)),
    Fault(
        "HIPS-CPLX-03",
        install=lambda: around_result("elementwise_grad", lambda found: found + 0j),
        says=("complex", "True"),
    ),
    Fault("HIPS-OP-01", install=lambda: around_result("grad", _listless), says=("containers",)),
    Fault("HIPS-OP-02", install=lambda: replaced(autograd, "grad", _summing), says=("no error",)),
    Fault("HIPS-OP-03", install=lambda: replaced(autograd, "grad", _keywordless), says=("gradients",)),
    Fault(
        "HIPS-OP-04",
        install=lambda: replaced(
            autograd,
            "elementwise_grad",
            lambda old: lambda fun: lambda x: old(fun)(x) / np.size(fun(x)),
        ),
        says=("gradient",),
    ),
    Fault("HIPS-OP-05", install=lambda: around_result("jacobian", np.transpose), says=("Jacobian",)),
    Fault(
        "HIPS-OP-06",
        install=lambda: around_result("hessian", lambda found: np.diag(np.diag(found))),
        says=("Hessian",),
    ),
    Fault(
        "HIPS-OP-07",
        install=lambda: replaced(autograd, "grad_and_aux", _of_both),
        says=("gradient next to another output",),
    ),
    Fault("HIPS-OP-08", install=_silent, says=("a constant", "no warning")),
    Fault("HIPS-OP-09", install=lambda: patch.object(autograd, "multigrad_dict", lambda fun: lambda *xs: {})),
    Fault("HIPS-CKPT-01", install=lambda: replaced(autograd, "checkpoint", _elsewhere), says=("gradients",)),
    Fault("HIPS-CKPT-02", install=lambda: patch.object(autograd, "checkpoint", lambda f: f), says=("what happens",)),
    Fault("HIPS-FLOW-01", install=_always_true, says=("value and gradient",)),
    Fault("HIPS-FLOW-02", install=_one_level, says=("value and gradient",)),
    Fault("HIPS-BOX-01", install=lambda: patch.object(builtins, "isinstance", isinstance), says=("isinstance",)),
    Fault(
        "HIPS-BOX-02",
        install=lambda: every(*(patch.object(builtins, each.__name__, each) for each in (list, tuple, dict))),
        says=("Polynomial",),
    ),
    Fault(
        "HIPS-BOX-03",
        install=lambda: patch.object(numpy_boxes.ArrayBox, "__setitem__", _assigning, create=True),
        says=("an assignment", "no error"),
    ),
    Fault("HIPS-BOX-04", install=lambda: _registered_rules(_copying), says=("gradient",)),
    Fault(
        "HIPS-BOX-05",
        install=lambda: patch.object(tracer, "notrace_primitive", _one_level_off),
        says=("nested derivatives",),
    ),
    Fault("HIPS-BOX-06", install=lambda: replaced(core, "vspace", _unregistered), says=("factors",)),
    Fault("HIPS-BOX-07", install=_told_backwards, says=("traced",)),
    Fault(
        "HIPS-CHECK-01",
        install=lambda: replaced(test_util, "check_grads", _first_order),
        says=("check_grads to second order", "no error"),
    ),
    Fault(
        "HIPS-CHECK-01",
        install=lambda: patch.object(test_util, "check_vjp", lambda f, x: None),
        says=("check_grads", "no error"),
        words="reverse mode is not checked",
    ),
)

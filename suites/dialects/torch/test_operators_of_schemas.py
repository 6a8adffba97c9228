"""Operators that a Library defines from a schema: each way to register for them, and how long that lasts."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import count

import numpy as np
import torch
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

from autograd_conformance.harness.testing.marks import keeps

SPACE = "autograd_conformance_schemas"
SCHEMA = "(Tensor x, float a=2.0) -> Tensor"
NUMBERS = st.lists(st.sampled_from((1.0, -1.0, 2.0, -3.0)), min_size=2, max_size=2)

_COUNT = count()


class _Operator:
    """An operator with a name of its own: a faulty torch may keep what was registered for another one."""

    def __init__(self):
        self.short = f"scaled_{next(_COUNT)}"
        self.name = f"{SPACE}::{self.short}"

    @property
    def packet(self):
        return getattr(torch.ops.autograd_conformance_schemas, self.short)

    def __call__(self, *args):
        return self.packet(*args)


DEFINES = {
    "Library.define": lambda lib, op: lib.define(f"{op.short}{SCHEMA}"),
    "torch.library.define": lambda lib, op: torch.library.define(op.name, SCHEMA, lib=lib),
}
# What a registration calls the operator.
NAMES = {"its name": lambda op: op.name, "its OpOverload": lambda op: op.packet.default}


def _key(device):
    return torch._C._dispatch_key_for_device(device)


# Ways to register a kernel, given the Library, the operator, what it is called, and a type of device.
KERNELS = {
    "Library.impl": lambda f, lib, op, named, device: lib.impl(named, f, _key(device)),
    "Library.impl without its namespace": lambda f, lib, op, named, device: lib.impl(op.short, f, _key(device)),
    "torch.library.impl": lambda f, lib, op, named, device: torch.library.impl(op.name, device, f, lib=lib),
    "impl as a decorator": lambda f, lib, op, named, device: torch.library.impl(op.name, (device, "meta"), lib=lib)(f),
    "impl for all": lambda f, lib, op, named, device: torch.library.impl(op.name, "default", f, lib=lib),
    "impl by an old call": lambda f, lib, op, named, device: torch.library.impl(lib, op.short, _key(device))(f),
    "register_kernel": lambda f, lib, op, named, device: torch.library.register_kernel(named, device, f, lib=lib),
    "register_kernel for all": lambda f, lib, op, named, device: torch.library.register_kernel(named, None, f, lib=lib),
}


def _seven(*args, **options):
    """Whatever the tensor is, a result with seven elements."""
    return args[0].new_empty(7)


@contextmanager
def _library() -> Iterator[list[torch.library.Library]]:
    """A list with a Library that nothing else refers to; letting it go, or an exception, ends it."""
    held = [torch.library.Library(SPACE, "FRAGMENT")]
    try:
        yield held
    finally:
        if held:
            held.pop()._destroy()


def _formula(lib, named, factor):
    """Register a gradient that is ``factor * a``."""

    def setup_context(ctx, inputs, output):
        ctx.a = inputs[1]

    torch.library.register_autograd(
        named, lambda ctx, g: (factor * ctx.a * g, None), setup_context=setup_context, lib=lib
    )


@keeps("LIB-20")
def test_an_operator_of_a_schema(subject, data):
    """However it was defined and its kernel was registered, it has the outputs and gradients of its parts."""
    define, way, name = (
        subject.draw(data, tuple(table), label)
        for table, label in ((DEFINES, "defined by"), (KERNELS, "kernel registered by"), (NAMES, "registered for"))
    )
    decorated = subject.draw(data, (False, True), "fake kernel and rule for vmap by decorators")
    given = subject.draw(data, (None, 5.0, -1.0), "a, None where it is left out")
    x = subject.tensor(subject.draw(data, NUMBERS, "x")).requires_grad_()
    passed, a = ((), 2.0) if given is None else ((given,), given)
    with _library() as held:
        op = _Operator()
        DEFINES[define](held[0], op)
        named = NAMES[name](op)
        KERNELS[way](lambda x, a=2.0: a * x, held[0], op, named, x.device.type)
        for register, function in (
            (torch.library.register_fake, _seven),
            (torch.library.register_vmap, lambda info, dims, x, a=2.0: (a * x + 1, dims[0])),
        ):
            subject.assert_accepted(
                lambda register=register, function=function: (
                    register(named, lib=held[0])(function) if decorated else register(named, function, lib=held[0])
                ),
                f"{register.__name__} for an operator of a schema",
            )
        _formula(held[0], named, factor=3)
        y = subject.assert_accepted(lambda: op(x, *passed), "a call")
        subject.assert_same("output", got=y.detach(), expected=a * x.detach())
        (got,) = subject.assert_accepted(lambda: torch.autograd.grad(y.sum(), x), "a backward pass")
        subject.assert_same("gradient", got=got, expected=np.full(2, 3 * a))
        batch = torch.vmap(lambda x: op(x, *passed))(x.detach()[None])
        subject.assert_same("output under vmap", got=batch, expected=a * x.detach()[None] + 1)
        shape = tuple(op(torch.empty(2, device="meta"), *passed).shape)
        subject.assert_equal("shape of the output for a meta tensor", got=shape, expected=(7,))


class _Mode(torch.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _in_a_mode(op, x):
    with _Mode():
        return op(x).tolist()


def _shape_in(context, op, tensor):
    try:
        with context:
            return tuple(op(tensor).shape)
    except (NotImplementedError, RuntimeError):
        return "no fake kernel"


def _shapes_without_values(op, x):
    """The shapes of the outputs for a meta tensor and for a fake one."""
    mode = FakeTensorMode()
    return [_shape_in(nullcontext(), op, torch.empty(2, device="meta")), _shape_in(mode, op, mode.from_tensor(x))]


def _slope(op, x):
    x = x.clone().requires_grad_()
    return torch.autograd.grad(op(x).sum(), x)[0].tolist()


# What is registered for an operator that doubles, what it is asked for, and what that gives during and after.
REGISTERED = {
    "a kernel": (
        lambda lib, op, device: lib.impl(op.short, lambda x, a=2.0: 5 * x, _key(device)),
        lambda op, x: op(x).tolist(),
        lambda x: (5 * x, 2 * x),
    ),
    "a fake kernel": (
        lambda lib, op, device: torch.library.register_fake(op.name, _seven, lib=lib),
        _shapes_without_values,
        lambda x: ([(7,)] * 2, ["no fake kernel"] * 2),
    ),
    "a formula": (lambda lib, op, device: _formula(lib, op.name, 5), _slope, lambda x: (10 + 0 * x, 2 + 0 * x)),
    "a rule for vmap": (
        lambda lib, op, device: torch.library.register_vmap(op.name, lambda info, dims, x: (9 * x, 0), lib=lib),
        lambda op, x: torch.vmap(op)(x[None])[0].tolist(),
        lambda x: (9 * x, 2 * x),
    ),
    "a rule for a mode": (
        lambda lib, op, device: torch.library.register_torch_dispatch(
            op.name, _Mode, lambda mode, func, types, args, kwargs: args[0] + 1, lib=lib
        ),
        _in_a_mode,
        lambda x: (x + 1, 2 * x),
    ),
}


@keeps("LIB-20", variant="lifetime", examples=0.6)
def test_what_is_registered_ends_with_its_library(subject, data):
    """After a Library is gone, what it registered is too, and after that of its definition the operator is."""
    what = subject.draw(data, tuple(REGISTERED), "registered")
    values = subject.draw(data, NUMBERS, "x")
    again = subject.draw(data, (False, True), "a second Library registers it afterwards")
    register, asked, results = REGISTERED[what]
    during, after = (each.tolist() if hasattr(each, "tolist") else each for each in results(np.array(values)))
    with _library() as outer:
        op = _Operator()
        outer[0].define(f"{op.short}{SCHEMA}")
        # With this kernel an operator has a batch by itself, but neither a formula nor a fake kernel counts.
        composite = what in ("a kernel", "a rule for vmap")
        key = "CompositeImplicitAutograd" if composite else _key(subject.tensor(values).device.type)
        outer[0].impl(op.short, lambda x, a=2.0: 2 * x, key)
        for turn in range(1 + again):
            with _library() as inner:
                register(inner[0], op, subject.tensor(values).device.type)
                got = subject.assert_accepted(lambda: asked(op, subject.tensor(values)), f"a call with {what}")
                subject.assert_equal(f"result with {what}, Library {turn + 1}", got=got, expected=during)
                inner.clear()
            got = subject.assert_accepted(lambda: asked(op, subject.tensor(values)), "a call afterwards")
            subject.assert_equal(f"result after the Library of {what}", got=got, expected=after)
        outer.clear()
    got = hasattr(torch.ops.autograd_conformance_schemas, op.short)
    subject.assert_equal("whether the operator is there after its Library", got=got, expected=False)


# What can be registered once more: how, and what the second one gives.
SECOND = {
    "a kernel": (
        lambda lib, op, factor, device, **options: lib.impl(
            op.short, lambda x, a=2.0: factor * x, _key(device), **options
        ),
        lambda op, x: tuple(op(x).tolist()),
        lambda factor, values: tuple(factor * each for each in values),
    ),
    "a fake kernel": (
        lambda lib, op, factor, device, **options: torch.library.register_fake(
            op.name, lambda x, a=2.0: x.new_empty(factor), lib=lib, **options
        ),
        lambda op, x: tuple(op(torch.empty(2, device="meta")).shape),
        lambda factor, values: (factor,),
    ),
}


@keeps("LIB-21")
def test_a_second_registration(subject, data):
    """It replaces the first, or raises if that is asked for and leaves the first; a second definition raises."""
    what = subject.draw(data, tuple(SECOND), "registered twice")
    options = subject.draw(data, ({}, {"allow_override": True}, {"allow_override": False}), "options")
    other = subject.draw(data, (False, True), "the second one by another Library")
    define = DEFINES[subject.draw(data, tuple(DEFINES), "defined by")]
    values = subject.draw(data, NUMBERS, "x")
    x = subject.tensor(values)
    register, asked, result = SECOND[what]
    with _library() as held, _library() as more:
        second = more if other else held
        op = _Operator()
        define(held[0], op)
        facts = [op.short, ("multiple", "already", "twice")]
        subject.assert_raises(RuntimeError, lambda: define(second[0], op), "a second definition", naming=facts)
        subject.assert_accepted(
            lambda: register(held[0], op, 3, x.device.type, allow_override=False), f"{what}, the first"
        )
        again = lambda: register(second[0], op, 5, x.device.type, **options)  # noqa: E731
        if options.get("allow_override", True):
            subject.assert_accepted(again, f"{what} that replaces another one")
        else:
            subject.assert_raises(RuntimeError, again, f"a second one with {options}", naming=["already"])
        last = 5 if options.get("allow_override", True) else 3
        subject.assert_equal(f"result with {what}", got=asked(op, x), expected=result(last, values))


@keeps("LIB-21", variant="refused")
def test_what_defines_no_operator(subject, data):
    """A name without a namespace, a schema with a name, a kernel that cannot be called, and get_ctx outside raise."""
    wrong = subject.draw(data, tuple(WRONG), "wrong")
    kinds, words, call = WRONG[wrong]
    with _library() as held:
        op = _Operator()
        held[0].define(f"{op.short}{SCHEMA}")
        subject.assert_raises(kinds, lambda: call(held[0], op), wrong, naming=words)


# The errors, a word of the message, and the call that raises.
WRONG = {
    "a name without a namespace": (
        ValueError,
        ["namespace"],
        lambda lib, op: torch.library.define("other", "(Tensor x) -> Tensor", lib=lib),
    ),
    "a schema with a name": (
        ValueError,
        ["schema"],
        lambda lib, op: torch.library.define(f"{SPACE}::other", "other(Tensor x) -> Tensor", lib=lib),
    ),
    "a kernel that is no function": ((TypeError,), ["callable"], lambda lib, op: lib.impl(op.short, 5, "CPU")),
    "an operator that is a number": ((RuntimeError,), ["OpOverload"], lambda lib, op: lib.impl(5, _seven, "CPU")),
    "a kind of Library": (ValueError, ["kind"], lambda lib, op: torch.library.Library(SPACE, "OTHER")),
    "a reserved namespace": (ValueError, ["reserved"], lambda lib, op: torch.library.Library("prim", "FRAGMENT")),
    "get_ctx outside of a fake kernel": (Exception, [], lambda lib, op: torch.library.get_ctx().new_dynamic_size()),
}


# How get_kernel is told a dispatch key.
KEYS = {"as text": _key, "itself": lambda device: getattr(torch._C.DispatchKey, _key(device))}


@keeps("LIB-26")
def test_a_kernel_may_call_the_one_that_it_replaces(subject, data):
    """A kernel calls the one that get_kernel gave for some values, and is gone with its Library; gradients stay."""
    name = subject.draw(data, tuple(NAMES), "get_kernel of")
    key_of = KEYS[subject.draw(data, tuple(KEYS), "dispatch key")]
    given = subject.draw(data, (2.0, 5.0, -1.0), "a")
    x = subject.tensor(subject.draw(data, NUMBERS, "x")).requires_grad_()
    device = x.device.type
    with _library() as held, _library() as more:
        op = _Operator()
        held[0].define(f"{op.short}{SCHEMA}")
        held[0].impl(op.short, lambda x, a=2.0: a * x, _key(device))
        _formula(held[0], op.name, factor=3)
        get = lambda: torch.library.get_kernel(NAMES[name](op), key_of(device))  # noqa: E731
        original = subject.assert_accepted(get, "get_kernel")

        def other(keys, x, a=2.0):
            return original.call_boxed(keys, x, a) if bool((x < 0).any()) else x.new_zeros(2)

        more[0].impl(op.short, other, _key(device), with_keyset=True)
        expected = given * x.detach() if bool((x < 0).any()) else np.zeros(2)
        y = subject.assert_accepted(lambda: op(x, given), "a call of a kernel that may call the original one")
        subject.assert_same("output", got=y.detach(), expected=expected)
        (got,) = torch.autograd.grad(y.sum(), x)
        subject.assert_same("gradient", got=got, expected=np.full(2, 3 * given))
        more.pop()._destroy()
        subject.assert_same("output afterwards", got=op(x, given).detach(), expected=given * x.detach())
        missing = lambda: torch.library.get_kernel(f"{op.name}_not", key_of(device))  # noqa: E731
        subject.assert_raises(RuntimeError, missing, "get_kernel of no operator", naming=[f"{op.name}_not"])


@keeps("LIB-26", variant="custom-op")
def test_get_kernel_takes_what_custom_op_gives(subject, data):
    """The kernel of a CustomOpDef can be called with its arguments."""
    x = subject.tensor(subject.draw(data, NUMBERS, "x"))
    key = _key(x.device.type)
    op = torch.library.custom_op(f"{SPACE}::tripled", lambda x: 3 * x, mutates_args=(), schema="(Tensor x) -> Tensor")
    kernel = subject.assert_accepted(lambda: torch.library.get_kernel(op, key), "get_kernel of a CustomOpDef")
    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))
    subject.assert_same("what the kernel gives", got=kernel.call_boxed(keys, x), expected=3 * x)


@keeps("LIB-20", variant="autocast", needs="autocast")
def test_a_rule_for_autocast_casts_the_arguments(subject, data):
    """In autocast the kernel gets the dtype that register_autocast names, and outside of it that of the call."""
    device = torch.device(subject.device).type
    name = subject.draw(data, tuple(NAMES), "registered for")
    within = subject.draw(data, (True, False), "in autocast")
    start, cast = subject.draw(
        data, st.permutations((torch.float32, torch.bfloat16)), "dtypes of the call and the cast"
    )
    seen = []

    def kernel(x, a=2.0):
        seen.append(x.dtype)
        return a * x

    with _library() as held:
        op = _Operator()
        held[0].define(f"{op.short}{SCHEMA}")
        torch.library.impl(op.name, device, kernel, lib=held[0])
        torch.library.register_autocast(NAMES[name](op), device, cast, lib=held[0])
        x = subject.tensor([1.0, -2.0]).to(start)
        with torch.autocast(device, torch.bfloat16, enabled=within):
            op(x, 3.0)
    subject.assert_equal("dtype in the kernel", got=seen, expected=[cast if within else start])


# Schemas that do not fit their tag.
UNFIT = {
    "inplace": (
        "() -> Tensor",
        "(*, Tensor(a!) x) -> Tensor(a!)",
        "(Tensor x) -> Tensor",
        "(Tensor(a) x) -> Tensor(a)",
        "(Tensor(a!)[] x) -> Tensor(a!)[]",
        "(Tensor(a!) x) -> ()",
        "(Tensor(a!) x) -> (Tensor(a!), Tensor)",
        "(Tensor(a!) x) -> int",
        "(Tensor(a!) x) -> Tensor",
        "(Tensor(a!) x) -> Tensor(a)",
        "(Tensor(a!) x, Tensor(b!) y) -> Tensor(a!)",
        "(Tensor(a!) x, Tensor(b!) y) -> Tensor(b!)",
    ),
    "out": (
        "(Tensor x) -> Tensor",
        "(Tensor x, Tensor(a!) out) -> Tensor(a!)",
        "(Tensor x, *, Tensor(a!)[] out) -> Tensor(a!)[]",
        "(Tensor x, *, Tensor(a!) out) -> ()",
        "(Tensor x, *, Tensor(a!) out) -> (Tensor(a!), Tensor)",
        "(Tensor x, *, Tensor(a!) out) -> Tensor",
        "(Tensor x, *, Tensor(a!) out) -> Tensor(a)",
        "(Tensor x, *, Tensor(a!) y, Tensor(b!) z) -> (Tensor(b!), Tensor(a!))",
    ),
}
# Schemas that fit it.
FIT = {
    "inplace": ("(Tensor(a!) x) -> Tensor(a!)", "(Tensor(a!) x, Tensor y, *, int n=1) -> Tensor(a!)"),
    "out": (
        "(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
        "(Tensor x, *, Tensor(a!) y, Tensor(b!) z) -> (Tensor(a!), Tensor(b!))",
    ),
}


@keeps("LIB-27")
def test_a_schema_fits_its_tag(subject, data):
    """define raises for a schema without what its tag says, and takes one that has it."""
    tag = subject.draw(data, tuple(UNFIT), "tag")
    unfit, fit = subject.draw(data, UNFIT[tag], "unfit schema"), subject.draw(data, FIT[tag], "fit schema")
    # One tag may be given as it is.
    given = subject.draw(data, (getattr(torch.Tag, tag), (getattr(torch.Tag, tag),)), "tags")
    with _library() as held:
        define = lambda schema: held[0].define(f"{_Operator().short}{schema}", tags=given)  # noqa: E731
        subject.assert_raises(
            ValueError, lambda: define(unfit), f"a schema with the tag {tag}", naming=[f"torch.Tag.{tag}"]
        )
        subject.assert_accepted(lambda: define(fit), f"a schema with the tag {tag}")

"""Operators of torch.library: schemas, kernels of devices, fakes, and rules for transforms."""

from contextlib import nullcontext
from itertools import count
from typing import Optional

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor
from torch._dynamo.backends.common import aot_autograd
from torch._subclasses.fake_tensor import FakeTensorMode

from autograd_conformance.harness.testing.marks import keeps

SPACE = "autograd_conformance_operators"
NUMBERS = st.lists(st.sampled_from((1.0, -1.0, 2.0, -3.0)), min_size=2, max_size=2)


_COUNT = count()
# Ways to define an operator of a function; triton_op came with 2.6.
DEFINES = [name for name in ("custom_op", "triton_op") if hasattr(torch.library, name)]


def _define(name, function, by="custom_op", **options):
    """An operator of this function."""
    return getattr(torch.library, by)(f"{SPACE}::{name}", function, **{"mutates_args": (), **options})


def _define_anew(name, *function, **options):
    """An operator with a name of its own: a faulty torch may keep the rules for modes of another one."""
    return _define(f"{name}_{next(_COUNT)}", *function, **options)


def _doubled(x: Tensor) -> Tensor:
    return 2 * x


def _tripled(x: Tensor) -> Tensor:
    return 3 * x


def _device_types(x):
    """The device type of a tensor, and another one, whose kernels never run for that tensor.

    Many devices run on the CPU what they lack, so the other one is the CPU for CUDA alone.
    """
    mine = x.device.type
    return mine, "cpu" if mine == "cuda" else "cuda"


@keeps("LIB-03")
def test_the_schema_is_that_of_the_function(subject, data):
    """A call of an operator has the defaults of its function, and gives keyword-only arguments by keyword alone."""
    given = st.fixed_dictionaries({}, optional={"a": st.sampled_from((-1.0, 5.0)), "n": st.integers(1, 3)})
    passed = subject.draw(data, given, "passed")
    seen = []

    def scaled(x: Tensor, a: float = 2.5, *, n: int = 4) -> Tensor:
        seen.append((a, n))
        return a * n * x

    op = _define_anew("scaled", scaled, subject.draw(data, DEFINES, "defined by"))
    by_name = subject.draw(data, st.booleans(), "called by its name")
    call = getattr(getattr(torch.ops, SPACE), op._name) if by_name else op
    x = subject.tensor(subject.draw(data, NUMBERS, "x"))
    y = subject.assert_accepted(lambda: call(x, **passed), "a call that leaves out what has defaults")
    wanted = {"a": 2.5, "n": 4, **passed}
    subject.assert_equal("arguments of the function", got=seen, expected=[(wanted["a"], wanted["n"])])
    subject.assert_same("output", got=y, expected=wanted["a"] * wanted["n"] * x)
    subject.assert_raises(Exception, lambda: call(x, 2.5, 4), "a keyword-only argument that is given by position")


@keeps("LIB-03", variant="annotations")
def test_a_function_without_annotations_is_refused(subject, data):
    """A parameter or a result without a type is refused."""

    def no_parameter(x) -> Tensor:
        return 2 * x

    def no_result(x: Tensor):
        return 2 * x

    function = subject.draw(data, (no_parameter, no_result), "function")
    subject.assert_raises(ValueError, lambda: _define(function.__name__, function), "a function without a type")
    subject.assert_accepted(lambda: _define("with_types", _doubled), "a function with types")


# For each type of a parameter, its values.
VALUES = {
    int: st.integers(-3, 3),
    float: st.sampled_from((0.5, -1.25, 3.0)),
    bool: st.booleans(),
    str: st.sampled_from(("", "mean", "a b")),
    torch.dtype: st.sampled_from((torch.float16, torch.int64)),
    torch.device: st.sampled_from((torch.device("cpu"), torch.device("meta"))),
    list[int]: st.lists(st.integers(0, 3), max_size=3),
    list[float]: st.lists(st.sampled_from((0.5, 2.25)), max_size=3),
    list[bool]: st.lists(st.booleans(), max_size=3),
    Optional[int]: st.none() | st.integers(0, 3),  # noqa: UP045 - what torch 2.4 reads
    Optional[float]: st.none() | st.sampled_from((0.5, 2.25)),  # noqa: UP045
}


@keeps("LIB-04")
def test_arguments_reach_the_function(subject, data):
    """Each argument of a supported type is in the function what it is in the call."""
    kind = subject.draw(data, tuple(VALUES), "type of the parameter")
    value = subject.draw(data, VALUES[kind], "value")
    seen = []

    def takes(x: Tensor, value):
        seen.append(value)
        return 2 * x

    takes.__annotations__.update({"value": kind, "return": Tensor})
    op = _define("takes", takes)
    x = subject.tensor([1.0, -2.0])
    subject.assert_accepted(lambda: op(x, value), "an argument of this type")
    what = "the argument in the function, and its type"
    subject.assert_equal(what, got=[(each, type(each)) for each in seen], expected=[(value, type(value))])


@keeps("LIB-04", variant="results")
def test_results_of_each_kind_come_back(subject, data):
    """A tensor, a list of tensors, a number and a truth value come back as they are."""
    n, a = subject.draw(data, st.tuples(st.integers(-3, 3), st.sampled_from((0.5, -1.25))), "numbers")
    flag = subject.draw(data, st.booleans(), "truth value")
    x = subject.tensor(subject.draw(data, NUMBERS, "x"))

    def returns(x: Tensor, n: int, a: float, flag: bool) -> tuple[Tensor, list[Tensor], int, float, bool]:
        return 2 * x, [3 * x, 4 * x], n, a, flag

    op = _define("returns", returns)
    y, listed, *rest = subject.assert_accepted(lambda: op(x, n, a, flag), "results of each kind")
    subject.assert_all_same("tensors", got=[y, *listed], expected=[2 * x, 3 * x, 4 * x])
    found = [(each, type(each).__name__) for each in rest]
    subject.assert_equal("numbers, with their types", got=found, expected=[(n, "int"), (a, "float"), (flag, "bool")])


_REGISTERS = {
    "its method": lambda op, name, devices: op.register_kernel(devices),
    "register_kernel of the operator": lambda op, name, devices: torch.library.register_kernel(op, devices),
    "register_kernel of its name": lambda op, name, devices: torch.library.register_kernel(name, devices),
}


@keeps("LIB-06")
def test_a_kernel_is_that_of_its_devices(subject, data):
    """The kernel that runs on a device is the one registered for it, or else the default one."""
    way = subject.draw(data, tuple(_REGISTERS), "registered by")
    x = subject.tensor(subject.draw(data, NUMBERS, "x"))
    mine, other = _device_types(x)
    devices = subject.draw(data, (mine, other, [mine, other], [other], None), "devices of the second kernel")
    op = _define("of_devices", _doubled)
    subject.assert_same("output of the default kernel", got=op(x), expected=2 * x)
    _REGISTERS[way](op, f"{SPACE}::of_devices", devices)(_tripled)
    factor = 3 if devices is None or mine in devices else 2
    subject.assert_same(f"output on {mine}", got=op(x), expected=factor * x)


@keeps("LIB-06", variant="first")
def test_a_first_kernel_of_one_device_is_none_of_another(subject, data):
    """An operator that is defined for a device raises on another one, until that has a kernel."""
    x = subject.tensor(subject.draw(data, NUMBERS, "x"))
    mine, other = _device_types(x)
    first = subject.draw(data, (mine, other), "defined for")
    op = _define("of_one", _doubled, device_types=first)
    if first == other:
        subject.assert_raises(Exception, lambda: op(x), "a call on a device without a kernel")
        op.register_kernel(mine)(_tripled)
    factor = 2 if first == mine else 3
    subject.assert_same("output", got=subject.assert_accepted(lambda: op(x), "a call"), expected=factor * x)


@keeps("LIB-07")
def test_a_disabled_kernel_does_not_run(subject, data):
    """Where its kernel is disabled, a device has the default one, and afterwards its own again."""
    again = subject.draw(data, st.booleans(), "another kernel is registered meanwhile")
    raises = subject.draw(data, st.booleans(), "the block raises")
    enabled = subject.draw(data, st.booleans(), "enabled within the block")
    op = _define("disabled", _doubled)
    x = subject.tensor(subject.draw(data, NUMBERS, "x"))
    mine, _ = _device_types(x)
    op.register_kernel(mine)(_tripled)
    inside = []
    try:
        with op.set_kernel_enabled(mine, enabled=False):
            if again:
                op.register_kernel(mine)(lambda x: 5 * x)
            with op.set_kernel_enabled(mine, enabled=True) if enabled else nullcontext():
                inside.append(op(x))
            inside.append(op(x))
            if raises:
                raise KeyError
    except KeyError:
        pass
    own = 5 if again else 3
    factors = (own if enabled else 2, 2)
    subject.assert_all_same("outputs while it is disabled", got=inside, expected=[f * x for f in factors])
    subject.assert_same("output afterwards", got=op(x), expected=own * x)


def _without_values(subject, data):
    """A meta or a fake tensor with these sides, and the context in which it is used."""
    shape = subject.draw(data, st.lists(st.integers(0, 3), max_size=3).map(tuple), "shape")
    if subject.draw(data, st.booleans(), "a meta tensor, not a fake one"):
        return shape, torch.empty(shape, device="meta"), nullcontext()
    mode = FakeTensorMode()
    return shape, mode.from_tensor(torch.empty(shape)), mode


@keeps("LIB-08")
def test_the_fake_kernel_runs_for_tensors_without_values(subject, data):
    """Outputs and gradients of tensors without values have the shapes that the fake kernel gives."""
    shape, x, mode = _without_values(subject, data)
    n = subject.draw(data, st.integers(1, 3), "number beside the tensor")
    ran = []

    def repeated(x: Tensor, n: int) -> Tensor:
        ran.append("the operator's own")
        return x.unsqueeze(0).repeat(n, *[1] * x.dim())

    def fake(x, n):
        ran.append(n)
        return x.new_empty((n, *x.shape))

    op = _define("repeated", repeated)
    op.register_fake(fake)
    op.register_autograd(lambda ctx, g: (g.sum(0), None))
    leaf = x.requires_grad_()
    with mode:
        y = subject.assert_accepted(lambda: op(leaf, n), "a call with a tensor without values")
        (found,) = torch.autograd.grad(y.sum(), leaf)
    subject.assert_equal("kernels that ran", got=ran, expected=[n])
    subject.assert_equal("shape of the output", got=tuple(y.shape), expected=(n, *shape))
    subject.assert_equal("shape of the gradient", got=tuple(found.shape), expected=shape)


@keeps("LIB-08", variant="absent")
def test_without_a_fake_kernel_there_is_no_result(subject, data):
    """A call with tensors without values raises if the operator has no fake kernel, and names what it lacks."""
    _, x, mode = _without_values(subject, data)
    op = _define("no_fake", _doubled)
    with mode:
        what = "a call with a tensor without values of an operator that has no fake kernel"
        subject.assert_raises(Exception, lambda: op(x), what, naming=["fake"])


@keeps("LIB-09")
def test_a_rule_for_vmap_gets_what_is_batched(subject, data):
    """in_dims, batch_size and randomness are those of the call, and results and gradients those of a loop."""
    axes = st.tuples(*[st.sampled_from((0, 1, -1, None))] * 2).filter(any_is_batched)
    in_dims = subject.draw(data, axes, "in_dims of the call")
    out_dim = subject.draw(data, (0, 1), "out_dims of the rule")
    randomness = subject.draw(data, ("error", "same", "different"), "randomness")
    size, k = subject.draw(data, st.tuples(st.integers(1, 3), st.sampled_from((-2.0, 0.5))), "batch size and number")
    seen = []

    def combined(x: Tensor, y: Tensor, k: float) -> Tensor:
        return k * x * y

    def rule(info, in_dims, x, y, k):
        seen.append((info.batch_size, info.randomness, tuple(in_dims)))
        parts = [t.unsqueeze(0) if d is None else t.movedim(d, 0) for t, d in zip((x, y), in_dims, strict=False)]
        return op(*torch.broadcast_tensors(*parts), k).movedim(0, out_dim), out_dim

    op = _define("combined", combined)
    op.register_vmap(rule)
    op.register_autograd(
        lambda ctx, g: (ctx.k * g * ctx.saved_tensors[1], ctx.k * g * ctx.saved_tensors[0], None),
        setup_context=_saving_numbers,
    )
    tensors = [
        subject.tensor(_filled(d, size, start)).requires_grad_() for d, start in zip(in_dims, (1.0, -2.0), strict=True)
    ]
    batched = torch.vmap(lambda x, y: op(x, y, k), in_dims=in_dims, randomness=randomness)
    y = subject.assert_accepted(lambda: batched(*tensors), "a batched call")
    gradients = torch.autograd.grad(y.sum(), tensors)
    places = tuple(None if d is None else d % 2 for d in in_dims)
    subject.assert_equal(
        "batch size, randomness and in_dims in the rule", got=seen, expected=[(size, randomness, (*places, None))]
    )
    looped = [[t if d is None else t.select(d, i) for t, d in zip(tensors, in_dims, strict=True)] for i in range(size)]
    expected = torch.stack([k * a * b for a, b in looped])
    subject.assert_same("batched output", got=y.detach(), expected=expected.detach())
    subject.assert_all_same("gradients", got=gradients, expected=torch.autograd.grad(expected.sum(), tensors))


def any_is_batched(in_dims):
    return any(d is not None for d in in_dims)


def _saving_numbers(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:2])
    ctx.k = inputs[2]


def _filled(axis, size, start):
    """Numbers for three elements, with a batch of this size along the axis if there is one."""
    shape = {None: (3,), 0: (size, 3)}.get(axis, (3, size))
    return np.arange(start, start + np.prod(shape)).reshape(shape)


@keeps("LIB-10")
def test_a_rule_for_autocast_casts(subject, data):
    """Within autocast single and half precision arrive in the rule's dtype, integers as they are; autocast is off."""
    on = subject.draw(data, st.booleans(), "within autocast")
    by_name = subject.draw(data, st.booleans(), "registered by name")
    listed = subject.draw(data, st.booleans(), "in a list")
    given = subject.draw(data, (torch.float32, torch.float16, torch.bfloat16), "dtype of the tensor")
    cast = getattr(torch, subject.implementation.autocast_dtypes[0])
    seen = []

    def watched(x: Tensor, more: list[Tensor], n: Tensor) -> Tensor:
        seen.append((*(t.dtype for t in (x, *more, n)), torch.is_autocast_enabled(subject.device)))
        return x * n

    op = _define("watched", watched)
    if by_name:
        torch.library.register_autocast(f"{SPACE}::watched", subject.device, cast)
    else:
        op.register_autocast(subject.device, cast)
    x = subject.tensor([1.0, -2.0]).to(given)
    n = torch.tensor([2, 3], device=x.device)
    with torch.autocast(subject.device, dtype=cast, enabled=on):
        y = op(x, [x] if listed else [], n)
    dtype = cast if on else given
    expected = (dtype, *([dtype] if listed else []), torch.int64, False)
    subject.assert_equal("dtypes in the operator, and whether autocast is on", got=seen, expected=[expected])
    subject.assert_equal("values of the output", got=y.tolist(), expected=[2.0, -6.0])


@keeps("LIB-10", variant="double")
def test_a_rule_for_autocast_casts_double_precision(subject, data):
    """Within autocast double precision arrives in the rule's dtype, too: it is a floating-point dtype."""
    lower = [getattr(torch, name) for name in subject.implementation.autocast_dtypes]
    dtype = subject.draw(data, lower, "dtype of the rule")
    seen = []

    def noted(x: Tensor) -> Tensor:
        seen.append(x.dtype)
        return 2 * x

    _define("noted", noted).register_autocast(subject.device, dtype)
    with torch.autocast(subject.device, dtype=dtype):
        getattr(torch.ops, SPACE).noted(subject.tensor(subject.draw(data, NUMBERS, "x"), "float64"))
    subject.assert_equal("dtype of a tensor in double precision in the operator", got=seen, expected=[dtype])


@keeps("LIB-11")
def test_a_backward_may_call_another_operator(subject, data):
    """Second derivatives come from the formula of the operator that a backward calls."""

    def through_numpy(function):
        return lambda *tensors: tensors[0].new_tensor(function(*(t.numpy(force=True) for t in tensors)))

    cube = _define("cube", through_numpy(lambda x: x**3), schema="(Tensor x) -> Tensor")
    slope = _define("slope", through_numpy(lambda g, x: 3 * g * x**2), schema="(Tensor g, Tensor x) -> Tensor")
    slope.register_autograd(
        lambda ctx, v: (v * 3 * ctx.saved_tensors[1] ** 2, v * 6 * ctx.saved_tensors[0] * ctx.saved_tensors[1]),
        setup_context=_saving,
    )
    cube.register_autograd(lambda ctx, g: (slope(g, *ctx.saved_tensors),), setup_context=_saving)
    values, cotangent = subject.draw(data, st.tuples(NUMBERS, NUMBERS), "x and cotangent")
    x, g = subject.tensor(values).requires_grad_(), subject.tensor(cotangent).requires_grad_()
    (first,) = torch.autograd.grad(cube(x), x, g, create_graph=True)
    subject.assert_same("gradient", got=first.detach(), expected=3 * np.array(cotangent) * np.array(values) ** 2)
    second = subject.assert_accepted(lambda: torch.autograd.grad(first.sum(), (x, g)), "a second derivative")
    expected = [6 * np.array(cotangent) * np.array(values), 3 * np.array(values) ** 2]
    subject.assert_all_same("second derivatives", got=second, expected=expected)


def _saving(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


@keeps("LIB-12", examples=0.1, slow=True)
def test_only_a_triton_op_is_traced(subject, data):
    """The graph of a triton_op has the operations of its function, and that of a custom_op has the operator."""
    visible = subject.draw(data, (True, False), "a triton_op")
    values = subject.draw(data, NUMBERS, "x")

    def waved(x: Tensor) -> Tensor:
        return x.sin() * 2

    define = torch.library.triton_op if visible else torch.library.custom_op
    op = define(f"{SPACE}::waved", waved, mutates_args=())
    op.register_fake(torch.empty_like)
    op.register_autograd(lambda ctx, g: (2 * g * ctx.saved_tensors[0].cos(),), setup_context=_saving)
    graphs = []

    def keep(module, _):
        graphs.append({str(node.target) for node in module.graph.nodes if node.op == "call_function"})
        return module.forward

    torch._dynamo.reset()
    compiled = torch.compile(lambda x: op(x), backend=aot_autograd(fw_compiler=keep), fullgraph=True)
    results = []
    for call in (compiled, op):
        x = subject.tensor(values).requires_grad_()
        y = call(x)
        results.append((y.detach(), *torch.autograd.grad(y.sum(), x)))
    subject.assert_all_same("compiled output and gradient", got=results[0], expected=results[1])
    names = {"operations": "aten.sin.default" in graphs[0], "operator": f"{SPACE}.waved.default" in graphs[0]}
    subject.assert_equal("what is in the graph", got=names, expected={"operations": visible, "operator": not visible})

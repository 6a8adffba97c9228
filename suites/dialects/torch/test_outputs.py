"""Outputs of further dtypes and classes, and how the engine and hooks treat marked and unused ones."""

import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.reference.definitions import FLOATING
from autograd_conformance.suites.contract._constant_outputs import SHAPES, Constants, output_lists, uses
from autograd_conformance.suites.contract._ctx_observers import THREE, doubled, nothing, three_tensors

# Dtypes in which the other tests do not compute.
SMALL_FLOATS = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "complex32")
LARGE_INTEGERS = ("uint16", "uint32", "uint64")


def _returning(subject, data, dtypes):
    """The outputs of a Function that returns its argument doubled, and constants of drawn dtypes and shapes."""
    kinds = st.lists(st.tuples(st.sampled_from(dtypes), st.sampled_from(SHAPES)), min_size=1, max_size=3)
    constants = subject.draw(data, kinds, "constant outputs")

    def forward(x):
        return x * 2, *(torch.empty(shape, dtype=getattr(torch, name), device=x.device) for name, shape in constants)

    f = subject.custom(forward=forward, separate=subject.draw(data, st.booleans(), "separate style"))
    return f(subject.tensor([1.0, 2.0]).requires_grad_())


@keeps("OUT-01", variant="small")
def test_small_floating_outputs_require_grad_too(subject, data):
    """float8 and complex32 outputs require grad and share the call's node."""
    outputs = _returning(subject, data, SMALL_FLOATS)
    got = [(y.requires_grad, y.grad_fn is outputs[0].grad_fn) for y in outputs]
    what = "requires_grad, and sharing the grad_fn, of each output"
    subject.assert_equal(what, got=got, expected=[(True, True)] * len(outputs))


@keeps("OUT-02", variant="large")
def test_large_unsigned_outputs_do_not_require_grad_either(subject, data):
    """uint16, uint32 and uint64 outputs do not require grad."""
    outputs = _returning(subject, data, LARGE_INTEGERS)
    got = [(y.requires_grad, y.grad_fn is None) for y in outputs[1:]]
    what = "requires_grad, and having no grad_fn, of each integer output"
    subject.assert_equal(what, got=got, expected=[(False, True)] * len(got))


@keeps("OUT-03", variant="output_nr")
def test_a_tensor_returned_twice_has_the_last_output_nr(subject, data):
    """A tensor at several positions has the last one as output_nr."""
    pattern = subject.draw(data, st.lists(st.integers(0, 1), min_size=2, max_size=4), "which tensor is returned where")

    def forward(x):
        fresh = (x * 1, x * 2)
        return tuple(fresh[which] for which in pattern)

    f = subject.custom(forward=forward, separate=subject.draw(data, st.booleans(), "separate style"))
    outputs = f(subject.tensor([1.0, 2.0]).requires_grad_())
    last = {which: i for i, which in enumerate(pattern)}
    got = [y.output_nr for y in outputs]
    subject.assert_equal("output_nr of each output", got=got, expected=[last[which] for which in pattern])


class Marked(torch.Tensor):
    """A subclass of Tensor."""


class MarkedAgain(Marked):
    """A subclass of a subclass."""


CLASSES = {"Tensor": torch.Tensor, "Marked": Marked, "MarkedAgain": MarkedAgain}
ARGUMENTS = {**CLASSES, "Parameter": torch.nn.Parameter}


@keeps("OUT-05")
def test_outputs_have_the_class_that_forward_gave_them(subject, data):
    """Each output has the tensor subclass that forward gave it, whatever the argument's class."""
    argument = subject.draw(data, ARGUMENTS, "class of the argument")
    returned = subject.draw(data, st.lists(st.sampled_from(sorted(CLASSES)), min_size=1, max_size=3), "returned")
    values = subject.tensor([1.0, 2.0])
    x = torch.nn.Parameter(values) if argument == "Parameter" else values.as_subclass(ARGUMENTS[argument])

    def forward(x):
        plain = x.detach().as_subclass(torch.Tensor)
        return tuple((plain * 2).as_subclass(CLASSES[name]) for name in returned)

    f = subject.custom(forward=forward, separate=subject.draw(data, st.booleans(), "separate style"))
    outputs = f(x.requires_grad_())
    names = [type(y).__name__ for y in outputs]
    subject.assert_equal("classes of the outputs", got=names, expected=returned)
    flags = [y.requires_grad for y in outputs]
    subject.assert_equal("requires_grad of the outputs", got=flags, expected=[True] * len(flags))


@keeps("OUT-05", variant="parameter")
def test_a_call_on_a_parameter_gives_plain_tensors(subject, data):
    """Outputs of a call on a Parameter are plain tensors, also the Parameter itself and views of it."""
    as_is = subject.draw(data, st.booleans(), "argument returned as it is")
    f = subject.custom(
        forward=lambda x: (x if as_is else x * 2, x.view(2, 1), x + 1),
        separate=subject.draw(data, st.booleans(), "separate style"),
    )
    parameter = torch.nn.Parameter(subject.tensor([1.0, 2.0]), requires_grad=subject.draw(data, (True, False), "grad"))
    names = [type(y).__name__ for y in f(parameter)]
    subject.assert_equal("classes of the outputs", got=names, expected=["Tensor"] * 3)


# Ways to start a backward pass.
STARTS = {
    "backward": lambda y, _: y.sum().backward(),
    "autograd.backward": lambda y, _: torch.autograd.backward([y], [torch.ones_like(y)]),
    "autograd.grad": lambda y, x: torch.autograd.grad(y, x, torch.ones_like(y)),
}


@keeps("ND-05", variant="backward")
def test_no_backward_starts_from_a_marked_output(subject, data):
    """Every way to start a pass from a marked output raises; without the mark it works."""
    start = STARTS[subject.draw(data, STARTS, "backward pass")]
    position = subject.draw(data, st.integers(0, 2), "output that it starts from")
    separate = subject.draw(data, st.booleans(), "separate style")
    leaves = [x.requires_grad_() for x in subject.tensors(THREE)]

    def call(mark):
        return three_tensors(subject, doubled, mark, separate=separate)(*leaves)[position]

    marked = call(lambda ctx, _, outputs: ctx.mark_non_differentiable(*outputs))
    what = "a backward pass from a marked output"
    naming = [("requires grad", "require grad"), "grad_fn"]
    subject.assert_raises(RuntimeError, lambda: start(marked, leaves[position]), what, naming=naming)
    subject.assert_accepted(lambda: start(call(nothing), leaves[position]), "one from the same output, not marked")


@keeps("ND-07")
def test_materialization_can_be_switched_off_for_marked_outputs_alone(subject, data):
    """With _materialize_non_diff_grads False only the non-differentiable outputs get None."""
    outputs = subject.draw(data, output_lists(subject.implementation.dtypes, marked=True, twice=True), "outputs")
    used = subject.draw(data, uses(outputs), "outputs used")
    flag = subject.draw(data, st.booleans(), "_materialize_non_diff_grads")
    separate = subject.draw(data, st.booleans(), "separate style")
    constants = Constants(subject, outputs, lambda ctx: setattr(ctx, "_materialize_non_diff_grads", flag), separate)
    pairs = zip(constants.materialized(constants.pull(used)), outputs, strict=True)
    constants.assert_given([g if flag or output.differentiable else None for g, output in pairs])


@keeps("MAT-04", variant="undefined-grad")
def test_a_node_behind_undefined_gradients_runs(subject, data):
    """A node runs although only undefined gradients reach it; it gets zeros or None as set."""
    floating = [dtype for dtype in subject.implementation.dtypes if dtype in FLOATING]
    outputs = subject.draw(data, output_lists(floating), "outputs")
    materialize = subject.draw(data, st.booleans(), "set_materialize_grads")
    separate = subject.draw(data, st.booleans(), "separate style")
    inner = Constants(subject, outputs, lambda ctx: ctx.set_materialize_grads(materialize), separate)
    x = subject.tensor([1.0, 2.0]).requires_grad_()
    ends = [torch._C._functions.UndefinedGrad()(y) for y in inner.apply(x)]
    (found,) = torch.autograd.grad(ends, x, [torch.ones_like(y) for y in ends])
    nones = (None,) * len(outputs)
    inner.assert_given(inner.materialized(nones) if materialize else nones)
    subject.assert_same("gradient", got=found, expected=torch.ones(2))


@keeps("MAT-05")
def test_hooks_see_none_where_backward_gets_zeros(subject, data):
    """Hooks of the node see None for unused outputs, while backward gets zeros."""
    outputs = subject.draw(data, output_lists(subject.implementation.dtypes, marked=True), "outputs")
    used = subject.draw(data, uses(outputs), "outputs used")
    constants = Constants(subject, outputs, separate=subject.draw(data, st.booleans(), "separate style"))
    made, pullback = constants.call()
    seen, node = [], next(y.grad_fn for y in made if y.grad_fn is not None)
    node.register_prehook(lambda cotangents: seen.append(("prehook", cotangents)))
    node.register_hook(lambda _, cotangents: seen.append(("hook", cotangents)))
    ones = [constants.constant(output) if i in used else None for i, output in enumerate(outputs)]
    pullback(ones)
    constants.assert_given(constants.materialized(ones))
    subject.assert_equal("hooks that ran", got=[name for name, _ in seen], expected=["prehook", "hook"])
    for name, cotangents in seen:
        subject.assert_all_same(f"cotangents in the {name}", got=cotangents, expected=ones)

"""What save_for_backward keeps, how backward reads it, and when an in-place change raises."""

from functools import partial

import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.reference.storing import KINDS, NOTHING
from autograd_conformance.suites.contract._grad_and_backward import drawn_create_graph
from autograd_conformance.suites.contract._inplace_and_views import IN_PLACE, NONEMPTY, drawn_preparation, with_history
from autograd_conformance.suites.contract._storing_calls import call_storing, drawn_storing


@keeps("SAVE-01")
def test_tensors_and_none_come_back_in_order(subject, data):
    """saved_tensors has every saved tensor and None in order, and the gradients made from them are right."""
    function = drawn_storing(subject, data, others=(*KINDS, NOTHING))
    run = call_storing(subject, function)
    cotangents = function.cotangents()
    got = run.gradients(cotangents)
    expected = [function.values.get(kind) for kind in function.stored]
    subject.assert_all_same("saved tensors", got=run.read, expected=expected)
    subject.assert_all_same("gradients", got=got, expected=function.gradients(cotangents))


# Values that are neither a tensor nor None, made from a tensor.
WRONG = {
    "int": lambda x: 3,
    "float": lambda x: 0.5,
    "bool": lambda x: True,
    "str": lambda x: "text",
    "list": lambda x: [x],
    "tuple": lambda x: (x,),
    "dict": lambda x: {"x": x},
    "ndarray": lambda x: np.ones(2),
}


@keeps("SAVE-02")
def test_anything_else_is_refused(subject, data):
    """save_for_backward raises TypeError for a non-tensor; the message has its position and its type."""
    kind = subject.draw(data, WRONG, "type of what is saved next to tensors")
    before, after = (subject.draw(data, st.integers(0, 2), f"tensors {side} it") for side in ("before", "after"))
    separate = subject.draw(data, st.booleans(), "saved in setup_context")

    def save(ctx, inputs, output):
        x, make = inputs
        ctx.save_for_backward(*[x] * before, make(x), *[x] * after)

    apply = subject.custom(
        forward=lambda x, make: x * 2,
        setup_context=save,
        backward=lambda ctx, cotangent: (cotangent * 2, None),
        separate=separate,
    )

    def save_with(make):
        return subject.implementation.vjp(lambda x: apply(x, make), subject.tensors([np.ones(2)]))[0]

    what = "save_for_backward of a non-tensor"
    subject.assert_raises(TypeError, partial(save_with, WRONG[kind]), what, naming=[(before, before + 1), kind])
    subject.assert_accepted(partial(save_with, lambda x: None), "save_for_backward of None")


@keeps("SAVE-03")
def test_saved_tensors_is_a_tuple(subject, data):
    """ctx.saved_tensors is a tuple of the right length, and empty if nothing was saved."""
    calls = st.one_of(st.none(), st.integers(0, 3))
    count = subject.draw(data, calls, "number of tensors saved, None for no call of save_for_backward")
    read = []

    def forward(ctx, x):
        count is None or ctx.save_for_backward(*[x] * count)
        return x * 2

    def backward(ctx, cotangent):
        read.append(ctx.saved_tensors)
        return cotangent * 2

    x = subject.tensor([1.0, 2.0])
    subject.implementation.vjp(subject.custom(forward=forward, backward=backward), [x])[1]([x])
    got = type(read[0]), len(read[0])
    subject.assert_equal("type and length of ctx.saved_tensors", got=got, expected=(tuple, count or 0))


@keeps("SAVE-04", needs="context")
def test_outputs_come_back_as_others_and_inputs_as_themselves(subject, data):
    """Saved inputs come back as the same objects; saved outputs as new ones with the call's node."""
    function = drawn_storing(
        subject, data, others=("input", "fixed input", "output"), needed=("output",), shapes=NONEMPTY
    )
    run = call_storing(subject, function, prepare=drawn_preparation(subject, data))
    run.gradients(function.cotangents())
    pairs = [(run.known[kind], x) for kind, x in zip(function.stored, run.read, strict=True)]
    outputs = [kind == "output" for kind in function.stored]
    got = [a is not b for a, b in pairs]
    subject.assert_equal("saved tensors that come back as other objects", got=got, expected=outputs)
    got = [subject.implementation.shares_memory(a, b) for a, b in pairs]
    subject.assert_equal("saved tensors that come back on their memory", got=got, expected=[True] * len(pairs))
    got = [subject.implementation.node(x) is run.ctx for x in run.read]
    subject.assert_equal("saved tensors that come back with the node of the call", got=got, expected=outputs)


# Ways to reach the memory of a tensor.
WAYS = {"the tensor itself": lambda x: x, "a view": lambda x: x[...]}


def fill(subject, run, kinds, way="the tensor itself"):
    """Fill the Function's tensors of these kinds with 2."""
    for kind in kinds:
        subject.implementation.fill_(WAYS[way](run.known[kind]), 2.0)


def some(kinds):
    """At least one of the kinds, each once."""
    return st.sets(st.sampled_from(sorted(kinds)), min_size=1).map(sorted)


@keeps("SAVE-05")
def test_reading_what_was_changed_is_an_error(subject, data):
    """grad raises if a saved tensor was changed in place; changes of other tensors do no harm."""
    function = drawn_storing(subject, data, shapes=NONEMPTY)
    kind = subject.draw(data, sorted(set(function.stored)), "changed")
    way = subject.draw(data, WAYS, "changed through")
    run = call_storing(subject, function, prepare=drawn_preparation(subject, data))
    action = partial(run.gradients, function.cotangents(), differentiable=drawn_create_graph(subject, data))
    fill(subject, run, set(KINDS) - set(function.stored), way)
    got = subject.assert_accepted(action, "backward after changes of what is not saved")
    subject.assert_all_same("gradients", got=got, expected=function.gradients(function.cotangents()))
    fill(subject, run, [kind], way)
    what = "backward that reads a saved tensor after it was changed"
    subject.assert_raises(subject.implementation.refusals, action, what, naming=[IN_PLACE])


@keeps("SAVE-05", variant="backward", needs="accumulate")
def test_reading_what_was_changed_is_an_error_in_backward(subject, data):
    """backward() raises if a saved tensor was changed in place, directly after the call."""
    function = drawn_storing(subject, data, shapes=NONEMPTY)
    kind = subject.draw(data, sorted(set(function.stored)), "changed")
    graph = drawn_create_graph(subject, data)
    inputs = [function.values[name] for name in ("input", "fixed input")]

    def gradients(*changed):
        def f(*leaves):
            known = {}
            body = function.body(subject.implementation.ag, lambda ctx, tensors: known.update(tensors))
            outputs = subject.implementation.function(body)(*map(with_history, leaves))
            for name in changed:
                subject.implementation.fill_(known[name], 2.0)
            return outputs

        primals, cotangents = (subject.tensors(each, function.dtype) for each in (inputs, function.cotangents()))
        return subject.implementation.backward(f, primals, cotangents, track=[True, False], differentiable=graph)

    got = subject.assert_accepted(gradients, "backward without a change")
    subject.assert_all_same("gradients", got=got, expected=function.gradients(function.cotangents()))
    what = "backward that reads a saved tensor after it was changed"
    subject.assert_raises(subject.implementation.refusals, partial(gradients, kind), what, naming=[IN_PLACE])


@keeps("SAVE-07")
def test_what_is_not_read_may_be_changed(subject, data):
    """A backward that never reads saved_tensors works although they were changed."""
    function = drawn_storing(subject, data, reads=False)
    kinds = subject.draw(data, some(function.stored), "changed")
    run = call_storing(subject, function)
    fill(subject, run, kinds)
    cotangents = function.cotangents()
    action = partial(run.gradients, cotangents, differentiable=drawn_create_graph(subject, data))
    got = subject.assert_accepted(action, "backward that does not read saved_tensors")
    subject.assert_all_same("gradients", got=got, expected=function.gradients(cotangents))


@keeps("SAVE-08")
def test_attributes_are_used_as_they_are_by_then(subject, data):
    """A tensor stored as an attribute may be changed, and backward computes with its new values."""
    function = drawn_storing(subject, data, saved=False, shapes=NONEMPTY)
    kinds = subject.draw(data, some(function.stored), "changed")
    way = subject.draw(data, WAYS, "changed through")
    run = call_storing(subject, function)
    fill(subject, run, kinds, way)
    cotangents = function.cotangents()
    got = subject.assert_accepted(lambda: run.gradients(cotangents), "backward that reads a changed attribute")
    expected = function.gradients(cotangents, changed=dict.fromkeys(kinds, 2.0))
    subject.assert_all_same("gradients", got=got, expected=expected)


@keeps("SAVE-12")
def test_saving_in_backward_has_no_effect(subject, data):
    """Later passes still read what forward saved, although backward calls save_for_backward."""
    function = drawn_storing(subject, data, others=(*KINDS, NOTHING))
    passes = subject.draw(data, st.integers(2, 3), "backward passes")
    saved = subject.draw(data, st.lists(st.sampled_from(("zeros", NOTHING)), max_size=3), "saved in backward")
    run = call_storing(subject, function, in_backward=saved)
    cotangents = function.cotangents()
    for _ in range(passes):
        got = run.gradients(cotangents)
        subject.assert_all_same("gradients", got=got, expected=function.gradients(cotangents))
    expected = [function.values.get(kind) for kind in function.stored]
    subject.assert_all_same("saved tensors of the last pass", got=run.read, expected=expected)

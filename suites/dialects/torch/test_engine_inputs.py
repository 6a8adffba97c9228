"""The inputs of autograd.grad and autograd.backward: unused ones, those that are no leaves, sequences and dicts."""

from collections import OrderedDict, UserDict
from types import MappingProxyType

import numpy as np
import torch
from hypothesis import strategies as st

from autograd_conformance.harness.marks import keeps
from autograd_conformance.suites.contract._derivatives import primals
from autograd_conformance.suites.contract._graphs import DTYPE, graphs
from autograd_conformance.suites.contract._ways import called, returning
from autograd_conformance.suites.dialects.torch._entries import BACKWARD, ENTRIES, FUNCTIONS, GRAD, METHOD, built, enter


def _flags(count):
    return st.lists(st.booleans(), min_size=count, max_size=count).map(tuple)


def _leaves(subject, polynomial):
    tensors = zip(primals(subject, polynomial), polynomial.track, strict=True)
    return [x.requires_grad_(tracked) for x, tracked in tensors]


def _gradients_of_leaves(graph, cotangents):
    return graph.pass_over(cotangents).gradients[: graph.leaves]


@keeps("ENG-07")
def test_unused_inputs_raise_unless_they_are_allowed(subject, data):
    graph = subject.draw(data, graphs(), "graph")
    leaves, _, outputs, _ = built(subject, graph)
    position = subject.draw(data, range(graph.leaves + 1), "position of an unused input")
    asked = subject.draw(data, ({}, {"allow_unused": False}), "options")
    other = subject.tensor(np.ones((2, 2)), "float64").requires_grad_()
    inputs = (*leaves[:position], other, *leaves[position:])
    given = subject.tensors(graph.cotangents(), DTYPE)

    def grad(**options):
        return torch.autograd.grad(outputs, inputs, given, retain_graph=True, **options)

    subject.assert_raises(RuntimeError, lambda: grad(**asked), "an unused input", naming=["allow_unused"])
    found = _gradients_of_leaves(graph, graph.cotangents())
    expected = (*found[:position], None, *found[position:])
    subject.assert_all_same("gradients with allow_unused", got=grad(allow_unused=True), expected=expected)
    used = [x for x, g in zip(leaves, found, strict=True) if g is not None]
    got = torch.autograd.grad(outputs, used, given, **asked) if used else ()
    subject.assert_all_same("gradients of the used inputs", got=got, expected=[g for g in found if g is not None])


@keeps("ENG-07", variant="materialize_grads")
def test_unused_inputs_can_get_zeros(subject, data):
    graph = subject.draw(data, graphs(), "graph")
    allowed = subject.draw(data, ({}, {"allow_unused": True}), "options")
    leaves, _, outputs, _ = built(subject, graph)
    other = subject.tensor(np.ones((2, 2)), "float64").requires_grad_()
    given = subject.tensors(graph.cotangents(), DTYPE)

    def grad(**options):
        return torch.autograd.grad(
            outputs, [*leaves, other], given, retain_graph=True, materialize_grads=True, **options
        )

    found = _gradients_of_leaves(graph, graph.cotangents())
    expected = [np.zeros(graph.shape) if g is None else g for g in (*found, np.zeros((2, 2)))]
    got = grad(**allowed)
    subject.assert_all_same("gradients with materialize_grads", got=got, expected=expected)
    kinds = [(g.dtype, g.device) for g in got]
    subject.assert_equal("dtypes and devices", got=kinds, expected=[(x.dtype, x.device) for x in (*leaves, other)])
    what = "materialize_grads with allow_unused=False"
    subject.assert_raises(ValueError, lambda: grad(allow_unused=False), what, naming=["allow_unused"])


@keeps("ENG-08")
def test_zeros_replace_none_from_a_backward(subject, data):
    polynomial = subject.polynomial(data, arguments=("tracked",), outputs=("float",), separate=None)
    withheld = subject.draw(data, st.sets(st.sampled_from(polynomial.tensors), min_size=1), "inputs that get None")
    cls = returning(subject, polynomial, lambda found: tuple(None if i in withheld else g for i, g in enumerate(found)))
    leaves, cotangents = _leaves(subject, polynomial), polynomial.cotangents()
    outputs = called(subject, polynomial, cls)(*leaves)
    got = torch.autograd.grad(outputs, leaves, subject.tensors(cotangents, polynomial.dtype), materialize_grads=True)
    zeros = np.zeros(polynomial.shape)
    expected = [zeros if i in withheld else g for i, g in enumerate(polynomial.vjp(cotangents))]
    subject.assert_all_same("gradients with materialize_grads", got=got, expected=expected)
    subject.assert_equal("dtypes", got=[g.dtype for g in got], expected=[x.dtype for x in leaves])


@keeps("ENG-09")
def test_backward_accumulates_into_the_given_inputs_alone(subject, data):
    graph = subject.draw(data, graphs(), "graph")
    wanted = subject.draw(data, _flags(graph.leaves).filter(any), "inputs")
    entry = subject.draw(data, (BACKWARD, METHOD), "entry")
    passes = subject.draw(data, st.integers(1, 2), "passes")
    leaves, _, outputs, _ = built(subject, graph)
    given = subject.tensors(graph.cotangents(), DTYPE)
    inputs = [x for x, want in zip(leaves, wanted, strict=True) if want]
    for _ in range(passes):
        enter(entry, outputs, leaves, given, inputs=inputs)
    found = _gradients_of_leaves(graph, graph.cotangents())
    expected = [
        None if g is None or not want else np.asarray(passes * g) for g, want in zip(found, wanted, strict=True)
    ]
    subject.assert_all_same(".grad of the leaves", got=[x.grad for x in leaves], expected=expected)


@keeps("ENG-09", variant="bare")
def test_a_single_input_of_backward_needs_no_sequence(subject, data):
    graph = subject.draw(data, graphs(), "graph")
    leaf = subject.draw(data, range(graph.leaves), "input")
    entry = subject.draw(data, (BACKWARD, METHOD), "entry")
    leaves, _, outputs, _ = built(subject, graph)
    given = subject.tensors(graph.cotangents(), DTYPE)
    subject.assert_accepted(lambda: enter(entry, outputs, leaves, given, inputs=leaves[leaf]), "a tensor as inputs")
    found = _gradients_of_leaves(graph, graph.cotangents())
    expected = [g if i == leaf else None for i, g in enumerate(found)]
    subject.assert_all_same(".grad of the leaves", got=[x.grad for x in leaves], expected=expected)


@keeps("ENG-09", variant="empty")
def test_backward_refuses_no_inputs(subject, data):
    graph = subject.draw(data, graphs(), "graph")
    entry = subject.draw(data, (BACKWARD, METHOD), "entry")
    empty = subject.draw(data, ([], ()), "inputs")
    leaves, _, outputs, _ = built(subject, graph)
    given = subject.tensors(graph.cotangents(), DTYPE)
    action = RuntimeError, lambda: enter(entry, outputs, leaves, given, inputs=empty)
    subject.assert_raises(*action, "no inputs", naming=["inputs", "empty"])
    subject.assert_equal(".grad of the leaves", got=[x.grad for x in leaves], expected=[None] * graph.leaves)


@keeps("ENG-10", variant="inputs")
def test_nodes_that_no_input_of_backward_needs_do_not_run(subject, data):
    graph = subject.draw(data, graphs(min_leaves=2), "graph")
    wanted = subject.draw(data, _flags(graph.leaves).filter(lambda flags: any(flags) and not all(flags)), "inputs")
    leaves, _, outputs, ran = built(subject, graph)
    inputs = [x for x, want in zip(leaves, wanted, strict=True) if want]
    enter(BACKWARD, outputs, leaves, subject.tensors(graph.cotangents(), DTYPE), inputs=inputs)
    reached = graph.pass_over(graph.cotangents()).cotangents
    needed = graph.leading_to([leaf for leaf, want in enumerate(wanted) if want]) & set(reached)
    subject.assert_equal("steps that ran, sorted", got=sorted(ran.order), expected=sorted(needed))


@keeps("ENG-11")
def test_backward_runs_what_made_its_inputs_and_grad_does_not(subject, data):
    graph = subject.draw(data, graphs(), "graph")
    made = range(graph.leaves, len(graph.made_by))
    chosen = subject.draw(data, st.sets(st.sampled_from(made), min_size=1).map(sorted), "inputs, by value")
    leaves, values, outputs, ran = built(subject, graph)
    inputs, given = [values[v] for v in chosen], subject.tensors(graph.cotangents(), DTYPE)
    gradients_of_values, reached = graph.pass_over(graph.cotangents())
    expected = [gradients_of_values[v] for v in chosen]
    got = enter(GRAD, outputs, inputs, given)
    subject.assert_all_same("gradients", got=got, expected=expected)
    makers = {graph.made_by[v] for v in chosen}
    needed = graph.leading_to([v for v, maker in enumerate(graph.made_by) if maker in makers]) & set(reached)
    subject.assert_equal("steps that grad ran, sorted", got=sorted(ran.order), expected=sorted(needed))
    ran.order.clear()
    enter(BACKWARD, outputs, leaves, given, inputs=inputs)
    subject.assert_all_same(".grad of the inputs", got=[x.grad for x in inputs], expected=expected)
    wanted = sorted((needed | makers) & set(reached))
    subject.assert_equal("steps that backward ran, sorted", got=sorted(ran.order), expected=wanted)
    subject.assert_equal(".grad of the leaves", got=[x.grad for x in leaves], expected=[None] * graph.leaves)


@keeps("ENG-12", variant="inputs")
def test_an_input_that_does_not_require_grad_cannot_be_asked_for(subject, data):
    graph = subject.draw(data, graphs(), "graph")
    entry = subject.draw(data, ENTRIES, "entry")
    position = subject.draw(data, range(graph.leaves), "leaf that is replaced by its values")
    leaves, _, outputs, _ = built(subject, graph)
    given = subject.tensors(graph.cotangents(), DTYPE)
    inputs = [x.detach() if i == position else x for i, x in enumerate(leaves)]
    options = {} if entry == GRAD else {"inputs": inputs}
    what = "an input that does not require grad"
    action = RuntimeError, lambda: enter(entry, outputs, inputs, given, **options)
    subject.assert_raises(*action, what, naming=[("require", "requires", "requires_grad")])
    subject.assert_equal(".grad of the leaves", got=[x.grad for x in leaves], expected=[None] * graph.leaves)


@keeps("ENG-15")
def test_grad_returns_a_dict_for_a_dict(subject, data):
    graph = subject.draw(data, graphs(), "graph")
    names = st.lists(st.text(max_size=3), min_size=graph.leaves, max_size=graph.leaves, unique=True)
    keys = subject.draw(data, names, "keys")
    leaves, _, outputs, _ = built(subject, graph)
    inputs, given = dict(zip(keys, leaves, strict=True)), subject.tensors(graph.cotangents(), DTYPE)
    got = enter(GRAD, outputs, inputs, given)
    subject.assert_equal("type of what grad returns", got=type(got), expected=dict)
    subject.assert_equal("its keys", got=list(got), expected=keys)
    expected = _gradients_of_leaves(graph, graph.cotangents())
    subject.assert_all_same("its values", got=list(got.values()), expected=expected)
    some = dict(list(inputs.items())[:1])
    enter(BACKWARD, outputs, leaves, given, inputs=some)
    kept = [g if i == 0 else None for i, g in enumerate(expected)]
    subject.assert_all_same(".grad after backward with a dict", got=[x.grad for x in leaves], expected=kept)


@keeps("ENG-15", variant="mappings")
def test_other_mappings_are_refused(subject, data):
    graph = subject.draw(data, graphs(), "graph")
    entry = subject.draw(data, FUNCTIONS, "entry")
    mapping = subject.draw(data, (OrderedDict, UserDict, MappingProxyType), "type of the mapping")
    leaves, _, outputs, _ = built(subject, graph)
    given = subject.tensors(graph.cotangents(), DTYPE)
    inputs = mapping({str(i): x for i, x in enumerate(leaves)})
    options = {} if entry == GRAD else {"inputs": inputs}
    facts = ["dict", mapping.__name__]
    action = TypeError, lambda: enter(entry, outputs, inputs, given, **options)
    subject.assert_raises(*action, f"inputs in a {mapping.__name__}", naming=facts)

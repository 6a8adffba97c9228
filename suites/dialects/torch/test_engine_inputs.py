"""The inputs of autograd.grad and autograd.backward: unused ones, non-leaves, sequences and dicts."""

from collections import OrderedDict, UserDict
from types import MappingProxyType

import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from torch.autograd import forward_ad
from torch.autograd import graph as graph_module

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.strategies.generated_functions import flags
from autograd_conformance.suites.contract._grad_and_backward import with_changed_gradients
from autograd_conformance.suites.contract._graphs import DTYPE, graphs
from autograd_conformance.suites.dialects.torch._engine_entries import (
    BACKWARD,
    ENTRIES,
    FUNCTIONS,
    GRAD,
    METHOD,
    built,
    run_pass,
)
from autograd_conformance.suites.dialects.torch._leaves import new_leaves, starts_of


@keeps("ENG-07")
def test_unused_inputs_raise_unless_they_are_allowed(subject, data):
    """An unused input raises by default and gets None with allow_unused; used inputs do not raise."""
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
    found = graph.leaf_gradients(graph.cotangents())
    expected = (*found[:position], None, *found[position:])
    subject.assert_all_same("gradients with allow_unused", got=grad(allow_unused=True), expected=expected)
    used = [x for x, g in zip(leaves, found, strict=True) if g is not None]
    got = torch.autograd.grad(outputs, used, given, **asked) if used else ()
    subject.assert_all_same("gradients of the used inputs", got=got, expected=[g for g in found if g is not None])


@keeps("ENG-07", variant="materialize_grads")
def test_unused_inputs_can_get_zeros(subject, data):
    """With materialize_grads unused inputs get zeros like them, recorded if wanted; allow_unused=False raises."""
    graph = subject.draw(data, graphs(), "graph")
    allowed = subject.draw(data, ({}, {"allow_unused": True}, {"create_graph": True}), "options")
    leaves, _, outputs, _ = built(subject, graph)
    other = subject.tensor(np.ones((2, 2)), "float64").requires_grad_()
    given = subject.tensors(graph.cotangents(), DTYPE)

    def grad(**options):
        return torch.autograd.grad(
            outputs, [*leaves, other], given, retain_graph=True, materialize_grads=True, **options
        )

    found = graph.leaf_gradients(graph.cotangents())
    expected = [np.zeros(graph.shape) if g is None else g for g in (*found, np.zeros((2, 2)))]
    got = grad(**allowed)
    subject.assert_all_same("gradients with materialize_grads", got=got, expected=expected)
    kinds = [(g.dtype, g.device) for g in got]
    subject.assert_equal("dtypes and devices", got=kinds, expected=[(x.dtype, x.device) for x in (*leaves, other)])
    on = "create_graph" in allowed
    subject.assert_equal("requires_grad of the zeros of an unused input", got=got[-1].requires_grad, expected=on)
    what = "materialize_grads with allow_unused=False"
    subject.assert_raises(ValueError, lambda: grad(allow_unused=False), what, naming=["allow_unused"])


@keeps("ENG-07", variant="edges")
def test_an_unused_edge_cannot_get_zeros(subject, data):
    """With materialize_grads edges in the graph get their gradients, and one that has none raises."""
    graph = subject.draw(data, graphs(), "graph")
    leaves, _, outputs, _ = built(subject, graph)
    other = subject.tensor(np.ones((2, 2)), "float64").requires_grad_()
    found = graph.leaf_gradients(graph.cotangents())
    used = [x for x, g in zip(leaves, found, strict=True) if g is not None]
    edges = [torch.autograd.graph.get_gradient_edge(x) for x in (*used, other)]
    given = subject.tensors(graph.cotangents(), DTYPE)

    def grad(inputs):
        return torch.autograd.grad(outputs, inputs, given, retain_graph=True, materialize_grads=True)

    subject.assert_raises(RuntimeError, lambda: grad(edges), "an edge without a gradient", naming=["GradientEdge"])
    expected = [*(g for g in found if g is not None), np.zeros((2, 2))]
    subject.assert_all_same("gradients", got=grad([*edges[:-1], other]), expected=expected)


@keeps("ENG-08")
def test_zeros_replace_none_from_a_backward(subject, data):
    """With materialize_grads None from a backward becomes zeros in the input's dtype."""
    polynomial = subject.polynomial(data, arguments=("tracked",), outputs=("float",), separate=None)
    withheld = subject.draw(data, st.sets(st.sampled_from(polynomial.tensors), min_size=1), "inputs that get None")
    cls = with_changed_gradients(
        subject, polynomial, lambda found: tuple(None if i in withheld else g for i, g in enumerate(found))
    )
    leaves, cotangents = new_leaves(subject, polynomial), polynomial.cotangents()
    outputs = subject.call_of(polynomial, cls)(*leaves)
    got = torch.autograd.grad(outputs, leaves, subject.tensors(cotangents, polynomial.dtype), materialize_grads=True)
    zeros = np.zeros(polynomial.shape)
    expected = [zeros if i in withheld else g for i, g in enumerate(polynomial.vjp(cotangents))]
    subject.assert_all_same("gradients with materialize_grads", got=got, expected=expected)
    subject.assert_equal("dtypes", got=[g.dtype for g in got], expected=[x.dtype for x in leaves])


@keeps("ENG-09")
def test_backward_accumulates_into_the_given_inputs_alone(subject, data):
    """backward(inputs=...) adds to .grad of the given leaves only."""
    graph = subject.draw(data, graphs(), "graph")
    wanted = subject.draw(data, flags(graph.leaves).filter(any), "inputs")
    entry = subject.draw(data, (BACKWARD, METHOD), "entry")
    passes = subject.draw(data, st.integers(1, 2), "passes")
    unused = subject.draw(data, st.booleans(), "an input has no part in the outputs")
    leaves, _, outputs, _ = built(subject, graph)
    given = subject.tensors(graph.cotangents(), DTYPE)
    inputs = [x for x, want in zip(leaves, wanted, strict=True) if want]
    inputs += [subject.tensor(np.ones(2), DTYPE).requires_grad_()] * unused
    for _ in range(passes):
        run_pass(entry, outputs, leaves, given, inputs=inputs)
    found = graph.leaf_gradients(graph.cotangents())
    expected = [
        None if g is None or not want else np.asarray(passes * g) for g, want in zip(found, wanted, strict=True)
    ]
    subject.assert_all_same(".grad of the leaves", got=[x.grad for x in leaves], expected=expected)
    if unused:
        subject.assert_same(".grad of the input without a part", got=inputs[-1].grad, expected=None)


@keeps("ENG-09", variant="bare")
def test_a_single_input_of_backward_needs_no_sequence(subject, data):
    """backward takes a bare tensor as inputs."""
    graph = subject.draw(data, graphs(), "graph")
    leaf = subject.draw(data, range(graph.leaves), "input")
    entry = subject.draw(data, (BACKWARD, METHOD), "entry")
    leaves, _, outputs, _ = built(subject, graph)
    given = subject.tensors(graph.cotangents(), DTYPE)
    subject.assert_accepted(lambda: run_pass(entry, outputs, leaves, given, inputs=leaves[leaf]), "a tensor as inputs")
    found = graph.leaf_gradients(graph.cotangents())
    expected = [g if i == leaf else None for i, g in enumerate(found)]
    subject.assert_all_same(".grad of the leaves", got=[x.grad for x in leaves], expected=expected)


@keeps("ENG-09", variant="empty")
def test_backward_refuses_no_inputs(subject, data):
    """An empty sequence of inputs raises, and no .grad changes."""
    graph = subject.draw(data, graphs(), "graph")
    entry = subject.draw(data, (BACKWARD, METHOD), "entry")
    empty = subject.draw(data, ([], ()), "inputs")
    leaves, _, outputs, _ = built(subject, graph)
    given = subject.tensors(graph.cotangents(), DTYPE)
    action = RuntimeError, lambda: run_pass(entry, outputs, leaves, given, inputs=empty)
    subject.assert_raises(*action, "no inputs", naming=["inputs", "empty"])
    subject.assert_equal(".grad of the leaves", got=[x.grad for x in leaves], expected=[None] * graph.leaves)


@keeps("ENG-10", variant="inputs")
def test_nodes_that_no_input_of_backward_needs_do_not_run(subject, data):
    """backward(inputs=...) runs only the nodes that lead to the given inputs."""
    graph = subject.draw(data, graphs(min_leaves=2), "graph")
    wanted = subject.draw(data, flags(graph.leaves).filter(lambda flags: any(flags) and not all(flags)), "inputs")
    leaves, _, outputs, ran = built(subject, graph)
    inputs = [x for x, want in zip(leaves, wanted, strict=True) if want]
    run_pass(BACKWARD, outputs, leaves, subject.tensors(graph.cotangents(), DTYPE), inputs=inputs)
    reached = graph.pass_over(graph.cotangents()).cotangents
    needed = graph.leading_to([leaf for leaf, want in enumerate(wanted) if want]) & set(reached)
    subject.assert_equal("steps that ran, sorted", got=sorted(ran.order), expected=sorted(needed))


@keeps("ENG-11")
def test_backward_runs_what_made_its_inputs_and_grad_does_not(subject, data):
    """For inputs that are not leaves, only backward runs the nodes that made them."""
    graph = subject.draw(data, graphs(), "graph")
    made = range(graph.leaves, len(graph.made_by))
    chosen = subject.draw(data, st.sets(st.sampled_from(made), min_size=1).map(sorted), "inputs, by value")
    leaves, values, outputs, ran = built(subject, graph)
    inputs, given = [values[v] for v in chosen], subject.tensors(graph.cotangents(), DTYPE)
    gradients_of_values, reached = graph.pass_over(graph.cotangents())
    expected = [gradients_of_values[v] for v in chosen]
    got = run_pass(GRAD, outputs, inputs, given)
    subject.assert_all_same("gradients", got=got, expected=expected)
    makers = {graph.made_by[v] for v in chosen}
    needed = graph.leading_to([v for v, maker in enumerate(graph.made_by) if maker in makers]) & set(reached)
    subject.assert_equal("steps that grad ran, sorted", got=sorted(ran.order), expected=sorted(needed))
    ran.order.clear()
    run_pass(BACKWARD, outputs, leaves, given, inputs=inputs)
    subject.assert_all_same(".grad of the inputs", got=[x.grad for x in inputs], expected=expected)
    wanted = sorted((needed | makers) & set(reached))
    subject.assert_equal("steps that backward ran, sorted", got=sorted(ran.order), expected=wanted)
    subject.assert_equal(".grad of the leaves", got=[x.grad for x in leaves], expected=[None] * graph.leaves)


@keeps("ENG-12", variant="inputs")
def test_an_input_that_does_not_require_grad_cannot_be_asked_for(subject, data):
    """An input that does not require grad raises, and no .grad changes."""
    graph = subject.draw(data, graphs(), "graph")
    entry = subject.draw(data, ENTRIES, "entry")
    position = subject.draw(data, range(graph.leaves), "leaf that is replaced by its values")
    leaves, _, outputs, _ = built(subject, graph)
    given = subject.tensors(graph.cotangents(), DTYPE)
    inputs = [x.detach() if i == position else x for i, x in enumerate(leaves)]
    options = {} if entry == GRAD else {"inputs": inputs}
    what = "an input that does not require grad"
    action = RuntimeError, lambda: run_pass(entry, outputs, inputs, given, **options)
    subject.assert_raises(*action, what, naming=[("require", "requires", "requires_grad")])
    subject.assert_equal(".grad of the leaves", got=[x.grad for x in leaves], expected=[None] * graph.leaves)


@keeps("ENG-15")
def test_grad_returns_a_dict_for_a_dict(subject, data):
    """grad returns a dict with the keys of its inputs, and backward accepts a dict."""
    graph = subject.draw(data, graphs(), "graph")
    names = st.lists(st.text(max_size=3), min_size=graph.leaves, max_size=graph.leaves, unique=True)
    keys = subject.draw(data, names, "keys")
    leaves, _, outputs, _ = built(subject, graph)
    inputs, given = dict(zip(keys, leaves, strict=True)), subject.tensors(graph.cotangents(), DTYPE)
    got = run_pass(GRAD, outputs, inputs, given)
    subject.assert_equal("type of what grad returns", got=type(got), expected=dict)
    subject.assert_equal("its keys", got=list(got), expected=keys)
    expected = graph.leaf_gradients(graph.cotangents())
    subject.assert_all_same("its values", got=list(got.values()), expected=expected)
    some = dict(list(inputs.items())[:1])
    run_pass(BACKWARD, outputs, leaves, given, inputs=some)
    kept = [g if i == 0 else None for i, g in enumerate(expected)]
    subject.assert_all_same(".grad after backward with a dict", got=[x.grad for x in leaves], expected=kept)


@keeps("ENG-15", variant="mappings")
def test_other_mappings_are_refused(subject, data):
    """Mappings other than dict raise TypeError."""
    graph = subject.draw(data, graphs(), "graph")
    entry = subject.draw(data, FUNCTIONS, "entry")
    mapping = subject.draw(data, (OrderedDict, UserDict, MappingProxyType), "type of the mapping")
    leaves, _, outputs, _ = built(subject, graph)
    given = subject.tensors(graph.cotangents(), DTYPE)
    inputs = mapping({str(i): x for i, x in enumerate(leaves)})
    options = {} if entry == GRAD else {"inputs": inputs}
    facts = ["dict", mapping.__name__]
    action = TypeError, lambda: run_pass(entry, outputs, inputs, given, **options)
    subject.assert_raises(*action, f"inputs in a {mapping.__name__}", naming=facts)


class _TensorLike:
    """What PyTorch takes for a tensor since it has ``__torch_function__``; it keeps what it is asked."""

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), options=None):
        return (function, arguments, options)


OPTIONS = {
    GRAD: ("retain_graph", "create_graph", "allow_unused", "is_grads_batched", "materialize_grads"),
    BACKWARD: ("retain_graph", "create_graph"),
}


@keeps("ENG-18")
def test_a_tensor_like_is_asked_for_its_derivative(subject, data):
    """grad and backward of a tensor-like give it their function, tensors and options, and return what it returns."""
    entry = subject.draw(data, FUNCTIONS, "entry")
    drawn = st.fixed_dictionaries({}, optional=dict.fromkeys(OPTIONS[entry], st.booleans()))
    # What materialize_grads excludes.
    allowed = drawn.filter(lambda given: not given.get("materialize_grads") or given.get("allow_unused", True))
    options = subject.draw(data, allowed, "options")
    where = subject.draw(data, ("output", "input"), "tensor-like")
    cotangent = subject.draw(data, st.booleans(), "a cotangent is given")
    x, y, g = subject.tensors(np.ones((3, 2)), DTYPE)
    output, given = (_TensorLike(), x) if where == "output" else (y, _TensorLike())
    called = getattr(torch.autograd, entry.removeprefix("autograd."))
    cotangents = {"grad_outputs" if entry == GRAD else "grad_tensors": g} if cotangent else {}
    inputs = (given,) if entry == GRAD else ()
    more = {} if entry == GRAD else {"inputs": [given]}
    function, arguments, got = called(output, *inputs, **cotangents, **options, **more)
    tensors = [*arguments, *([got["inputs"]] if entry == BACKWARD else [])]
    subject.assert_equal("the function that it gets", got=function, expected=called)
    subject.assert_that(tensors[0][0] is output and tensors[1][0] is given, "tensors", got=tensors, expected="those")
    wanted = {**options, **cotangents}
    subject.assert_that(all(got[name] is wanted[name] for name in wanted), "options", got=got, expected=wanted)


@keeps("ENG-17")
def test_only_inputs_is_ignored(subject, data):
    """With only_inputs=False grad warns, and its gradients and the .grad of other leaves are as without."""
    polynomial = subject.polynomial(data)
    only = subject.draw(data, (False, True, None), "only_inputs, None for the default")
    asked = subject.draw(data, st.sets(st.sampled_from(polynomial.tracked), min_size=1).map(sorted), "inputs")
    leaves = new_leaves(subject, polynomial)
    starts, given = starts_of(subject, polynomial, subject.call_of(polynomial)(*leaves))
    inputs = [leaves[polynomial.tensors.index(i)] for i in asked]
    options = {} if only is None else {"only_inputs": only}
    run = lambda: torch.autograd.grad(starts, inputs, given, **options)  # noqa: E731
    if only is False:
        got = subject.assert_warns(FutureWarning, run, "grad with only_inputs=False", naming=["only_inputs"])
    else:
        got = subject.assert_accepted(run, "grad with only_inputs")
    right = polynomial.vjp(polynomial.cotangents())
    subject.assert_all_same("gradients", got=got, expected=[right[i] for i in asked])
    subject.assert_equal(".grad of leaves", got=[x.grad for x in leaves], expected=[None] * len(leaves))


def _another_level(_, __):
    """Leave another dual level than the one there is."""
    level = forward_ad.enter_dual_level()
    try:
        forward_ad.exit_dual_level(level=level + 1)
    finally:
        forward_ad.exit_dual_level()


def _nested_permissions(_, __):
    """Allow changes of saved tensors within a block that allows them."""
    with graph_module.allow_mutation_on_saved_tensors(), graph_module.allow_mutation_on_saved_tensors():
        pass


# Calls that are refused, of a tensor and of its function's output of the same shape; and what the message names.
REFUSED = {
    "no inputs": (lambda x, y: torch.autograd.grad(y, [], torch.ones_like(y)), ["inputs", "empty"]),
    "no inputs of backward": (
        lambda x, y: torch.autograd.backward(y, torch.ones_like(y), inputs=[]),
        ["inputs", "empty"],
    ),
    "a text as a cotangent": (lambda x, y: torch.autograd.grad(y, x, ["1"]), ["str"]),
    "a cotangent of another size": (lambda x, y: torch.autograd.grad(y, x, torch.ones(3, device=x.device)), ["shape"]),
    "a batch of another size": (
        lambda x, y: torch.autograd.grad(y, x, torch.ones(2, 3, device=x.device), is_grads_batched=True),
        ["is_grads_batched", "shape"],
    ),
    "a batch for an edge": (
        lambda x, y: torch.autograd.grad(
            graph_module.get_gradient_edge(y), x, torch.ones(2, 2, 2, device=x.device), is_grads_batched=True
        ),
        ["GradientEdge"],
    ),
    "a cotangent of another size for an edge": (
        lambda x, y: torch.autograd.grad(graph_module.get_gradient_edge(y), x, torch.ones(3, device=x.device)),
        ["shape"],
    ),
    "two names for cotangents": (
        lambda x, y: torch.autograd.backward(y, torch.ones_like(y), grad_variables=torch.ones_like(y)),
        ["grad_tensors", "grad_variables"],
    ),
    "backward within func.grad": (
        lambda x, y: torch.func.grad(lambda z: (z * 2).sum().backward() or z.sum())(x.detach()),
        ["backward"],
    ),
    "another mode of a hook": (
        lambda x, y: graph_module.register_multi_grad_hook([x], print, mode="some"),
        ["mode", "some"],
    ),
    "another level": (_another_level, ["level"]),
    "two blocks that allow changes": (_nested_permissions, ["nested"]),
}


@keeps("ENG-19", examples=0.8)
@pytest.mark.filterwarnings("ignore:.*grad_variables.*:FutureWarning")
def test_the_engine_refuses_what_it_cannot_use(subject, data):
    """The call raises, says why, and leaves no gradient; a pass after it is right."""
    name = subject.draw(data, tuple(REFUSED), "call")
    call, naming = REFUSED[name]
    x = subject.tensor([[1.0, 2.0]]).requires_grad_()
    y = subject.custom(forward=lambda ctx, x: 3 * x, backward=lambda ctx, g: 5 * g)(x)
    kinds = (RuntimeError, TypeError, ValueError, AssertionError)
    subject.assert_raises(kinds, lambda: call(x, y), name, naming=naming)
    subject.assert_equal("gradient of the leaf", got=x.grad, expected=None)
    y.sum().backward()
    subject.assert_same("gradient of a pass after it", got=x.grad, expected=np.full((1, 2), 5.0))

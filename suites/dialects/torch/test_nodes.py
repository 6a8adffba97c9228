"""Nodes of custom Functions in the graph: their type, edges and metadata, and gradient edges in place of tensors."""

import copy
import gc
import pickle
import weakref

import numpy as np
import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.reference.polynomials import TENSORS
from autograd_conformance.strategies.generated_functions import flags
from autograd_conformance.suites.contract._garbage import small_garbage
from autograd_conformance.suites.dialects.torch._leaves import new_leaves, right_gradients

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,12}", fullmatch=True)

# Arguments and outputs that take part in the graph.
DIFFERENTIABLE = {"arguments": ("tracked", "fixed"), "outputs": ("float",), "shapes": ((), (2,), (2, 3))}


def _edges(tensors):
    return [torch.autograd.graph.get_gradient_edge(t) for t in tensors]


@keeps("NODE-01")
def test_a_node_is_named_after_its_class(subject, data):
    """grad_fn is a graph.Node, and its name() is the class's name with Backward appended."""
    polynomial = subject.polynomial(data, separate=None)
    name = subject.draw(data, NAMES, "name of the class")
    generated = subject.body(polynomial)
    run = subject.run(polynomial, cls=type(generated)(name, (generated,), {}))
    nodes = [y.grad_fn for y, kind in zip(run.outputs, polynomial.outputs, strict=True) if kind == "float"]
    kinds = [isinstance(node, torch.autograd.graph.Node) for node in nodes]
    subject.assert_equal("isinstance(grad_fn, torch.autograd.graph.Node)", got=kinds, expected=[True] * len(nodes))
    names = [node.name() for node in nodes]
    subject.assert_equal("grad_fn.name() of the outputs", got=names, expected=[f"{name}Backward"] * len(nodes))


class _Derived(torch.autograd.graph.Node):
    """A class of nodes that no graph has."""


@keeps("NODE-01", variant="classes")
def test_the_classes_of_nodes_are_classes_of_node(subject, data):
    """The classes of built-in and custom nodes are subclasses of graph.Node, and other classes are not."""
    leaf = subject.tensor(np.ones(2)).requires_grad_()
    custom = subject.custom(forward=lambda ctx, x: 2 * x, backward=lambda ctx, g: g)(leaf)
    built_in = {"exp": leaf.exp, "view": lambda: leaf[:1], "leaf": lambda: leaf.view_as(leaf)}
    nodes = {name: type(call().grad_fn) for name, call in built_in.items()}
    nodes["leaf"] = type(built_in["leaf"]().grad_fn.next_functions[0][0])
    others = {
        "tensor": torch.Tensor, "Function": torch.autograd.Function, "int": int, "None": type(None),
        "of a built-in's name": type(nodes["exp"].__name__, (), {}),
    }  # fmt: skip
    known = {**nodes, "custom": type(custom.grad_fn), "derived": _Derived, **others}
    name = subject.draw(data, tuple(known), "class")
    got = issubclass(known[name], torch.autograd.graph.Node)
    subject.assert_equal("whether it is a class of graph.Node", got=got, expected=name not in others)
    subject.assert_equal(
        "whether it is a derived one", got=issubclass(known[name], _Derived), expected=name == "derived"
    )


def _source(source, leaf, first):
    if source == "leaf" or not leaf.requires_grad:
        return leaf
    return first if source == "first tracked leaf" else torch.stack([leaf] * 3).unbind()[source]


@keeps("NODE-02")
def test_next_functions_has_an_edge_for_each_tensor(subject, data):
    """next_functions has the edge of each tensor argument in order, and (None, 0) for untracked ones."""
    kinds = ("tracked", "tracked", *TENSORS, "number", "None")
    polynomial = subject.polynomial(data, arguments=kinds, separate=None)
    count = len(polynomial.tensors)
    source = st.sampled_from(("leaf", "first tracked leaf")) | st.sampled_from((0, 1, 2))
    sources = st.lists(source, min_size=count, max_size=count)
    chosen = subject.draw(data, sources, "leaves, and positions in an unbound tensor")
    leaves = new_leaves(subject, polynomial)
    first = next(x for x in leaves if x.requires_grad)
    primals = [_source(s, x, first) for x, s in zip(leaves, chosen, strict=True)]
    y = subject.call_of(polynomial)(*primals)[polynomial.outputs.index("float")]
    edges = tuple((x.grad_fn or _edges([x])[0].node, x.output_nr) if x.requires_grad else (None, 0) for x in primals)
    subject.assert_equal("grad_fn.next_functions", got=y.grad_fn.next_functions, expected=edges)


@keeps("NODE-03")
def test_metadata_is_a_method_that_returns_the_dictionary(subject, data):
    """metadata() returns a dict that keeps the entries added to it."""
    polynomial = subject.polynomial(data)
    entries = subject.draw(data, st.dictionaries(NAMES, st.integers()), "entries")
    y = subject.run(polynomial).outputs[polynomial.outputs.index("float")]
    metadata = subject.assert_accepted(lambda: y.grad_fn.metadata(), "grad_fn.metadata()")
    subject.assert_equal("type of grad_fn.metadata()", got=type(metadata), expected=dict)
    metadata.update(entries)
    kept = {name: y.grad_fn.metadata().get(name) for name in entries}
    subject.assert_equal("entries kept in grad_fn.metadata()", got=kept, expected=entries)


@keeps("NODE-04")
def test_a_custom_node_is_no_callable(subject, data):
    """Calling a custom node raises TypeError; calling a built-in one works."""
    polynomial = subject.polynomial(data, outputs=("float",))
    cotangents = subject.tensors(polynomial.cotangents(), polynomial.dtype)
    y = subject.run(polynomial).outputs[0]
    subject.assert_raises(TypeError, lambda: y.grad_fn(*cotangents), "calling a custom node")
    g = subject.assert_accepted(lambda: y.view_as(y).grad_fn(cotangents[0]), "calling a built-in node")
    subject.assert_same("what a built-in node gives when called", got=g, expected=cotangents[0])


@keeps("NODE-04", variant="apply")
def test_apply_of_a_node_runs_backward(subject, data):
    """grad_fn.apply runs backward once per call and returns its gradients."""
    polynomial = subject.polynomial(data, outputs=("float",))
    count = len(polynomial.outputs)
    some = flags(count).filter(any)
    cotangents = polynomial.cotangents(subject.draw(data, some, "outputs with a cotangent"))
    calls = subject.draw(data, st.integers(1, 2), "calls of grad_fn.apply")
    run = subject.run(polynomial)
    for number in range(1, calls + 1):
        got = run.outputs[0].grad_fn.apply(*subject.tensors(cotangents, polynomial.dtype))
        subject.assert_equal("number of times that backward ran", got=run.seen.backwards, expected=number)
        subject.assert_all_same("gradients from grad_fn.apply", got=got, expected=polynomial.vjp(cotangents))


@keeps("NODE-05", variant="node")
def test_a_node_alone_does_not_keep_the_graph_alive(subject, data):
    """If only the node is held, the tensors that it saved are freed."""
    polynomial = subject.polynomial(data, **DIFFERENTIABLE)
    with small_garbage():
        primals = [x.clone() for x in new_leaves(subject, polynomial)]
        saved = [weakref.ref(x) for x in primals]
        outputs = subject.call_of(polynomial)(*primals)
        node = outputs[0].grad_fn
        what = f"whether the tensors are alive that {node.name()} saved, while only the node is held"
        del primals, outputs
        gc.collect()
    alive = [ref() is not None for ref in saved]
    subject.assert_equal(what, got=alive, expected=[False] * len(saved))


@keeps("NODE-05", variant="edge")
def test_a_gradient_edge_keeps_the_graph_alive(subject, data):
    """If only the gradient edge is held, grad still works."""
    polynomial = subject.polynomial(data, **DIFFERENTIABLE)
    position = subject.draw(data, range(len(polynomial.outputs)), "output that the edge is of")
    recorded = subject.draw(data, (True, False), "grad mode where the edge is asked for")
    leaves = new_leaves(subject, polynomial)
    with small_garbage():
        outputs = subject.call_of(polynomial)(*(x.clone() for x in leaves))
        with torch.set_grad_enabled(recorded):
            edge = _edges(outputs)[position]
        del outputs
        gc.collect()
    cotangents = polynomial.cotangents([o == position for o in range(len(polynomial.outputs))])
    g = subject.tensor(cotangents[position], polynomial.dtype)
    tracked = [x for x in leaves if x.requires_grad]
    got = subject.assert_accepted(lambda: torch.autograd.grad(edge, tracked, g), "grad of an edge without its tensor")
    subject.assert_all_same("gradients", got=got, expected=right_gradients(polynomial, cotangents))


def _accumulated(leaves, starts, g, **options):
    torch.autograd.backward(starts, g, **options)
    return [x.grad for x in leaves]


# Where an edge may replace a tensor. Each takes an output, its cotangent, the Function's inputs, and their leaves.
ROLES = {
    "output of grad": lambda y, g, given, leaves: torch.autograd.grad(_edges([y]), given, g),
    "outputs of backward": lambda y, g, given, leaves: _accumulated(leaves, _edges([y]), g),
    "inputs of grad": lambda y, g, given, leaves: torch.autograd.grad(y, _edges(given), g),
    "leaves of grad": lambda y, g, given, leaves: torch.autograd.grad(y, _edges(leaves), g),
    "inputs of backward": lambda y, g, given, leaves: _accumulated(leaves, y, g, inputs=_edges(leaves)),
}


@keeps("NODE-06")
def test_an_edge_stands_for_its_tensor(subject, data):
    """Edges work as outputs and inputs of grad and backward, those asked for under no_grad too."""
    polynomial = subject.polynomial(data, arguments=("tracked",), outputs=("float",), max_arguments=3)
    role = subject.draw(data, ROLES, "what the edges are")
    position = subject.draw(data, range(len(polynomial.outputs)), "output that is used")
    leaves = new_leaves(subject, polynomial)
    given = [x.clone() for x in leaves]
    y = subject.call_of(polynomial)(*given)[position]
    cotangents = polynomial.cotangents([o == position for o in range(len(polynomial.outputs))])
    g = subject.tensor(cotangents[position], polynomial.dtype)
    recorded = subject.draw(data, (True, False), "grad mode where the edges are asked for")
    with torch.set_grad_enabled(recorded):
        got = subject.assert_accepted(lambda: ROLES[role](y, g, given, leaves), "an edge for a tensor")
    subject.assert_all_same("gradients", got=got, expected=polynomial.vjp(cotangents))


@keeps("NODE-06", variant="beside")
def test_edges_and_tensors_may_be_mixed(subject, data):
    """Outputs of grad may be edges and tensors, mixed."""
    polynomial = subject.polynomial(data, arguments=("tracked",), outputs=("float",))
    count = len(polynomial.outputs)
    chosen = subject.draw(data, flags(count), "outputs given as edges")
    leaves, cotangents = new_leaves(subject, polynomial), polynomial.cotangents()
    outputs = subject.call_of(polynomial)(*leaves)
    starts = [_edges([y])[0] if edge else y for y, edge in zip(outputs, chosen, strict=True)]
    given = subject.tensors(cotangents, polynomial.dtype)
    got = subject.assert_accepted(lambda: torch.autograd.grad(starts, leaves, given), "edges and tensors as outputs")
    subject.assert_all_same("gradients", got=got, expected=polynomial.vjp(cotangents))


@keeps("NODE-06", variant="implicit")
def test_an_edge_needs_a_cotangent_like_its_tensor(subject, data):
    """The cotangent of an edge may be left out exactly where its tensor has one element, where it is one."""
    shape = subject.draw(data, ((), (1,), (1, 1), (2,), (2, 1), (0,)), "shape")
    polynomial = subject.polynomial(data, arguments=("tracked",), outputs=("float",), shapes=(shape,))
    position = subject.draw(data, range(len(polynomial.outputs)), "output that the edge is of")
    leaves = new_leaves(subject, polynomial)
    (edge,) = _edges([subject.call_of(polynomial)(*leaves)[position]])
    grad = lambda: torch.autograd.grad(edge, leaves)  # noqa: E731
    if np.prod(shape) == 1:
        ones = [np.ones(shape) if o == position else None for o in range(len(polynomial.outputs))]
        got = subject.assert_accepted(grad, "grad of an edge without a cotangent")
        subject.assert_all_same("gradients", got=got, expected=polynomial.vjp(ones))
    else:
        subject.assert_raises(RuntimeError, grad, "grad of an edge of several elements", naming=["scalar"])


@keeps("NODE-06", variant="none")
def test_a_tensor_without_grad_has_no_edge(subject, data):
    """Asking for the edge of a tensor that does not require grad raises."""
    polynomial = subject.polynomial(data, arguments=("tracked", "fixed"), outputs=("float", "marked"))
    leaves = new_leaves(subject, polynomial)
    tensors = [*leaves, *subject.call_of(polynomial)(*leaves), leaves[0] * 2, leaves[0].detach()]
    x = subject.draw(data, [t for t in tensors if not t.requires_grad], "tensor that does not require grad")
    subject.assert_raises(RuntimeError, lambda: _edges([x]), "asking for its edge", naming=[("gradient", "gradients")])


@keeps("NODE-07")
def test_outputs_cannot_be_copied_deeply(subject, data):
    """deepcopy of an output raises; of a detached one it works."""
    polynomial = subject.polynomial(data, outputs=("float",))
    y = subject.draw(data, subject.run(polynomial).outputs, "output")
    subject.assert_raises(RuntimeError, lambda: copy.deepcopy(y), "deep copy of an output", naming=["deepcopy"])
    copied = subject.assert_accepted(lambda: copy.deepcopy(y.detach()), "deep copy of a detached output")
    subject.assert_same("deep copy of a detached output", got=copied, expected=y.detach())


@keeps("NODE-07", variant="pickle")
def test_nodes_cannot_be_pickled(subject, data):
    """Pickling a node raises, with every protocol."""
    polynomial = subject.polynomial(data, outputs=("float",))
    protocol = subject.draw(data, range(pickle.HIGHEST_PROTOCOL + 1), "protocol")
    y = subject.run(polynomial).outputs[0]
    kinds = (TypeError, RuntimeError, pickle.PicklingError)
    subject.assert_raises(kinds, lambda: pickle.dumps(y.grad_fn, protocol), "pickling a node", naming=["pickle"])

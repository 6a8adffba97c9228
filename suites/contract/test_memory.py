"""What keeps tensors alive: attributes of ctx make cycles and last as long as the graph, saved tensors do neither."""

import gc
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.reference.storing import KINDS
from autograd_conformance.suites.contract._garbage import without_collector
from autograd_conformance.suites.contract._inplace_and_views import with_history
from autograd_conformance.suites.contract._storing_calls import drawn_storing

# Everything that a Function may store, except its outputs.
INNER = ("input", "fixed input", "intermediate")


def collect(references: "References") -> None:
    """Free cycles; objects made while the collector was off are in its youngest generation."""
    gc.collect(0)
    if references.alive:
        gc.collect()


class References:
    """Weak references to the tensors of a call, or to those of some kinds."""

    def __init__(self, kinds: Sequence[str] = KINDS) -> None:
        self.kinds = kinds
        self.known: dict[str, weakref.ref[Any]] = {}

    def note(self, _: Any, tensors: Mapping[str, Any]) -> None:
        """Watch these tensors."""
        self.known.update((kind, weakref.ref(tensors[kind])) for kind in self.kinds)

    @property
    def alive(self) -> list[str]:
        """The kinds that are still there."""
        return sorted(kind for kind, reference in self.known.items() if reference() is not None)


def called(subject, function, *, backward):
    """The outputs of a call, held by nothing else, and references to its tensors; optionally after a backward pass."""
    implementation, references, outputs = subject.implementation, References(), []
    apply = implementation.function(function.body(implementation.ag, references.note))

    def f(x, fixed):
        outputs.extend(apply(with_history(x), fixed))
        return tuple(outputs)

    primals = subject.tensors([function.values[kind] for kind in ("input", "fixed input")], function.dtype)
    if backward:
        cotangents = subject.tensors(function.cotangents(), function.dtype)
        implementation.backward(f, primals, cotangents, track=[True, False])
    else:
        implementation.vjp(f, primals, track=[True, False])
    return outputs, references


@keeps("MEM-01", needs="context")
def test_an_output_as_attribute_is_in_a_cycle(subject, data):
    """An output stored as an attribute outlives its last reference, until the garbage collector runs."""
    check_cycle(subject, drawn_storing(subject, data, saved=False, needed=("output",)), backward=False)


@keeps("MEM-03", needs="accumulate")
def test_backward_does_not_break_the_cycle(subject, data):
    """After a backward pass the cycle of a stored output is still there."""
    check_cycle(subject, drawn_storing(subject, data, saved=False, needed=("output",)), backward=True)


def check_cycle(subject, function, *, backward):
    """Stored tensors outlive the last outside reference to the outputs, until the garbage collector runs."""
    with without_collector():
        outputs, references = called(subject, function, backward=backward)
        outputs.clear()
        alive = references.alive
        collect(references)
        left = references.alive
    what = "what is alive after the last reference to the outputs"
    subject.assert_equal(what, got=alive, expected=sorted(set(function.stored)))
    subject.assert_equal("what is alive after the garbage collector ran", got=left, expected=[])


@keeps("MEM-02", needs="context")
def test_a_saved_output_is_in_no_cycle(subject, data):
    """A saved output is freed with its last reference, before and after a backward pass."""
    function = drawn_storing(subject, data, needed=("output",))
    backward = subject.draw(data, st.booleans(), "after a backward pass")
    with without_collector():
        outputs, references = called(subject, function, backward=backward)
        outputs.clear()
        alive = references.alive
    what = "what is alive after the last reference to the outputs"
    subject.assert_equal(what, got=alive, expected=[])


@keeps("MEM-04", needs="accumulate")
def test_saved_tensors_go_before_the_next_node_runs(subject, data):
    """When a node runs, the saved tensors of all nodes that ran before it are freed."""
    count = subject.draw(data, st.integers(2, 4), "calls in a row")
    function = drawn_storing(subject, data, needed=INNER, others=INNER)
    references, seen = [References(function.stored) for _ in range(count)], []

    def on_read(_, __):
        seen.append([each.alive for each in references])

    bodies = [function.body(subject.implementation.ag, each.note, on_read) for each in references]

    def f(x, *fixed):
        x = with_history(x)
        for body, other in zip(bodies, fixed, strict=True):
            x = subject.implementation.function(body)(x, with_history(other))[-1]
        return x

    primals = subject.tensors([function.values["input"], *[function.values["fixed input"]] * count], function.dtype)
    cotangents = subject.tensors(function.cotangents()[:1], function.dtype)
    with without_collector():
        subject.implementation.backward(f, primals, cotangents, track=[True, *[False] * count])
    stored = sorted(set(function.stored))
    expected = [[stored] * (count - done) + [[]] * done for done in range(count)]
    subject.assert_equal("what of each call is alive when a node runs, the last first", got=seen, expected=expected)


@keeps("MEM-05", needs="accumulate")
def test_attributes_live_as_long_as_the_graph(subject, data):
    """Tensors stored as attributes live while the outputs are held, also after backward, and no longer."""
    function = drawn_storing(subject, data, saved=False, needed=INNER, others=INNER)
    backward = subject.draw(data, st.booleans(), "after a backward pass")
    with without_collector():
        outputs, references = called(subject, function, backward=backward)
        during = references.alive
        outputs.clear()
        after = references.alive
    expected = sorted({*function.stored, "output"})
    subject.assert_equal("what is alive while the outputs are held", got=during, expected=expected)
    subject.assert_equal("what is alive after the last reference to the outputs", got=after, expected=[])

"""Memory guarding: which arrays cannot be written to, and for how long."""

import contextlib
import gc

import mygrad as mg
import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.mygrad._operations import MyGradCase

KINDS = ("variable", "constant", "array")


def _arrays(tensors):
    return [mg.asarray(x) for x in tensors]


def _writeable(arrays):
    return [bool(a.flags.writeable) for a in arrays]


@keeps("MYGRAD-GUARD-01")
def test_arrays_are_locked_until_the_graph_is_cleared(subject, data):
    """Inputs and output are read-only until backward or clear_graph; arrays that were read-only stay so."""
    case = MyGradCase(subject, data, kinds=KINDS)
    ways = {"backward": lambda y: y.backward(case.g), "clear_graph": lambda y: y.clear_graph()}
    way = subject.draw(data, ways, "cleared by")
    given = case.inputs
    frozen = subject.draw(data, st.sets(st.sampled_from(range(len(given)))), "arrays that were read-only before")
    inputs = _arrays(given)
    for i in frozen:
        inputs[i].flags.writeable = False
    y = case.call()
    arrays = [*inputs, y.data]
    subject.assert_equal("writeable arrays in a graph", got=_writeable(arrays), expected=[False] * len(arrays))
    subject.assert_raises(ValueError, lambda: np.copyto(arrays[-1], 7.0), "writing to an array in a graph")
    ways[way](y)
    expected = [i not in frozen for i in range(len(arrays))]
    subject.assert_equal("writeable arrays after it was cleared", got=_writeable(arrays), expected=expected)
    case.assert_gradients(None if way == "backward" else [None] * len(inputs))


GUARDS = {"off": mg.mem_guard_off, "on": mg.mem_guard_on}


@keeps("MYGRAD-GUARD-02")
def test_the_inner_guard_decides(subject, data):
    """Of nested guards, as contexts or decorators, the innermost decides whether arrays are locked."""
    case = MyGradCase(subject, data, kinds=KINDS)
    levels = subject.draw(data, st.lists(st.sampled_from(sorted(GUARDS)), max_size=3), "guards, outer first")
    decorated = subject.draw(data, st.booleans(), "as decorators")
    states = []

    def call(rest):
        if rest and decorated:
            GUARDS[rest[0]](call)(rest[1:])
        else:
            with GUARDS[rest[0]] if rest else contextlib.nullcontext():
                if rest:
                    call(rest[1:])
        y = case.call()
        states.append((mg.mem_guard_active(), any(_writeable([*_arrays(case.inputs), y.data]))))
        y.backward(case.g)
        case.assert_gradients()

    call(levels)
    locked = [level == "on" for level in ("on", *levels)][::-1]
    expected = [(guarded, not guarded) for guarded in locked]
    subject.assert_equal("mem_guard_active, and a writeable array, inner guards first", got=states, expected=expected)


@keeps("MYGRAD-GUARD-03")
def test_nothing_is_locked_without_a_graph(subject, data):
    """Within no_autodiff all arrays stay writeable."""
    case = MyGradCase(subject, data, kinds=KINDS)
    with mg.no_autodiff:
        y = case.call()
    arrays = [*_arrays(case.inputs), y.data]
    subject.assert_equal("writeable arrays", got=_writeable(arrays), expected=[True] * len(arrays))
    subject.assert_accepted(lambda: np.copyto(arrays[0], 7.0), "writing to an input")


@keeps("MYGRAD-GUARD-04")
def test_the_last_graph_unlocks(subject, data):
    """A shared array becomes writeable when the last of its graphs is cleared."""
    case = MyGradCase(subject, data, kinds=("constant", "array"))
    count = subject.draw(data, st.integers(1, 4), "graphs")
    order = subject.draw(data, st.permutations(range(count)), "order in which they are cleared")
    graphs = [case.similar(n) for n in range(count)]
    for graph in graphs:
        # The constants are shared; each graph has a variable of its own.
        pairs = zip(case.inputs, case.drawn.kinds, strict=True)
        graph.inputs = [x.copy() if kind == "variable" else x for x, kind in pairs]
    shared = [mg.asarray(x) for x, kind in zip(case.inputs, case.drawn.kinds, strict=True) if kind != "variable"]
    outputs = [graph.call() for graph in graphs]
    seen = [_writeable(shared)]
    for n in order:
        outputs[n].backward(case.g)
        seen.append(_writeable(shared))
    expected = [[False] * len(shared)] * count + [[True] * len(shared)]
    subject.assert_equal("writeable arrays, before and after each graph is cleared", got=seen, expected=expected)
    for graph in graphs:
        graph.assert_gradients(cotangent=case.g)


@keeps("MYGRAD-GUARD-05")
def test_a_failed_operation_leaves_nothing_locked(subject, data):
    """An operation that raises leaves all arrays writeable, and its exception reaches the caller."""
    case = MyGradCase(subject, data, kinds=KINDS)
    kind = subject.draw(data, (KeyError, ValueError, RuntimeError), "exception")
    raised, sound = kind("mine"), case.operation()

    class Failing(sound):
        def __call__(self, *variables):
            super().__call__(*variables)
            raise raised

    action = lambda: mg.execute_op(Failing, *case.inputs)  # noqa: E731
    got = subject.assert_raises(kind, action, "an operation that raises")
    subject.assert_equal("whether the exception is its own", got=got is raised, expected=True)
    del got
    raised.__traceback__ = None
    gc.collect(0)
    arrays = _arrays(case.inputs)
    subject.assert_equal("writeable arrays", got=_writeable(arrays), expected=[True] * len(arrays))
    case.call().backward(case.g)
    case.assert_gradients(what="gradients after that")

"""Memory guarding: which arrays cannot be written to, and for how long."""

import contextlib
import gc

import mygrad as mg
import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.checking.marks import keeps
from autograd_conformance.suites.dialects.mygrad._weighted_sums import input_gradients, similar_operation, sums

KINDS = ("variable", "constant", "array")


def _arrays(tensors):
    return [mg.asarray(x) for x in tensors]


def _writeable(arrays):
    return [bool(a.flags.writeable) for a in arrays]


@keeps("MYGRAD-GUARD-01")
def test_arrays_are_locked_until_the_graph_is_cleared(subject, data):
    """Inputs and output are read-only until backward or clear_graph; arrays that were read-only stay so."""
    drawn = subject.draw(data, sums(kinds=KINDS), "operation")
    ways = {"backward": lambda y: y.backward(drawn.cotangent()), "clear_graph": lambda y: y.clear_graph()}
    way = subject.draw(data, ways, "cleared by")
    given = drawn.inputs()
    frozen = subject.draw(data, st.sets(st.sampled_from(range(len(given)))), "arrays that were read-only before")
    inputs = _arrays(given)
    for i in frozen:
        inputs[i].flags.writeable = False
    y = drawn.call(given)
    arrays = [*inputs, y.data]
    subject.assert_equal("writeable arrays in a graph", got=_writeable(arrays), expected=[False] * len(arrays))
    subject.assert_raises(ValueError, lambda: np.copyto(arrays[-1], 7.0), "writing to an array in a graph")
    ways[way](y)
    expected = [i not in frozen for i in range(len(arrays))]
    subject.assert_equal("writeable arrays after it was cleared", got=_writeable(arrays), expected=expected)
    expected = drawn.gradients(drawn.cotangent()) if way == "backward" else [None] * len(inputs)
    subject.assert_all_same("gradients", got=input_gradients(given), expected=expected)


GUARDS = {"off": mg.mem_guard_off, "on": mg.mem_guard_on}


@keeps("MYGRAD-GUARD-02")
def test_the_inner_guard_decides(subject, data):
    """Of nested guards, as contexts or decorators, the innermost decides whether arrays are locked."""
    drawn = subject.draw(data, sums(kinds=KINDS), "operation")
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
        inputs = drawn.inputs()
        y = drawn.call(inputs)
        states.append((mg.mem_guard_active(), any(_writeable([*_arrays(inputs), y.data]))))
        y.backward(drawn.cotangent())
        subject.assert_all_same("gradients", got=input_gradients(inputs), expected=drawn.gradients(drawn.cotangent()))

    call(levels)
    locked = [level == "on" for level in ("on", *levels)][::-1]
    expected = [(guarded, not guarded) for guarded in locked]
    subject.assert_equal("mem_guard_active, and a writeable array, inner guards first", got=states, expected=expected)


@keeps("MYGRAD-GUARD-03")
def test_nothing_is_locked_without_a_graph(subject, data):
    """Within no_autodiff all arrays stay writeable."""
    drawn = subject.draw(data, sums(kinds=KINDS), "operation")
    inputs = drawn.inputs()
    with mg.no_autodiff:
        y = drawn.call(inputs)
    arrays = [*_arrays(inputs), y.data]
    subject.assert_equal("writeable arrays", got=_writeable(arrays), expected=[True] * len(arrays))
    subject.assert_accepted(lambda: np.copyto(arrays[0], 7.0), "writing to an input")


@keeps("MYGRAD-GUARD-04")
def test_the_last_graph_unlocks(subject, data):
    """A shared array becomes writeable when the last of its graphs is cleared."""
    drawn = subject.draw(data, sums(kinds=("constant", "array")), "operation")
    count = subject.draw(data, st.integers(1, 4), "graphs")
    order = subject.draw(data, st.permutations(range(count)), "order in which they are cleared")
    inputs = drawn.inputs()
    # The constants are shared; each graph has a variable of its own.
    graphs = [
        [x.copy() if kind == "variable" else x for x, kind in zip(inputs, drawn.kinds, strict=True)]
        for _ in range(count)
    ]
    shared = [mg.asarray(x) for x, kind in zip(inputs, drawn.kinds, strict=True) if kind != "variable"]
    outputs = [similar_operation(drawn, n).call(given) for n, given in enumerate(graphs)]
    seen = [_writeable(shared)]
    for n in order:
        outputs[n].backward(drawn.cotangent())
        seen.append(_writeable(shared))
    expected = [[False] * len(shared)] * count + [[True] * len(shared)]
    subject.assert_equal("writeable arrays, before and after each graph is cleared", got=seen, expected=expected)
    expected = [similar_operation(drawn, n).gradients(drawn.cotangent()) for n in range(count)]
    got = [g for given in graphs for g in input_gradients(given)]
    subject.assert_all_same("gradients", got=got, expected=[g for each in expected for g in each])


@keeps("MYGRAD-GUARD-05")
def test_a_failed_operation_leaves_nothing_locked(subject, data):
    """An operation that raises leaves all arrays writeable, and its exception reaches the caller."""
    drawn = subject.draw(data, sums(kinds=KINDS), "operation")
    kind = subject.draw(data, (KeyError, ValueError, RuntimeError), "exception")
    inputs, raised = drawn.inputs(), kind("mine")

    class Failing(drawn.operation()):
        def __call__(self, *variables):
            super().__call__(*variables)
            raise raised

    got = subject.assert_raises(kind, lambda: mg.execute_op(Failing, *inputs), "an operation that raises")
    subject.assert_equal("whether the exception is its own", got=got is raised, expected=True)
    del got
    raised.__traceback__ = None
    gc.collect(0)
    arrays = _arrays(inputs)
    subject.assert_equal("writeable arrays", got=_writeable(arrays), expected=[True] * len(arrays))
    drawn.call(inputs).backward(drawn.cotangent())
    subject.assert_all_same(
        "gradients after that", got=input_gradients(inputs), expected=drawn.gradients(drawn.cotangent())
    )

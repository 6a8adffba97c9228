"""Generated programs say what they do, and only use what is there."""

from __future__ import annotations

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from autograd_conformance.strategies.programs import OPERATIONS, Input, Program, Step, programs

LEAF, INNER = Input("a", "leaf"), Input("b", "intermediate")


@given(programs())
def test_a_step_uses_tensors_that_are_there(program):
    there = set(program.names)
    for step in program.steps:
        assert there.issuperset(step.operands)
        there |= {step.result} - {""}
    assert there.issuperset(program.returned)


@given(programs(without=("vmap", "noting_hook")))
def test_what_is_left_out_is_never_drawn(program):
    assert not {"vmap", "noting_hook"} & {step.operation for step in program.steps}


@given(programs(to_inputs=()))
def test_inputs_are_left_as_they_are(program):
    # Dirty, a Function, may have nothing but inputs.
    changes = [step for step in program.steps if step.kind == "change"]
    assert {program.root(step.operands[0]) for step in changes}.isdisjoint(program.names)
    assert not program.hooked
    assert not program.changed


@given(programs())
def test_no_leaf_is_changed(program):
    leaves = {each.name for each in program.inputs if each.kind == "leaf"}
    changes = [step for step in program.steps if step.kind == "change"]
    assert {program.root(step.operands[0]) for step in changes}.isdisjoint(leaves)


@pytest.mark.parametrize(
    ("to_inputs", "wanted"),
    [
        (("change", "hook"), lambda program: program.changes_an_input and program.hooked),
        (("change", "hook"), lambda program: program.changed),
        (("hook",), lambda program: program.hooked),
        ((), lambda program: [each.kind for each in program.inputs] == ["untracked", "leaf"]),
    ],
)
def test_what_may_happen_to_inputs_does(to_inputs, wanted):
    assert find(programs(to_inputs=to_inputs), wanted)


@given(programs())
def test_an_input_requires_grad(program):
    assert {each.kind for each in program.inputs} & {"leaf", "intermediate"}


def test_every_operation_is_drawn():
    drawn = set()

    @settings(max_examples=300, phases=[Phase.generate], derandomize=True, database=None)
    @given(programs())
    def draw(program):
        drawn.update(step.operation for step in program.steps)

    draw()
    assert drawn == {operation.name for operation in OPERATIONS}


def test_a_program_shrinks_to_one_function_of_a_leaf():
    assert repr(find(programs(), lambda _: True)) == "of a (leaf); b = Scaled(a); return b"


def test_a_hook_may_come_before_and_after_a_use():
    def between(program):
        of = [step.operands[0] for step in program.steps]
        return any(
            step.kind == "hook" and of[n] in of[:n] and of[n] in of[n + 1 :] for n, step in enumerate(program.steps)
        )

    assert find(programs(), between)


@given(programs())
def test_nothing_is_changed_afterwards_but_intermediate_inputs(program):
    assert program.changed in {"", *(each.name for each in program.inputs if each.kind == "intermediate")}


def _program(*steps: str) -> Program:
    """A program of b, given its steps as text: an operation, its operands, and perhaps the result."""
    made = []
    for text in steps:
        operation, operands, *result = text.split()
        made.append(Step(operation, tuple(operands.split(",")), *result))
    return Program((LEAF, INNER), tuple(made), ("b",))


CHANGED = st.sampled_from(("double_ {}", "add_ {},a", "Dirty {}"))


@given(CHANGED)
def test_an_input_is_changed_by_any_name(change):
    assert _program(change.format("b")).changes_an_input
    assert _program("alias b c", "first c d", change.format("d")).changes_an_input
    assert not _program("double b c", change.format("c")).changes_an_input


@given(CHANGED)
def test_a_hook_comes_before_a_change(change):
    assert _program("tripling_hook b", "alias b c", change.format("c")).changed_after_a_hook == {"b"}
    assert not _program("alias b c", change.format("c"), "tripling_hook b").changed_after_a_hook
    assert not _program("tripling_hook b", "double b c", change.format("c")).changed_after_a_hook


def test_a_program_prints_as_its_text():
    program = Program((LEAF, INNER), (Step("add", ("a", "b"), "c"), Step("vmap", ("c",))), ("c", "a"), "b")
    text = "of a (leaf), b (intermediate); c = add(a, b); vmap(c); return c + a; afterwards b is changed in place"
    assert repr(program) == text

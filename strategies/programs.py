"""Small programs around custom Functions: two to five operations, and what may happen around them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any, Literal

from hypothesis import strategies as st

Kind = Literal["built-in", "function", "change", "hook", "context"]


@dataclass(frozen=True)
class Operation:
    """What one step does: ``takes`` so many tensors, and ``gives`` a tensor or, as a hook does, nothing."""

    name: str
    kind: Kind
    takes: int = 1
    gives: bool = True


OPERATIONS = (
    Operation("double", "built-in"),
    Operation("multiply", "built-in", takes=2),
    Operation("add", "built-in", takes=2),
    Operation("alias", "built-in"),
    Operation("first", "built-in"),
    Operation("detach", "built-in"),
    Operation("Scaled", "function"),
    Operation("SavesInput", "function"),
    Operation("SavesOutput", "function"),
    Operation("KeepsInput", "function"),
    Operation("Product", "function", takes=2),
    Operation("FirstOfTwo", "function"),
    Operation("SumOfTwo", "function"),
    Operation("Marked", "function"),
    Operation("Dirty", "function"),
    Operation("operator", "function"),
    Operation("double_", "change"),
    Operation("add_", "change", takes=2),
    Operation("tripling_hook", "hook", gives=False),
    Operation("noting_hook", "hook", gives=False),
    Operation("no_grad", "context"),
    Operation("autocast", "context"),
    Operation("checkpoint", "context"),
    Operation("saved_tensors_hooks", "context"),
    Operation("vmap", "context"),
    Operation("grad", "context"),
)
_BY_NAME = {operation.name: operation for operation in OPERATIONS}


@dataclass(frozen=True)
class Step:
    """One operation on named tensors; a result without a name is discarded."""

    operation: str
    operands: tuple[str, ...]
    result: str = ""

    @property
    def kind(self) -> Kind:
        return _BY_NAME[self.operation].kind

    def __str__(self) -> str:
        call = f"{self.operation}({', '.join(self.operands)})"
        return f"{self.result} = {call}" if self.result else call


@dataclass(frozen=True)
class Input:
    """A tensor that a program gets: a leaf that requires grad, an intermediate result, or one that is not tracked."""

    name: str
    kind: Literal["leaf", "intermediate", "untracked"]

    def __str__(self) -> str:
        return f"{self.name} ({self.kind})"


@dataclass(frozen=True)
class Program:
    """A program of tensors, which returns the sum of some. ``changed`` is an input that is changed after it ran."""

    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]
    returned: tuple[str, ...]
    changed: str = ""

    def __repr__(self) -> str:
        lines = [f"of {', '.join(map(str, self.inputs))}", *map(str, self.steps), f"return {' + '.join(self.returned)}"]
        return "; ".join(lines + [f"afterwards {self.changed} is changed in place"] * bool(self.changed))

    @property
    def names(self) -> set[str]:
        """The names of the inputs."""
        return {each.name for each in self.inputs}

    @property
    def hooked(self) -> set[str]:
        """The inputs that get a hook by their own name."""
        return {step.operands[0] for step in self.steps if step.kind == "hook"} & self.names

    @property
    def changes_an_input(self) -> bool:
        """Whether a step changes an input in place, by any name."""
        return any(self.root(step.operands[0]) in self.names for step in self.steps if step.operation in CHANGES)

    def root(self, name: str) -> str:
        """The tensor of which this one is an alias, a view or the changed self; itself if there is none."""
        return _root(self.steps, name)

    @property
    def changed_after_a_hook(self) -> set[str]:
        """The tensors with a hook that a later step changes in place, by any name."""
        met: set[str] = set()
        found: set[str] = set()
        for step in self.steps:
            root = self.root(step.operands[0])
            found.update({root} & met if step.operation in CHANGES else ())
            met.update({root} if step.kind == "hook" else ())
        return found


# The steps that change their first operand, and those whose result has its memory.
CHANGES = ("double_", "add_", "Dirty")
_SAME_MEMORY = (*CHANGES, "alias", "first", "detach")


def _root(steps: Sequence[Step], name: str) -> str:
    of = {step.result: step.operands[0] for step in steps if step.operation in _SAME_MEMORY}
    while name in of:
        name = of[name]
    return name


@st.composite
def programs(draw: Any, without: Sequence[str] = (), to_inputs: Collection[Kind] = ("change", "hook")) -> Program:
    """Programs with at least one Function or operator, and none of the operations ``without``.

    At least one input requires grad. Up to three operations make new tensors; then up to two hooks and changes are put
    to any place where their tensor exists. Of these, inputs get those ``to_inputs``, and leaves no change; Dirty alone
    may have nothing else that it can change. Shrinks to one Function of one leaf, the last result returned, and nothing
    changed afterwards.
    """
    tracked = draw(st.sampled_from(("leaf", "intermediate")))
    others = draw(st.lists(st.sampled_from(("leaf", "intermediate", "untracked")), max_size=1))
    kinds = draw(st.permutations([tracked, *others]))
    inputs = tuple(Input(name, kind) for name, kind in zip(ascii_lowercase, kinds, strict=False))
    fixed = {each.name for each in inputs if each.kind == "leaf" or "change" not in to_inputs}
    names = [each.name for each in inputs]
    steps: list[Step] = []
    for operation in draw(_flows(without)):
        # What is new is used more often.
        operands = _operands(draw, operation, names[-1:] * 2 + names[::-1], steps, fixed)
        kept = draw(st.sampled_from((True, True, True, False)))
        steps.append(Step(operation.name, operands, ascii_lowercase[len(names)] if kept else ""))
        names += [steps[-1].result] * kept
    returned = tuple(names[-draw(st.sampled_from((1, len(names)))) :])
    events = st.sampled_from((0, 1, 2, 2)).flatmap(lambda size: _several(("hook", "hook", "change"), without, size))
    for operation in draw(events):
        at = len(steps) - draw(st.integers(0, len(steps) - 1))
        made = [step.result for step in steps[:at] if step.result]
        there = made * 3 + [each.name for each in inputs if operation.kind in to_inputs]
        if _possible(operation, there, steps, fixed):
            steps.insert(at, Step(operation.name, _operands(draw, operation, there, steps, fixed)))
    changeable = [each.name for each in inputs if each.kind == "intermediate" and "change" in to_inputs]
    return Program(inputs, tuple(steps), returned, draw(st.sampled_from(("", *changeable))))


def _operands(
    draw: Any, operation: Operation, names: Sequence[str], steps: Sequence[Step], fixed: Collection[str]
) -> tuple[str, ...]:
    """Some of these names, of which the operation may change the first one, if there is one that it may."""
    first = draw(st.sampled_from(_possible(operation, names, steps, fixed) or names))
    return (first, *(draw(st.sampled_from(names)) for _ in range(operation.takes - 1)))


def _possible(
    operation: Operation, names: Sequence[str], steps: Sequence[Step], fixed: Collection[str]
) -> Sequence[str]:
    """The names that an operation can have first: one that changes a tensor never has a ``fixed`` one."""
    return [name for name in names if operation.name not in CHANGES or _root(steps, name) not in fixed]


def _several(kinds: Sequence[Kind], without: Sequence[str], size: int) -> st.SearchStrategy[list[Operation]]:
    """So many operations of these kinds, each of which is as likely."""
    by_kind = {kind: [o for o in OPERATIONS if o.kind == kind and o.name not in without] for kind in kinds}
    one = st.sampled_from(kinds).flatmap(lambda kind: st.sampled_from(by_kind[kind]))
    return st.lists(one, min_size=size, max_size=size)


def _flows(without: Sequence[str]) -> st.SearchStrategy[list[Operation]]:
    kinds: tuple[Kind, ...] = ("function", "built-in", "context")
    lists = st.sampled_from((1, 2, 3, 3)).flatmap(lambda size: _several(kinds, without, size))
    return lists.filter(lambda found: any(operation.kind == "function" for operation in found))

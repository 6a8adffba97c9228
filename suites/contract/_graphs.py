"""Generated graphs of custom Functions, with the gradients that they should have and a record of what ran."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.testing.clauses import ClauseSubject

# Sums of a few small products are exact in this dtype.
DTYPE = "float32"


class Step(NamedTuple):
    """One Function of a graph: which values it takes, and how many it returns."""

    inputs: tuple[int, ...]
    outputs: int


@dataclass(frozen=True)
class Graph:
    """A graph of Functions, each a linear map of earlier values. Leaves are numbered first, then outputs of steps.

    ``outputs`` are the values from which a backward pass starts; a value may occur twice. Weights, leaves and
    cotangents are small integers that ``seed`` determines.
    """

    leaves: int
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    shape: tuple[int, ...] = ()
    seed: int = 0

    def _integers(self, salt: int, shape: tuple[int, ...]) -> Any:
        drawn = np.random.default_rng((self.seed, salt)).choice([-2, -1, 1, 2], size=shape)
        return np.asarray(drawn, dtype=np.float64)

    def weights(self, step: int) -> Any:
        """The weight of each input (columns) in each output (rows) of a step."""
        return self._integers(step, (self.steps[step].outputs, len(self.steps[step].inputs)))

    @property
    def values(self) -> tuple[Any, ...]:
        """The leaves."""
        return tuple(self._integers(100 + leaf, self.shape) for leaf in range(self.leaves))

    def cotangents(self, salt: int = 0) -> tuple[Any, ...]:
        """An array for each output."""
        return tuple(self._integers(200 + salt + o, self.shape) for o in range(len(self.outputs)))

    @property
    def made_by(self) -> tuple[int | None, ...]:
        """The step that made each value, None for leaves."""
        return (None,) * self.leaves + tuple(k for k, step in enumerate(self.steps) for _ in range(step.outputs))

    def first_output(self, step: int) -> int:
        """The value that is the first output of a step."""
        return self.made_by.index(step)

    def pass_over(self, cotangents: Sequence[Any]) -> Pass:
        """What a backward pass from the outputs has to compute; None as a cotangent leaves its output out."""
        arrived: list[Any] = [None] * len(self.made_by)
        for value, g in zip(self.outputs, cotangents, strict=True):
            arrived[value] = sum_of_gradients(arrived[value], g)
        given: dict[int, tuple[Any, ...]] = {}
        for k in reversed(range(len(self.steps))):
            first, step = self.first_output(k), self.steps[k]
            mine = arrived[first : first + step.outputs]
            if any(g is not None for g in mine):
                given[k] = tuple(np.zeros(self.shape) if g is None else g for g in mine)
                for value, column in zip(step.inputs, self.weights(k).T, strict=True):
                    total = sum(w * g for w, g in zip(column, given[k], strict=True))
                    arrived[value] = sum_of_gradients(arrived[value], np.asarray(total))
        return Pass(tuple(arrived), given)

    def leaf_gradients(self, cotangents: Sequence[Any]) -> tuple[Any, ...]:
        """The gradients of the leaves, None where there is none."""
        return self.pass_over(cotangents).gradients[: self.leaves]

    def leading_to(self, values: Sequence[int]) -> set[int]:
        """The steps on the way from these values to the outputs."""
        reached = set(values)
        steps = set()
        for k, step in enumerate(self.steps):
            if reached & set(step.inputs):
                steps.add(k)
                first = self.first_output(k)
                reached |= set(range(first, first + step.outputs))
        return steps


class Pass(NamedTuple):
    """A backward pass: the gradient of every value, and the cotangents that each step that runs gets."""

    gradients: tuple[Any, ...]
    cotangents: dict[int, tuple[Any, ...]]


@dataclass
class PassLog:
    """The backwards that ran: which step's, in order, and with which cotangents."""

    order: list[int] = field(default_factory=list)
    cotangents: list[tuple[Any, ...]] = field(default_factory=list)


def computed(subject: ClauseSubject, graph: Graph, leaves: Sequence[Any]) -> tuple[tuple[Any, ...], PassLog]:
    """All values of the graph over these leaves, and a log of the backwards that run later."""
    ran = PassLog()
    values = list(leaves)
    for k, step in enumerate(graph.steps):
        apply = _linear(subject, graph.weights(k).tolist(), k, ran)
        values.extend(apply(*(values[i] for i in step.inputs)))
    return tuple(values), ran


def outputs_of(subject: ClauseSubject, graph: Graph) -> tuple[Callable[..., tuple[Any, ...]], list[PassLog]]:
    """The graph's outputs as a function of its leaves, and the logs of the calls of that function."""
    logs: list[PassLog] = []

    def f(*leaves: Any) -> tuple[Any, ...]:
        values, ran = computed(subject, graph, leaves)
        logs.append(ran)
        return tuple(values[o] for o in graph.outputs)

    return f, logs


def _linear(subject: ClauseSubject, weights: list[list[float]], k: int, ran: PassLog) -> Any:
    def forward(_: Any, *xs: Any) -> tuple[Any, ...]:
        return tuple(sum(w * x for w, x in zip(row, xs, strict=True)) for row in weights)

    def backward(_: Any, *cotangents: Any) -> tuple[Any, ...]:
        ran.order.append(k)
        ran.cotangents.append(tuple(subject.implementation.numpy(g) for g in cotangents))
        columns = zip(*weights, strict=True)
        return tuple(sum(w * g for w, g in zip(column, cotangents, strict=True)) for column in columns)

    return subject.custom(name=f"Step{k}", forward=forward, backward=backward)


def sum_of_gradients(a: Any, b: Any) -> Any:
    """The sum of two gradients, either of which may be None."""
    return a if b is None else b if a is None else np.asarray(a + b)


@st.composite
def graphs(
    draw: Any, *, min_leaves: int = 1, max_steps: int = 4, max_outputs: int = 3, step_outputs: int = 2,
    shape: tuple[int, ...] | None = None, repeated: bool | None = None,
) -> Graph:  # fmt: skip
    """A graph: steps may take any earlier value, also twice; any output of a step may be an output of the graph.

    ``repeated`` says whether an output occurs twice; None leaves that to chance.
    """
    leaves = draw(st.integers(min_leaves, 3))
    steps: list[Step] = []
    count = leaves
    for _ in range(draw(st.integers(1, max_steps))):
        inputs = draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=3))
        steps.append(Step(tuple(inputs), draw(st.integers(1, step_outputs))))
        count += steps[-1].outputs
    made = st.integers(leaves, count - 1)
    outputs = draw(st.lists(made, min_size=1, max_size=max_outputs, unique=repeated is not None))
    if repeated:
        outputs.append(draw(st.sampled_from(outputs)))
    shapes = st.sampled_from(((), (3,), (2, 1), (0,))) if shape is None else st.just(shape)
    return Graph(leaves, tuple(steps), tuple(outputs), draw(shapes), draw(st.integers(0, 99)))


def drawn_graph(subject: ClauseSubject, data: Any, **restrictions: Any) -> Graph:
    """Draw a graph of Functions, which have several outputs if the implementation allows it."""
    several = 2 if "tuples" in subject.implementation.capabilities else 1
    graph: Graph = subject.draw(data, graphs(step_outputs=several, **restrictions), "graph")
    return graph

"""Linear functions with JAX's rules, containers, and what they are differentiated by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from hypothesis import strategies as st

from autograd_conformance.suites.dialects.shared.linear import CONTAINERS, Case, Spelling

FACTORS = st.integers(-3, 3).filter(bool)
SHAPES = ((), (3,), (2, 3))
structure = jax.tree_util.tree_structure
leaves = jax.tree_util.tree_leaves

# Arguments that are no arrays: anything but tracers, hashable or not.
STATICS = st.lists(st.sampled_from(("text", (1, 2), None, len, {"key": [1]}, 3)), min_size=1, max_size=3)

# Ways to call a function that do not differentiate it.
CALLS: dict[str, Callable[..., Any]] = {
    "call": lambda f: f,
    "jit": jax.jit,
    "checkpoint": jax.checkpoint,
    "vmap": jax.vmap,
    "jit of vmap": lambda f: jax.jit(jax.vmap(f)),
}


def with_vjp(forward: Any, backward: Any) -> Any:
    """A `jax.custom_vjp` whose residuals are its arguments."""
    function = jax.custom_vjp(lambda *xs: forward(*xs))
    function.defvjp(lambda *xs: (forward(*xs), xs), backward)
    return function


def _calling_itself(forward: Any, backward: Any) -> Any:
    """The same with a fwd that calls the function itself."""
    function = jax.custom_vjp(lambda *xs: forward(*xs))
    function.defvjp(lambda *xs: (function(*xs), xs), backward)
    return function


JAX = {"custom_vjp": Spelling(with_vjp)}
RECURSIVE = {"custom_vjp that calls itself": Spelling(_calling_itself)}


class JaxCase(Case):
    """A drawn linear function, as a `jax.custom_vjp` or a `jax.custom_jvp`."""

    def __init__(self, subject: Any, data: Any, **restrictions: Any) -> None:
        usual = {"dtypes": ("float64", "float32"), "shapes": SHAPES, "max_outputs": 2}
        super().__init__(subject, data, JAX, **{**usual, **restrictions})

    def with_vjp(self, forward: Any = None, backward: Any = None, **options: Any) -> Any:
        """The function with these rules in place of its own."""
        function = jax.custom_vjp(lambda *xs: self.linear.primal(*xs))
        mine = forward or (lambda *xs: (self.linear.primal(*xs), None)), backward or self.rule
        function.defvjp(*mine, **options)
        return function

    def with_jvp(self, rule: Any = None, **options: Any) -> Any:
        """The function with this rule in place of its own."""
        function = jax.custom_jvp(lambda *xs: self.linear.primal(*xs))
        usual = lambda primals, tangents: (self.linear.primal(*primals), self.linear.pushed(*tangents))  # noqa: E731
        function.defjvp(rule or usual, **options)
        return function

    def moved(self, f: Any) -> Any:
        """The outputs at the points, and their tangents, by jax.jvp."""
        return jax.jvp(f, tuple(self.points), tuple(self.tensors(self.linear.tangents)))

    def position(self, data: Any, label: str) -> int:
        """The position of an argument."""
        drawn: int = self.subject.draw(data, st.integers(0, self.linear.arguments - 1), label)
        return drawn

    def flags(self, data: Any, label: str) -> list[bool]:
        """Whether each argument is one of some."""
        chosen = self.some(data, label)
        return [i in chosen for i in range(self.linear.arguments)]

    def with_constants(self, f: Any, moves: Sequence[bool]) -> Any:
        """``f`` as a function of the arguments that move."""
        points = self.points

        def of_moving(*moving: Any) -> Any:
            rest = iter(moving)
            return f(*(next(rest) if m else x for m, x in zip(moves, points, strict=True)))

        return of_moving


def drawn_pack(subject: Any, data: Any, label: str) -> Callable[[Sequence[Any]], Any]:
    """A way to put a list of leaves into containers."""
    return CONTAINERS[subject.draw(data, tuple(CONTAINERS), label)]


def named(names: Sequence[str], f: Callable[..., Any]) -> Any:
    """``f`` with these parameter names."""
    made: dict[str, Any] = {"f": f}
    exec(f"def named({', '.join(names)}): return f({', '.join(names)})", made)
    return made["named"]


def passed_somehow(subject: Any, data: Any) -> Any:
    """How a function of a, b=7 and c=11 is called: the call for values of each, those taken, and what arrives."""
    values = {"a": 2.0, "b": 3.0, "c": 5.0}
    positional = subject.draw(data, st.integers(0, 2), "arguments by position")
    words = subject.draw(data, st.permutations(list(values)[positional:]), "order of the keywords")
    left_out = subject.draw(data, st.sets(st.sampled_from(("b", "c"))), "arguments left out")
    passed = [word for word in words if word not in left_out]

    def calling(function: Any) -> Any:
        def call(a: Any, b: Any, c: Any) -> Any:
            moving = {"a": a, "b": b, "c": c}
            return function(*list(moving.values())[:positional], **{name: moving[name] for name in passed})

        return call

    taken = [*list(values)[:positional], *passed]
    arriving = [values[name] if name in taken else default for name, default in {"a": 2.0, "b": 7.0, "c": 11.0}.items()]
    slopes = [float(i + 1) if name in taken else 0.0 for i, name in enumerate(values)]
    return calling, list(values.values()), arriving, slopes

"""What discovery found out about a Function, as text."""

from __future__ import annotations

from collections.abc import Iterator

from autograd_conformance.harness.check.declaration.facts import Facts
from autograd_conformance.harness.check.discovery.cost import slower_than
from autograd_conformance.harness.check.refusals import layouts


def in_words(facts: Facts) -> Iterator[str]:
    """The facts as text, one line each."""
    several = f"{len(facts.outputs)} outputs" if len(facts.outputs) > 1 else "one output"
    constant = [f"output {n}" for n, output in enumerate(facts.outputs) if not output.differentiable]
    yield several + (f"; not differentiable: {', '.join(constant)}" if constant else "")
    yield f"takes {', '.join(facts.dtypes)}"
    for what, why in facts.refused.items():
        yield f"does not take {what}: {why}"
    yield from layouts.in_words(facts.refused_layouts)
    yield from facts.sweeps
    if facts.interpreted:
        yield "runs under Triton's interpreter, one kernel at a time: two at once are more than the interpreter can do"
    if facts.paced:
        yield _paced(facts.share)
    yield from facts.cut
    if facts.any_gradient:
        and_jvp = " and its jvp" if facts.jvp else ""
        yield f"its gradients{and_jvp} are not compared with slopes: surrogate is declared without soft="
    if facts.holds_others:
        yield "uses tensors that require grad but are not arguments; their gradients are not checked"
    for name in facts.coarse:
        yield f"all numbers of {name} are of single precision; derivatives were compared in single precision only"
    for dtype, other in facts.comes_back.items():
        if not facts.coarse:
            yield f"returns {other} for {dtype}, and is compared as precisely as that allows"
    if facts.sparse:
        yield "returns sparse gradients; most operations do not take them, so its arguments are always leaves"
    if facts.batches:
        yield "has a vmap rule"
    if facts.jvp:
        yield "has a jvp"
    if facts.resizes:
        yield "the sizes of outputs depend on the values; calls in which rounding decides on a size are left out"
    if facts.emptied:
        yield "backward raises for tensors without elements; FWD-EMPTY alone calls it with such tensors"
    if facts.draws:
        yield "draws random numbers; they are seeded before forward and before backward, as with stochastic=True"
    if not facts.materialize:
        yield "backward gets None, not zeros, for unused outputs"
    if facts.unpassed:
        left = " and ".join(facts.unpassed)
        yield f"{left} can be given by keyword only, and keeps its default; check a function that passes it, too"
    if not facts.is_class:
        yield "not a Function class: ctx and the values that backward returns cannot be checked"


def _paced(share: float) -> str:
    """What becomes of the examples of a slow Function."""
    return (
        f"a call takes more than {1000 * slower_than(share):g} ms, so that 1/{1 / share:.0f} of the examples are "
        f"tried, in about a minute; declare examples={share:g} to have as many on every machine, examples=1 to have all"
    )

"""Whether a declaration fits what a few calls of the Function show."""

from __future__ import annotations

from collections.abc import Sequence

from autograd_conformance.harness.check.declaration.declaration import Declaration
from autograd_conformance.harness.check.discovery.returned import left_alone
from autograd_conformance.harness.outcomes import one_line
from autograd_conformance.harness.testing.example import Example
from autograd_conformance.harness.testing.own_faults import noticed
from autograd_conformance.harness.testing.relations import Related, Unfit
from autograd_conformance.strategies.shapes import shape_tuples


def verify_inplace(declaration: Declaration, examples: Sequence[Example]) -> None:
    """Raise UsageProblem for an argument that is declared to be changed in place, but never is."""
    slot = next(iter(left_alone(examples)), None)
    if slot is not None:
        raise declaration.problem(
            f"{declaration.notation.said('inplace', declaration.inplace)}: in all of {len(examples)} calls forward "
            f"neither changes argument {slot} ({declaration.parsed.found[slot].name}) nor returns it; declare the "
            "position of one that it does"
        )


def verify_soft(declaration: Declaration, example: Example) -> None:
    """Raise UsageProblem for a soft function that cannot replace the forward."""
    soft = declaration.soft
    if soft is None:
        return
    try:
        outputs, _ = example.implementation.vjp(
            lambda *xs: soft(*example.merged(xs)), example.primals, track=example.track
        )
        shapes = [example.implementation.describe(y).shape for y in outputs]
    except Exception as raised:  # noqa: BLE001 - a user's function may raise anything
        noticed(raised)
        raise declaration.problem(
            f"soft= must take the arguments of the Function, but raised {one_line(raised)[:300]}"
        ) from None
    wanted = [example.implementation.describe(y).shape for y in example.outputs()]
    if shapes != wanted:
        raise declaration.problem(
            f"soft= must return the shapes of the Function's outputs, {wanted}, but returns {shapes}"
        )


def verify_relations(declaration: Declaration, examples: Sequence[Example]) -> None:
    """Raise UsageProblem for a promise about other calls that does not fit the shapes, or that nothing can show."""
    for relation in declaration.relations.values():
        function = examples[0].function
        if not any(relation.suits(function, shapes) for shapes in shape_tuples(function)):
            raise declaration.problem(f"{relation.promise}: there is only one index to slice; declare longer sizes=")
        # Of several outputs the tests say which one does not fit.
        for example in examples if len(function.outputs) == 1 else ():
            way, parts = next(iter(relation.ways(function, example.call).items()), ("", ()))
            try:
                Related(example, relation, parts).run(lambda _: False)
            except Unfit as unfit:
                where = f"{relation.label} {way}: {unfit}"
                raise declaration.problem(f"{relation.promise} does not fit this Function: {where}") from None
            except Exception as raised:  # noqa: BLE001 - the tests will report it
                noticed(raised)
                continue

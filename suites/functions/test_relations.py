"""What a declaration promises of other calls: along slices, other axes, and with exchanged arguments."""

from dataclasses import replace

from hypothesis import assume

from autograd_conformance.harness.testing.marks import holds
from autograd_conformance.harness.testing.relations import Related, Unfit
from autograd_conformance.reference.rounding import SAFETY
from autograd_conformance.strategies.scope import PLAIN
from autograd_conformance.strategies.shapes import shape_tuples

_CALLS = replace(PLAIN, mask="full")


def _promised(property_id):
    """Whether a Function has a relation that the property is about."""
    return lambda function: property_id in getattr(function, "relations", {})


def _assert_related(subject, data):
    """The results are those that other calls give together."""
    function, relation = subject.function, subject.function.relations[subject.property_id]
    shapes = tuple(s for s in shape_tuples(function) if relation.suits(function, s))
    example = subject.example(data.draw(subject.calls(_CALLS, shapes=shapes), label="call"))
    ways = relation.ways(function, example.call)
    assume(ways)
    way = subject.draw(data, tuple(ways), relation.label)
    related = Related(example, relation, ways[way])
    try:
        refused = related.run(subject.policy.mistaken)
    except Unfit as unfit:
        component = {"aspect": "shape", "number": unfit.number}
        subject.fail(example.call, "outputs", got=unfit, expected="outputs that fit", component=component)
    if refused is not None:
        subject.record.refused += 1
        subject.record.excuse_with(f"{relation.label} {way}: {type(refused).__name__}: {refused}")
        return
    hint = "got is put together from those other calls, expected is what the call itself gives"
    names, got = example.result_names, related.joined
    subject.assert_close(example.call, names, got=got, expected=related.whole, slack=2 * SAFETY, hint=hint)


@holds("DECL-INDEPENDENT", where=_promised("DECL-INDEPENDENT"), own=True)
def test_decl_independent(subject, data):
    """The results for slices are the slices of the results."""
    _assert_related(subject, data)


@holds("DECL-AXIS", where=_promised("DECL-AXIS"), own=True)
def test_decl_axis(subject, data):
    """The results along one axis are those along another one."""
    _assert_related(subject, data)


@holds("DECL-SYMMETRIC", where=_promised("DECL-SYMMETRIC"), own=True)
def test_decl_symmetric(subject, data):
    """The results stay, or change their sign, if arguments are exchanged."""
    _assert_related(subject, data)

"""What jvp and vmap rules get, and how their results are used."""

import mlx.core as mx
import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.mlx._trees import (
    Values,
    arguments,
    leaves,
    mapped,
    numbered,
    shaped,
    total,
    trees,
)


@keeps("MLX-JVP-01")
def test_the_jvp_rule_is_used_by_jvp_alone(subject, data):
    """mx.jvp uses the jvp rule, and mx.vjp the derivative of the function."""
    values = Values(subject, data)
    factor, times = (subject.draw(data, (2, -3, 5), label) for label in ("factor", "factor of the rule"))
    f = mx.custom_function(lambda x: x * factor)
    f.jvp(lambda primal, tangent: tangent * times)
    x, v = (values.tensor(values.array(salt)) for salt in range(2))
    subject.assert_same("tangent", got=mx.jvp(f, [x], [v])[1][0], expected=times * values.array(1))
    subject.assert_same("gradient", got=mx.vjp(f, [x], [v])[1][0], expected=factor * values.array(1))


def _moved(subject, data, structure, outputs):
    """What a jvp rule got when some inputs have tangents, and the resulting tangents of the outputs."""
    values = Values(subject, data)
    flat = leaves(numbered(structure))
    moving = subject.draw(data, st.sets(st.sampled_from(flat), min_size=1).map(sorted), "inputs that move")
    seen = []
    f = mx.custom_function(lambda *args: mapped(lambda n: (n + 1) * total(args), outputs))

    def rule(*given):
        seen.append(given)
        return mapped(lambda n: values.tensor(values.array(9, n)), outputs)

    f.jvp(rule)
    fixed = values.grown(structure, 0)

    def of_moving(*tensors):
        given = dict(zip(moving, tensors, strict=True))
        return leaves(f(*mapped(lambda n: given.get(n, leaves(fixed)[n]), numbered(structure))))

    points, tangents = ([values.tensor(values.array(salt, n)) for n in moving] for salt in (0, 5))
    _, got = mx.jvp(of_moving, points, tangents)
    return values, moving, seen[0], got


@keeps("MLX-JVP-02")
def test_the_jvp_rule_gets_primals_and_tangents(subject, data):
    """The jvp rule gets all primals, and tangents of the same structure with None for inputs that do not move."""
    structure = subject.draw(data, arguments(), "arguments")
    values, moving, (primals, tangents), _ = _moved(subject, data, structure, 0)
    alone = numbered(structure) if len(structure) > 1 else numbered(structure)[0]
    subject.assert_equal("structure of the primals", got=shaped(primals), expected=shaped(alone))
    expected = mapped(lambda n: n if n in moving else None, alone)
    subject.assert_equal("structure of the tangents", got=shaped(tangents), expected=shaped(expected))
    wanted = [values.array(5, n) if n in moving else None for n in leaves(alone)]
    subject.assert_all_same("primals", got=leaves(primals), expected=[values.array(0, n) for n in leaves(alone)])
    subject.assert_all_same("tangents", got=leaves(tangents), expected=wanted)


@keeps("MLX-JVP-03")
def test_what_the_jvp_rule_returns_are_the_tangents(subject, data):
    """What the jvp rule returns are the tangents of the outputs, each at its place in the tree."""
    outputs = numbered(subject.draw(data, trees(), "structure of the output"))
    values, _, _, got = _moved(subject, data, ("array",), outputs)
    subject.assert_all_same("tangents", got=got, expected=[values.array(9, n) for n in leaves(outputs)])


AXES = st.lists(st.sampled_from((None, 0, 1)), min_size=1, max_size=3).filter(lambda axes: axes.count(None) < len(axes))


@keeps("MLX-VMAP-01")
def test_the_vmap_rule_gets_inputs_and_axes(subject, data):
    """The vmap rule gets the whole inputs and the axis of each, and what it returns is the result."""
    values = Values(subject, data, shapes=((3,), (2, 3)))
    axes = subject.draw(data, AXES, "axes")
    seen = []
    f = mx.custom_function(lambda *xs: sum(xs[1:], xs[0]))

    def rule(inputs, places):
        seen.append((inputs, places) if len(axes) > 1 else ((inputs,), (places,)))
        return values.tensor(values.array(9, lead=(2,))), 0

    f.vmap(rule)
    whole = [_stacked(values.array(0, n, lead=(2,)), axis) for n, axis in enumerate(axes)]
    got = mx.vmap(f, in_axes=tuple(axes) if len(axes) > 1 else axes[0])(*map(values.tensor, whole))
    inputs, places = seen[0]
    subject.assert_equal("axes that the rule gets", got=list(places), expected=axes)
    subject.assert_all_same("inputs that the rule gets", got=list(inputs), expected=whole)
    subject.assert_same("result", got=got, expected=values.array(9, lead=(2,)))


def _stacked(batch, axis):
    """The batch with its first axis moved to ``axis``; for None only its first element."""
    return batch[0] if axis is None else np.moveaxis(batch, 0, axis)


@keeps("MLX-VMAP-02")
def test_the_axes_that_the_vmap_rule_returns_are_heeded(subject, data):
    """Outputs of the vmap rule are batched along the axes that it returns; None means not batched."""
    values = Values(subject, data, shapes=((3,), (2, 3)))
    axes = subject.draw(data, AXES, "axes of the outputs")
    out = subject.draw(data, (0, 1, -1), "out_axes of what is batched")
    f = mx.custom_function(lambda x: tuple(x * 1 for _ in axes))
    batches = [values.array(9, n, lead=(2,)) for n, _ in enumerate(axes)]
    returned = [values.tensor(_stacked(batch, axis)) for batch, axis in zip(batches, axes, strict=True)]
    f.vmap(lambda x, axis: (tuple(returned), tuple(axes)))
    out_axes = tuple(None if axis is None else out for axis in axes)
    got = mx.vmap(f, out_axes=out_axes)(values.tensor(values.array(0, lead=(2,))))
    placed = [_stacked(batch, None if axis is None else out) for batch, axis in zip(batches, axes, strict=True)]
    subject.assert_all_same("outputs", got=list(got), expected=placed)

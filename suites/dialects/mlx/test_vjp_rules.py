"""What a vjp rule gets, and how its result is used."""

import mlx.core as mx
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.mlx._trees import (
    MLX,
    Values,
    arguments,
    leaves,
    mapped,
    numbered,
    shaped,
    surrogate,
    total,
    trees,
)
from autograd_conformance.suites.dialects.shared import sentences
from autograd_conformance.suites.dialects.shared.sentences import row

test_unused_outputs = row("MLX-VJP-06", sentences.unused_outputs_have_cotangents_of_zeros, MLX)


class Call:
    """A differentiated call of a custom function: what its vjp rule got, and the gradients of its arguments.

    Each output is its number plus one times the sum of all inputs; the rule returns drawn gradients. The loss
    multiplies each ``used`` output by a drawn cotangent.
    """

    def __init__(self, subject, data, structure):
        self.values = values = Values(subject, data)
        self.outputs = numbered(subject.draw(data, trees(), "structure of the output"))
        self.used = subject.draw(
            data, st.sets(st.sampled_from(leaves(self.outputs)), min_size=1).map(sorted), "outputs that the loss uses"
        )
        self.structure = structure
        self.returned = mapped(lambda n: values.array(9, n), numbered(structure))
        self.seen = []
        self.args = values.grown(structure, 0)
        everything = tuple(range(len(self.args)))
        found = mx.grad(self._loss(self._function()), argnums=everything)(*self.args)
        self.gradients = found if len(self.args) > 1 else (found,)

    def _function(self):
        f = mx.custom_function(lambda *args: mapped(lambda n: (n + 1) * total(args), self.outputs))

        def rule(*given):
            self.seen.append(given)
            tensors = mapped(self.values.tensor, self.returned)
            return tensors if len(tensors) > 1 else tensors[0]

        f.vjp(rule)
        return f

    def _loss(self, f):
        def loss(*args):
            found = leaves(f(*args))
            terms = [found[n] * self.values.tensor(self.values.array(5, n)) for n in self.used]
            return sum(terms[1:], terms[0]).sum()

        return loss

    @property
    def expected_cotangents(self):
        return [self.values.array(5, n) * (n in self.used) for n in leaves(self.outputs)]

    @property
    def expected_outputs(self):
        inputs = sum(self.values.array(0, n) for n in range(len(leaves(self.structure))))
        return [(n + 1) * inputs for n in leaves(self.outputs)]


def _assert_tree(subject, what, got, structure, expected):
    subject.assert_equal(f"structure of the {what}", got=shaped(got), expected=shaped(structure))
    subject.assert_all_same(what, got=leaves(got), expected=expected)


@keeps("MLX-VJP-01")
def test_the_rule_is_used(subject, data):
    """mx.vjp, mx.grad and mx.value_and_grad give the rule's gradients."""
    values = Values(subject, data)
    factor, times = (subject.draw(data, (2, -3, 5), label) for label in ("factor", "factor of the rule"))
    f, (x, g) = surrogate(factor, times), (values.tensor(values.array(salt)) for salt in range(2))
    ways = {
        "vjp": lambda: mx.vjp(f, [x], [g])[1][0],
        "grad": lambda: mx.grad(lambda x: (f(x) * g).sum())(x),
        "value_and_grad": lambda: mx.value_and_grad(lambda x: (f(x) * g).sum())(x)[1],
    }
    way = subject.draw(data, sorted(ways), "through")
    subject.assert_same(f"gradient through mx.{way}", got=ways[way](), expected=times * values.array(1))


@keeps("MLX-VJP-02")
def test_the_rule_gets_the_primals(subject, data):
    """The rule gets its primals as trees: a single argument bare, several as a tuple."""
    structure = subject.draw(data, arguments(), "arguments")
    call = Call(subject, data, structure)
    alone = structure if len(structure) > 1 else structure[0]
    expected = call.values.arrays(0, len(leaves(structure)))
    _assert_tree(subject, "primals of the rule", call.seen[0][0], alone, expected)


@keeps("MLX-VJP-03")
def test_the_rule_gets_the_cotangents(subject, data):
    """The rule gets the right cotangents in the structure of the output."""
    call = Call(subject, data, ("array",))
    _assert_tree(subject, "cotangents of the rule", call.seen[0][1], call.outputs, call.expected_cotangents)


@keeps("MLX-VJP-04")
def test_the_rule_gets_the_outputs(subject, data):
    """The rule gets the function's outputs in their structure."""
    call = Call(subject, data, subject.draw(data, arguments(), "arguments"))
    _assert_tree(subject, "outputs that the rule gets", call.seen[0][2], call.outputs, call.expected_outputs)


@keeps("MLX-VJP-05")
def test_what_the_rule_returns_are_the_gradients(subject, data):
    """What the rule returns are the gradients of the arguments, each at its place in the tree."""
    structure = subject.draw(data, arguments(), "arguments")
    call = Call(subject, data, structure)
    _assert_tree(subject, "gradients", call.gradients, structure, leaves(call.returned))


@keeps("MLX-VJP-05", variant="none")
def test_gradients_next_to_none_keep_their_places(subject, data):
    """A rule with None among its gradients is refused, or the others stay at their places."""
    count = subject.draw(data, st.integers(2, 4), "number of arguments")
    missing = subject.draw(data, st.sets(st.integers(0, count - 1), min_size=1, max_size=count - 1), "None for")
    returned = [None if n in missing else n + 2.0 for n in range(count)]
    f = mx.custom_function(lambda *xs: sum(xs[1:], xs[0]))
    f.vjp(lambda *_: tuple(None if g is None else mx.array(g) for g in returned))
    try:
        _, gradients = mx.vjp(f, [mx.array(1.0)] * count, [mx.array(10.0)])
    except subject.implementation.refusals:
        return
    others = [n for n in range(count) if n not in missing]
    got, expected = [gradients[n].item() for n in others], [returned[n] for n in others]
    subject.assert_equal("the other gradients", got=got, expected=expected)


@keeps("MLX-VJP-07")
def test_the_rule_is_differentiated_again(subject, data):
    """First to third derivatives go through the rule and through the outputs that it uses."""
    weight, factor = (subject.draw(data, (2, -3, 4), label) for label in ("weight of x**2", "factor of the rule"))
    by_outputs = subject.draw(data, st.booleans(), "the rule uses the output")
    value = subject.draw(data, (1, -2, 3), "x")
    order = subject.draw(data, (1, 2, 3), "order of the derivative")
    f = mx.custom_function(lambda x: weight * x * x)

    def rule(x, cotangent, y):
        return cotangent * (y if by_outputs else factor * x * x)

    f.vjp(rule)
    derivative = f
    for _ in range(order):
        derivative = mx.grad(derivative)
    # Through the output the rule is applied to itself: y' = y, so that every order gives y.
    by_hand = [factor * value**2, 2 * factor * value, 2 * factor]
    expected = weight * value**2 if by_outputs else by_hand[order - 1]
    subject.assert_equal("derivative", got=derivative(mx.array(float(value))).item(), expected=float(expected))


def _products(subject, data, pick):
    """mx.vjp of a function that returns ``pick`` of several multiples of x."""
    values = Values(subject, data)
    drawn = st.lists(st.sampled_from((2, -3, 5)), min_size=2, max_size=4)
    weights = subject.draw(data, drawn, "weights of the outputs")

    def f(x):
        return pick([x * weight for weight in weights])

    x = values.tensor(values.array(0))
    numbers = pick(list(range(len(weights))))
    cotangents = [values.array(7, salt) for salt, _ in enumerate(numbers)]
    got = mx.vjp(f, [x], [values.tensor(g) for g in cotangents])
    return values, got, [weights[n] for n in numbers], cotangents


@keeps("MLX-VJP-08")
def test_all_cotangents_count(subject, data):
    """The gradient is the sum over all outputs of cotangent times weight."""
    values, (outputs, (got,)), weights, cotangents = _products(subject, data, lambda outputs: outputs)
    subject.assert_all_same("outputs", got=outputs, expected=[values.array(0) * weight for weight in weights])
    expected = sum(weight * g for weight, g in zip(weights, cotangents, strict=True))
    subject.assert_same("gradient", got=got, expected=expected)


@keeps("MLX-VJP-08", variant="repeated")
def test_an_array_that_is_returned_twice_has_two_cotangents(subject, data):
    """If one array is returned at two positions, both cotangents count."""
    _, (_, (got,)), weights, cotangents = _products(subject, data, lambda outputs: [*outputs, outputs[0]])
    expected = sum(weight * g for weight, g in zip(weights, cotangents, strict=True))
    subject.assert_same("gradient, one array returned twice,", got=got, expected=expected)


@keeps("MLX-VJP-08", variant="stopped")
def test_an_output_without_gradient_has_a_cotangent_too(subject, data):
    """An output from stop_gradient takes its own cotangent, so that the others keep theirs."""

    def pick(outputs):
        first, *others = outputs
        return [mx.stop_gradient(first) if isinstance(first, mx.array) else first, *others]

    _, (_, (got,)), weights, cotangents = _products(subject, data, pick)
    expected = sum(weight * g for weight, g in zip(weights[1:], cotangents[1:], strict=True))
    subject.assert_same("gradient, the first output from mx.stop_gradient,", got=got, expected=expected)


@keeps("MLX-VJP-09")
def test_the_rule_runs_once_for_each_call(subject, data):
    """The rule runs once for each call between a differentiated input and the loss, and for no other call."""
    calls = subject.draw(data, range(4), "calls that the loss uses")
    others = subject.draw(data, range(3), "calls that it does not use")
    constant = subject.draw(data, range(3), "calls on what is not differentiated")
    ran = []

    def rule(primal, cotangent, output):
        ran.append(1)
        return cotangent

    f = mx.custom_function(lambda x: 2 * x)
    f.vjp(rule)

    def loss(x, y):
        for _ in range(others):
            f(x)
        for _ in range(calls):
            x = f(x)
        for _ in range(constant):
            y = f(y)
        return x + y

    got = mx.grad(loss)(mx.array(1.0), mx.array(2.0))
    subject.assert_equal("number of times that the rule ran", got=len(ran), expected=calls)
    subject.assert_equal("gradient", got=got.item(), expected=1.0)

"""Gradients through the operators for control flow: cond, scan, map, associative_scan and while_loop."""

from contextlib import nullcontext, suppress
from functools import cache
from itertools import accumulate

import numpy as np
import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.torch._compiled import fresh
from autograd_conformance.suites.dialects.torch._loops import (
    BATCHED,
    CAPTURED,
    GIVEN,
    RUNS,
    SUMS,
    TREES,
    assert_as_loop,
    filled,
    looped,
    sums,
    terms,
)

_SIZE = (2,)


def _operators():
    """The module of the operators, which is imported late: with it comes the compiler."""
    import torch._higher_order_ops as operators

    return operators


def _scan(*args, **options):
    from torch._higher_order_ops.scan import scan

    return scan(*args, **options)


def _arrays(*shapes):
    return [filled(shape, start) for start, shape in enumerate(shapes)]


# A predicate that says what is wanted, by the first operand.
_PREDICATES = {
    "a tensor": lambda x, wanted: torch.tensor(wanted, device=x.device),
    "of the operand": lambda x, wanted: (x.detach().square().sum() > 0) == wanted,
    "a bool": lambda x, wanted: wanted,
}


@keeps("FLOW-01", slow=True, examples=0.08)
def test_cond_is_the_chosen_branch(subject, data):
    """Outputs and gradients are those of the branch that runs, for operands and for what it captures."""
    chosen = subject.draw(data, st.booleans(), "branch")
    predicate = _PREDICATES[subject.draw(data, tuple(_PREDICATES), "predicate")]
    given = subject.draw(data, CAPTURED, "operands that require grad")
    captured = subject.draw(data, CAPTURED, "captured tensors that require grad")
    run = subject.draw(data, BATCHED, "run")
    # In a batch, a predicate for each row is refused if there are several outputs.
    rowwise = run == "batched" and predicate is _PREDICATES["of the operand"]
    count = subject.draw(data, (1,) if rowwise else (2, 1), "outputs")
    # Weights are those of one branch, so that the branches differ.
    of_each = {which: st.tuples(*[terms(*weights)] * count) for which, weights in ((True, (1, -2)), (False, (3, 5)))}
    drawn = subject.draw(data, st.fixed_dictionaries(of_each), "terms of each branch")
    tree, tensors_in = TREES[subject.draw(data, tuple(TREES), "operands in a")]
    first = len(given)

    def branch(which, others):
        return lambda tree: sums(drawn[which], tensors_in(tree), [*others, *tensors_in(tree)])

    def call(*tensors):
        operands, others = tree(tensors[:first]), tensors[first:]
        pred = predicate(tensors[0], chosen)
        return torch.cond(pred, branch(True, others), branch(False, others), (operands,))

    def right(*arrays):
        return sums(drawn[chosen], arrays[:first], [*arrays[first:], *arrays[:first]])

    needs = [*given, *captured]
    assert_as_loop(subject, call, right, _arrays(*[_SIZE] * len(needs)), needs, run)


@keeps("FLOW-02", slow=True, examples=0.08)
def test_scan_is_a_loop(subject, data):
    """The last carry, the stacked results and all gradients are those of a loop, forwards and backwards."""
    carried = subject.draw(data, GIVEN, "carries that require grad")
    scanned = subject.draw(data, CAPTURED, "xs that do")
    captured = subject.draw(data, CAPTURED, "captured tensors that do")
    of_carry = subject.draw(data, st.tuples(*[SUMS] * len(carried)), "terms of the next carry")
    of_results = subject.draw(data, st.lists(SUMS, min_size=1, max_size=2), "terms of the results")
    length, dim = subject.draw(data, st.tuples(st.sampled_from((2, 3, 1)), st.integers(0, 1)), "length and dim")
    reverse, run = subject.draw(data, (True, False), "reverse"), subject.draw(data, BATCHED, "run")
    tree, tensors_in = TREES[subject.draw(data, tuple(TREES), "carry in a")]
    first, last = len(carried), len(carried) + len(scanned)

    def step(others):
        def steps(carry, xs):
            return sums(of_carry, carry, [*others, *xs]), sums(of_results, [*carry, *xs], [*others, *xs])

        return steps

    def call(*tensors):
        def body(carry, xs):
            following, results = step(tensors[last:])(tensors_in(carry), xs)
            return tree(following), results

        xs = tuple(x.movedim(0, dim) for x in tensors[first:last])
        final, results = _scan(body, tree(tensors[:first]), xs, dim=dim, reverse=reverse)
        return (*tensors_in(final), *(y.movedim(dim, 0) for y in results))

    def right(*arrays):
        return looped(step(arrays[last:]), arrays[:first], arrays[first:last], reverse)

    shapes = [_SIZE] * first + [(length, *_SIZE)] * len(scanned) + [_SIZE] * len(captured)
    assert_as_loop(subject, call, right, _arrays(*shapes), [*carried, *scanned, *captured], run)


@keeps("FLOW-02", variant="integers", slow=True, examples=0.08)
def test_scan_carries_integers_along(subject, data):
    """Integers and truth values have the values of a loop; where something requires grad, a call may be refused."""
    carried, scanned = subject.draw(data, st.tuples(st.booleans(), st.booleans()), "carry and xs require grad")
    start, weight = subject.draw(data, st.tuples(st.integers(-2, 2), st.integers(1, 3)), "first count and weight")
    run = subject.draw(data, RUNS, "run")
    count = subject.tensor(np.array(start))

    def step(carry, xs):
        (x, n), (y,) = carry, xs
        return (weight * x * y, n + weight), (x * n, n * weight, n > 0)

    def call(x, xs):
        final, results = _scan(step, (x, count), (xs,))
        return (*final, *results)

    def right(x, xs):
        return looped(step, (x, np.array(start)), (xs,))

    tracked = carried or scanned
    with suppress(RuntimeError) if tracked else nullcontext():
        assert_as_loop(subject, call, right, _arrays(_SIZE, (3, *_SIZE)), (carried, scanned), run)


@keeps("FLOW-03", slow=True, examples=0.08)
def test_map_is_a_loop(subject, data):
    """Outputs and gradients of map are those of a loop: for xs, for further arguments, and for what is captured."""
    scanned = subject.draw(data, GIVEN, "xs that require grad")
    given = subject.draw(data, CAPTURED, "further arguments that do")
    captured = subject.draw(data, CAPTURED, "captured tensors that do")
    drawn = subject.draw(data, st.lists(SUMS, min_size=1, max_size=2), "terms of the results")
    tree, tensors_in = TREES[subject.draw(data, tuple(TREES), "xs in a")]
    length, run = subject.draw(data, (2, 3, 1), "length"), subject.draw(data, RUNS, "run")
    first, last = len(scanned), len(scanned) + len(given)

    def call(*tensors):
        others = tensors[last:]

        def body(xs, *more):
            return sums(drawn, tensors_in(xs), [*more, *others, *tensors_in(xs)])

        return _operators().map(body, tree(tensors[:first]), *tensors[first:last])

    def right(*arrays):
        xs, others = arrays[:first], arrays[first:]
        return looped(lambda _, slices: ((), sums(drawn, slices, [*others, *slices])), (), xs)

    shapes = [(length, *_SIZE)] * first + [_SIZE] * (len(given) + len(captured))
    assert_as_loop(subject, call, right, _arrays(*shapes), [*scanned, *given, *captured], run)


# Associative functions of pairs of tensors, each with whether it also takes what is captured.
_ASSOCIATIVE = {
    "linear maps": lambda p, q, _: (p[0] * q[0], p[1] * q[0] + q[1]),
    "products": lambda p, q, _: (p[0] * q[0], p[1] * q[1]),
    "shifted sums": lambda p, q, shift: (p[0] + q[0] + shift, p[1] * q[1]),
}


@keeps("FLOW-04", slow=True, examples=0.08)
def test_associative_scan_is_a_loop(subject, data):
    """Outputs and gradients of a generic associative_scan are those of a loop."""
    combine = _ASSOCIATIVE[subject.draw(data, tuple(_ASSOCIATIVE), "function")]
    needs = subject.draw(data, st.tuples(*[st.sampled_from((True, False))] * 3), "xs and captured that require grad")
    length, dim = subject.draw(data, st.tuples(st.sampled_from((3, 4, 2, 1)), st.integers(0, 1)), "length and dim")
    reverse, run = subject.draw(data, (True, False), "reverse"), subject.draw(data, BATCHED, "run")

    def call(x, y, shift):
        from torch._higher_order_ops.associative_scan import associative_scan

        xs = tuple(each.movedim(0, dim) for each in (x, y))
        found = associative_scan(lambda p, q: combine(p, q, shift), xs, dim, reverse, combine_mode="generic")
        return [each.movedim(dim, 0) for each in found]

    def right(x, y, shift):
        way = slice(None, None, -1 if reverse else 1)
        pairs = list(zip(x[way], y[way], strict=True))
        found = list(accumulate(pairs, lambda p, q: combine(p, q, shift)))[way]
        return [np.stack(each) for each in zip(*found, strict=True)]

    arrays = _arrays((length, *_SIZE), (length, *_SIZE), _SIZE)
    assert_as_loop(subject, call, right, arrays, needs, run)


def _counted(rounds, body, carry):
    """A while_loop of so many rounds; what counts them is on the device of the carry."""
    from torch._higher_order_ops.while_loop import while_loop

    counter = torch.zeros((), dtype=torch.int64, device=carry[0].device)
    return while_loop(lambda n, *_: n < rounds, lambda n, *carry: (n + 1, *body(carry)), (counter, *carry))[1:]


def _assert_while_right(subject, rounds, carried, captured, drawn, run="uncompiled"):
    """A while_loop of so many rounds has the values of a loop, and its gradients or none at all.

    ``carried`` and ``captured`` say which of the tensors require grad.
    """
    first = len(carried)

    def step(carry, others):
        return sums(drawn, carry, others or (2, 1))

    def call(*tensors):
        return _counted(rounds, lambda carry: step(carry, tensors[first:]), tensors[:first])

    def right(*arrays):
        carry = arrays[:first]
        for _ in range(rounds):
            carry = step(carry, arrays[first:])
        return carry

    needs = [*carried, *captured]
    # It is documented not to support training.
    with suppress(RuntimeError) if any(needs) else nullcontext():
        assert_as_loop(subject, call, right, _arrays(*[_SIZE] * len(needs)), needs, run)


@keeps("FLOW-05", slow=True, examples=0.04)
def test_while_loop_is_a_loop(subject, data):
    """Values of a while_loop are those of a loop; so are its gradients, unless it raises."""
    carried = subject.draw(data, ((True,), (True, True), (False,)), "carries that require grad")
    captured = subject.draw(data, CAPTURED if any(carried) else ([], [False]), "captured tensors that do")
    drawn = subject.draw(data, st.tuples(*[SUMS] * len(carried)), "terms of the next carry")
    rounds = subject.draw(data, (2, 1, 3), "rounds")
    _assert_while_right(subject, rounds, carried, captured, drawn, run=subject.draw(data, RUNS, "run"))


@keeps("FLOW-05", variant="none", slow=True, examples=0.04)
def test_a_while_loop_may_have_no_round(subject, data):
    """A while_loop without a round gives the carry as it is; so are its gradients, unless it raises."""
    carried = subject.draw(data, ((True,), (True, True)), "carries that require grad")
    captured = subject.draw(data, CAPTURED, "captured tensors that do")
    drawn = subject.draw(data, st.tuples(*[SUMS] * len(carried)), "terms of the next carry")
    _assert_while_right(subject, 0, carried, captured, drawn)


@keeps("FLOW-05", variant="mixed", slow=True, examples=0.04)
def test_a_carry_of_a_while_loop_may_begin_without_grad(subject, data):
    """A carry that requires no grad may depend on what does after a round, and pass its gradient on."""
    weight, rounds = subject.draw(data, st.tuples(st.sampled_from((2, -3)), st.sampled_from((2, 3))), "weight, rounds")
    through = {
        "another carry": ((True, False), (), ([(1, 0), (weight, 1)], [(weight, 0)])),
        "a captured tensor": ((False,), (True,), ([(weight, 0)],)),
    }
    carried, captured, drawn = through[subject.draw(data, tuple(through), "what it depends on")]
    _assert_while_right(subject, rounds, carried, captured, drawn)


# The gradients of this Function and of this operator are too large by this factor: they show that backward was used.
FACTOR = 4


@cache
def _times_operator():
    """An operator for products."""

    def times(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x * y

    op = torch.library.custom_op("autograd_conformance::times", times, mutates_args=())
    op.register_fake(lambda x, y: torch.empty_like(x))
    op.register_autograd(_factored, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
    return op


def _factored(ctx, g):
    x, y = ctx.saved_tensors
    return FACTOR * g * y, FACTOR * g * x


def _times_function(subject):
    """The apply of a Function for products."""

    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    return subject.define(forward=forward, backward=_factored).apply


# For each operator, a call with a carry, what it goes along, and a captured tensor.
_CALLS = {
    "cond": lambda times, c, xs, a: (
        torch.cond(c.sum() > 9, lambda c, x: c + x, lambda c, x: c + times(x, a), (c, xs[0])),
    ),
    "scan": lambda times, c, xs, a: _scan(lambda c, x: (c + times(x, a), c * 2), c, xs),
    "map": lambda times, c, xs, a: (_operators().map(lambda x, c: c + times(x, a), xs, c),),
}
_LOOPS = {
    "cond": lambda c, xs, a: (c + xs[0] * a,),
    "scan": lambda c, xs, a: looped(lambda c, x: ((c[0] + x[0] * a,), (c[0] * 2,)), (c,), (xs,)),
    "map": lambda c, xs, a: (c + xs * a,),
}


@keeps("FLOW-06", slow=True, examples=0.08)
def test_a_body_may_call_functions_and_operators(subject, data):
    """Within a branch or a body the backward of a Function, or of an operator, is used."""
    name = subject.draw(data, tuple(_CALLS), "operator for control flow")
    own = subject.draw(data, ("Function", "operator"), "what is called")
    needs = subject.draw(data, st.tuples(st.just(True), *[st.sampled_from((True, False))] * 2), "what requires grad")
    run = subject.draw(data, RUNS, "run")
    times = _times_function(subject) if own == "Function" else _times_operator()

    def call(*tensors):
        return _CALLS[name](times, *tensors)

    arrays = _arrays(_SIZE, (3, *_SIZE), _SIZE)
    assert_as_loop(subject, call, _LOOPS[name], arrays, needs, run, (1, FACTOR, FACTOR))


def _branches(x, right, wrong):
    return torch.cond(x.sum() > 0, right, wrong, (x,))


def _scanned(body):
    return lambda x, xs: _scan(body, x, xs)


def _twice(x):
    return x, x


# What the documentation of an operator forbids, as a call with a carry and with what it goes along.
_FORBIDDEN = {
    "branches of two dtypes": lambda x, _: _branches(x, lambda x: x * 2, lambda x: (x * 2).to(torch.float16)),
    "branches of two numbers of outputs": lambda x, _: _branches(x, lambda x: (x * 2,), lambda x: (x * 2, x * 3)),
    "a branch that changes its operand": lambda x, _: _branches(x, lambda x: x.mul_(2) * 1, lambda x: x * 3),
    "a next carry of another shape": _scanned(lambda x, y: (torch.cat([x, y]), x * y)),
    "a next carry of another dtype": _scanned(lambda x, y: ((x * y).to(torch.float16), x * y)),
    "one carry too many": _scanned(lambda x, y: ((x * y, x * 2), x * y)),
    "a result that is the carry": _scanned(lambda x, y: (x * y, x)),
    "a result that is a view of xs": _scanned(lambda x, y: (x * y, y.view(-1))),
    "results that are one tensor": _scanned(lambda x, y: _twice(x * y)),
    "a body that changes the carry": _scanned(lambda x, y: (x.mul_(2) * y, x * y)),
    "a body that changes xs": _scanned(lambda x, y: (x * y, y.mul_(2) * x)),
    "a round that gives another shape": lambda x, _: _counted(2, lambda carry: (torch.cat([carry[0]] * 2),), (x,)),
    "a round that gives another dtype": lambda x, _: _counted(2, lambda carry: (carry[0].to(torch.float16),), (x,)),
    "a round that changes the carry": lambda x, _: _counted(2, lambda carry: (carry[0].mul_(2) * 1,), (x,)),
    "a round that gives the carry itself": lambda x, _: _counted(2, lambda carry: carry, (x,)),
}


@keeps("FLOW-07", slow=True, examples=0.16)
def test_what_is_forbidden_raises(subject, data):
    """A call that the documentation forbids raises, whether something requires grad or not."""
    what, run = subject.draw(data, tuple(_FORBIDDEN), "call"), subject.draw(data, RUNS, "run")
    needs = subject.draw(data, st.tuples(st.booleans(), st.booleans()), "carry and xs require grad")
    leaves = [subject.tensor(a).requires_grad_(n) for a, n in zip(_arrays(_SIZE, (3, *_SIZE)), needs, strict=True)]
    tensors = [x * 1 for x in leaves]
    call = torch.compile(_FORBIDDEN[what], backend="aot_eager") if run == "compiled" else _FORBIDDEN[what]
    with fresh():
        subject.assert_raises(RuntimeError, lambda: call(*tensors), what)


def _step(x, y):
    return x * y, x + y


def _associatively(function, xs, dim=0, **options):
    from torch._higher_order_ops.associative_scan import associative_scan

    return associative_scan(function, xs, dim, **{"combine_mode": "generic", **options})


def _looping(test, body, carry):
    from torch._higher_order_ops.while_loop import while_loop

    return while_loop(test, body, carry)


# Calls with arguments that no operator takes, of a vector and a matrix.
_UNFIT = {
    "cond of a text": lambda x, xs: torch.cond("yes", abs, abs, (x,)),
    "cond of a vector": lambda x, xs: torch.cond(xs > 0, abs, abs, (x,)),
    "cond of a branch that is none": lambda x, xs: torch.cond(x.sum() > 0, abs, 3, (x,)),
    "cond of a number among the operands": lambda x, xs: torch.cond(x.sum() > 0, abs, abs, (x, "2")),
    "scan by no function": lambda x, xs: _scan(3, x, xs),
    "scan along a text": lambda x, xs: _scan(_step, x, xs, dim="0"),
    "scan with a number for reverse": lambda x, xs: _scan(_step, x, xs, reverse=1),
    "scan of no carry": lambda x, xs: _scan(_step, [], xs),
    "scan of a number as the carry": lambda x, xs: _scan(_step, 2.0, xs),
    "scan of a number among xs": lambda x, xs: _scan(_step, x, [xs, 2.0]),
    "scan along too large a dim": lambda x, xs: _scan(_step, x, xs, dim=2),
    "map of a number": lambda x, xs: _operators().map(_step, 2.0, x),
    "map of two lengths": lambda x, xs: _operators().map(lambda both, y: both[0] * y, (xs, xs[:2]), x),
    "associative_scan by no function": lambda x, xs: _associatively(3, xs),
    "associative_scan along a text": lambda x, xs: _associatively(torch.mul, xs, "0"),
    "associative_scan with a number for reverse": lambda x, xs: _associatively(torch.mul, xs, reverse=1),
    "associative_scan of another mode": lambda x, xs: _associatively(torch.mul, xs, combine_mode="some"),
    "associative_scan of a number": lambda x, xs: _associatively(torch.mul, [xs, 2.0]),
    "associative_scan along too large a dim": lambda x, xs: _associatively(torch.mul, xs, 2),
    "while_loop by no function": lambda x, xs: _looping(3, lambda x: (x,), (x,)),
    "while_loop of a text": lambda x, xs: _looping(lambda *_: False, lambda *given: given, (x, "2")),
}


@keeps("FLOW-08", slow=True)
def test_arguments_that_no_operator_takes_raise(subject, data):
    """The call raises, before anything of it runs."""
    what = subject.draw(data, tuple(_UNFIT), "call")
    x, xs = (subject.tensor(a).requires_grad_() for a in _arrays(_SIZE, (3, *_SIZE)))
    kinds = (RuntimeError, ValueError, IndexError, TypeError, AssertionError)
    subject.assert_raises(kinds, lambda: _UNFIT[what](x, xs), what)


@keeps("FLOW-08", variant="constant")
def test_cond_of_a_constant_runs_the_branch(subject, data):
    """For True and False, 1 and 0, cond is the call of the branch."""
    pred = subject.draw(data, (True, False, 1, 0), "predicate")
    x = subject.tensor([1.0, -2.0]).requires_grad_()
    y = torch.cond(pred, lambda x: 2 * x, lambda x: 3 * x, (x,))
    y.sum().backward()
    right = 2.0 if pred else 3.0
    subject.assert_all_same("result and gradient", got=[y, x.grad], expected=[right * x.detach(), np.full(2, right)])

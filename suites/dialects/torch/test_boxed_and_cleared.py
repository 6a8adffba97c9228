"""boxed_grads_call and clear_saved_tensors_on_access: how they free memory during backward, and what they forbid."""

import torch
from hypothesis import strategies as st
from torch.multiprocessing.reductions import StorageWeakRef

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.contract._derivatives import drawn_cotangents
from autograd_conformance.suites.dialects.torch._leaves import new_leaves

# Ways to run a pass that retains the graph.
WAYS = {
    "grad": lambda y, x: torch.autograd.grad(y.sum(), x, retain_graph=True),
    "grad, create_graph": lambda y, x: torch.autograd.grad(y.sum(), x, create_graph=True),
    "backward": lambda y, x: y.sum().backward(retain_graph=True),
}
FLAGS = ("boxed_grads_call", "clear_saved_tensors_on_access")
SIZES = st.integers(1, 3)


def _memory(tensors):
    return [StorageWeakRef(tensor.untyped_storage()) for tensor in tensors]


def _freed(memory):
    return [reference.expired() for reference in memory]


@keeps("BOX-01")
def test_backward_gets_one_list(subject, data):
    """backward gets a single list; its entries and the gradients are those without the flag."""
    polynomial = subject.polynomial(data, separate=None, materialize=None)
    cotangents = drawn_cotangents(subject, data, polynomial)
    bare = subject.draw(data, (False, True) if len(polynomial.arguments) == 1 else (False,), "returned bare")
    passes = subject.draw(data, st.lists(st.booleans(), min_size=1, max_size=2), "create_graph of each pass")
    cls, seen = subject.body(polynomial), []

    def backward(ctx, *given):
        seen.append([type(argument) for argument in given])
        found = cls.backward(ctx, *given[0])
        return found[0] if bare else found

    boxed = subject.define(cls, backward=backward, boxed_grads_call=True)
    run, plain = subject.run(polynomial, cls=boxed), subject.run(polynomial)
    for create in passes:
        got, expected = (each.gradients(cotangents, differentiable=create) for each in (run, plain))
        subject.assert_equal("types of the arguments of backward", got=seen[-1], expected=[list])
        subject.assert_all_same("entries of the list", got=run.seen.cotangents, expected=plain.seen.cotangents)
        subject.assert_all_same("gradients", got=got, expected=expected)
    subject.assert_equal("number of times that backward ran", got=len(seen), expected=len(passes))


@keeps("BOX-02")
def test_removing_an_entry_frees_the_gradient(subject, data):
    """Each removed entry's memory is freed right away, in any order and by any means."""
    count = subject.draw(data, SIZES, "number of outputs")
    how = subject.draw(data, ("assignment of None", "pop", "del"), "removed by")
    order = subject.draw(data, st.permutations(range(count)), "in the order")
    seen = []

    def backward(ctx, grads):
        total, memory, left = sum(grads), _memory(grads), list(range(count))
        for place in order:
            if how == "assignment of None":
                grads[place] = None
            elif how == "pop":
                grads.pop(left.index(place))
            else:
                del grads[left.index(place)]
            left.remove(place)
            seen.append(_freed(memory))
        return total

    multiples = subject.custom(
        forward=lambda ctx, x: tuple(x * n for n in range(1, count + 1)), backward=backward, boxed_grads_call=True
    )
    x = subject.tensor([1.0, 2.0]).requires_grad_()
    outputs = multiples(x)
    sum((y * n).sum() for n, y in enumerate(outputs, 2)).backward()
    expected = [[place in order[:step] for place in range(count)] for step in range(1, count + 1)]
    subject.assert_equal("gradients freed after each removal", got=seen, expected=expected)


@keeps("BOX-03")
def test_a_flag_that_is_no_bool_is_refused(subject, data):
    """A value of a flag that is not a bool raises RuntimeError; a bool is accepted."""
    flag, value = subject.draw(data, FLAGS, "flag"), subject.draw(data, (1, 0, None, "text", [], 0.5), "value")
    tracked, right = subject.draw(data, (True, False), "recorded"), subject.draw(data, (True, False), "right value")

    flagged = subject.define(forward=lambda ctx, x: x * 2)
    x = subject.tensor([1.0, 2.0]).requires_grad_(tracked)
    setattr(flagged, flag, value)
    subject.assert_raises(RuntimeError, lambda: flagged.apply(x), f"{flag} = {value!r}", naming=[flag, "bool"])
    setattr(flagged, flag, right)
    y = subject.assert_accepted(lambda: flagged.apply(x), f"{flag} = {right!r}")
    subject.assert_same("output", got=y, expected=x * 2)


@keeps("BOX-04")
def test_a_boxed_backward_can_be_once_differentiable(subject, data):
    """A second derivative raises and names once_differentiable."""
    polynomial = subject.polynomial(data, arguments=("tracked", "fixed", "number"), outputs=("float",))
    cls = subject.body(polynomial)

    backward = torch.autograd.function.once_differentiable(lambda ctx, grads: cls.backward(ctx, *grads))
    call = subject.call_of(polynomial, subject.define(cls, backward=backward, boxed_grads_call=True))

    def f(*tensors):
        return sum((y * y).sum() for y in call(*tensors)) + sum((x**3).sum() for x in tensors)

    leaves = new_leaves(subject, polynomial)
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    first = torch.autograd.grad(f(*leaves), wanted, create_graph=True)
    what = "second derivative through a boxed once-differentiable backward"
    naming = ["once_differentiable"]
    subject.assert_raises(RuntimeError, lambda: sum(g.sum() for g in first).backward(), what, naming=naming)


@keeps("CLEAR-01")
def test_reading_saved_tensors_leaves_them_to_local_variables(subject, data):
    """After reading, each saved tensor is freed when its local variable is dropped."""
    kinds = st.sampled_from(("input", "output", "intermediate"))
    saved = subject.draw(data, st.lists(kinds, min_size=1, max_size=3), "saved")
    order = subject.draw(data, st.permutations(range(len(saved))), "dropped in the order")
    seen = []

    def forward(ctx, *xs):
        outputs = tuple(x * 3 for x in xs)
        made = [
            {"input": x, "output": y, "intermediate": x * 5}[kind]
            for kind, x, y in zip(saved, xs, outputs, strict=True)
        ]
        ctx.save_for_backward(*made)
        return outputs

    def backward(ctx, *grads):
        tensors = list(ctx.saved_tensors)
        memory = _memory(tensors)
        seen.append(_freed(memory))
        for place in order:
            tensors[place] = None
            seen.append(_freed(memory))
        return grads

    cleared = subject.custom(forward=forward, backward=backward, clear_saved_tensors_on_access=True)
    x = subject.tensor([1.0, 2.0]).requires_grad_()
    sum((y * 1).sum() for y in cleared(*(x * 1 for _ in saved))).backward()
    expected = [[place in order[:step] for place in range(len(saved))] for step in range(len(saved) + 1)]
    subject.assert_equal("saved tensors freed after each step", got=seen, expected=expected)


def _reading(subject, count, flag, inside=1):
    """A Function that saves ``count`` tensors and reads them ``inside`` times in backward."""

    def forward(ctx, x):
        ctx.save_for_backward(*(x * n for n in range(1, count + 1)))
        return x * 2

    def backward(ctx, g):
        read = [ctx.saved_tensors for _ in range(inside)]
        return g * 2 + 0 * sum(t for tensors in read for t in tensors)

    return subject.custom(forward=forward, backward=backward, clear_saved_tensors_on_access=flag)


@keeps("CLEAR-02")
def test_saved_tensors_are_read_once(subject, data):
    """A second reading raises before, in or after backward; a single reading does not."""
    count = subject.draw(data, st.integers(0, 3), "saved tensors")
    times = st.tuples(*(st.integers(0, 2) for _ in range(3))).filter(lambda t: sum(t) in (1, 2))
    before, inside, after = subject.draw(data, times, "readings before, in and after backward")

    def readings(flag, way):
        x = subject.tensor([1.0, 2.0]).requires_grad_()
        y = _reading(subject, count, flag, inside)(x)
        found = [y.grad_fn.saved_tensors for _ in range(before)]
        way(y, x)
        return len(found + [y.grad_fn.saved_tensors for _ in range(after)])

    for name, way in WAYS.items():
        if before + inside + after > 1:
            what, naming = f"a second reading around {name}", ["clear_saved_tensors_on_access"]
            subject.assert_raises(RuntimeError, lambda way=way: readings(True, way), what, naming=naming)
        else:
            subject.assert_accepted(lambda way=way: readings(True, way), f"a single reading around {name}")
        subject.assert_accepted(lambda way=way: readings(False, way), f"reading without the flag around {name}")


@keeps("CLEAR-03")
def test_there_is_no_second_pass(subject, data):
    """A second pass over the retained graph raises with the flag only, in any combination of ways."""
    count = subject.draw(data, st.integers(0, 3), "saved tensors")
    first, second = subject.draw(data, WAYS, "first pass"), subject.draw(data, WAYS, "second pass")

    def passes(flag):
        x = subject.tensor([1.0, 2.0]).requires_grad_()
        y = _reading(subject, count, flag)(x)
        WAYS[first](y, x)
        return WAYS[second](y, x)

    naming = ["clear_saved_tensors_on_access"]
    subject.assert_raises(RuntimeError, lambda: passes(True), "a second pass", naming=naming)
    subject.assert_accepted(lambda: passes(False), "a second pass without the flag")


@keeps("CLEAR-03", variant="gradcheck", examples=0.2)
def test_gradcheck_cannot_be_used(subject, data):
    """gradcheck raises with the flag and works without it."""
    count, shape = (
        subject.draw(data, st.integers(0, 3), "saved tensors"),
        subject.draw(data, ((), (2,), (1, 2)), "shape"),
    )
    x = torch.ones_like(subject.tensor(0.0, "float64").expand(shape), requires_grad=True)
    subject.assert_raises(
        RuntimeError, lambda: torch.autograd.gradcheck(_reading(subject, count, True), (x,)), "gradcheck"
    )
    subject.assert_accepted(
        lambda: torch.autograd.gradcheck(_reading(subject, count, False), (x,)), "gradcheck without the flag"
    )

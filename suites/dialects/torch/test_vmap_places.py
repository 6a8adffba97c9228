"""Generated batching rules: where the batch is in what a Function takes and returns, and what is random in it."""

from math import prod

import numpy as np
import torch

from autograd_conformance.harness.testing.marks import keeps

# A rule that works element by element keeps the batch where it is, most others move it to the front.
METHODS = ("forward", "backward", "jvp")
MOVING = ((), (), (), *((name,) for name in METHODS), METHODS)
SHAPES = ((2, 3), (3, 1, 2), (3,))
# Whether forward uses w, and whether backward returns a gradient of it: the transforms use that all the same.
OF_W = {"has a gradient alone": (False, True), "is used": (True, True), "is not used": (False, False)}


def _negated(moves, terms):
    """Minus the sum of the tensors, with the batch at the front or, if there is one of them, where it was."""
    total = sum(terms[1:], terms[0])
    return -1 * total if moves else -total


def _minus(subject, moving, used, gives):
    """A Function of x and w: -x, or -(x + w) if w is ``used``. Backward gives w a gradient of its own or None."""
    return subject.custom(
        forward=lambda x, w: _negated("forward" in moving, [x, w] if used else [x]),
        separate=True,
        backward=lambda ctx, g: (
            _negated("backward" in moving, [g]),
            _negated("backward" in moving, [g]) if gives else None,
        ),
        jvp=lambda ctx, t, u: _negated("jvp" in moving, [t, u] if used else [t]),
        generate_vmap_rule=True,
    )


# The gradients by x and w of sum(c * f(x, w) ** 2), or their derivatives along the tangents t and u.
GRADIENTS = {
    "vmap of grad": lambda b: b.each(lambda x, w, c, *_: torch.func.grad(b.loss_of(b.apply, c), (0, 1))(x, w)),
    "grad of vmap": lambda b: torch.func.grad(b.loss, (0, 1))(*b.primals),
    "backward of vmap": lambda b: b.by_engine(b.loss),
}
SECOND = {
    "vmap of jvp of grad": lambda b: b.each(
        lambda x, w, c, *ts: torch.func.jvp(torch.func.grad(b.loss_of(b.apply, c), (0, 1)), (x, w), ts)[1]
    ),
    "vmap of grad of jvp": lambda b: b.each(
        lambda x, w, c, *ts: torch.func.grad(_along(b.loss_of(b.apply, c), ts), (0, 1))(x, w)
    ),
    "jvp of grad of vmap": lambda b: torch.func.jvp(torch.func.grad(b.loss, (0, 1)), b.primals, b.tangents)[1],
    "grad of jvp of vmap": lambda b: torch.func.grad(_along(b.loss, b.tangents), (0, 1))(*b.primals),
    "backward of jvp of vmap": lambda b: b.by_engine(_along(b.loss, b.tangents)),
}
# The tangent of f.
TANGENTS = {
    "vmap of jvp": lambda b: torch.func.vmap(
        lambda x, w, *ts: torch.func.jvp(b.apply, (x, w), ts)[1], in_dims=b.axes * 2, out_dims=b.out
    )(*b.primals, *b.tangents),
    "jvp of vmap": lambda b: torch.func.jvp(b.mapped, b.primals, b.tangents)[1],
}


def _along(f, tangents):
    return lambda *xs: torch.func.jvp(f, xs, tangents)[1]


class _Batched:
    """Calls of a Function of two tensors, with the batched dimension of each of them and of the output."""

    def __init__(self, subject, apply, axes, out, arrays):
        self.apply, self.axes, self.out = apply, axes, out
        placed = [
            a[0] if axis is None else np.moveaxis(a, 0, axis) for a, axis in zip(arrays, (*axes * 2, out), strict=True)
        ]
        x, w, t, u, self.weights = subject.tensors(placed)
        self.primals, self.tangents = (x, w), (t, u)
        self.mapped = torch.func.vmap(apply, in_dims=axes, out_dims=out)
        self.loss = self.loss_of(self.mapped, self.weights)

    @staticmethod
    def loss_of(f, weights):
        return lambda x, w: torch.sum(weights * f(x, w) ** 2)

    def each(self, f):
        in_dims = (*self.axes, self.out, *self.axes)
        found = torch.func.vmap(f, in_dims=in_dims)(*self.primals, self.weights, *self.tangents)
        return [g.sum(0) if axis is None else g.movedim(0, axis) for g, axis in zip(found, self.axes, strict=True)]

    def by_engine(self, loss):
        leaves = [x.clone().requires_grad_() for x in self.primals]
        return torch.autograd.grad(loss(*leaves), leaves, materialize_grads=True)


@keeps("VMAP-02", variant="places", examples=2)
def test_the_batch_may_be_anywhere(subject, data):
    """Wherever inputs, outputs, gradients and tangents have their batch dimension, derivatives are those of a loop."""
    shape = subject.draw(data, SHAPES, "shape")
    used, gives = OF_W[subject.draw(data, OF_W, "w")]
    places = range(len(shape) + 1)
    first = subject.draw(data, (*places, None) if used else places, "batched dimension of x")
    second = subject.draw(data, places if first is None else (None, *places, None), "batched dimension of w")
    out = subject.draw(data, places, "batched dimension of the output")
    moving = subject.draw(data, MOVING, "methods that move the batch")
    axes, sizes = (first, second), [1 if axis is None else 4 for axis in (*(first, second) * 2, out)]
    arrays = [n + 1.0 + np.arange(size * prod(shape)).reshape(size, *shape) % (5 + n) for n, size in enumerate(sizes)]
    batch = _Batched(subject, _minus(subject, moving, used, gives), axes, out, arrays)
    x, w, t, u, c = arrays
    y, moved = (np.broadcast_to(-(a + used * b), (4, *shape)) for a, b in ((x, w), (t, u)))
    subject.assert_same(
        "tangents", got=_by_one(subject, data, batch, "tangents", TANGENTS), expected=_placed(moved, out)
    )
    for what, ways, factor in (("gradients", GRADIENTS, y), ("second derivatives", SECOND, moved)):
        each = -2 * c * factor
        expected = [_placed(g, axis) for g, axis in zip((each, each if gives else 0 * each), axes, strict=True)]
        got = _by_one(subject, data, batch, what, ways)
        subject.assert_all_same(f"{what} by x and w", got=got, expected=expected)


def _by_one(subject, data, batch, what, ways):
    return ways[subject.draw(data, ways, f"transforms for {what}")](batch)


def _placed(values, axis):
    return values.sum(axis=0) if axis is None else np.moveaxis(values, 0, axis)


# Transforms under which each method runs, of a Function of a vector. The others run within them too.
RANDOM = {
    "forward": {"vmap": lambda f, x, **r: torch.func.vmap(f, **r)(x)},
    "backward": {
        "vmap of grad": lambda f, x, **r: torch.func.vmap(torch.func.grad(lambda x: torch.sum(f(x))), **r)(x),
        "grad of vmap": lambda f, x, **r: torch.func.grad(lambda x: torch.sum(torch.func.vmap(f, **r)(x)))(x),
        "backward of vmap": lambda f, x, **r: _after(torch.func.vmap(f, **r), x.requires_grad_()),
    },
    "jvp": {
        "vmap of jvp": lambda f, x, **r: torch.func.vmap(lambda x: torch.func.jvp(f, (x,), (x,))[1], **r)(x),
        "jvp of vmap": lambda f, x, **r: torch.func.jvp(torch.func.vmap(f, **r), (x,), (x,))[1],
    },
}


def _after(f, x):
    """The gradient by a pass that starts after f has returned."""
    return torch.autograd.grad(torch.sum(f(x)), x)[0]


@keeps("VMAP-10")
def test_a_generated_rule_keeps_the_randomness(subject, data):
    """Random numbers in forward, backward or jvp are an error, the same for all calls or different, as vmap says."""
    method = subject.draw(data, RANDOM, "method that draws random numbers")
    transforms = RANDOM[method][subject.draw(data, RANDOM[method], "transforms")]
    randomness = subject.draw(data, ("error", "same", "different"), "randomness")
    # By default a random number is an error.
    options = subject.draw(data, ({"randomness": randomness}, {})[: 1 + (randomness == "error")], "options of vmap")
    shape = subject.draw(data, ((4,), (2, 3)), "shape of one call")
    axis = subject.draw(data, range(len(shape) + 1), "batched dimension")
    random = lambda x: x * torch.rand_like(x)  # noqa: E731
    plain = {"forward": lambda x: 2 * x, "backward": lambda ctx, g: 2 * g, "jvp": lambda ctx, t: 2 * t}
    noisy = {"forward": random, "backward": lambda ctx, g: random(g), "jvp": lambda ctx, t: random(t)}
    apply = subject.custom(**{**plain, method: noisy[method]}, separate=True, generate_vmap_rule=True)
    x = subject.tensor(np.ones((*shape[:axis], 3, *shape[axis:])))

    def results():
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            found = transforms(apply, x, in_dims=axis, **options)
        return found if found.shape == (3, *shape) else found.movedim(axis, 0)

    what = f"random numbers in {method}"
    if randomness == "error":
        subject.assert_raises(RuntimeError, results, f"{what}, by default", naming=["random"])
        return
    got = subject.assert_accepted(results, what)
    alike = [torch.equal(got[i], got[j]) for i, j in ((0, 1), (0, 2), (1, 2))]
    subject.assert_equal(f"whether the calls have the same {what}", got=alike, expected=[randomness == "same"] * 3)

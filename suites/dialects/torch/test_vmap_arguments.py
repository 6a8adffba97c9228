"""What vmap takes and refuses: structures, dimensions, keyword arguments, chunks, and what a mapped function may do."""

import numpy as np
import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.torch._batches import drawn_batch, with_vmap_method
from autograd_conformance.suites.dialects.torch._func_transforms import transformable

# Kinds of arguments and shapes, so that often a tensor with dimensions is shared by all calls.
KINDS = ("tracked", "tracked", "tracked", "integers", "number")
SHAPES = ((3,), (2, 3), (), (0,))
# The structures in which a mapped function gets its arguments: to one, and back to a list.
STRUCTURES = {
    "flat": (tuple, list),
    "list": (lambda values: (list(values),), lambda args: list(args[0])),
    "dict": (lambda values: ({str(i): v for i, v in enumerate(values)},), lambda args: list(args[0].values())),
    "nested": (lambda values: (values[0], {"more": [*values[1:]]}), lambda args: [args[0], *args[1]["more"]]),
}
# The structures in which it returns its outputs, and their dimensions are given.
RETURNED = {
    "tuple": (tuple, tuple),
    "dict": (lambda ys: {str(o): y for o, y in enumerate(ys)}, lambda found: tuple(found.values())),
}


@keeps("VMAP-11")
def test_vmap_takes_structures_keyword_arguments_and_chunks(subject, data):
    """Outputs and gradients are right for in_dims and out_dims of any structure, keyword arguments and chunk sizes."""
    batch = drawn_batch(subject, data, arguments=KINDS, shapes=SHAPES, max_arguments=4)
    polynomial = batch.polynomial
    axes = [dict(zip(polynomial.tensors, batch.axes, strict=True)).get(i) for i, _ in enumerate(polynomial.arguments)]
    shared = [i for i, axis in enumerate(axes) if axis is None]
    some = st.sets(st.sampled_from(shared)) if shared else st.just(set())
    named = subject.draw(data, st.just(set(shared)) | some, "keyword arguments")
    places = [i for i, _ in enumerate(axes) if i not in named]
    structure = subject.draw(data, STRUCTURES, "structure of the arguments")
    returned = subject.draw(data, RETURNED, "structure of the outputs")
    ends = st.sampled_from(range(-len(polynomial.shape) - 1, len(polynomial.shape) + 1))
    count = len(polynomial.float_outputs)
    out_dims = subject.draw(data, st.lists(ends, min_size=count, max_size=count).map(tuple), "out_dims")
    one = subject.draw(data, (len(set(out_dims)) == 1, False), "out_dims is one number where that is possible")
    chunk = subject.draw(data, (None, *range(1, batch.size + 2)), "chunk_size")
    written = subject.draw(data, (False, True), "written rule")
    cls = transformable(subject, polynomial)
    cls = with_vmap_method(subject, cls) if written else cls
    make, flat = STRUCTURES[structure]
    give, take = RETURNED[returned]

    def f(*args, **more):
        given = dict(zip(places, flat(args), strict=True)) | {int(name[1:]): value for name, value in more.items()}
        outputs = cls.apply(*(given[i] for i in range(len(axes))))
        return give([outputs[o] for o in polynomial.float_outputs])

    tensors = dict(zip(polynomial.tensors, batch.tensors(subject), strict=True))
    leaves = [tensors[i].requires_grad_() for i in polynomial.floating]
    values = [tensors.get(i, value) for i, value in enumerate(polynomial.values)]
    keywords = {f"k{i}": values[i] for i in named}
    dims = out_dims[0] if one and len(set(out_dims)) == 1 else give(out_dims)
    mapped = torch.func.vmap(f, make([axes[i] for i in places]), dims, chunk_size=chunk)
    got = subject.assert_accepted(lambda: mapped(*make([values[i] for i in places]), **keywords), "a call under vmap")
    subject.assert_equal("type of what vmap returns", got=type(got), expected=type(give([])))
    expected = [np.moveaxis(y, 0, d) for y, d in zip(batch.outputs(), out_dims, strict=True)]
    subject.assert_all_same("outputs", got=take(got), expected=expected)
    cotangents = batch.cotangents()
    given = [np.moveaxis(g, 0, d) for g, d in zip(cotangents, out_dims, strict=True)]
    found = torch.autograd.grad(take(got), leaves, subject.tensors(given, polynomial.dtype))
    right = [g for g in batch.summed(batch.gradients(cotangents)) if g is not None]
    subject.assert_all_same("gradients", got=found, expected=right)


# What vmap refuses: how it is called with a Function, two vectors x and y of other sizes, and what the message names.
REFUSED = {
    "a number as output": (lambda f, x, y: torch.func.vmap(lambda x: (f(x), 2.0))(x), ["Tensors"]),
    "None as output": (lambda f, x, y: torch.func.vmap(lambda x: (f(x), None))(x), ["Tensors"]),
    "no arguments": (lambda f, x, y: torch.func.vmap(f)(), ["inputs"]),
    "no batched argument": (lambda f, x, y: torch.func.vmap(f, (None,))(x), ["Tensor"]),
    "two sizes": (lambda f, x, y: torch.func.vmap(lambda x, y: f(x))(x, y), ["size", "[2, 3]"]),
    "two sizes in a structure": (lambda f, x, y: torch.func.vmap(lambda x: f(x["x"]))({"x": x, "y": y}), ["[2, 3]"]),
    "a dimension too large": (lambda f, x, y: torch.func.vmap(f, 1)(x), ["in_dim", 1]),
    "a dimension too small": (lambda f, x, y: torch.func.vmap(f, -2)(x), ["in_dim", -2]),
    "a number as batched argument": (lambda f, x, y: torch.func.vmap(lambda x, n: f(x))(x, 2), ["float", "int"]),
    "in_dims too short": (lambda f, x, y: torch.func.vmap(lambda x, y: f(x), (0,))(x, x), ["in_dims", "structure"]),
    "in_dims too long": (lambda f, x, y: torch.func.vmap(f, (0, 0))(x), ["in_dims", "structure"]),
    "a fraction in in_dims": (lambda f, x, y: torch.func.vmap(f, (0.5,))(x), ["0.5", "in_dim"]),
    "a text as in_dims": (lambda f, x, y: torch.func.vmap(f, "0")(x), ["in_dims"]),
    "out_dims too long": (lambda f, x, y: torch.func.vmap(f, out_dims=(0, 0))(x), ["out_dims", "structure"]),
    "out_dims too short": (
        lambda f, x, y: torch.func.vmap(lambda x: (f(x), x), out_dims=(0,))(x),
        ["out_dims", "structure"],
    ),
    "a text as out_dims": (lambda f, x, y: torch.func.vmap(f, out_dims="0")(x), ["out_dims"]),
    "None for a batched output": (lambda f, x, y: torch.func.vmap(f, out_dims=None)(x), ["None"]),
    "a chunk size of 0": (lambda f, x, y: torch.func.vmap(f, chunk_size=0)(x), ["chunk_size", 0]),
    "a chunk size below 0": (lambda f, x, y: torch.func.vmap(f, chunk_size=-1)(x), ["chunk_size"]),
    "another randomness": (lambda f, x, y: torch.func.vmap(f, randomness="random")(x), ["randomness"]),
}


@keeps("VMAP-12", examples=1.5)
def test_vmap_refuses_what_does_not_fit(subject, data):
    """vmap raises, and says why, for other outputs than tensors and for arguments and dimensions that do not fit."""
    refused = subject.draw(data, REFUSED, "what vmap is given")
    apply = _squared(subject)
    call, naming = REFUSED[refused]
    x, y = subject.tensor([1.0, 2.0]), subject.tensor([1.0, 2.0, 3.0])
    naming = [tuple(naming)] if refused == "a number as batched argument" else naming
    subject.assert_raises((ValueError, RuntimeError), lambda: call(apply, x, y), f"vmap of {refused}", naming=naming)
    subject.assert_same("what vmap gives after it", got=torch.func.vmap(apply)(x), expected=np.array([1.0, 4.0]))


def _squared(subject, inside=lambda x: x, place="forward"):
    """The square, with a rule, and ``inside`` in one of its methods."""
    acts = lambda where, x: inside(x) if where == place else x  # noqa: E731

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    methods = {
        "forward": lambda x: acts("forward", x) * x,
        "setup_context": setup_context,
        "backward": lambda ctx, g: 2 * acts("backward", *ctx.saved_tensors) * g,
        "jvp": lambda ctx, t: 2 * acts("jvp", *ctx.saved_tensors) * t,
    }
    return subject.custom(**methods, generate_vmap_rule=True)


def _mapped(apply, place):
    """What runs this method of a Function of one vector under vmap."""
    if place == "backward":
        return lambda x: torch.func.grad(lambda x: torch.sum(apply(x)))(x)
    if place == "jvp":
        return lambda x: torch.func.jvp(apply, (x,), (torch.ones_like(x),))[1]
    return apply


DEPENDS = {
    "item": lambda x, of: x * (of.sum().item() * 0 + 1),
    "float": lambda x, of: x * (float(of.sum()) * 0 + 1),
    "condition": lambda x, of: x if of.sum() > -1000 else -x,
    "while": lambda x, of: _counted(x, of),
    "nonzero": lambda x, of: x + 0 * torch.nonzero(of).sum(),
    "is_nonzero": lambda x, of: x if torch.is_nonzero(of.sum() * 0 + 1) else -x,
    "indexing by a mask": lambda x, of: x + 0 * of[of > 0].sum(),
    "out": lambda x, of: torch.add(of * 0, x, out=torch.empty_like(of * 0 + x)),
}


def _counted(x, of):
    left = of.sum() * 0 + 1
    while left > 0:
        left = left - 1
    return x


PLACES = ("the function", "forward", "backward", "jvp")


@keeps("VMAP-13")
def test_what_depends_on_batched_values_raises(subject, data):
    """In a mapped function and a Function's methods values that are batched raise; those that are shared are right."""
    place = subject.draw(data, PLACES, "place")
    some = st.lists(st.sampled_from(tuple(DEPENDS)), min_size=3, max_size=4, unique=True)
    ways = subject.draw(data, some, "what it does")
    shared = subject.draw(data, (False, True), "the value is shared by all calls")
    shape = subject.draw(data, ((2,), (1,), (2, 2)), "shape")
    [_check_dependence(subject, place, way, shared, shape) for way in ways]


def _check_dependence(subject, place, way, shared, shape):
    x, ones = np.arange(1.0, 1 + 2 * np.prod(shape)).reshape(2, *shape), subject.tensor(np.ones(shape))
    shapes = []

    def act(x):
        shapes.append(tuple(x.shape))
        return DEPENDS[way](x, ones if shared else x)

    apply = _squared(subject, act, place)
    f = (lambda x: act(apply(x))) if place == PLACES[0] else _mapped(apply, place)
    run = lambda: torch.func.vmap(f)(subject.tensor(x))  # noqa: E731
    if shared and way != "out":
        got = subject.assert_accepted(run, f"{way} of a shared value under vmap, in {place}")
        subject.assert_same("result", got=got, expected=2 * x if place in ("backward", "jvp") else x * x)
    else:
        naming = [("vmap", "batching", "out")]
        subject.assert_raises(RuntimeError, run, f"{way} of a batched value under vmap, in {place}", naming=naming)
    subject.assert_equal(f"shapes that {place} sees", got=shapes, expected=[shape])


WRITES = {
    "add_": lambda to, of: to.add_(of),
    "mul_": lambda to, of: to.mul_(of),
    "copy_": lambda to, of: to.copy_(of),
    "index": lambda to, of: to.__setitem__(..., of),
    "a view": lambda to, of: to.view(-1).add_(of.reshape(-1)),
}
RIGHT = {"add_": np.add, "mul_": np.multiply, "copy_": lambda a, b: b, "index": lambda a, b: b, "a view": np.add}


@keeps("VMAP-14")
def test_batched_values_are_not_written_where_there_is_no_batch(subject, data):
    """In a mapped function and in forward a change in place raises if only what is written is batched."""
    inside = subject.draw(data, (False, True), "in forward of a Function")
    way = subject.draw(data, WRITES, "change")
    batched = subject.draw(
        data, ((True, True), (True, False), (False, True), (False, False)), "batched: changed, written"
    )
    values = [np.array([[1.0, 2.0], [3.0, 4.0]]) + 4 * n for n in range(2)]
    given = [v if b else v[0] for v, b in zip(values, batched, strict=True)]

    def act(x, to, of):
        to = to * 1
        WRITES[way](to, of)
        return to + 0 * x

    apply = subject.custom(forward=act, backward=lambda ctx, g: (g, g, g), separate=True, generate_vmap_rule=True)
    mapped = torch.func.vmap(apply if inside else act, (0, *(0 if b else None for b in batched)))
    run = lambda: mapped(*subject.tensors([values[0], *given]))  # noqa: E731
    if batched == (False, True):
        subject.assert_raises(RuntimeError, run, f"{way} of what is not batched under vmap")
    else:
        got = subject.assert_accepted(run, f"{way} under vmap")
        subject.assert_same("result", got=got, expected=RIGHT[way](given[0], given[1]) + np.zeros((2, 2)))


@keeps("VMAP-15")
def test_vmap_calls_its_function_once(subject, data):
    """The function, and each method of a Function with a generated rule, runs once for a batch, or once a chunk."""
    size = subject.draw(data, (1, 2, 5), "batch size")
    chunk = subject.draw(data, (None, *range(1, size + 2)), "chunk_size")
    place = subject.draw(data, PLACES, "place")
    calls = []
    note = lambda x: (calls.append(place), x)[1]  # noqa: E731
    apply = _squared(subject, note, place)
    f = _mapped(apply, place)
    x = subject.tensor(np.ones((size, 2)))
    torch.func.vmap((lambda x: note(apply(x))) if place == PLACES[0] else f, chunk_size=chunk)(x)
    expected = 1 if chunk is None else -(-size // chunk)
    subject.assert_equal(f"calls of {place}", got=len(calls), expected=expected)


@keeps("VMAP-10", variant="seed")
def test_random_numbers_under_vmap_follow_the_seed(subject, data):
    """Two calls draw other numbers, and the same after manual_seed; with chunks calls agree as without."""
    randomness = subject.draw(data, ("same", "different"), "randomness")
    # For each chunk torch restores the state of the generator of the CPU alone.
    sizes = (None, 1, 2, 3) if subject.device == "cpu" or randomness == "different" else (None,)
    chunk = subject.draw(data, sizes, "chunk_size")
    inside = subject.draw(data, (True, False), "in forward of a Function")
    seed = subject.draw(data, st.integers(0, 99), "seed")
    draw = lambda x: x * 0 + torch.rand_like(x, dtype=torch.float32)  # noqa: E731
    f = (
        subject.custom(forward=draw, backward=lambda ctx, g: g, separate=True, generate_vmap_rule=True)
        if inside
        else draw
    )
    x = subject.tensor(np.zeros((3, 4)), "float32")
    mapped = torch.func.vmap(f, randomness=randomness, chunk_size=chunk)
    torch.manual_seed(seed)
    first, second = mapped(x), mapped(x)
    torch.manual_seed(seed)
    again = mapped(x)
    agree = [torch.equal(first[0], first[i]) for i in (1, 2)]
    subject.assert_equal("whether calls draw the same", got=agree, expected=[randomness == "same"] * 2)
    same = (torch.equal(first, second), torch.equal(first, again))
    what = "whether a second call draws the same, and one after manual_seed"
    subject.assert_equal(what, got=same, expected=(False, True))


@keeps("VMAP-10", variant="jacfwd")
def test_randomness_of_jacfwd_is_that_of_its_vmap(subject, data):
    """In forward mode by jacfwd random numbers are an error, the same for each tangent, or different."""
    randomness = subject.draw(data, ("same", "different", "error", None), "randomness, None for the default")
    inside = subject.draw(data, (True, False), "in jvp of a Function")
    random = lambda x: x.sum() * torch.rand((), device=x.device)  # noqa: E731
    if inside:
        rules = {"forward": lambda x: x.sum(), "backward": lambda ctx, g: g, "jvp": lambda ctx, t: random(t)}
        f = subject.custom(**rules, separate=True, generate_vmap_rule=True)
    else:
        f = random
    x = subject.tensor(np.ones(4), "float32")
    options = {} if randomness is None else {"randomness": randomness}
    run = lambda: torch.func.jacfwd(f, **options)(x)  # noqa: E731
    if randomness in ("error", None):
        subject.assert_raises(RuntimeError, run, "random numbers under jacfwd", naming=["random"])
    else:
        got = subject.assert_accepted(run, "random numbers under jacfwd")
        expected = 1 if randomness == "same" else 4
        subject.assert_equal("different numbers for four tangents", got=len(set(got.tolist())), expected=expected)

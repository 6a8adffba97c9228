"""An engine of one's own, as one who joins has: NumPy's arrays, and nodes with the closures that pull cotangents."""

import itertools
import operator

import numpy as np

__version__ = "1.0"
_count = itertools.count()


class Node:
    def __init__(self, parents=(), pull=None):
        self.parents, self.pull, self.number = parents, pull, next(_count)


class Value:
    __array_ufunc__ = None
    device = "cpu"

    def __init__(self, data, node=None, index=0):
        self.data, self.node, self.index = np.asarray(data), node, index

    shape = property(lambda self: self.data.shape)
    ndim = property(lambda self: self.data.ndim)
    dtype = property(lambda self: self.data.dtype)
    __add__ = __radd__ = lambda self, other: record(np.add, lambda g: (g, g), self, other)
    __mul__ = __rmul__ = lambda self, other: record(np.multiply, lambda g: (g * raw(other), g * self.data), self, other)
    __hash__ = object.__hash__

    def __neg__(self):
        return record(np.negative, lambda g: (-g,), self)


def raw(x):
    return x.data if isinstance(x, Value) else x


def constant(function):
    return lambda *args, **options: Value(function(*map(raw, args), **options))


for _name in ("sub", "truediv", "pow", "matmul", "getitem", "lt", "gt", "eq"):
    setattr(Value, f"__{_name}__", constant(getattr(operator, _name)))
Value.__rsub__ = constant(lambda x, number: number - x)


def fitted(g, shape):
    """A gradient, summed over the dimensions that were broadcast."""
    g = g.sum(axis=tuple(range(g.ndim - len(shape))))
    return g.sum(axis=tuple(n for n, side in enumerate(shape) if side == 1 and g.shape[n] != 1), keepdims=True)


def record(function, pull, *args):
    """A NumPy function of values; ``pull`` gives the gradient of each argument."""
    shapes = [np.shape(raw(x)) for x in args]
    (output,) = linked([function(*map(raw, args))], args, lambda gs: map(fitted, pull(gs[0]), shapes))
    return output


def linked(outputs, args, pull):
    """The outputs as values of a new node, if an argument has one."""
    parents = [(x.node, x.index) if isinstance(x, Value) and x.node else None for x in args]
    node = Node(parents, pull) if any(parents) else None
    return [Value(y, node, n) for n, y in enumerate(outputs)]


class Ctx:
    def save_for_backward(self, *values):
        self.saved_tensors = values

    def save_for_forward(self, *values):
        """There is no forward mode."""


class Function:
    @classmethod
    def apply(cls, *args):
        ctx, inner = Ctx(), [Value(x.data) if isinstance(x, Value) else x for x in args]
        ctx.needs_input_grad = tuple(isinstance(x, Value) and x.node is not None for x in args)
        if hasattr(cls, "setup_context"):
            outputs = cls.forward(*inner)
            cls.setup_context(ctx, tuple(inner), outputs)
        else:
            outputs = cls.forward(ctx, *inner)
        made = linked(
            map(raw, several(outputs)), args, lambda gs: map(raw, several(cls.backward(ctx, *map(Value, gs))))
        )
        return tuple(made) if isinstance(outputs, tuple) else made[0]


def several(values):
    return values if isinstance(values, tuple) else (values,)


def gradients(outputs, cotangents, inputs):
    """The gradient of each input, None for one that no output depends on."""
    found, nodes, todo = {}, set(), [y.node for y in outputs]

    def add(place, g):
        if place is not None and place[0] is not None and g is not None:
            found[place] = found[place] + g if place in found else g

    for y, g in zip(outputs, cotangents, strict=True):
        add((y.node, y.index), raw(g))
    while todo:
        node = todo.pop()
        if node is not None and node not in nodes:
            nodes.add(node)
            todo += [place[0] for place in node.parents if place]
    for node in sorted(nodes, key=lambda node: -node.number):
        given = [g for (mine, _), g in found.items() if mine is node]
        if given and node.pull:
            for place, g in zip(node.parents, node.pull(given), strict=False):
                add(place, g)
    return [Value(found[x.node, 0]) if (x.node, 0) in found else None for x in inputs]

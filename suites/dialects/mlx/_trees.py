"""Trees of arrays, and the functions of them that the tests of MLX transform."""

from itertools import count

import mlx.core as mx
import numpy as np
from hypothesis import strategies as st

from autograd_conformance.suites.dialects.shared.linear import SHAPES, Spelling

ARRAY = "array"


def trees():
    """Arrays in lists, tuples and dicts, or one by itself."""

    def packed(inner):
        lists = st.lists(inner, min_size=1, max_size=3)
        return st.one_of(
            lists, lists.map(tuple), st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=2)
        )

    return st.recursive(st.just(ARRAY), packed, max_leaves=4)


def arguments(most=3):
    """The trees that are the arguments of a call."""
    return st.lists(trees(), min_size=1, max_size=most).map(tuple)


def mapped(f, tree):
    """The tree with f of each of its leaves."""
    if isinstance(tree, dict):
        return {key: mapped(f, branch) for key, branch in tree.items()}
    return type(tree)(mapped(f, branch) for branch in tree) if isinstance(tree, list | tuple) else f(tree)


def leaves(tree):
    """The leaves of the tree, in order."""
    found = []
    mapped(found.append, tree)
    return found


def numbered(tree):
    """The tree with 0, 1, 2, ... for its leaves."""
    numbers = count()
    return mapped(lambda _: next(numbers), tree)


def shaped(tree):
    """The structure of the tree: the tree with the same value for every leaf."""
    return mapped(lambda leaf: leaf if leaf is None else ARRAY, tree)


class Values:
    """Small integers for the leaves of trees, drawn once: all arrays have one shape and one dtype."""

    def __init__(self, subject, data, shapes=SHAPES):
        self.subject = subject
        self.dtype = subject.draw(data, subject.dtypes, "dtype")
        self.shape = subject.draw(data, shapes, "shape")
        self.seed = subject.draw(data, st.integers(0, 99), "seed")

    def array(self, salt, number=0, lead=()):
        """An array for the leaf of that number, in NumPy."""
        rng = np.random.default_rng((self.seed, salt, number))
        return np.asarray(rng.choice([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0], size=(*lead, *self.shape)))

    def arrays(self, salt, how_many):
        return [self.array(salt, number) for number in range(how_many)]

    def tensor(self, array):
        return self.subject.tensor(array, self.dtype)

    def grown(self, tree, salt):
        """The tree with a tensor for each leaf."""
        return mapped(lambda number: self.tensor(self.array(salt, number)), numbered(tree))


def total(tree):
    """The sum of all arrays of a tree, by elements."""
    first, *others = leaves(tree)
    return sum(others, first)


def surrogate(factor, times=42):
    """A custom function that multiplies by ``factor`` and whose vjp rule multiplies by ``times``."""
    f = mx.custom_function(lambda x: x * factor)
    f.vjp(lambda primal, cotangent, output: cotangent * times)
    return f


def custom(forward, backward):
    """A custom function of arrays with a vjp rule, for which a single argument is bare."""
    f = mx.custom_function(lambda *xs: forward(*xs))

    def rule(primals, cotangents, outputs):
        xs = primals if isinstance(primals, tuple | list) else (primals,)
        found = backward(xs, list(cotangents))
        return found if len(xs) > 1 else found[0]

    f.vjp(rule)
    return f


MLX = {"custom_function": Spelling(custom)}

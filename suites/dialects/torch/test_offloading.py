"""Custom Functions in modules whose saved tensors are moved away: to the CPU by offload_wrapper, to files by hooks."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import numpy as np
import torch
from hypothesis import strategies as st
from torch.autograd import graph
from torch.distributed.algorithms._checkpoint import checkpoint_wrapper as wrappers
from torch.multiprocessing.reductions import StorageWeakRef

from autograd_conformance.harness.testing.marks import keeps


@dataclass
class _Model:
    """Linear layers with a Function between them: the square of a weighted input. It saves all that it has.

    ``module`` has the layers, ``seen`` what backward read, and ``between`` the memory of intermediates.
    """

    subject: Any
    dtype: str
    x: np.ndarray
    weights: list[np.ndarray]
    seen: list[Any] = field(default_factory=list)
    between: list[Any] = field(default_factory=list)

    def module(self):
        """The layers, with these weights."""
        first, second = (torch.nn.Linear(2, 2, bias=False) for _ in range(2))
        layers = torch.nn.Sequential(first, _Squared(self._function()), second)
        for layer, values in zip(layers, self.weights, strict=True):
            layer.weight = torch.nn.Parameter(self._tensor(values))
        return layers

    def _function(self):
        def forward(ctx, x, weight):
            between = x * weight
            output = between * between
            self.between.append(StorageWeakRef(between.untyped_storage()))
            ctx.save_for_backward(x, weight, between, output)
            return output

        def backward(ctx, g):
            x, weight, between, output = ctx.saved_tensors
            self.seen += [x, weight, between, output]
            slope = g * 2 * between
            return slope * weight, (slope * x).sum(0)

        return self.subject.define(forward=forward, backward=backward).apply

    def _tensor(self, values):
        return self.subject.tensor(values, self.dtype)

    def assert_right(self, module, before):
        """The gradients of the input and the weights are right, and backward got what was saved.

        ``before(output)`` runs before the backward pass.
        """
        subject, leaf = self.subject, self._tensor(self.x).requires_grad_()
        output = subject.assert_accepted(lambda: module(leaf), "a call of the module")
        before(output)
        subject.assert_accepted(output.sum().backward, "a backward pass")
        first, weight, second = self.weights
        x = self.x @ first.T
        between = x * weight
        slope = np.ones_like(x) @ second * 2 * between
        through = slope * weight
        expected = [through @ first, through.T @ self.x, (slope * x).sum(0), np.ones_like(x).T @ between**2]
        got = [each.grad for each in (leaf, *module.parameters())]
        subject.assert_all_same("gradients", got=got, expected=expected)
        saved = [x, weight, between, between**2]
        seen = self.seen[-len(saved) :]
        subject.assert_all_same("saved tensors in backward", got=seen, expected=saved)
        describe = subject.implementation.describe
        kinds = [(each.dtype, each.device) for each in map(describe, seen)]
        what = "dtypes and devices of saved tensors in backward"
        subject.assert_equal(what, got=kinds, expected=[(self.dtype, subject.device)] * len(saved))


class _Squared(torch.nn.Module):
    weight: torch.nn.Parameter

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x, self.weight)


def _drawn(subject, data):
    def matrix(label, *values):
        numbers = st.lists(st.sampled_from(values), min_size=4, max_size=4)
        return np.reshape(np.array(subject.draw(data, numbers, label), float), (2, 2))

    x, first, last = (matrix(label, 1, -1, 0) for label in ("input", "first layer", "last layer"))
    weight = np.array(subject.draw(data, ((1, -2), (-1, 2)), "weight of the Function"), float)
    return _Model(subject, subject.draw(data, subject.dtypes, "dtype"), x, [first, weight, last])


def _each_wrapped(module):
    """Each layer in a wrapper of its own."""
    wrappers.apply_activation_checkpointing(module, wrappers.offload_wrapper, lambda layer: layer is not module)
    return module


WRAPPED = {
    "offload": wrappers.offload_wrapper,
    "offload in checkpoint": lambda module: wrappers.checkpoint_wrapper(wrappers.offload_wrapper(module)),
    "checkpoint in offload": lambda module: wrappers.offload_wrapper(wrappers.checkpoint_wrapper(module)),
    "offload of each layer": _each_wrapped,
}


@keeps("PACK-11")
def test_what_a_module_saves_is_offloaded(subject, data):
    """In offload_wrapper saved tensors are elsewhere until backward, which gets them as they were."""
    model = _drawn(subject, data)
    module = WRAPPED[subject.draw(data, WRAPPED, "wrapped by")](model.module())

    def before(_):
        free = [each.expired() for each in model.between]
        subject.assert_equal("whether the memory of the intermediate is free", got=free, expected=[True])

    model.assert_right(module, before)


class _File:
    """The name of a new file, which is removed with this object."""

    def __init__(self, folder):
        self.path = Path(folder) / uuid4().hex

    def __del__(self):
        self.path.unlink(missing_ok=True)


class _OnDisk(torch.nn.Module):
    """A module whose saved tensors, from a number of elements on, are in files of a folder."""

    def __init__(self, module, folder, least):
        super().__init__()
        self.module, self.folder, self.least = module, folder, least

    def forward(self, x):
        with graph.saved_tensors_hooks(self._pack, self._unpack):
            return self.module(x)

    def _pack(self, tensor):
        if tensor.numel() < self.least:
            return tensor
        file = _File(self.folder)
        torch.save(tensor, file.path)
        return file

    def _unpack(self, packed):
        return torch.load(packed.path) if isinstance(packed, _File) else packed


@keeps("PACK-12")
def test_what_a_module_saves_is_on_disk(subject, data):
    """Saved tensors come back from files, as often as they are read; a file goes with what needs it."""
    model = _drawn(subject, data)
    least = subject.draw(data, (0, 3), "elements of the least tensor that is written")
    passes = subject.draw(data, st.integers(0, 2), "passes that retain the graph")
    with TemporaryDirectory() as folder:
        module = _OnDisk(model.module(), folder, least)
        files = lambda: len([*Path(folder).iterdir()])  # noqa: E731

        def before(output):
            written = files()
            subject.assert_that(written > 0, "files of what was saved", got=written, expected="at least one")
            module(output)
            subject.assert_equal("files, once a further call was dropped", got=files(), expected=written)
            for _ in range(passes):
                torch.autograd.grad(output.sum(), [*module.parameters()], retain_graph=True)
            subject.assert_equal("files after passes that retain the graph", got=files(), expected=written)

        model.assert_right(module, before)
        subject.assert_equal("files after the backward pass", got=files(), expected=0)

"""The uses of tensors, as data: they are those of the suite, which is measured."""

from __future__ import annotations

import numpy as np
import pytest

from autograd_conformance.reference import ladder
from autograd_conformance.reference.namespace import ARRAY_NAMES
from autograd_conformance.reference.uses import ALWAYS, FUNCTIONS, OPERATORS, POINTS, USES, numpy_namespace

# The model's adapter, which writes down through which operations of a test a derivative is taken.
RECORDING = """
from pathlib import Path
from autograd_conformance.implementations.model import ModelImplementation
from autograd_conformance.reference.model_namespace import OPERATIONS
from autograd_conformance.reference.model_tensors import Step

NAMES = {{id(operation.rules): name for name, operation in OPERATIONS.items()}}
made, run, inside = Step.__init__, Step._run, [0]

def begun(self, operation, *rest):
    made(self, operation, *rest)
    # A rule of the model is made of operations too, which no test asked for.
    self._asked = not inside[0]

def differentiated(self, *given):
    if self._asked:
        with open("through.txt", "a") as file:
            print(NAMES[id(self._rules)], file=file)
    inside[0] += 1
    try:
        return run(self, *given)
    finally:
        inside[0] -= 1

Step.__init__, Step._run = begun, differentiated

class Recording(ModelImplementation):
    name = "recording"
    capabilities = {claimed}
"""

OPERATIONS = {
    "__add__": "add", "__radd__": "add", "__sub__": "subtract", "__rsub__": "subtract", "__mul__": "multiply",
    "__rmul__": "multiply", "__truediv__": "divide", "__rtruediv__": "divide", "__pow__": "power",
    "__matmul__": "matmul", "__neg__": "negative", "__getitem__": "getitem",
}  # fmt: skip


def declared(*claims):
    """The operations of the uses that are differentiated when these capabilities are claimed."""
    mine = [use for use in USES if use.differentiated is not None and set(use.differentiated.split()) <= set(claims)]
    return {use.name or OPERATIONS[use.method] for use in mine}


@pytest.mark.parametrize("claimed", ["nothing", "everything"])
def test_the_suite_differentiates_through_what_is_declared(command, tmp_path, claimed):
    claims = "frozenset()" if claimed == "nothing" else "ModelImplementation.capabilities"
    (tmp_path / "recording.py").write_text(RECORDING.format(claimed=claims))
    ids = "VJP-CHAIN,VJP-SAME-TENSOR,DBL-CORRECT"
    words = ("-n", "0", "--profile", "quick", "--seed", "1", "--properties", ids)
    run = command("recording.py", *words, folder=tmp_path)
    assert run.status == 0, run.out + run.err
    found = set((tmp_path / "through.txt").read_text().split())
    assert found == declared(*([] if claimed == "nothing" else ["double_backward", "tuples", "sparse", "inplace"]))


def test_every_name_of_the_namespace_has_a_use():
    assert {use.name for use in FUNCTIONS} | {"arange", "zeros"} == {*ARRAY_NAMES, "copy"}
    assert all(use.method for use in OPERATORS)


@pytest.mark.parametrize("use", USES, ids=lambda use: use.text)
def test_numpy_knows_each_use_and_its_derivative(use):
    points = tuple(POINTS[name] for name in use.given)

    def f(arrays):
        return (np.asarray(use.apply(numpy_namespace, *arrays)),)

    (output,) = f(points)
    assert np.all(np.isfinite(output))
    if use.differentiated is not None:
        direction = ladder.directions(points, seed=0)
        estimate = ladder.slope(f, points, direction, (np.ones(output.shape),))
        assert estimate.reason is None
        assert estimate.bound <= 1e-9 * max(1.0, abs(estimate.value))


def test_what_is_always_differentiated_needs_no_capability():
    assert ALWAYS == ""
    assert {"add", "multiply", "negative", "reshape", "permute_dims", "broadcast_to", "copy", "sum"} == declared()

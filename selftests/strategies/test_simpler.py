"""Simpler calls than one: where they lead, and what they keep."""

import pytest

from autograd_conformance.reference.functions import FUNCTIONS
from autograd_conformance.strategies.calls import Call, Cotangent, Tensor
from autograd_conformance.strategies.simpler import simpler

MUL = FUNCTIONS["NumpyMul"]
DTYPES = ("float64", "float32", "complex128")


def mul(specials=((1, 0.125),), layout="transposed", shape=(2, 3), dtype="complex128"):
    x = Tensor(shape, dtype, requires_grad=False, layout=layout, fill="dense", specials=specials)
    y = Tensor(shape, dtype, requires_grad=True, fill="ramp")
    return Call("NumpyMul", (x, y), (Cotangent("normal", layout="expanded"),), seed=7)


def simplest(call, fails, *, special=False):
    """The call to which the simpler ones lead that still fail."""
    while True:
        other = next((each for each in simpler(MUL, call, DTYPES, special=special) if fails(each)), None)
        if other is None:
            return call
        call = other


PLAIN = Call("NumpyMul", (Tensor((), requires_grad=True), Tensor((), requires_grad=True)), (Cotangent(),))


def test_a_call_of_which_nothing_matters_becomes_plain_in_few_steps():
    tried = []

    def fails(each):
        tried.append(each)
        return True

    assert simplest(mul(), fails) == PLAIN
    assert len(tried) < 5


@pytest.mark.parametrize(
    ("name", "keeps"),
    [
        ("layout", lambda call: call.tensors[0].layout == "transposed"),
        ("mask", lambda call: not call.tensors[0].requires_grad),
        ("dtype", lambda call: call.dtype == "complex128"),
        ("special values", lambda call: bool(call.tensors[0].specials)),
        ("cotangent", lambda call: call.cotangents[0].layout == "expanded"),
        ("length", lambda call: call.tensors[0].shape[-1:] == (3,)),
    ],
)
def test_what_matters_stays_and_all_else_becomes_plain(name, keeps):
    found = simplest(mul(), keeps)
    assert keeps(found)
    others = {
        "layout": all(t.layout == "contiguous" for t in found.tensors),
        "mask": all(t.requires_grad for t in found.tensors),
        "dtype": found.dtype == "float64",
        "special values": not any(t.specials for t in found.tensors),
        "cotangent": found.cotangents == (Cotangent(),),
        "length": all(side == 1 for t in found.tensors for side in t.shape),
    }
    # A transposed tensor has two dimensions, and only a large one has a place for a special value elsewhere.
    assert {other for other, plain in others.items() if not plain} - {"length"} == {name} - {"length"}
    assert found.seed == 0


def test_values_that_a_test_is_about_stay():
    found = simplest(mul(), lambda _: True, special=True)
    assert found.tensors[0].fill == "dense"
    assert found.tensors[0].specials
    assert all(tensor.requires_grad and tensor.layout == "contiguous" for tensor in found.tensors)


def test_no_call_is_simpler_than_itself():
    for call in (mul(), PLAIN):
        assert repr(call) not in map(repr, simpler(MUL, call, DTYPES, special=False))

"""The documented Functions compiled by inductor: that it is used, and what is said without a compiler."""

from __future__ import annotations

import pytest

from autograd_conformance import implementations
from autograd_conformance.implementations.protocol import Implementation, Unavailable
from autograd_conformance.reference.functions import FUNCTIONS

torch = pytest.importorskip("torch")
inductor = pytest.importorskip("autograd_conformance.implementations.torch.inductor")


@pytest.fixture
def compiling() -> Implementation:
    try:
        return implementations.load("torch-inductor")
    except Unavailable as problem:
        pytest.skip(str(problem))


# torch uses what it deprecates where it imports inductor.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forward_and_backward_are_compiled(compiling: Implementation) -> None:
    from torch._inductor import metrics

    before = metrics.generated_kernel_count
    x = torch.tensor([2.0, -3.0], requires_grad=True)
    square = compiling.function(compiling.build(FUNCTIONS["Square"]))
    assert torch.autograd.grad(square(x).sum(), x)[0].tolist() == [4.0, -6.0]
    assert metrics.generated_kernel_count - before == 2


def test_without_a_compiler_a_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise RuntimeError("No working C++ compiler found")

    monkeypatch.setattr(inductor, "get_cpp_compiler", missing)
    with pytest.raises(Unavailable, match=r"torch-inductor: No working C\+\+ compiler found"):
        implementations.load("torch-inductor")


def test_devices_are_those_that_inductor_has_a_back_end_for(
    compiling: Implementation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inductor.common, "device_codegens", {})
    assert compiling.devices() == ()

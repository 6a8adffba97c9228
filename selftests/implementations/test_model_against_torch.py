"""The model and PyTorch agree: the same bodies, used and misused, give the same values or are both refused.

Left out on purpose are the points where PyTorch departs from its documentation and the model follows it: a
once-differentiable backward differentiated again through ``grad`` or mixed with other terms, which PyTorch lets pass
or refuses for another reason; an input that the same forward saves and then changes, of which PyTorch takes the changed
value; ``jvp`` returning None for a floating output, which PyTorch dies of; keyword-only parameters of ``forward``.
"""

from __future__ import annotations

import warnings

import pytest

pytest.importorskip("torch")

from autograd_conformance.implementations.model import ModelImplementation
from autograd_conformance.implementations.torch import TorchImplementation
from autograd_conformance.selftests.implementations.scenarios.bench import Bench
from autograd_conformance.selftests.implementations.scenarios.engine import ENGINE, FORWARD_MODE
from autograd_conformance.selftests.implementations.scenarios.functions import ARGUMENTS, GRADIENTS, OUTPUTS, SAVING
from autograd_conformance.selftests.implementations.scenarios.inplace import IN_PLACE

IMPLEMENTATIONS = [TorchImplementation(), ModelImplementation()]

GROUPS = {
    "gradients": GRADIENTS,
    "saving": SAVING,
    "outputs": OUTPUTS,
    "arguments": ARGUMENTS,
    "in place": IN_PLACE,
    "engine": ENGINE,
    "forward mode": FORWARD_MODE,
}


@pytest.mark.parametrize(
    "scenario", [pytest.param(s, id=f"{group}: {name}") for group, ss in GROUPS.items() for name, s in ss.items()]
)
def test_model_and_torch_agree(scenario):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch, model = (Bench(implementation).outcome(scenario) for implementation in IMPLEMENTATIONS)
    assert model == torch

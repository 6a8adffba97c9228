"""Planted faults: deliberate bugs, each with the property that must catch it and a correct twin."""

from __future__ import annotations

from autograd_conformance.selftests.planted.contract import CONTRACT
from autograd_conformance.selftests.planted.derivatives import DERIVATIVES
from autograd_conformance.selftests.planted.engines import ENGINES
from autograd_conformance.selftests.planted.environment import ENVIRONMENT
from autograd_conformance.selftests.planted.forward import FORWARD
from autograd_conformance.selftests.planted.sharing import SHARING
from autograd_conformance.selftests.planted.values import VALUES

PLANTED = (*FORWARD, *VALUES, *CONTRACT, *DERIVATIVES, *ENVIRONMENT, *ENGINES, *SHARING)

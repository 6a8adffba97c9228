"""Planted faults: deliberate bugs, each with the property that must catch it and a correct twin."""

from __future__ import annotations

from autograd_conformance.selftests.faults.properties.contract import CONTRACT
from autograd_conformance.selftests.faults.properties.derivatives import DERIVATIVES
from autograd_conformance.selftests.faults.properties.engines import ENGINES
from autograd_conformance.selftests.faults.properties.environment import ENVIRONMENT
from autograd_conformance.selftests.faults.properties.forward import FORWARD
from autograd_conformance.selftests.faults.properties.sharing import SHARING
from autograd_conformance.selftests.faults.properties.values import VALUES

PLANTED = (*FORWARD, *VALUES, *CONTRACT, *DERIVATIVES, *ENVIRONMENT, *ENGINES, *SHARING)

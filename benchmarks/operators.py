"""What opcheck, gradcheck and `check` find in planted faults of operators: the table of docs/checking-operators.md."""

from __future__ import annotations

from autograd_conformance.selftests.faults.operators import HEAD, row
from autograd_conformance.selftests.faults.operators.planted import PLANTED

if __name__ == "__main__":
    print(HEAD, *map(row, PLANTED), sep="\n")

"""triton_op infers the schema of its function, whatever schema is given.

The documentation says: "A schema string for the operator. If None (recommended) we'll infer a schema for the operator
from its type annotations."
https://docs.pytorch.org/docs/stable/library.html#torch.library.triton_op
"""

import torch
from torch import Tensor

SCHEMA = "(Tensor x, float a=2.0) -> Tensor"


def scaled(x: Tensor, a: float = 3.0) -> Tensor:
    return a * x


custom = torch.library.custom_op("a_schema::custom", scaled, mutates_args=(), schema=SCHEMA)
triton = torch.library.triton_op("a_schema::triton", scaled, mutates_args=(), schema=SCHEMA)
expected, got = (op._opoverload._schema.arguments[1].default_value for op in (custom, triton))
if got != expected:
    print(f"the default is {got}, but the schema that was given has {expected}")
    raise SystemExit(1)
print("holds")

"""The Functions of torchao, with what their code suggests of the arguments.

Copy this file, correct the copy, and run check on it: the next check of torchao writes this file anew.
"""

from autograd_conformance import Declaration

from torchao.prototype.paretoq.models.utils_quant import (
    LsqBinaryTernaryExtension,
    StretchedElasticQuant,
)
from torchao.quantization.quant_primitives import _Round, _RoundToFloat8
from torchao.quantization.quantize_.workflows.nf4.nf4_tensor import LinearNF4
from torchao.sparsity.supermask import ApplyMask, GetSubnet

# torchao.quantization.quant_primitives:_Round.
_round = Declaration(
    _Round,
    "float[...]",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# torchao.quantization.quant_primitives:_RoundToFloat8.
_round_to_float8 = Declaration(
    _RoundToFloat8,
    "float[...]",
    "0.5 | 2.0",
)

# torchao.sparsity.supermask:GetSubnet.
get_subnet = Declaration(
    GetSubnet,
    "float[...]",
    "float[...] constant",  # zeros: backward returns None for it
    "float[...] constant",  # ones: backward returns None for it
    "1",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# torchao.sparsity.supermask:ApplyMask.
apply_mask = Declaration(
    ApplyMask,
    "float[...]",
    "float[...]",
)

# torchao.prototype.paretoq.models.utils_quant:LsqBinaryTernaryExtension.
lsq_binary_ternary_extension = Declaration(
    LsqBinaryTernaryExtension,
    "float[...]",
    "int[...](0..1)",
    "1 | 2",
    "1 | 2",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# torchao.prototype.paretoq.models.utils_quant:StretchedElasticQuant.
stretched_elastic_quant = Declaration(
    StretchedElasticQuant,
    "float[...]",
    "int[...](0..1)",
    "1 | 2",
    "1 | 2",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# torchao.quantization.quantize_.workflows.nf4.nf4_tensor:LinearNF4.
linear_nf4 = Declaration(
    LinearNF4,
    "float[n,m]",
    "float[n,m] constant",  # weight: backward returns None for it
)

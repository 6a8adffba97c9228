"""The Functions that were called by: python -m pytest ...

Each declaration was drafted from these calls. Read it, correct it, and run: autograd-conformance check check_optimum.py
A guess is what never varied while it was recorded. Arguments are described in docs/checking-your-function.md.
"""

import torch

from autograd_conformance import Declaration, Factory

from optimum.quanto.tensor.activations.qbytes import ActivationQBytesQuantizer
from optimum.quanto.tensor.function import QuantizedLinearFunction
from optimum.quanto.tensor.qbits import QBitsDequantizer
from optimum.quanto.tensor.qbytes import QBytesDequantizer
from optimum.quanto.tensor.qtype import qtype
from optimum.quanto.tensor.weights.qbits import WeightsQBitsQuantizer
from optimum.quanto.tensor.weights.qbytes import WeightQBytesLinearFunction, WeightQBytesQuantizer
from optimum.quanto.tensor.weights.tinygemm.qbits import (
    TinyGemmQBitsDequantizer,
    TinyGemmQBitsLinearFunction,
)

# optimum.quanto.tensor.activations.qbytes:ActivationQBytesQuantizer: 989 calls, of 57 kinds.
# Forward refuses 16 of 16 simple calls, one of them with: Unreadable: the values of a tensor of the class ActivationQBytesTensor, the layout torch.strided and the dtype torch.float64 cannot be read as an array: QTensor.numpy() got an unexpected keyword argument 'force'
activation_qbytes_quantizer = Declaration(
    ActivationQBytesQuantizer,
    "float[n,m,k]",  # base: bfloat16, float16, float32, requires grad at times
    Factory(lambda seed: qtype(name='qint8', is_floating_point=False, bits=8, dtype=torch.int8, qmin=-128, qmax=127)),  # qtype: as in the first call
    "float[]",  # scale: bfloat16, float16, float32, requires grad at times
)

# optimum.quanto.tensor.activations.qbytes:ActivationQBytesQuantizer: 280 calls, of 12 kinds.
# Forward refuses 16 of 16 simple calls, one of them with: Unreadable: the values of a tensor of the class ActivationQBytesTensor, the layout torch.strided and the dtype torch.float64 cannot be read as an array: QTensor.numpy() got an unexpected keyword argument 'force'
activation_qbytes_quantizer_2 = Declaration(
    ActivationQBytesQuantizer,
    "float[n,m,k,k]",  # base: float16, float32, requires grad at times
    Factory(lambda seed: qtype(name='qint8', is_floating_point=False, bits=8, dtype=torch.int8, qmin=-128, qmax=127)),  # qtype: as in the first call
    "float[]",  # scale: float16, float32, never requires grad
    name="ActivationQBytesQuantizer_2",
)

# optimum.quanto.tensor.activations.qbytes:ActivationQBytesQuantizer: 123 calls, of 26 kinds.
# Forward refuses 16 of 16 simple calls, one of them with: Unreadable: the values of a tensor of the class ActivationQBytesTensor, the layout torch.strided and the dtype torch.float64 cannot be read as an array: QTensor.numpy() got an unexpected keyword argument 'force'
activation_qbytes_quantizer_3 = Declaration(
    ActivationQBytesQuantizer,
    "float[n,m]",  # base: float16, float32, requires grad at times
    Factory(lambda seed: qtype(name='qint8', is_floating_point=False, bits=8, dtype=torch.int8, qmin=-128, qmax=127)),  # qtype: as in the first call
    "float[]",  # scale: float16, float32, requires grad at times
    name="ActivationQBytesQuantizer_3",
)

# optimum.quanto.tensor.weights.qbytes:WeightQBytesQuantizer: 768 calls, of 66 kinds.
# Forward refuses 16 of 16 simple calls, one of them with: ValueError: Cannot quantize Tensor of shape torch.Size([1, 1]) along axis 0 of size 1
weight_qbytes_quantizer = Declaration(
    WeightQBytesQuantizer,
    "float[n,m]",  # base: bfloat16, float16, float32, requires grad at times
    Factory(lambda seed: qtype(name='qint8', is_floating_point=False, bits=8, dtype=torch.int8, qmin=-128, qmax=127)),  # qtype: as in the first call
    "0 | -1",  # axis: 2 values
    "float[k,l]",  # scale: bfloat16, float16, float32, requires grad at times
    Factory(lambda seed: qtype(name='qint8', is_floating_point=False, bits=8, dtype=torch.int8, qmin=-128, qmax=127)),  # activation_qtype: as in the first call
    "True | False",  # optimized: 2 values
)

# optimum.quanto.tensor.weights.qbytes:WeightQBytesQuantizer: 488 calls, of 32 kinds.
# Guess, of which forward takes others, too: k was always 3.
# Forward refuses 16 of 16 simple calls, one of them with: ValueError: Cannot quantize Tensor of shape torch.Size([1, 1, 1, 1]) along axis 0 of size 1
weight_qbytes_quantizer_2 = Declaration(
    WeightQBytesQuantizer,
    "float[n,m,k,k]",  # base: float16, float32, requires grad
    Factory(lambda seed: qtype(name='qint8', is_floating_point=False, bits=8, dtype=torch.int8, qmin=-128, qmax=127)),  # qtype: as in the first call
    "0",  # axis: never varied
    "float[n,1,1,1]",  # scale: float16, float32, requires grad at times
    Factory(lambda seed: qtype(name='qint8', is_floating_point=False, bits=8, dtype=torch.int8, qmin=-128, qmax=127)),  # activation_qtype: as in the first call
    "True",  # optimized: never varied
    name="WeightQBytesQuantizer_2",
)

# optimum.quanto.tensor.weights.qbytes:WeightQBytesLinearFunction: 324 calls, of 57 kinds.
# Forward refuses 16 of 16 simple calls, one of them with: AttributeError: 'Tensor' object has no attribute '_data'
weight_qbytes_linear_function = Declaration(
    WeightQBytesLinearFunction,
    "float[n,m,k]",  # input: bfloat16, float16, float32, requires grad at times
    "float[k,k]",  # other: bfloat16, float16, float32, requires grad at times
    "float[k]?",  # bias: bfloat16, float16, float32, requires grad at times
)

# optimum.quanto.tensor.weights.qbytes:WeightQBytesLinearFunction: 42 calls, of 3 kinds.
# Forward refuses 16 of 16 simple calls, one of them with: AttributeError: 'Tensor' object has no attribute '_data'
weight_qbytes_linear_function_2 = Declaration(
    WeightQBytesLinearFunction,
    "float[1,n]",  # input: float32, requires grad at times
    "float[m,n]",  # other: float32, requires grad
    "float[m]",  # bias: float32, requires grad
    name="WeightQBytesLinearFunction_2",
)

# optimum.quanto.tensor.qbytes:QBytesDequantizer: 2566 calls, of 150 kinds.
# Forward refuses 16 of 16 simple calls, one of them with: AttributeError: 'Tensor' object has no attribute 'qtype'
qbytes_dequantizer = Declaration(
    QBytesDequantizer,
    "float[...]",  # t: bfloat16, float16, float32, requires grad at times, strided
)

# optimum.quanto.tensor.weights.qbits:WeightsQBitsQuantizer: 601 calls, of 38 kinds.
# Forward refuses 16 of 16 simple calls, one of them with: Unreadable: the values of a tensor of the class WeightQBitsTensor, the layout torch.strided and the dtype torch.float64 cannot be read as an array: QTensor.numpy() got an unexpected keyword argument 'force'
weights_qbits_quantizer = Declaration(
    WeightsQBitsQuantizer,
    "float[n,m]",  # base: bfloat16, float16, float32, requires grad at times
    Factory(lambda seed: qtype(name='qint4', is_floating_point=False, bits=4, dtype=torch.int8, qmin=-8, qmax=7)),  # qtype: as in the first call
    "0 | -1",  # axis: 2 values
    "None | 128 | 32 | 64",  # group_size: 4 values
    "float[k,l]",  # scale: bfloat16, float16, float32, requires grad at times
    "float[k,l]",  # shift: bfloat16, float16, float32, requires grad at times
    "True | False",  # optimized: 2 values
)

# optimum.quanto.tensor.weights.qbits:WeightsQBitsQuantizer: 488 calls, of 16 kinds.
# Guess, of which forward takes others, too: k was always 3.
# Forward refuses 16 of 16 simple calls, one of them with: Unreadable: the values of a tensor of the class WeightQBitsTensor, the layout torch.strided and the dtype torch.float64 cannot be read as an array: QTensor.numpy() got an unexpected keyword argument 'force'
weights_qbits_quantizer_2 = Declaration(
    WeightsQBitsQuantizer,
    "float[n,m,k,k]",  # base: float16, float32, requires grad
    Factory(lambda seed: qtype(name='qint4', is_floating_point=False, bits=4, dtype=torch.int8, qmin=-8, qmax=7)),  # qtype: as in the first call
    "0",  # axis: never varied
    "None",  # group_size: never varied
    "float[n,1,1,1]",  # scale: float16, float32, requires grad at times
    "float[n,1,1,1]",  # shift: float16, float32, requires grad at times
    "True",  # optimized: never varied
    name="WeightsQBitsQuantizer_2",
)

# optimum.quanto.tensor.qbits:QBitsDequantizer: 1007 calls, of 42 kinds.
# Forward refuses 16 of 16 simple calls, one of them with: AttributeError: 'Tensor' object has no attribute '_data'
qbits_dequantizer = Declaration(
    QBitsDequantizer,
    "float[...]",  # t: bfloat16, float16, float32, requires grad at times
)

# optimum.quanto.tensor.function:QuantizedLinearFunction: 222 calls, of 58 kinds.
quantized_linear_function = Declaration(
    QuantizedLinearFunction,
    "float[n,m,k]",  # input: bfloat16, float16, float32, requires grad at times
    "float[k,k]",  # other: bfloat16, float16, float32, requires grad at times
    "float[k]?",  # bias: bfloat16, float16, float32, requires grad at times
)

# optimum.quanto.tensor.function:QuantizedLinearFunction: 6 calls, of 3 kinds.
quantized_linear_function_2 = Declaration(
    QuantizedLinearFunction,
    "float[1,n]",  # input: float32, requires grad at times
    "float[m,n]",  # other: float32, requires grad
    "float[m]",  # bias: float32, requires grad
    name="QuantizedLinearFunction_2",
)

# optimum.quanto.tensor.weights.tinygemm.qbits:TinyGemmQBitsLinearFunction: 16 calls, of 6 kinds.
# Guess, of which forward takes others, too: m was always 10, k was always 256.
# Forward refuses 16 of 16 simple calls, one of them with: AttributeError: 'Tensor' object has no attribute '_data'
tiny_gemm_qbits_linear_function = Declaration(
    TinyGemmQBitsLinearFunction,
    "float[n,m,k]",  # input: bfloat16, never requires grad
    "float[k,k]",  # other: bfloat16, requires grad at times
    "float[k]?",  # bias: bfloat16, requires grad
)

# optimum.quanto.tensor.weights.tinygemm.qbits:TinyGemmQBitsDequantizer: 32 calls, all of one kind: nothing shows what may vary.
# Guess, of which forward takes others, too: the shape was always [n,n].
# Forward refuses 16 of 16 simple calls, one of them with: AttributeError: 'Tensor' object has no attribute 'weight_qbits_tensor'
tiny_gemm_qbits_dequantizer = Declaration(
    TinyGemmQBitsDequantizer,
    "float[...]",  # t: bfloat16, requires grad
)

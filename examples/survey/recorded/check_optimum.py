"""The Functions that were called by: python -m pytest ...

Each declaration was drafted from these calls. Read it, correct it, and run: autograd-conformance check check_optimum.py
A guess is what never varied while it was recorded. Arguments are described in docs/checking-your-function.md.
"""

import torch

from autograd_conformance import Declaration, Factory

from optimum.quanto.tensor.activations.qbytes import ActivationQBytesQuantizer
from optimum.quanto.tensor.function import QuantizedLinearFunction
from optimum.quanto.tensor.qtype import qtype
from optimum.quanto.tensor.weights.qbits import WeightsQBitsQuantizer
from optimum.quanto.tensor.weights.qbytes import WeightQBytesQuantizer

# optimum.quanto.tensor.activations.qbytes:ActivationQBytesQuantizer: 989 calls, of 57 kinds.
# Forward was not called to see which lengths and values it takes: forward refuses simple calls, one of them with Unreadable: the values of a tensor of the class ActivationQBytesTensor, the layout torch.strided and the dtype torch.float64 cannot be read as an array: QTensor.numpy() got an unexpected keyword argument 'force'.
activation_qbytes_quantizer = Declaration(
    ActivationQBytesQuantizer,
    "float[n,m,k]",  # base: bfloat16, float16, float32, requires grad at times
    Factory(lambda seed: qtype(name='qint8', is_floating_point=False, bits=8, dtype=torch.int8, qmin=-128, qmax=127)),  # qtype: as in the first call
    "float[]",  # scale: bfloat16, float16, float32, requires grad at times
)

# optimum.quanto.tensor.activations.qbytes:ActivationQBytesQuantizer: 280 calls, of 12 kinds.
# Forward was not called to see which lengths and values it takes: forward refuses simple calls, one of them with Unreadable: the values of a tensor of the class ActivationQBytesTensor, the layout torch.strided and the dtype torch.float64 cannot be read as an array: QTensor.numpy() got an unexpected keyword argument 'force'.
activation_qbytes_quantizer_2 = Declaration(
    ActivationQBytesQuantizer,
    "float[n,m,k,k]",  # base: float16, float32, requires grad at times
    Factory(lambda seed: qtype(name='qint8', is_floating_point=False, bits=8, dtype=torch.int8, qmin=-128, qmax=127)),  # qtype: as in the first call
    "float[]",  # scale: float16, float32, never requires grad
    name="ActivationQBytesQuantizer_2",
)

# optimum.quanto.tensor.activations.qbytes:ActivationQBytesQuantizer: 71 calls, of 23 kinds.
# Forward was not called to see which lengths and values it takes: forward refuses simple calls, one of them with Unreadable: the values of a tensor of the class ActivationQBytesTensor, the layout torch.strided and the dtype torch.float64 cannot be read as an array: QTensor.numpy() got an unexpected keyword argument 'force'.
activation_qbytes_quantizer_3 = Declaration(
    ActivationQBytesQuantizer,
    "float[n,m]",  # base: float16, float32, never requires grad
    Factory(lambda seed: qtype(name='qint8', is_floating_point=False, bits=8, dtype=torch.int8, qmin=-128, qmax=127)),  # qtype: as in the first call
    "float[]",  # scale: float16, float32, never requires grad
    name="ActivationQBytesQuantizer_3",
)

# optimum.quanto.tensor.weights.qbytes:WeightQBytesQuantizer: 775 calls, of 75 kinds.
# Forward was not called to see which lengths and values it takes: forward refuses simple calls, one of them with ValueError: Cannot quantize Tensor of shape torch.Size([1, 1]) along axis 0 of size 1.
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
# Forward was not called to see which lengths and values it takes: forward refuses simple calls, one of them with ValueError: Cannot quantize Tensor of shape torch.Size([1, 1, 1, 1]) along axis 0 of size 1.
weight_qbytes_quantizer_2 = Declaration(
    WeightQBytesQuantizer,
    "float[n,m,3,3]",  # base: float16, float32, requires grad
    Factory(lambda seed: qtype(name='qint8', is_floating_point=False, bits=8, dtype=torch.int8, qmin=-128, qmax=127)),  # qtype: as in the first call
    "0",  # axis: never varied
    "float[n,1,1,1]",  # scale: float16, float32, requires grad at times
    Factory(lambda seed: qtype(name='qint8', is_floating_point=False, bits=8, dtype=torch.int8, qmin=-128, qmax=127)),  # activation_qtype: as in the first call
    "True",  # optimized: never varied
    name="WeightQBytesQuantizer_2",
)

# optimum.quanto.tensor.weights.qbytes:WeightQBytesQuantizer: 28 calls, of 8 kinds.
# Forward was not called to see which lengths and values it takes: forward refuses simple calls, one of them with ValueError: Cannot quantize Tensor of shape torch.Size([1, 1, 1]) along axis 0 of size 1.
weight_qbytes_quantizer_3 = Declaration(
    WeightQBytesQuantizer,
    "float[n,m,32]",  # base: float16, float32, never requires grad
    Factory(lambda seed: qtype(name='qint8', is_floating_point=False, bits=8, dtype=torch.int8, qmin=-128, qmax=127)),  # qtype: as in the first call
    "0 | -1",  # axis: 2 values
    "float[l,1,p]",  # scale: float16, float32, never requires grad
    "None",  # activation_qtype: never varied
    "True | False",  # optimized: 2 values
    name="WeightQBytesQuantizer_3",
)

# optimum.quanto.tensor.weights.qbytes:WeightQBytesLinearFunction: 324 calls, of 96 kinds.
# Left out: input is a optimum.quanto.tensor.activations.qbytes.ActivationQBytesTensor, other is a optimum.quanto.tensor.weights.qbytes.WeightQBytesTensor, and forward refuses other tensors: AttributeError: 'Tensor' object has no attribute '_data'.
# weight_qbytes_linear_function = Declaration(
#     WeightQBytesLinearFunction,
#     "float[n,m,k]",  # input: bfloat16, float16, float32, requires grad at times, of the class optimum.quanto.tensor.activations.qbytes.ActivationQBytesTensor
#     "float[k,k]",  # other: bfloat16, float16, float32, requires grad at times, of the class optimum.quanto.tensor.weights.qbytes.WeightQBytesTensor
#     "float[k]?",  # bias: bfloat16, float16, float32, requires grad at times
# )

# optimum.quanto.tensor.qbytes:QBytesDequantizer: 2617 calls, of 180 kinds.
# Left out: t is a optimum.quanto.tensor.activations.qbytes.ActivationQBytesTensor or optimum.quanto.tensor.weights.qbytes.WeightQBytesTensor, and forward refuses other tensors: AttributeError: 'Tensor' object has no attribute 'qtype'.
# qbytes_dequantizer = Declaration(
#     QBytesDequantizer,
#     "float[...]",  # t: bfloat16, float16, float32, requires grad at times, of the class optimum.quanto.tensor.activations.qbytes.ActivationQBytesTensor, of the class optimum.quanto.tensor.weights.qbytes.WeightQBytesTensor, strided
# )

# optimum.quanto.tensor.weights.qbits:WeightsQBitsQuantizer: 945 calls, of 85 kinds.
# Forward was not called to see which lengths and values it takes: forward refuses simple calls, one of them with Unreadable: the values of a tensor of the class WeightQBitsTensor, the layout torch.strided and the dtype torch.float64 cannot be read as an array: QTensor.numpy() got an unexpected keyword argument 'force'.
weights_qbits_quantizer = Declaration(
    WeightsQBitsQuantizer,
    "float[n,m]",  # base: bfloat16, float16, float32, requires grad at times
    Factory(lambda seed: qtype(name='qint4', is_floating_point=False, bits=4, dtype=torch.int8, qmin=-8, qmax=7)),  # qtype: as in the first call
    "0 | -1",  # axis: 2 values
    "None | 128 | 32 | 64 | 16 | 8",  # group_size: 6 values
    "float[k,l]",  # scale: bfloat16, float16, float32, requires grad at times
    "float[k,l]",  # shift: bfloat16, float16, float32, requires grad at times
    "True | False",  # optimized: 2 values
)

# optimum.quanto.tensor.weights.qbits:WeightsQBitsQuantizer: 488 calls, of 16 kinds.
# Forward was not called to see which lengths and values it takes: forward refuses simple calls, one of them with Unreadable: the values of a tensor of the class WeightQBitsTensor, the layout torch.strided and the dtype torch.float64 cannot be read as an array: QTensor.numpy() got an unexpected keyword argument 'force'.
weights_qbits_quantizer_2 = Declaration(
    WeightsQBitsQuantizer,
    "float[n,m,3,3]",  # base: float16, float32, requires grad
    Factory(lambda seed: qtype(name='qint4', is_floating_point=False, bits=4, dtype=torch.int8, qmin=-8, qmax=7)),  # qtype: as in the first call
    "0",  # axis: never varied
    "None",  # group_size: never varied
    "float[n,1,1,1]",  # scale: float16, float32, requires grad at times
    "float[n,1,1,1]",  # shift: float16, float32, requires grad at times
    "True",  # optimized: never varied
    name="WeightsQBitsQuantizer_2",
)

# optimum.quanto.tensor.weights.qbits:WeightsQBitsQuantizer: 16 calls, of 8 kinds.
# Forward was not called to see which lengths and values it takes: forward refuses simple calls, one of them with Unreadable: the values of a tensor of the class WeightQBitsTensor, the layout torch.strided and the dtype torch.float64 cannot be read as an array: QTensor.numpy() got an unexpected keyword argument 'force'.
weights_qbits_quantizer_3 = Declaration(
    WeightsQBitsQuantizer,
    "float[32,32]",  # base: float16, float32, never requires grad
    Factory(lambda seed: qtype(name='qint2', is_floating_point=False, bits=2, dtype=torch.int8, qmin=-2, qmax=1)),  # qtype: as in the first call
    "0 | -1",  # axis: 2 values
    "None | 8",  # group_size: 2 values
    "float[m,k]",  # scale: float16, float32, never requires grad
    "int[m,k](-3..18)",  # shift: int8
    "True",  # optimized: never varied
    name="WeightsQBitsQuantizer_3",
)

# optimum.quanto.tensor.qbits:QBitsDequantizer: 1634 calls, of 72 kinds.
# Left out: t is a optimum.quanto.tensor.weights.qbits.WeightQBitsTensor, and forward refuses other tensors: AttributeError: 'Tensor' object has no attribute '_data'.
# qbits_dequantizer = Declaration(
#     QBitsDequantizer,
#     "float[...]",  # t: bfloat16, float16, float32, requires grad at times, of the class optimum.quanto.tensor.weights.qbits.WeightQBitsTensor
# )

# optimum.quanto.tensor.function:QuantizedLinearFunction: 286 calls, of 160 kinds.
quantized_linear_function = Declaration(
    QuantizedLinearFunction,
    "float[n,m,k]",  # input: bfloat16, float16, float32, requires grad at times, of the class optimum.quanto.tensor.activations.qbytes.ActivationQBytesTensor
    "float[l,k]",  # other: bfloat16, float16, float32, requires grad at times, of the class optimum.quanto.tensor.weights.qbits.WeightQBitsTensor
    "float[l]?",  # bias: bfloat16, float16, float32, requires grad at times
)

# optimum.quanto.tensor.weights.tinygemm.qbits:TinyGemmQBitsLinearFunction: 48 calls, of 38 kinds.
# Left out: input is a optimum.quanto.tensor.activations.qbytes.ActivationQBytesTensor, other is a optimum.quanto.tensor.weights.tinygemm.qbits.TinyGemmWeightQBitsTensor, and forward refuses other tensors: AttributeError: 'Tensor' object has no attribute '_data'.
# tiny_gemm_qbits_linear_function = Declaration(
#     TinyGemmQBitsLinearFunction,
#     "float[n,m,k]",  # input: bfloat16, never requires grad, of the class optimum.quanto.tensor.activations.qbytes.ActivationQBytesTensor
#     "float[l,k]",  # other: bfloat16, requires grad at times, of the class optimum.quanto.tensor.weights.tinygemm.qbits.TinyGemmWeightQBitsTensor
#     "float[l]?",  # bias: bfloat16, requires grad at times
# )

# optimum.quanto.tensor.weights.tinygemm.qbits:TinyGemmQBitsDequantizer: 56 calls, of 17 kinds.
# Left out: t is a optimum.quanto.tensor.weights.tinygemm.qbits.TinyGemmWeightQBitsTensor, and forward refuses other tensors: AttributeError: 'Tensor' object has no attribute 'weight_qbits_tensor'.
# tiny_gemm_qbits_dequantizer = Declaration(
#     TinyGemmQBitsDequantizer,
#     "float[n,m]",  # t: bfloat16, requires grad at times, of the class optimum.quanto.tensor.weights.tinygemm.qbits.TinyGemmWeightQBitsTensor
# )

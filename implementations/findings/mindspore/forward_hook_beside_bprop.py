"""A forward hook of a cell with a bprop is not called: registering it does nothing, without an error.

Should be: "The `hook_fn` can modify the forward outputs by returning new outputs." (Cell.register_forward_hook)
"""

import sys

import mindspore as ms
import numpy as np


class Double(ms.nn.Cell):
    def construct(self, x):
        return 2 * x

    def bprop(self, x, out, dout):
        return (2 * dout,)


cell, x = Double(), ms.Tensor(np.ones(1))
cell.register_forward_hook(lambda owner, args, output: 5 * output)
output, gradient = ms.value_and_grad(cell)(x)
got = [float(cell(x)[0]), float(output[0]), float(gradient[0])]
print("came, output alone, output and gradient:", got, "; should be: [10.0, 10.0, 10.0]")
sys.exit(print("holds") if got == [10.0] * 3 else 1)

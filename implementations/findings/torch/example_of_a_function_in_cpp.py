"""The example of a Function in C++, in the comment on torch::autograd::Function, raises in backward.

It takes a number and a tensor, and returns one gradient. The text above it says: "It should return as many Variables as
there were inputs". The example has `return {grad_output[0]*n};`, and calls `y[0].sum().backward();`.
https://github.com/pytorch/pytorch/blob/main/torch/csrc/autograd/custom_function.h

Needs a C++ compiler and ninja.
"""

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>
using namespace torch::autograd;
class MyFunction : public Function<MyFunction> {
 public:
  static variable_list forward(AutogradContext* ctx, int n, Variable var) {
    ctx->saved_data["n"] = n;
    var.mul_(n);
    ctx->mark_dirty({var});
    return {var};
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad_output) {
    auto n = ctx->saved_data["n"].toInt();
    return {grad_output[0] * n};
  }
};
TORCH_LIBRARY(printed, m) { m.def("apply", [](int64_t n, at::Tensor x) { return MyFunction::apply(int(n), x)[0]; }); }
"""
load_inline("printed", SOURCE, is_python_module=False, extra_cflags=["-O0"], no_implicit_headers=True)
try:
    torch.ops.printed.apply(6, torch.ones(2, requires_grad=True) * 1).sum().backward()
except RuntimeError as error:
    print(f"backward raises {error}; it should give the gradient 6")
    raise SystemExit(1) from None
print("holds")

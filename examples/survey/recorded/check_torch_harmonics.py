"""The Functions that were called by: python -m pytest ...

Each declaration was drafted from these calls. Read it, correct it, and run: autograd-conformance check check_torch_harmonics.py
A guess is what never varied while it was recorded. Arguments are described in docs/checking-your-function.md.
"""

import torch

from autograd_conformance import Declaration

import torch_harmonics.attention._layout
import torch_harmonics.attention.kernels_torch.attention_torch
import torch_harmonics.attention.optimized.attention_optimized

# attention_kernels::permute_to_nhwc: 204 calls, of 14 kinds.
# Guess, of which forward takes others, too: the shape was always [n,m,k,l].
# Forward refuses 16 of 16 simple calls, one of them with: RuntimeError: permute_to_nhwc expects a 4D (B, C, H, W) tensor, got 0D
permute_to_nhwc = Declaration(
    torch.ops.attention_kernels.permute_to_nhwc,
    "float[...]",  # argument0: float32, requires grad
)

# attention_kernels::_neighborhood_s2_attention_torch: 34 calls, of 30 kinds.
# Guess, of which forward takes others, too: n was always 4, v was always 3.
# Forward refuses 16 of 16 simple calls, one of them with: IndexError: index 1 is out of bounds for dimension 0 with size 1
_neighborhood_s2_attention_torch = Declaration(
    torch.ops.attention_kernels._neighborhood_s2_attention_torch,
    "float[n,m,k,l]",  # argument0: float32, requires grad
    "float[n,m,k,p]",  # argument1: float32, requires grad
    "float[n,q,r,l]",  # argument2: float32, requires grad
    "float[m]",  # argument3: float32, never requires grad
    "int[s](0..287)",  # argument4: int64
    "int[t](0..466)",  # argument5: int64
    "int[u,v](0..24)",  # argument6: int32
    "int[t](0..24)",  # argument7: int32
    "1 | 2 | 4",  # argument8: 3 values
    "12 | 4 | 24 | 6 | 8",  # argument9: 5 values
    "6 | 2 | 3 | 5 | 7 | 11 | 12 | 9",  # argument10: 8 values
    "12 | 4 | 6 | 8 | 24",  # argument11: 5 values
)

# attention_kernels::permute_to_nchw: 68 calls, of 15 kinds.
# Guess, of which forward takes others, too: n was always 4.
permute_to_nchw = Declaration(
    torch.ops.attention_kernels.permute_to_nchw,
    "float[n,m,k,l]",  # argument0: float32, requires grad
)

# attention_kernels::_neighborhood_s2_attention_optimized: 34 calls, of 30 kinds.
# Forward was not called to see which lengths and values it takes: a simple call ended the process (SIGSEGV).
_neighborhood_s2_attention_optimized = Declaration(
    torch.ops.attention_kernels._neighborhood_s2_attention_optimized,
    "float[4,m,k,l]",  # argument0: float32, requires grad
    "float[4,m,k,p]",  # argument1: float32, requires grad
    "float[4,q,r,l]",  # argument2: float32, requires grad
    "float[m]",  # argument3: float32, never requires grad
    "int[s](0..287)",  # argument4: int64
    "int[t](0..466)",  # argument5: int64
    "int[u,3](0..24)",  # argument6: int32
    "int[t](0..24)",  # argument7: int32
    "1 | 2 | 4",  # argument8: 3 values
    "12 | 4 | 24 | 6 | 8",  # argument9: 5 values
    "6 | 2 | 3 | 5 | 7 | 11 | 12 | 9",  # argument10: 8 values
    "12 | 4 | 6 | 8 | 24",  # argument11: 5 values
)

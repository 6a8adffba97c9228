"""The Functions that were called by: python -m pytest ...

Each declaration was drafted from these calls. Read it, correct it, and run: autograd-conformance check check_torchkbnufft.py
A guess is what never varied while it was recorded. Arguments are described in docs/checking-your-function.md.
"""

import torch

from autograd_conformance import Declaration, Factory

from torchkbnufft._autograd.interp import (
    KbSpmatInterpAdjoint,
    KbSpmatInterpForward,
    KbTableInterpAdjoint,
    KbTableInterpForward,
)

# torchkbnufft._autograd.interp:KbTableInterpAdjoint: 670 calls, of 28 kinds.
# Forward refuses 16 of 16 simple calls, one of them with: Error: The following operation failed in the TorchScript interpreter. Traceback of TorchScript (most recent call last): File "torchkbnufft/_nufft/interp.py", line 118, in calc_coef_and_indices_fork_over_batches A tuple with interpolation coefficients and indices. """ assert len(tables) == len(offset_increments) ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~ <--- HERE assert len(tables) == len(centers) RuntimeError: AssertionError:
kb_table_interp_adjoint = Declaration(
    KbTableInterpAdjoint,
    "complex[n,m,k]",  # data: complex128, complex64, requires grad at times
    "float[l,k]",  # omega: float32, float64, never requires grad
    Factory(lambda seed: [torch.randn((6145,), dtype=torch.complex128), torch.randn((6145,), dtype=torch.complex128)]),  # tables: as in the first call
    "float[l]",  # n_shift: float32, float64, never requires grad
    "int[l](0..k-1)",  # numpoints: int64
    "int[l](1024..2024)",  # table_oversamp: int64
    "int[p,l](0..k-1)",  # offsets: int64
    "int[l](12..64)",  # grid_size: int64
)

# torchkbnufft._autograd.interp:KbTableInterpAdjoint: 78 calls, of 16 kinds.
# Forward refuses 8 of 16 simple calls, one of them with: RuntimeError: The following operation failed in the TorchScript interpreter. Traceback of TorchScript (most recent call last): File "torchkbnufft/_nufft/interp.py", line 533, in calc_coef_and_indices_fork_over_batches # collect the results results = [torch.jit.wait(future) for future in futures] ~~~~~~~~~~~~~~ <--- HERE coef = torch.cat([result[0] for result in results]) arr_ind = torch.cat([result[1] for result in results]) RuntimeError: The following operation failed in the TorchScript interpreter. Traceback of TorchScript (most recent call last): File "torchkbnufft/_nufft/interp.py", line 118, in <forked function> A tuple with interpolation coefficients and indices. """ assert len(tables) == len(offset_increments) ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~ <--- HERE assert len(tables) == len(centers) RuntimeError: AssertionError:
kb_table_interp_adjoint_2 = Declaration(
    KbTableInterpAdjoint,
    "complex[n,m,k]",  # data: complex128, never requires grad
    "float[n,l,k] constant",  # omega: float64, never requires grad; backward returns None for it
    Factory(lambda seed: [torch.randn((6145,), dtype=torch.complex128)]),  # tables: as in the first call
    "float[l] constant",  # n_shift: float64, never requires grad; backward returns None for it
    "int[l](0..k-1)",  # numpoints: int64
    "int[l](1024..2024)",  # table_oversamp: int64
    "int[p,l](0..k-1)",  # offsets: int64
    "int[l](12..64)",  # grid_size: int64
    name="KbTableInterpAdjoint_2",
)

# torchkbnufft._autograd.interp:KbTableInterpForward: 275 calls, of 16 kinds.
# Guess, of which forward takes others, too: q was always 83, r was always 36.
# Lengths that are numbers never varied, and forward refuses others.
# Forward refuses 4 of 16 simple calls, one of them with: RuntimeError: The following operation failed in the TorchScript interpreter. Traceback of TorchScript (most recent call last): File "torchkbnufft/_nufft/interp.py", line 310, in table_interp_fork_over_kspace # collect the results for ind, future in enumerate(futures): kdat[:, :, ind:klength:num_forks] = torch.jit.wait(future) ~~~~~~~~~~~~~~ <--- HERE return kdat RuntimeError: The following operation failed in the TorchScript interpreter. Traceback of TorchScript (most recent call last): File "torchkbnufft/_nufft/interp.py", line 288, in <forked function> for omega_chunk in omega_chunks: futures.append( torch.jit.fork( ~~~~~~~~~~~~~~~ table_interp_one_batch, ~~~~~~~~~~~~~~~~~~~~~~~ image, ~~~~~~ omega_chunk, ~~~~~~~~~~~~ tables, ~~~~~~~ n_shift, ~~~~~~~~ numpoints, ~~~~~~~~~~ table_oversamp, ~~~~~~~~~~~~~~~ offsets, ~~~~~~~ <--- HERE ) ) File "torchkbnufft/_nufft/interp.py", line 186, in table_interp_one_batch # loop over offsets and take advantage of broadcasting for offset in offsets: coef, arr_ind = calc_coef_and_indices( ~~~~~~~~~~~~~~~~~~~~~ <--- HERE tm=tm, base_offset=base_offset, File "torchkbnufft/_nufft/interp.py", line 144, in calc_coef_and_indices coef = coef * table[it_distind + center].conj() else: coef = coef * table[it_distind + center] ~~~~~~~~~~~~~~~~~~~~~~~~~~ <--- HERE arr_ind = arr_ind + torch.remainder(it_gridind, it_grid_size).view( RuntimeError: index -9742 is out of bounds for dimension 0 with size 6145
kb_table_interp_forward = Declaration(
    KbTableInterpForward,
    "complex[n,m,k,l]",  # image: complex128, requires grad at times
    "float[2,q] constant",  # omega: float64, never requires grad; backward returns None for it
    Factory(lambda seed: [torch.randn((6145,), dtype=torch.complex128), torch.randn((6145,), dtype=torch.complex128)]),  # tables: as in the first call
    "float[2] constant",  # n_shift: float64, never requires grad; backward returns None for it
    "int[2](0..q-1)",  # numpoints: int64
    "int[2](1024..1024)",  # table_oversamp: int64
    "int[r,2](0..q-1)",  # offsets: int64
)

# torchkbnufft._autograd.interp:KbTableInterpForward: 160 calls, of 20 kinds.
# Guess, of which forward takes others, too: p was always 6.
# Forward refuses 2 of 16 simple calls, one of them with: RuntimeError: The following operation failed in the TorchScript interpreter. Traceback of TorchScript (most recent call last): File "torchkbnufft/_nufft/interp.py", line 310, in table_interp_fork_over_kspace # collect the results for ind, future in enumerate(futures): kdat[:, :, ind:klength:num_forks] = torch.jit.wait(future) ~~~~~~~~~~~~~~ <--- HERE return kdat RuntimeError: The following operation failed in the TorchScript interpreter. Traceback of TorchScript (most recent call last): File "torchkbnufft/_nufft/interp.py", line 288, in <forked function> for omega_chunk in omega_chunks: futures.append( torch.jit.fork( ~~~~~~~~~~~~~~~ table_interp_one_batch, ~~~~~~~~~~~~~~~~~~~~~~~ image, ~~~~~~ omega_chunk, ~~~~~~~~~~~~ tables, ~~~~~~~ n_shift, ~~~~~~~~ numpoints, ~~~~~~~~~~ table_oversamp, ~~~~~~~~~~~~~~~ offsets, ~~~~~~~ <--- HERE ) ) File "torchkbnufft/_nufft/interp.py", line 186, in table_interp_one_batch # loop over offsets and take advantage of broadcasting for offset in offsets: coef, arr_ind = calc_coef_and_indices( ~~~~~~~~~~~~~~~~~~~~~ <--- HERE tm=tm, base_offset=base_offset, File "torchkbnufft/_nufft/interp.py", line 144, in calc_coef_and_indices coef = coef * table[it_distind + center].conj() else: coef = coef * table[it_distind + center] ~~~~~~~~~~~~~~~~~~~~~~~~~~ <--- HERE arr_ind = arr_ind + torch.remainder(it_gridind, it_grid_size).view( RuntimeError: index -10132 is out of bounds for dimension 0 with size 6145
kb_table_interp_forward_2 = Declaration(
    KbTableInterpForward,
    "complex[n,m,k]",  # image: complex128, complex64, requires grad at times
    "float[1,l] constant",  # omega: float32, float64, never requires grad; backward returns None for it
    Factory(lambda seed: [torch.randn((6145,), dtype=torch.complex128)]),  # tables: as in the first call
    "float[1] constant",  # n_shift: float32, float64, never requires grad; backward returns None for it
    "int[1](0..l-1)",  # numpoints: int64
    "int[1](2047..2047)",  # table_oversamp: int64
    "int[p,1](0..l-1)",  # offsets: int64
    name="KbTableInterpForward_2",
)

# torchkbnufft._autograd.interp:KbTableInterpForward: 151 calls, of 18 kinds.
# Guess, of which forward takes others, too: q was always 3, r was always 112, s was always 216.
# Forward refuses 16 of 16 simple calls, one of them with: RuntimeError: The following operation failed in the TorchScript interpreter. Traceback of TorchScript (most recent call last): File "torchkbnufft/_nufft/interp.py", line 310, in table_interp_fork_over_kspace # collect the results for ind, future in enumerate(futures): kdat[:, :, ind:klength:num_forks] = torch.jit.wait(future) ~~~~~~~~~~~~~~ <--- HERE return kdat RuntimeError: The following operation failed in the TorchScript interpreter. Traceback of TorchScript (most recent call last): File "torchkbnufft/_nufft/interp.py", line 288, in <forked function> for omega_chunk in omega_chunks: futures.append( torch.jit.fork( ~~~~~~~~~~~~~~~ table_interp_one_batch, ~~~~~~~~~~~~~~~~~~~~~~~ image, ~~~~~~ omega_chunk, ~~~~~~~~~~~~ tables, ~~~~~~~ n_shift, ~~~~~~~~ numpoints, ~~~~~~~~~~ table_oversamp, ~~~~~~~~~~~~~~~ offsets, ~~~~~~~ <--- HERE ) ) File "torchkbnufft/_nufft/interp.py", line 118, in table_interp_one_batch A tuple with interpolation coefficients and indices. """ assert len(tables) == len(offset_increments) ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~ <--- HERE assert len(tables) == len(centers) RuntimeError: AssertionError:
kb_table_interp_forward_3 = Declaration(
    KbTableInterpForward,
    "complex[n,m,k,l,p]",  # image: complex128, requires grad at times
    "float[q,r]",  # omega: float64, never requires grad
    Factory(lambda seed: [torch.randn((6145,), dtype=torch.complex128), torch.randn((6145,), dtype=torch.complex128), torch.randn((6145,), dtype=torch.complex128)]),  # tables: as in the first call
    "float[q]",  # n_shift: float64, never requires grad
    "int[q](0..r-1)",  # numpoints: int64
    "int[q](1024..1024)",  # table_oversamp: int64
    "int[s,q](0..r-1)",  # offsets: int64
    name="KbTableInterpForward_3",
)

# torchkbnufft._autograd.interp:KbSpmatInterpForward: 72 calls, of 38 kinds.
# Forward refuses 16 of 16 simple calls, one of them with: ValueError: not enough values to unpack (expected 2, got 0)
kb_spmat_interp_forward = Declaration(
    KbSpmatInterpForward,
    "complex[...]",  # image: complex128, requires grad at times
    Factory(lambda seed: (torch.randn((25, 19), dtype=torch.float64).to_sparse(), torch.randn((25, 19), dtype=torch.float64).to_sparse())),  # interp_mats: as in the first call
)

# torchkbnufft._autograd.interp:KbSpmatInterpAdjoint: 54 calls, of 36 kinds.
# Forward refuses 16 of 16 simple calls, one of them with: RuntimeError: addmm: Argument #3 (dense): Expected dim 0 size 25, got 1
kb_spmat_interp_adjoint = Declaration(
    KbSpmatInterpAdjoint,
    "complex[n,m,k]",  # data: complex128, requires grad at times
    Factory(lambda seed: (torch.randn((25, 19), dtype=torch.float64).to_sparse(), torch.randn((25, 19), dtype=torch.float64).to_sparse())),  # interp_mats: as in the first call
    "int[l](12..64)",  # grid_size: int64
)

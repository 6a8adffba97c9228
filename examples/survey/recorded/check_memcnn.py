"""The Functions that were called by: python -m pytest ...

Each declaration was drafted from these calls. Read it, correct it, and run: autograd-conformance check check_memcnn.py
A guess is what never varied while it was recorded. Arguments are described in docs/checking-your-function.md.
"""

import torch

from autograd_conformance import Declaration, Factory, restored

from memcnn.models.additive import (
    AdditiveBlockFunction,
    AdditiveBlockFunction2,
    AdditiveBlockInverseFunction,
    AdditiveBlockInverseFunction2,
    AdditiveCoupling,
)
from memcnn.models.affine import (
    AffineAdapterNaive,
    AffineBlockFunction,
    AffineBlockFunction2,
    AffineBlockInverseFunction,
    AffineBlockInverseFunction2,
)
from memcnn.models.revop import InvertibleCheckpointFunction
from memcnn.models.tests.test_models import MultiplicationInverse, SubModule

# memcnn.models.revop:InvertibleCheckpointFunction: 266 calls, of 11 kinds.
# Guess, of which forward takes others, too: k was always 8, p was always 5, q was always 3.
# Lengths that are numbers never varied, and forward refuses others.
invertible_checkpoint_function = Declaration(
    InvertibleCheckpointFunction,
    Factory(lambda seed: AdditiveCoupling(Fm=SubModule(), Gm=SubModule(), implementation_fwd=-1, implementation_bwd=-1, split_dim=1).inverse),  # fn: as in the first call
    Factory(lambda seed: AdditiveCoupling(Fm=SubModule(), Gm=SubModule(), implementation_fwd=-1, implementation_bwd=-1, split_dim=1).forward),  # fn_inverse: as in the first call
    "False | True",  # keep_input: 2 values
    "1",  # num_bwd_passes: never varied
    "False",  # preserve_rng_state: never varied
    "1",  # num_inputs: never varied
    "float[2,10,k,k]",  # inputs_and_weights: float32, requires grad
    "float[l]",  # argument7: float32, requires grad
    "float[l]",  # argument8: float32, requires grad
    "float[l,p,q,q]",  # argument9: float32, requires grad
    "float[l]",  # argument10: float32, requires grad
    "float[l]",  # argument11: float32, requires grad
    "float[l]",  # argument12: float32, requires grad
    "float[l,p,q,q]",  # argument13: float32, requires grad
    "float[l]",  # argument14: float32, requires grad
)

# memcnn.models.revop:InvertibleCheckpointFunction: 240 calls, of 4 kinds.
# Guess, of which forward takes others, too: n was always 2, k was always 5, l was always 3.
# Lengths that are numbers never varied, and forward refuses others.
invertible_checkpoint_function_2 = Declaration(
    InvertibleCheckpointFunction,
    Factory(lambda seed: AdditiveCoupling(Fm=torch.nn.Conv2d(2, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1)), Gm=torch.nn.Conv2d(2, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1)), implementation_fwd=-1, implementation_bwd=-1, split_dim=1).forward),  # fn: as in the first call
    Factory(lambda seed: AdditiveCoupling(Fm=torch.nn.Conv2d(2, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1)), Gm=torch.nn.Conv2d(2, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1)), implementation_fwd=-1, implementation_bwd=-1, split_dim=1).inverse),  # fn_inverse: as in the first call
    "False",  # keep_input: never varied
    "1",  # num_bwd_passes: never varied
    "False",  # preserve_rng_state: never varied
    "1",  # num_inputs: never varied
    "float[n,4,k,k]",  # inputs_and_weights: float32, requires grad
    "float[n,n,l,l]",  # argument7: float32, requires grad
    "float[n]",  # argument8: float32, requires grad
    "float[n,n,l,l]",  # argument9: float32, requires grad
    "float[n]",  # argument10: float32, requires grad
    name="InvertibleCheckpointFunction_2",
)

# memcnn.models.revop:InvertibleCheckpointFunction: 84 calls, of 5 kinds.
invertible_checkpoint_function_3 = Declaration(
    InvertibleCheckpointFunction,
    Factory(lambda seed: MultiplicationInverse(factor=torch.nn.Parameter(torch.randn((1,), dtype=torch.float32))).inverse),  # fn: as in the first call
    Factory(lambda seed: MultiplicationInverse(factor=torch.nn.Parameter(torch.randn((1,), dtype=torch.float32))).forward),  # fn_inverse: as in the first call
    "False | True",  # keep_input: 2 values
    "1",  # num_bwd_passes: never varied
    "False",  # preserve_rng_state: never varied
    "1",  # num_inputs: never varied
    "float[n,m,k,k]",  # inputs_and_weights: float32, requires grad
    "float[1]",  # argument7: float32, requires grad
    name="InvertibleCheckpointFunction_3",
)

# memcnn.models.additive:AdditiveBlockFunction: 40 calls, of 30 kinds.
# Guess, of which forward takes others, too: k was always 5.
# Lengths that are numbers never varied, and forward refuses others.
additive_block_function = Declaration(
    AdditiveBlockFunction,
    "float[2,4,k,k]",  # xin: float32, requires grad at times
    Factory(lambda seed: torch.nn.Conv2d(2, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))),  # Fm: as in the first call
    Factory(lambda seed: torch.nn.Conv2d(2, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))),  # Gm: as in the first call
    "float[2,2,3,3]",  # weights: float32, requires grad
    "float[2]",  # argument4: float32, requires grad
    "float[2,2,3,3]",  # argument5: float32, requires grad
    "float[2]",  # argument6: float32, requires grad
)

# memcnn.models.additive:AdditiveBlockInverseFunction: 40 calls, of 30 kinds.
# Guess, of which forward takes others, too: k was always 5.
# Lengths that are numbers never varied, and forward refuses others.
additive_block_inverse_function = Declaration(
    AdditiveBlockInverseFunction,
    "float[2,4,k,k]",  # y: float32, requires grad at times
    Factory(lambda seed: torch.nn.Conv2d(2, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))),  # Fm: as in the first call
    Factory(lambda seed: torch.nn.Conv2d(2, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))),  # Gm: as in the first call
    "float[2,2,3,3]",  # weights: float32, requires grad
    "float[2]",  # argument4: float32, requires grad
    "float[2,2,3,3]",  # argument5: float32, requires grad
    "float[2]",  # argument6: float32, requires grad
)

# memcnn.models.affine:AffineBlockFunction: 40 calls, of 30 kinds.
# Guess, of which forward takes others, too: k was always 5.
# Lengths that are numbers never varied, and forward refuses others.
affine_block_function = Declaration(
    AffineBlockFunction,
    "float[2,4,k,k]",  # xin: float32, requires grad at times
    Factory(lambda seed: restored(AffineAdapterNaive, f=torch.nn.Conv2d(2, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1)))),  # Fm: as in the first call
    Factory(lambda seed: restored(AffineAdapterNaive, f=torch.nn.Conv2d(2, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1)))),  # Gm: as in the first call
    "float[2,2,3,3]",  # weights: float32, requires grad
    "float[2]",  # argument4: float32, requires grad
    "float[2,2,3,3]",  # argument5: float32, requires grad
    "float[2]",  # argument6: float32, requires grad
)

# memcnn.models.affine:AffineBlockInverseFunction: 40 calls, of 30 kinds.
# Guess, of which forward takes others, too: k was always 5.
# Lengths that are numbers never varied, and forward refuses others.
affine_block_inverse_function = Declaration(
    AffineBlockInverseFunction,
    "float[2,4,k,k]",  # yin: float32, requires grad at times
    Factory(lambda seed: restored(AffineAdapterNaive, f=torch.nn.Conv2d(2, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1)))),  # Fm: as in the first call
    Factory(lambda seed: restored(AffineAdapterNaive, f=torch.nn.Conv2d(2, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1)))),  # Gm: as in the first call
    "float[2,2,3,3]",  # weights: float32, requires grad
    "float[2]",  # argument4: float32, requires grad
    "float[2,2,3,3]",  # argument5: float32, requires grad
    "float[2]",  # argument6: float32, requires grad
)

# memcnn.models.additive:AdditiveBlockFunction2: 40 calls, of 30 kinds.
# Guess, of which forward takes others, too: k was always 5.
# Lengths that are numbers never varied, and forward refuses others.
additive_block_function2 = Declaration(
    AdditiveBlockFunction2,
    "float[2,4,k,k]",  # xin: float32, requires grad at times
    Factory(lambda seed: torch.nn.Conv2d(2, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))),  # Fm: as in the first call
    Factory(lambda seed: torch.nn.Conv2d(2, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))),  # Gm: as in the first call
    "float[2,2,3,3]",  # weights: float32, requires grad
    "float[2]",  # argument4: float32, requires grad
    "float[2,2,3,3]",  # argument5: float32, requires grad
    "float[2]",  # argument6: float32, requires grad
)

# memcnn.models.additive:AdditiveBlockInverseFunction2: 40 calls, of 30 kinds.
# Guess, of which forward takes others, too: k was always 5.
# Lengths that are numbers never varied, and forward refuses others.
additive_block_inverse_function2 = Declaration(
    AdditiveBlockInverseFunction2,
    "float[2,4,k,k]",  # y: float32, requires grad at times
    Factory(lambda seed: torch.nn.Conv2d(2, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))),  # Fm: as in the first call
    Factory(lambda seed: torch.nn.Conv2d(2, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))),  # Gm: as in the first call
    "float[2,2,3,3]",  # weights: float32, requires grad
    "float[2]",  # argument4: float32, requires grad
    "float[2,2,3,3]",  # argument5: float32, requires grad
    "float[2]",  # argument6: float32, requires grad
)

# memcnn.models.affine:AffineBlockFunction2: 40 calls, of 30 kinds.
# Guess, of which forward takes others, too: k was always 5.
# Lengths that are numbers never varied, and forward refuses others.
affine_block_function2 = Declaration(
    AffineBlockFunction2,
    "float[2,4,k,k]",  # xin: float32, requires grad at times
    Factory(lambda seed: restored(AffineAdapterNaive, f=torch.nn.Conv2d(2, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1)))),  # Fm: as in the first call
    Factory(lambda seed: restored(AffineAdapterNaive, f=torch.nn.Conv2d(2, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1)))),  # Gm: as in the first call
    "float[2,2,3,3]",  # weights: float32, requires grad
    "float[2]",  # argument4: float32, requires grad
    "float[2,2,3,3]",  # argument5: float32, requires grad
    "float[2]",  # argument6: float32, requires grad
)

# memcnn.models.affine:AffineBlockInverseFunction2: 40 calls, of 30 kinds.
# Guess, of which forward takes others, too: k was always 5.
# Lengths that are numbers never varied, and forward refuses others.
affine_block_inverse_function2 = Declaration(
    AffineBlockInverseFunction2,
    "float[2,4,k,k]",  # yin: float32, requires grad at times
    Factory(lambda seed: restored(AffineAdapterNaive, f=torch.nn.Conv2d(2, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1)))),  # Fm: as in the first call
    Factory(lambda seed: restored(AffineAdapterNaive, f=torch.nn.Conv2d(2, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1)))),  # Gm: as in the first call
    "float[2,2,3,3]",  # weights: float32, requires grad
    "float[2]",  # argument4: float32, requires grad
    "float[2,2,3,3]",  # argument5: float32, requires grad
    "float[2]",  # argument6: float32, requires grad
)

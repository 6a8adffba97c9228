"""The Functions that were called by: python -m pytest ...

Each declaration was drafted from these calls. Read it, correct it, and run: autograd-conformance check check_pypose.py
A guess is what never varied while it was recorded. Arguments are described in docs/checking-your-function.md.
"""

from autograd_conformance import Declaration

from pypose.lietensor.operation import (
    RxSO3_Act,
    RxSO3_Act4,
    RxSO3_Inv,
    RxSO3_Log,
    RxSO3_Mul,
    SE3_Act,
    SE3_Act4,
    SE3_AdjTXa,
    SE3_AdjXa,
    SE3_Inv,
    SE3_Log,
    SE3_Mul,
    SO3_Act,
    SO3_Inv,
    SO3_Log,
    SO3_Mul,
    Sim3_Act4,
    Sim3_AdjTXa,
    Sim3_AdjXa,
    Sim3_Inv,
    Sim3_Log,
    Sim3_Mul,
    rxso3_Exp,
    se3_Exp,
    sim3_Exp,
    so3_Exp,
)

# pypose.lietensor.operation:so3_Exp: 290 calls, of 46 kinds.
# Guess: the last dimension always had the length 3.
so3_exp = Declaration(
    so3_Exp,
    "float[...,3]",  # input: float32, float64, requires grad at times, strided
)

# pypose.lietensor.operation:SO3_Mul: 485 calls, of 32 kinds.
# Lengths that are numbers never varied, and forward refuses others.
so3_mul = Declaration(
    SO3_Mul,
    "float[n,4]",  # X: float32, float64, requires grad at times, strided
    "float[n,4]",  # Y: float32, float64, requires grad at times, strided
)

# pypose.lietensor.operation:SO3_Inv: 30 calls, of 14 kinds.
# Guess: the last dimension always had the length 4.
so3_inv = Declaration(
    SO3_Inv,
    "float[...,4]",  # X: float32, float64, never requires grad, strided
)

# pypose.lietensor.operation:SO3_Log: 354 calls, of 21 kinds.
# Guess: the last dimension always had the length 4.
so3_log = Declaration(
    SO3_Log,
    "float[...,4]",  # input: float32, float64, requires grad at times, strided
)

# pypose.lietensor.operation:se3_Exp: 132 calls, of 31 kinds.
# Guess: the last dimension always had the length 6.
se3_exp = Declaration(
    se3_Exp,
    "float[...,6]",  # input: float32, float64, requires grad at times, strided
)

# pypose.lietensor.operation:SE3_Inv: 14 calls, of 11 kinds.
# Guess: the last dimension always had the length 7.
se3_inv = Declaration(
    SE3_Inv,
    "float[...,7]",  # X: float32, requires grad at times, strided
)

# pypose.lietensor.operation:SO3_Act: 338 calls, of 43 kinds.
# Lengths that are numbers never varied, and forward refuses others.
so3_act = Declaration(
    SO3_Act,
    "float[n,4]",  # X: float32, float64, requires grad at times, strided
    "float[n,3]",  # p: float32, float64, requires grad at times, of the class pypose.lietensor.lietensor.LieTensor, strided
)

# pypose.lietensor.operation:SO3_Act: 4 calls, of 2 kinds.
# Guess, of which forward takes others, too: n was always 2.
# Lengths that are numbers never varied, and forward refuses others.
so3_act_2 = Declaration(
    SO3_Act,
    "float[n,3,k,3,1,4]",  # X: float32, never requires grad
    "float[n,3,k,3,1,3]",  # p: float32, never requires grad, strided
    name="SO3_Act_2",
)

# pypose.lietensor.operation:SO3_Act: 3 calls, of 2 kinds.
# Lengths that are numbers never varied, and forward refuses others.
so3_act_3 = Declaration(
    SO3_Act,
    "float[n,3,k,4]",  # X: float32, never requires grad
    "float[n,3,k,3]",  # p: float32, never requires grad, strided
    name="SO3_Act_3",
)

# pypose.lietensor.operation:SE3_Mul: 309 calls, of 23 kinds.
# Lengths that are numbers never varied, and forward refuses others.
se3_mul = Declaration(
    SE3_Mul,
    "float[n,7]",  # X: float32, float64, requires grad at times
    "float[n,7]",  # Y: float32, float64, requires grad at times
)

# pypose.lietensor.operation:SE3_Log: 218 calls, of 15 kinds.
# Guess: the last dimension always had the length 7.
se3_log = Declaration(
    SE3_Log,
    "float[...,7]",  # input: float32, float64, requires grad at times
)

# pypose.lietensor.operation:rxso3_Exp: 135 calls, of 13 kinds.
# Guess: the last dimension always had the length 4.
rxso3_exp = Declaration(
    rxso3_Exp,
    "float[...,4]",  # input: float32, float64, requires grad at times, strided
)

# pypose.lietensor.operation:RxSO3_Inv: 3 calls, of 3 kinds.
# Guess, of which forward takes others, too: the shape was always [n,m].
rx_so3_inv = Declaration(
    RxSO3_Inv,
    "float[...,n]",  # X: float32, float64, never requires grad, strided
)

# pypose.lietensor.operation:RxSO3_Log: 119 calls, of 4 kinds.
# Forward refuses 2 of 16 simple calls, one of them with: RuntimeError: The size of tensor a (0) must match the size of tensor b (2) at non-singleton dimension 3
rx_so3_log = Declaration(
    RxSO3_Log,
    "float[...,n]",  # input: float32, requires grad at times, strided
)

# pypose.lietensor.operation:sim3_Exp: 16 calls, of 7 kinds.
# Lengths that are numbers never varied, and forward refuses others.
sim3_exp = Declaration(
    sim3_Exp,
    "float[n,7]",  # input: float32, float64, requires grad at times
)

# pypose.lietensor.operation:Sim3_Inv: 2 calls, of 2 kinds.
# Lengths that are numbers never varied, and forward refuses others.
# Forward refuses 1 of 10 simple calls, one of them with: it returns numbers that are not finite, or above 1e+09, for Call('Sim3_Inv', args=(Tensor((17, 8), requires_grad=True, fill='ramp'),), cotangents=(Cotangent(),), seed=4)
sim3_inv = Declaration(
    Sim3_Inv,
    "float[n,8]",  # X: float32, float64, requires grad at times
)

# pypose.lietensor.operation:RxSO3_Act: 10 calls, of 10 kinds.
# Lengths that are numbers never varied, and forward refuses others.
rx_so3_act = Declaration(
    RxSO3_Act,
    "float[n,5]",  # X: float32, float64, requires grad at times, strided
    "float[n,3]",  # p: float32, float64, requires grad at times, strided
)

# pypose.lietensor.operation:Sim3_Log: 4 calls, all of one kind: nothing shows what may vary.
# Guess, of which forward takes others, too: n was always 4.
# Lengths that are numbers never varied, and forward refuses others.
# Forward refuses 7 of 10 simple calls, one of them with: it returns numbers that are not finite, or above 1e+09, for Call('Sim3_Log', args=(Tensor((3, 8), requires_grad=True, fill='dense'),), cotangents=(Cotangent(),), seed=2)
sim3_log = Declaration(
    Sim3_Log,
    "float[n,8]",  # input: float32, never requires grad
)

# pypose.lietensor.operation:SE3_Act: 2 calls, of 2 kinds.
# Lengths that are numbers never varied, and forward refuses others.
se3_act = Declaration(
    SE3_Act,
    "float[n,7]",  # X: float32, never requires grad
    "float[n,3]",  # p: float32, never requires grad, of the class pypose.lietensor.lietensor.LieTensor
)

# pypose.lietensor.operation:SE3_AdjXa: 2 calls, of 2 kinds.
# Lengths that are numbers never varied, and forward refuses others.
se3_adj_xa = Declaration(
    SE3_AdjXa,
    "float[n,7]",  # X: float32, float64, requires grad at times
    "float[n,6]",  # a: float32, float64, never requires grad
)

# pypose.lietensor.operation:SE3_AdjTXa: called once.
# Lengths that are numbers never varied, and forward refuses others.
se3_adj_txa = Declaration(
    SE3_AdjTXa,
    "float[6,7]",  # X: float32, requires grad
    "float[6,6]",  # a: float32, never requires grad
)

# pypose.lietensor.operation:Sim3_AdjXa: 2 calls, of 2 kinds.
# Lengths that are numbers never varied, and forward refuses others.
sim3_adj_xa = Declaration(
    Sim3_AdjXa,
    "float[n,8]",  # X: float64, requires grad at times
    "float[n,7]",  # a: float64, never requires grad
)

# pypose.lietensor.operation:Sim3_Mul: 4 calls, of 4 kinds.
# Lengths that are numbers never varied, and forward refuses others.
sim3_mul = Declaration(
    Sim3_Mul,
    "float[n,8]",  # X: float64, requires grad at times
    "float[n,8]",  # Y: float64, requires grad at times
)

# pypose.lietensor.operation:RxSO3_Mul: 117 calls, of 8 kinds.
# Lengths that are numbers never varied, and forward refuses others.
rx_so3_mul = Declaration(
    RxSO3_Mul,
    "float[n,5]",  # X: float32, float64, requires grad at times, strided
    "float[n,5]",  # Y: float32, float64, requires grad at times, strided
)

# pypose.lietensor.operation:Sim3_AdjTXa: called once.
# Lengths that are numbers never varied, and forward refuses others.
sim3_adj_txa = Declaration(
    Sim3_AdjTXa,
    "float[6,8]",  # X: float64, requires grad
    "float[6,7]",  # a: float64, never requires grad
)

# pypose.lietensor.operation:SE3_Act4: 2 calls, of 2 kinds.
# Lengths that are numbers never varied, and forward refuses others.
se3_act4 = Declaration(
    SE3_Act4,
    "float[n,7]",  # X: float64, requires grad
    "float[n,4] binary",  # p: float64, never requires grad, 0 or 1
)

# pypose.lietensor.operation:Sim3_Act4: 2 calls, of 2 kinds.
# Lengths that are numbers never varied, and forward refuses others.
sim3_act4 = Declaration(
    Sim3_Act4,
    "float[n,8]",  # X: float64, requires grad
    "float[n,4] binary",  # p: float64, never requires grad, 0 or 1
)

# pypose.lietensor.operation:RxSO3_Act4: 2 calls, of 2 kinds.
# Lengths that are numbers never varied, and forward refuses others.
rx_so3_act4 = Declaration(
    RxSO3_Act4,
    "float[n,5]",  # X: float64, requires grad
    "float[n,4] binary",  # p: float64, never requires grad, 0 or 1
)

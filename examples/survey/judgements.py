"""What is said of the accusations, by hand: a fault, with the script that shows it, or on purpose, with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Judgement:
    """Of accusations that match ``what``, a pattern of package, Function and accusation.

    A ``fault`` has a ``script`` of ``findings`` that shows it with the package alone. What is ``on purpose`` is true of
    the Function as well, and its documentation or code says that it is meant: a declaration has a word for it. With
    ``other arguments`` the Function was called as it is not meant to be: what was assumed is wrong.
    """

    what: str
    kind: str
    sentence: str
    script: str = ""


def fault(what: str, script: str, sentence: str) -> Judgement:
    return Judgement(what, "fault", sentence, script)


def other_arguments(what: str, sentence: str) -> Judgement:
    return Judgement(what, "other arguments", sentence)


def on_purpose(what: str, sentence: str) -> Judgement:
    return Judgement(what, "on purpose", sentence)


JUDGEMENTS = [
    fault(
        "sinabs * misfits FWD-DTYPE",
        "sinabs_dtype.py",
        "Spikes are float32 for a membrane in float64, and the documentation has no word about it.",
    ),
    fault(
        "sinabs * not detected VJP-INPLACE-SAFE",
        "sinabs_threshold_inplace.py",
        "The threshold is kept on ctx: a threshold that changes in place before backward makes gradients wrong.",
    ),
    other_arguments(
        "sinabs * not finite VJP-FINITE",
        "The threshold was 0, and the surrogate gradient divides by it: a neuron's threshold is positive.",
    ),
    other_arguments("torch_struct SimplexProject raises VJP-NONE", "The input had no dimension to project along."),
    fault(
        "torch_struct SimplexProject wrong VJP-FD*",
        "gallery/torch_struct_simplex.py",
        "The gradient is that of sparsemax, but the value has the norm of w in place of half of its square.",
    ),
    other_arguments(
        "torchkbnufft KbTable* raises VJP-FD",
        "There were two tables, but another number of dimensions: one table is needed for each dimension.",
    ),
    on_purpose(
        "memcnn InvertibleCheckpointFunction* raises VJP-REF",
        "backward refuses .grad(), and its error says to use .backward().",
    ),
    on_purpose(
        "memcnn InvertibleCheckpointFunction* raises FWD-MASK",
        "With keep_input=False the input is emptied in forward, as documented: it cannot be used a second time.",
    ),
    other_arguments(
        "memcnn InvertibleCheckpointFunction* raises VJP-PURE/leaves",
        "The weights were not those that the given functions use.",
    ),
    *(
        fault(
            f"memcnn {function} wrong VJP-FD*",
            "memcnn_blocks_gradient.py",
            "The gradient of the input is wrong: its halves are swapped, or a scale factor is left out.",
        )
        for function in (
            "AdditiveBlockInverseFunction",
            "AffineBlockInverseFunction",
            "AffineBlockFunction2",
            "AffineBlockInverseFunction2",
        )
    ),
    other_arguments("memcnn A*Block* wrong VJP-FD*", "The weights were not those that the given modules use."),
    fault(
        "memcnn A*Block* VJP-INPLACE-SAFE",
        "memcnn_blocks_inplace.py",
        "An input or a weight that changes in place before backward makes gradients wrong, and nothing is raised.",
    ),
    fault(
        "memcnn InvertibleCheckpointFunction not detected VJP-INPLACE-SAFE",
        "memcnn_checkpoint_inplace.py",
        "Inputs and outputs are kept on ctx: one that changes in place before backward makes gradients wrong.",
    ),
    fault(
        "memcnn InvertibleCheckpointFunction wrong VJP-FD*",
        "memcnn_checkpoint_leaf.py",
        "backward writes to .grad of its inputs and returns the gradient as well: that of a leaf is twice as large.",
    ),
    fault(
        "entmax *BisectFunction not detected VJP-INPLACE-SAFE",
        "entmax_alpha_inplace.py",
        "alpha is kept on ctx: if it changes in place before backward, gradients are wrong, and nothing is raised.",
    ),
    fault(
        "gpytorch ComputePredictiveUpdates wrong DBL-CORRECT",
        "gpytorch_predictive_second.py",
        "Second derivatives are wrong, without a word: what forward saves is computed from its inputs.",
    ),
    on_purpose(
        "gpytorch *NaturalToMuVarSqrt wrong VJP-FD*",
        "Gradients are natural ones, as the documentation of the distributions says.",
    ),
    fault(
        "torch_struct Checkpoint* Check raises *",
        "torch_struct_checkpoint.py",
        "backward raises if one argument requires no grad, or in the sharded one for a transposed cotangent.",
    ),
    fault(
        "torch_struct Checkpoint* Check * DBL-CORRECT",
        "torch_struct_checkpoint.py",
        "Second derivatives are detached or wrong, without a word: backward calls autograd.grad without create_graph.",
    ),
    on_purpose(
        "torch_struct MultiSampledLogSumExp wrong VJP-*",
        "Gradients are the bits of sixteen samples, as the documentation of the semirings says.",
    ),
    fault(
        "linear_operator Matmul * DBL-CORRECT",
        "linear_operator_matmul_second.py",
        "Second derivatives are detached, without a word, for operators that compute a matrix by a function.",
    ),
    fault(
        "linear_operator InvQuadLogdet silently detached DBL-CORRECT",
        "linear_operator_second.py",
        "Second derivatives are wrong or 0, without a word: what backward saves or computes is detached.",
    ),
    on_purpose(
        "linear_operator SqrtInvMatmul wrong VJP-LINEAR",
        "It is computed by contour integral quadrature, as documented: iterations, which end before they converge.",
    ),
    fault(
        "linear_operator DSMM raises VJP-COTANGENT-LAYOUT",
        "linear_operator_dsmm_layout.py",
        "backward raises for a batch of cotangents whose memory is transposed: it uses view.",
    ),
    on_purpose(
        "torch_geometric TorchSPMM raises *",
        "backward is for sums, and raises for a mean, a minimum or a maximum: the tests of the package ask for that.",
    ),
    fault(
        "kymatio ModulusStable not finite DBL-CORRECT",
        "kymatio_modulus_second.py",
        "Second derivatives are NaN where the input is 0, for which the gradient is documented to be 0: 0 / 0.",
    ),
    on_purpose(
        "pypose * wrong DBL-CORRECT",
        "Second derivatives are of gradients in a tangent space, as in the paper that the documentation refers to.",
    ),
    on_purpose(
        "torch_geometric InvertibleFunction mutates *",
        "The memory of inputs and outputs is freed, and filled again in backward, as documented.",
    ),
    on_purpose(
        "torchdiffeq StitchGradient wrong VJP-FD*",
        "The output gets the gradient of another tensor, as its name says.",
    ),
    on_purpose(
        "sinabs Quantize wrong VJP-FD*", "The gradient is that of a linear function, as its documentation says."
    ),
    on_purpose(
        "sinabs StochasticRounding wrong VJP-FD*",
        "The gradient is that of a linear function, as its documentation says.",
    ),
    on_purpose("sinabs *Spike* wrong VJP-*", "Spikes have a surrogate gradient, as the documentation says."),
    fault(
        "memcnn A*Block* DBL-CORRECT",
        "memcnn_blocks_second.py",
        "Second derivatives are detached, without a word: backward computes with a detached copy of the input.",
    ),
    on_purpose("snntorch FirstSpike wrong VJP-FD*", "The gradient of a first spike is -1, as its documentation says."),
    on_purpose("snntorch ATan wrong VJP-FD*", "Spikes have a surrogate gradient, as the documentation says."),
    on_purpose(
        "norse ToSpikeTimes wrong VJP-*", "The gradient of a spike that counts is -1, as its documentation says."
    ),
    *(
        on_purpose(f"norse {function} wrong VJP-*", "Spikes have a surrogate gradient, as the documentation says.")
        for function in ("Heavi*", "Circ*", "Logistic", "SuperSpike", "Triangle")
    ),
    *(
        on_purpose(
            f"spikingjelly {function} wrong VJP-FD*", "Spikes have a surrogate gradient, as the documentation says."
        )
        for function in ("SurrogateSpike", "atan", "erf", "rect", "sigmoid", "deterministic_pass")
    ),
    *(
        on_purpose(f"spikingjelly {function} wrong VJP-FD*", "It is a straight-through estimator, as documented.")
        for function in ("KBitQuantizeATGF", "MultiLevelSpikeCountATGF", "StepQuantizeATGF")
    ),
    fault(
        "snntorch * misfits FWD-DTYPE",
        "snntorch_dtypes.py",
        "Spikes are float32 for a membrane in float64, and the documentation has no word about it.",
    ),
    fault(
        "snntorch Sigmoid not finite *",
        "gallery/snntorch_sigmoid_nan.py",
        "The surrogate gradient is NaN far below the threshold, where it should be 0: exp overflows.",
    ),
    on_purpose(
        "snntorch StochasticSpikeOperator wrong ENV-RANDOM",
        "Below the threshold the gradient is sampled, as its documentation says.",
    ),
    fault(
        "snntorch LeakySpikeOperator raises VJP-NONE",
        "snntorch_leaky.py",
        "backward returns one gradient for two arguments, so that it raises always.",
    ),
    on_purpose(
        "norse L*Adjoint* wrong VJP-FD*",
        "backward is a step of the adjoint equations, as documented, and not the gradient of the Euler step.",
    ),
    other_arguments(
        "norse L*Adjoint* misfits FWD-DTYPE",
        "A scalar in half precision was given, but the neuron's parameters are scalars in float32: it is promoted.",
    ),
    fault(
        "norse LIFAdjointRefracFunction* raises *",
        "norse_refrac_backward.py",
        "backward reads p.tau_syn_inv, but p has it as p.lif.tau_syn_inv: it raises always.",
    ),
    fault(
        "norse LIF*Adjoint* not finite *",
        "norse_adjoint_nan.py",
        "A spike while the voltage stands still gives NaN or infinite gradients: 1 / 0, and only NaN is filtered.",
    ),
    fault(
        "norse LSNNAdjointFunction raises VJP-REF",
        "norse_lsnn_unbatched.py",
        "Vectors are taken, as in the package's own tests, but then backward raises: it needs matrices.",
    ),
    fault(
        "norse ToSpikeTimes_2 raises VJP-REF",
        "norse_spike_times.py",
        "backward raises in every dtype but float32, and if an output has fewer spikes than are asked for.",
    ),
    other_arguments("norse ToSpikeTimes raises VJP-REF*", "The input had fewer than three dimensions."),
    other_arguments(
        "norse ToSpikeTimes* wrong FWD-VALUE", "The input had other numbers than 0 and 1, but spikes are meant."
    ),
    other_arguments(
        "norse ToSpikeTimes* raises MEM-WRITTEN", "The input had other numbers than 0 and 1, but spikes are meant."
    ),
    fault(
        "norse *Circ* not finite *",
        "norse_circ_nan.py",
        "The surrogate gradient is NaN where the square of the voltage overflows: 300 in float16.",
    ),
    fault(
        "torchopt *Op raises JVP-REF",
        "torchopt_jvp.py",
        "jvp is there, but returns None, so that forward mode ends in an internal error of PyTorch.",
    ),
    fault(
        "torchopt UpdatesOp wrong VJP-FD*",
        "torchopt_updates_gradient.py",
        "The gradient by the second moment leaves out eps, and that by a first moment of exactly 0 is 0.",
    ),
    other_arguments(
        "torchopt UpdatesOp misfits FWD-DTYPE",
        "A scalar in half precision was given, and the step count is a scalar tensor as well: PyTorch promotes it.",
    ),
    other_arguments(
        "gpytorch QuadFormDiagonal wrong VJP-FD*", "The matrix was not symmetric, as the documentation says it must be."
    ),
    fault(
        "gpytorch MaternCovariance * DBL-CORRECT",
        "gpytorch_matern_second.py",
        "Second derivatives by the lengthscale are wrong, without a word: backward uses what forward computed.",
    ),
    fault(
        "gpytorch RBFCovariance * DBL-CORRECT",
        "gallery/gpytorch_rbf_second.py",
        "Second derivatives by the lengthscale are wrong, without a word: backward uses what forward computed.",
    ),
    fault(
        "gpytorch LogNormalCDF wrong VJP-FD*",
        "gpytorch_log_normal_cdf.py",
        "Just below -1, where the formula changes, the value is off by 0.002 and the gradient by 0.003.",
    ),
    fault(
        "linear_operator PivotedCholesky raises VJP-REF*",
        "linear_operator_pivoted_half.py",
        "forward takes float16, and backward raises: it factorizes a matrix, which torch does not in float16.",
    ),
    fault(
        "linear_operator InvQuadLogdet mutates VJP-PURE",
        "linear_operator_cotangent.py",
        "backward writes to the cotangent (unsqueeze_ of a view): another graph that saved it raises.",
    ),
    on_purpose(
        "linear_operator InvQuadLogdet wrong *",
        "The determinant is estimated with random vectors, as documented: values and gradients are estimates.",
    ),
    on_purpose(
        "linear_operator RootDecomposition wrong VJP-*",
        "A root is known up to a rotation: gradients are right of what does not depend on it, as root @ root.mT.",
    ),
    fault(
        "gpytorch QuadFormDiagonal * DBL-CORRECT",
        "gpytorch_quad_form_second.py",
        "Second derivatives are wrong: what backward saves, the matrix times the right hand side, is detached.",
    ),
    fault(
        "pypose * raises BATCH-VMAP",
        "pypose_vmap.py",
        "generate_vmap_rule is True, but vmap raises: forward indexes by a mask, or writes in place.",
    ),
    *(
        fault(
            f"pypose {function} wrong VJP-FD*",
            "pypose_adjt_gradient.py",
            "The gradient by the vector is wrong: forward multiplies by Adj(X^-1), backward by Adj(X) itself.",
        )
        for function in ("SE3_AdjTXa", "Sim3_AdjTXa")
    ),
    on_purpose(
        "pypose * wrong VJP-FD*",
        "Gradients of a group element are in its tangent space, as in the paper that the documentation refers to.",
    ),
    other_arguments("pypose * raises VJP-*", "The last dimension had another length than the group has."),
    fault(
        "pypose so3_Exp not finite VJP-REF",
        "pypose_exp_half.py",
        "The gradient at small angles is NaN in float16: the square of an angle of 0.001 is not 0, its cube is.",
    ),
    other_arguments(
        "pypose SO3_* not finite VJP-FINITE*",
        "The quaternions were not of length 1, but so far from it that they overflow.",
    ),
    other_arguments("pypose SO3_Log wrong FWD-VALUE", "The quaternions were not of length 1, but near 0."),
    on_purpose(
        "brevitas InplaceTensorClampSteFn mutates FWD-PURE",
        "It is the in-place variant, as its name and documentation say; mark_dirty is not called.",
    ),
    on_purpose(
        "torchdiffeq *UncheckedAssign* mutates FWD-PURE",
        "A comment says that it is meant: to sneak past the version checker.",
    ),
    other_arguments(
        "torchdiffeq *UncheckedAssign* wrong VJP-FD*",
        "What is overwritten had a gradient of its own; the solver writes once to each entry of an empty tensor.",
    ),
    other_arguments(
        "torchdiffeq *UncheckedAssign* wrong FWD-LAYOUT",
        "What is written to was an expanded tensor, of which several entries are one number.",
    ),
    on_purpose(
        "torch_struct *SampledLogSumExp* wrong VJP-*",
        "Gradients give samples, as the documentation of the semirings says.",
    ),
    other_arguments(
        "torch_struct *SampledLogSumExp* FWD-EMPTY",
        "The dimension to sum over was empty: there is nothing to sample from.",
    ),
    fault(
        "entmax *LossFunction * DBL-CORRECT",
        "entmax_loss_second.py",
        "Second derivatives lack the part by the scores: the probabilities that backward saves are detached.",
    ),
    fault(
        "entmax BudgetBisectFunction* wrong VJP-FD*",
        "gallery/budget_middle_one.py",
        "The gradient is wrong for shapes (B, 1, D).",
    ),
    fault(
        "entmax BudgetBisectFunction* not finite VJP-F*",
        "gallery/budget_middle_one.py",
        "For shapes (B, 1, D) a row that is all 0 and 1 makes the gradients of other rows NaN.",
    ),
    fault(
        "entmax BudgetBisectFunction* not finite DBL-CORRECT",
        "gallery/budget_second_nan.py",
        "A penalty on the gradient is NaN for a row that is all 0 and 1: 0 / 0 in backward.",
    ),
    fault(
        "entmax *Function* not finite DBL-CORRECT",
        "entmax_sparse_second_nan.py",
        "Second derivatives are NaN as soon as one probability is exactly 0: a negative power of it, or a square root.",
    ),
    other_arguments(
        "entmax NormmaxBisectFunction not finite VJP-FINITE*", "alpha was 3e38 or below 1: it has to be above 1."
    ),
    other_arguments("entmax NormmaxBisectFunction wrong VJP-FD", "alpha was negative: it has to be above 1."),
    fault(
        "entmax NormmaxBisectFunction not finite VJP-REF",
        "entmax_normmax_nan.py",
        "With alpha 1000, which the package's tests use, gradients are NaN in single precision for equal scores.",
    ),
    other_arguments(
        "entmax BudgetBisectFunction wrong FWD-VALUE*", "The budget was 0, so that nothing is left but rounding errors."
    ),
    fault(
        "entmax EntmaxBisectFunction wrong DBL-CORRECT",
        "gallery/entmax_alpha_second.py",
        "Second derivatives by alpha are wrong, without a word.",
    ),
    fault(
        "torch_geometric SparseCrossEntropy* wrong VJP-FD*",
        "torch_geometric_cross_entropy_twice.py",
        "A label that is given twice counts twice in the value, but once in the gradient.",
    ),
    fault(
        "spikingjelly * misfits FWD-DTYPE",
        "spikingjelly_dtype.py",
        "Outputs are float32 for inputs in float64, and the documentation has no word about it.",
    ),
    fault(
        "spikingjelly DSR*Function* not detected VJP-INPLACE-SAFE",
        "spikingjelly_threshold_inplace.py",
        "The threshold is kept on ctx: a threshold that changes in place before backward makes gradients wrong.",
    ),
    on_purpose(
        "spikingjelly DSR*Function* wrong VJP-*",
        "Gradients are those of spike rates, as in the paper that the documentation refers to.",
    ),
    on_purpose(
        "spikingjelly LeakyIntegratorStep* wrong VJP-*",
        "forward is integer arithmetic, as documented, and backward the gradient without its rounding.",
    ),
    on_purpose(
        "spikingjelly ReplaceforGrad* wrong VJP-*", "The gradient goes to both arguments, as the documentation says."
    ),
    fault(
        "spikingjelly LeakyIntegratorStep raises VJP-MASK",
        "spikingjelly_leaky_mask.py",
        "backward raises if only the decay requires grad: forward saves nothing unless x or the state does.",
    ),
    fault(
        "spikingjelly squarewave_fourier_series not finite *",
        "spikingjelly_squarewave_nan.py",
        "The surrogate gradient is NaN for an input of 6000 in float16: the argument of a cosine overflows.",
    ),
    other_arguments(
        "spikingjelly ClampATGF wrong VJP-FD*",
        "Both bounds were 0.5, and the input as well: there the built-in clamp passes the gradient, too.",
    ),
    on_purpose(
        "spikingjelly SRMInputs wrong *",
        "Each output depends on one input alone, and is marked as not differentiable if that requires no grad.",
    ),
    other_arguments(
        "spikingjelly q_pseudo_spike* not finite *", "alpha was below 1, and a power of a negative number."
    ),
    fault(
        "optimum QuantizedLinearFunction* raises *LAYOUT*",
        "quanto_linear_layout.py",
        "backward raises for inputs or gradients that are not contiguous: it uses view.",
    ),
    fault(
        "linear_operator Solve* DBL-CORRECT",
        "gallery/linear_operator_solve_second.py",
        "The second derivative is wrong with a vector on the right, without a word.",
    ),
    *(
        fault(
            f"linear_operator {function}* DBL-CORRECT*",
            "linear_operator_second.py",
            "Second derivatives are wrong or 0, without a word: what backward saves or computes is detached.",
        )
        for function in ("InvQuad", "PivotedCholesky")
    ),
    fault(
        "linear_operator DSMM* not detected VJP-INPLACE-SAFE",
        "linear_operator_dsmm_inplace.py",
        "The sparse matrix is kept on ctx: changed in place before backward, it makes the gradient wrong.",
    ),
    fault(
        "entmax EntmaxBisectFunction* not finite VJP-FINITE*",
        "gallery/entmax_large_nan.py",
        "Large scores give NaN, for which softmax is finite.",
    ),
    on_purpose(
        "gpytorch *NgdInterpTerms* wrong VJP-*",
        "Gradients are with respect to the canonical parameters, as its documentation says: a natural gradient.",
    ),
    other_arguments(
        "torch_geometric SparseCrossEntropy raises *", "The row numbers were not below the number of rows."
    ),
    on_purpose(
        "torchao ApplyMask wrong VJP-FD*",
        "It is a straight-through estimator, as its documentation says: both arguments get the gradient as it is.",
    ),
    other_arguments("torchao RoundToFloat8 misfits FWD-DTYPE", "The second argument is a dtype, and was a number."),
    *(
        other_arguments(f"torchao {function} *", "The step size was a tensor of integers, and is one of floats.")
        for function in ("LsqBinaryTernaryExtension", "StretchedElasticQuant")
    ),
    other_arguments(
        "fairscale BackwardTriggerFn raises VJP-*", "The weight required no grad, and backward asserts that it does."
    ),
    on_purpose(
        "fairscale Fork misfits FWD-DTYPE",
        "The second output is a tensor without elements, in float32, which only ties two parts of a graph together.",
    ),
    other_arguments(
        "torch_harmonics permute_to_nhwc raises VJP-NONE", "The tensor had not four dimensions, as its error asks for."
    ),
]


def judgement(package: str, function: str, accusation: str) -> Judgement | None:
    """What a person says of an accusation; the first entry that matches counts."""
    matching = (each for each in JUDGEMENTS if fnmatchcase(f"{package} {function} {accusation}", each.what))
    return next(matching, None)

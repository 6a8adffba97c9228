"""The properties of any custom Function, as data."""

from __future__ import annotations

from autograd_conformance.reference.definitions import Shapes
from autograd_conformance.reference.property import Property


def _has_orders(shapes: Shapes) -> bool:
    """Whether one of the tensors can be stored in more than one order."""
    return any(sum(side > 1 for side in shape) > 1 for shape in shapes)


def _has_orders_or_is_flat(shapes: Shapes) -> bool:
    return _has_orders(shapes) or all(len(shape) < 2 for shape in shapes)


_ALL = (
    Property(
        "FWD-VALUE",
        "outputs equal the reference, within the derived bound, in every supported dtype",
        cause="forward casts, or uses a constant of another dtype; or the reference computes something else",
        plain=True,
        rank=15,
        head=6,
    ),
    Property(
        "FWD-MASK",
        "outputs do not depend on which arguments require grad, nor on grad mode",
        cause="forward branches on needs_input_grad or on grad mode",
        cure="let these decide only what is saved",
        raises=True,
    ),
    Property(
        "FWD-LAYOUT",
        "outputs and gradients do not depend on the inputs' memory layout",
        cause="forward or backward reads memory as if it were contiguous (data_ptr, view, as_strided)",
        cure="call contiguous() first, or use reshape",
        if_refused="if the Function should take such tensors, call contiguous() first, and resolve_neg() or "
        "resolve_conj() for negated and conjugated ones",
        share=3.0,
        shapes=_has_orders,
        of_stochastic=False,
        explains="the same call is right with contiguous inputs",
        raises=True,
    ),
    Property(
        "FWD-EMPTY",
        "inputs with zero-size dimensions and 0-d inputs work like any others, in backward too",
        cause="a reduction over, or a division by, a size that may be 0",
        cure="return early when there are no elements",
        if_refused="declare sizes=, or return early when there are no elements",
        raises=True,
    ),
    Property(
        "FWD-PURE",
        "inputs keep their values, version and metadata unless they are declared dirty; the version of a dirty input "
        "rises",
        cause="forward changes an input in place",
        cure="work on a clone; or call mark_dirty and return the input; or let an operator name it in mutates_args",
        verdict="mutates",
        rank=4,
    ),
    Property(
        "FWD-GRADFLAG",
        "a differentiable output requires grad exactly when some differentiable input does and grad mode is on; "
        "outputs share one node",
        cause="forward returns an input, or a tensor that was made elsewhere",
        cure="return a new tensor, and mark outputs without a gradient with mark_non_differentiable",
        of_holding=False,
    ),
    Property(
        "FWD-DTYPE",
        "outputs have the dtype, shape and device that the reference has, or that follow from the inputs",
        cause="forward makes a tensor with the default dtype",
        cure="make it with x.new_zeros or zeros_like; if the dtype is intended, declare casts=True",
        verdict="misfits",
        plain=True,
        rank=5,
    ),
    Property(
        "VJP-REF",
        "gradients equal the reference VJP, within the derived bound",
        cause="the formula in backward is wrong; if only low precision fails, a sum or a constant has another dtype",
        plain=True,
        rank=14,
        explains="the plain call with the same values is wrong",
        head=5,
        of_variant=(
            (
                "range",
                "a square, a power or a product in backward overflows or underflows in float16 where forward computes "
                "in a larger range: let backward compute in float32 as well",
            ),
        ),
    ),
    Property(
        "VJP-FD",
        "gradients agree with finite differences",
        cause="backward is not the derivative of forward: a factor, a sign, a condition, a sum over a wrong dimension",
        cure="if that is intended, declare surrogate=True, or soft= the function whose derivative it is",
        share=8.0,
        of_variant=(
            (
                "long",
                "short tensors are right, and this length is not: look at the last block, if it is not a whole one, at "
                "how blocks are added up, and at limits for the length",
            ),
            (
                "small",
                "ordinary values are right, and small ones are not: look at the branch for small values, such as a "
                "series, and at guards against a division by zero: a clamp, a maximum or an epsilon",
            ),
            (
                "kinks",
                "backward treats equal or special entries (ties, zeros, the edges of a range) in another way than "
                "forward: look at comparisons, at masks, and at what is shared among equal entries",
            ),
        ),
        plain=True,
        rank=1,
        explains="the first derivative of the same call is wrong",
        verifies="gradient",
        head=4,
    ),
    Property(
        "VJP-NEEDS",
        "ctx.needs_input_grad, in forward and in backward, is a tuple of bools, one per argument, True exactly for the "
        "arguments that require grad",
        cause="a subclass or a wrapper changes ctx.needs_input_grad",
        cure="do not change it",
    ),
    Property(
        "VJP-NONE",
        "non-tensor and non-differentiable arguments get None; arguments that do not require grad get no gradient; "
        "those that do get one",
        cause="backward returns its gradients in another order, or a wrong number of them",
        cure="return one for each argument of forward, None for each that is not a tensor",
        explains="the plain call raises, outside of backward",
        raises=True,
    ),
    Property(
        "VJP-MASK",
        "each gradient is the same, whichever other arguments require grad",
        cause="a gradient is computed only if another input needs one",
        cure="guard each gradient with its own ctx.needs_input_grad[i]",
        explains="the same call is right if every input requires grad",
        raises=True,
    ),
    Property(
        "VJP-SUBSET",
        "gradients with respect to some of the tracked inputs equal those with respect to all of them",
        cause="a gradient is computed only if another input needs one",
        cure="guard each gradient with its own ctx.needs_input_grad[i]",
        raises=True,
    ),
    Property(
        "VJP-COTANGENT-LAYOUT",
        "gradients do not depend on the cotangent's memory layout",
        cause="backward reads grad_output as if it were contiguous, but sum() sends an expanded one",
        cure="call grad_output.contiguous(), or use reshape instead of view",
        shapes=_has_orders_or_is_flat,
        rank=13,
        explains="the same call is right with contiguous cotangents",
        raises=True,
    ),
    Property(
        "VJP-UNUSED",
        "an unused output gives the same gradients as one with a cotangent of zeros",
        cause="backward assumes that every output is used",
        cure="after set_materialize_grads(False), check each grad_output for None",
        rank=6,
        explains="the same call is right if every output is used",
        raises=True,
    ),
    Property(
        "VJP-NONDIFF",
        "non-differentiable outputs do not require grad, contribute nothing, and their cotangent is zero (None when "
        "not materialized)",
        cause="an integer or helper output takes part in the graph",
        cure="call ctx.mark_non_differentiable",
    ),
    Property(
        "VJP-LINEAR",
        "gradients are linear in the cotangent; a zero cotangent gives zero, never NaN",
        cause="backward thresholds, normalizes or adds to grad_output",
        cure="if that is intended, declare nonlinear=True",
        explains="backward is not linear in grad_output",
    ),
    Property(
        "VJP-FIT",
        "each gradient, as backward returned it and as the caller gets it, has its input's shape, dtype and device",
        cause="a gradient does not have its input's shape and dtype",
        cure="sum over the dimensions that were broadcast, and keep the dtype",
        explains="the plain call raises: a gradient does not fit its input",
        verdict="misfits",
    ),
    Property(
        "VJP-PURE",
        "cotangents, inputs and outputs are not modified, and no gradient shares memory with another one or with a "
        "tensor the user holds",
        cause="backward writes into grad_output or a saved tensor, or returns an input, or one tensor twice",
        cure="clone what it writes to or returns",
        of_variant=(("owned", "backward returns a tensor that it keeps and writes into again; return a new one"),),
        of_kind=(
            ("mutated", "backward writes into grad_output, an input or a saved tensor; clone what it writes to"),
            ("shared", "backward returns an input, a saved tensor, or one tensor twice; return a clone"),
        ),
        rank=3,
        explains="backward writes into grad_output or a gradient that it returned before",
    ),
    Property(
        "VJP-REPEAT",
        "a second identical call, a call after other calls, and a second backward give the same gradients, bit for bit",
        cause="state is kept between calls (a class attribute, a module's buffer, a cache), or backward changes ctx",
        cure="keep state on ctx, and do not delete or change it in backward",
        rank=12,
        explains="the call gives other results if it is repeated, or after another one",
        raises=True,
    ),
    Property(
        "VJP-ACCUMULATE",
        "backward() adds to the .grad of leaves exactly the gradient that grad returns",
        cause="backward returns a tensor that it keeps or changes later",
        cure="return a new tensor",
    ),
    Property(
        "VJP-SAME-TENSOR",
        "one tensor passed for two arguments gets the sum of both gradients",
        cause="the identities of the two arguments are compared, or one gradient is written into the other",
        rank=9,
    ),
    Property(
        "VJP-INPLACE-SAFE",
        "changing an input or an output in place between forward and backward is harmless or raises; it never gives a "
        "silently wrong gradient",
        cause="a tensor is kept as an attribute of ctx (ctx.x = x), where nothing notices a change",
        cure="use ctx.save_for_backward",
        verdict="not detected",
        rank=7,
    ),
    Property(
        "VJP-FINITE",
        "where the outputs are finite at extreme magnitudes and the reference gradient fits the dtype, the gradient is "
        "finite",
        cause="a term of backward overflows, or is 0 / 0, where the result does not",
        cure="rewrite it (a sigmoid's gradient from its output, for instance), or apply where() to the input instead "
        "of to the result",
        verdict="not finite",
        rank=8,
        of_extremes=True,
    ),
    Property(
        "VJP-CHAIN",
        "composed with built-in operations and with other Functions, the chain rule holds",
        cause="forward or backward keeps something of an earlier call, or relies on what comes before or after it",
    ),
    Property(
        "DBL-CORRECT",
        "where second derivatives are claimed, they are correct: not wrong, not silently detached, and without an "
        "error",
        cause="backward uses an intermediate that was saved, or computed outside the graph (.data, detach, NumPy, "
        "no_grad); or it calls another Function, whose backward is wrong",
        cure="save inputs or outputs, return the intermediate as an output, or decorate backward with "
        "once_differentiable",
        if_refused="declare once=True if that is intended",
        of_variant=(
            (
                "small",
                "second derivatives at ordinary values are right, and at small ones they are not: look at the branch "
                "for small values, such as a series with too few terms, in backward and in what it calls",
            ),
        ),
        raises=True,
        rank=11,
        verifies="second derivative",
    ),
    Property(
        "DBL-ONCE",
        "a Function declared once-differentiable gives first derivatives under create_graph and raises for second ones",
        cause="it is declared once=True, but gives second derivatives",
        cure="drop once=True, or decorate backward with once_differentiable",
        verdict="stale",
    ),
    Property(
        "JVP-REF",
        "the forward-mode rule equals the reference JVP, within the derived bound",
        cause="the formula in jvp is wrong, or setup_context saves the wrong tensors with save_for_forward",
        rank=10,
        explains="the tangent of the same call is wrong",
    ),
    Property(
        "JVP-ADJOINT",
        "<cotangent, JVP(tangent)> = <VJP(cotangent), tangent>",
        cause="jvp and backward are not rules of the same derivative",
        cure="compare their formulas",
    ),
    Property(
        "BATCH-VMAP",
        "a batched call, and batched cotangents, give the same results as a loop over the batch, or are refused",
        cause="the rule for batches, vmap or register_vmap, moves or drops a batch dimension; or generate_vmap_rule is "
        "set and backward depends on values",
        notes_every_refusal=True,
        if_refused="if the Function should take these, let a static method vmap move each batch dimension to the front "
        "first; a rule that generate_vmap_rule makes runs forward and backward on single members, without their values",
        share=4.0,
        of_stochastic=False,
        raises=True,
    ),
    Property(
        "ENV-COMPILE",
        "compiled equals eager: outputs, gradients, and which gradients are None",
        cause="forward or backward depends on Python state or values that a compiler fixes when it traces",
        raises=True,
    ),
    Property(
        "ENV-AUTOCAST",
        "under autocast, outputs and gradients are correct for the lower precision, or the call raises",
        cause="matrix products inside run in lower precision",
        cure="use custom_fwd and custom_bwd",
        share=4.0,
        raises=True,
    ),
    Property(
        "ENV-SAVED-HOOKS",
        "saved-tensor hooks and checkpointing do not change the gradients",
        cause="backward compares identities of saved tensors, reads ctx.saved_tensors more than once, or keeps tensors "
        "as attributes of ctx",
        cure="use ctx.save_for_backward",
        raises=True,
    ),
    Property(
        "ENV-THREADS",
        "concurrent calls in several threads each get their own correct gradients",
        cause="a class attribute or a global is written in forward and read in backward",
        cure="keep it on ctx",
        of_stochastic=False,
        raises=True,
    ),
    Property(
        "ENV-DEVICE",
        "on every other device the Function gives the same results, and its gradients stay on that device; a fake "
        "kernel says what comes out",
    ),
    Property(
        "ENV-RANDOM",
        "outputs and gradients do not depend on random numbers, unless that is declared",
        cause="forward or backward draws random numbers",
        cure="declare stochastic=True, and let forward save what it drew for backward; or draw them from a generator "
        "with a seed of its own",
        plain=True,
        of_stochastic=False,
        explains="backward draws random numbers of its own: with another seed it gives another gradient",
        # Only a Function declared stochastic is asked.
        cure_of_others="let forward save what it drew (save_for_backward), and let backward use that instead of "
        "drawing again",
        head=1,
    ),
    Property(
        "ENV-SETTINGS",
        "forward and backward leave the settings of the process as they were (grad mode, autocast, default dtype, "
        "threads and the like), and do not seed its random numbers",
        cause="forward or backward switches something on or off, or seeds, and does not set it back",
        cure="use a context manager (torch.no_grad, torch.autocast, torch.random.fork_rng)",
        explains="the call sets a setting or a seed of the process",
        verdict="mutates",
        plain=True,
        head=3,
    ),
    Property(
        "MEM-WRITTEN",
        "outputs and gradients do not depend on memory that was allocated but never written",
        cause="a tensor of torch.empty, empty_like or new_empty is returned or read before all of it is written",
        cure="use zeros, zeros_like or new_zeros",
        plain=True,
        explains="the same call reads memory that was never written",
        head=2,
        puts_nan=True,
    ),
    Property(
        "MEM-FREE",
        "after backward everything the call held is freed without a garbage-collection pass",
        cause="an output (or ctx itself) is kept as an attribute of ctx, which makes a reference cycle",
        cure="use ctx.save_for_backward",
        verdict="leaks",
        rank=2,
    ),
    Property(
        "DECL-INDEPENDENT",
        "along a dimension declared independent, the results for a slice are the slice of the results; a gradient "
        "without that dimension is the sum over the slices",
        cause="a sum, mean or norm runs over a dimension too many, or rows share a buffer",
        cure="name the dimensions of each reduction in forward and backward (dim=)",
        if_refused="declare sizes= if it takes no short slices",
        of_stochastic=False,
        own=True,
    ),
    Property(
        "DECL-AXIS",
        "moving the axis to another dimension moves the results, and changes nothing else",
        cause="a formula in forward or backward is right for one axis alone, or for axes that are not negative",
        cure="use the axis in each operation; make it positive first if you compare or count with it",
        if_refused="declare the axes that it takes, as in 'axis(0 | -1)'",
        of_stochastic=False,
        own=True,
        raises=True,
    ),
    Property(
        "DECL-SYMMETRIC",
        "if two arguments declared symmetric are exchanged, outputs stay (antisymmetric: change their sign), and the "
        "gradients are exchanged with them",
        cause="forward or backward uses one of the arguments where it should use the other, or both",
        cure="compare the formulas of both arguments",
        of_stochastic=False,
        own=True,
    ),
)

PROPERTIES = {each.id: each for each in _ALL}

"""The properties of any custom Function, as data: what each test of suites/functions claims."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Property:
    """A property: its id, the part of the suite it belongs to, and the sentence that must hold."""

    id: str
    sentence: str

    @property
    def group(self) -> str:
        return GROUPS[self.id.split("-")[0]]


GROUPS = {
    "FWD": "forward",
    "VJP": "VJP",
    "DBL": "second order",
    "JVP": "forward mode",
    "BATCH": "batching",
    "ENV": "environment",
    "MEM": "environment",
}

_SENTENCES = {
    "FWD-VALUE": "outputs equal the reference, within the derived bound, in every supported dtype",
    "FWD-MASK": "outputs do not depend on which arguments require grad, nor on grad mode",
    "FWD-LAYOUT": "outputs and gradients do not depend on the inputs' memory layout",
    "FWD-EMPTY": "zero-size dimensions and 0-d inputs work like any other, backward included",
    "FWD-PURE": "inputs keep value, version and metadata unless declared dirty; a dirty one has its version raised",
    "FWD-GRADFLAG": "a differentiable output requires grad exactly when some differentiable input does and grad mode "
    "is on; outputs share one node",
    "FWD-DTYPE": "output dtype, shape and device are what the reference says",
    "VJP-REF": "gradients equal the reference VJP, within the derived bound",
    "VJP-FD": "gradients agree with finite differences of the reference",
    "VJP-NEEDS": "ctx.needs_input_grad, in forward and in backward, is a tuple of bools, one per argument, True "
    "exactly for the arguments that require grad",
    "VJP-NONE": "non-tensor and non-differentiable arguments get None; arguments that do not require grad get no "
    "gradient; those that do get one",
    "VJP-MASK": "whichever arguments require grad, each gradient equals the one when all do",
    "VJP-SUBSET": "asking for some of the tracked inputs gives the same gradients for those",
    "VJP-COTANGENT-LAYOUT": "gradients do not depend on the cotangent's memory layout",
    "VJP-UNUSED": "leaving outputs unused equals zero cotangents for them",
    "VJP-NONDIFF": "non-differentiable outputs do not require grad, contribute nothing, and their cotangent is zero "
    "(None when not materialized)",
    "VJP-LINEAR": "gradients are linear in the cotangent; a zero cotangent gives zero, never NaN",
    "VJP-FIT": "each gradient, as backward returned it and as the caller gets it, has its input's shape, dtype and "
    "device",
    "VJP-PURE": "cotangents, inputs and outputs are not modified, and no gradient shares memory with another one or "
    "with a tensor the user holds",
    "VJP-REPEAT": "a second identical call, a call after other calls, and a second backward give the same gradients, "
    "bit for bit",
    "VJP-ACCUMULATE": "backward() on leaves adds exactly the gradient that grad returns to what .grad held",
    "VJP-SAME-TENSOR": "one tensor passed for two arguments gets the sum of both gradients",
    "VJP-INPLACE-SAFE": "changing an input or an output in place between forward and backward is harmless or an "
    "error, never a silently wrong gradient",
    "VJP-FINITE": "where the reference gradient is finite at extreme magnitudes, so is the gradient",
    "VJP-CHAIN": "composed with built-in operations and with other Functions, the chain rule holds",
    "DBL-CORRECT": "where second derivatives are claimed they are right: not wrong, not refused, not silently detached",
    "DBL-ONCE": "a Function declared once-differentiable gives first derivatives under create_graph and refuses second "
    "ones",
    "JVP-REF": "the forward-mode rule equals the reference JVP, within the derived bound",
    "JVP-ADJOINT": "<cotangent, JVP(tangent)> = <VJP(cotangent), tangent>",
    "BATCH-VMAP": "a batched call, and batched cotangents, equal the loop over the batch, or are refused loudly",
    "ENV-COMPILE": "compiled equals eager: outputs, gradients, and which gradients are None",
    "ENV-AUTOCAST": "under autocast outputs and gradients are right for the lower precision, or refused loudly",
    "ENV-SAVED-HOOKS": "under saved-tensor hooks and under checkpointing gradients are unchanged",
    "ENV-THREADS": "concurrent calls from several threads give each its own right gradients",
    "ENV-DEVICE": "on every other device the Function gives the same results and gradients stay on that device",
    "MEM-FREE": "after backward everything the call held is freed without a garbage-collection pass",
}

PROPERTIES = {id: Property(id, sentence) for id, sentence in _SENTENCES.items()}

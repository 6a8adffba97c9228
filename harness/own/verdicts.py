"""What a result says to the author of a Function: a verdict, the usual cause, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

from autograd_conformance.harness import report
from autograd_conformance.harness.blackbox import DEATH, HANG
from autograd_conformance.harness.own.subject import FOLLOWS
from autograd_conformance.reference.properties import PROPERTIES

WRONG, DETACHED, RAISES = "wrong", "silently detached", "raises"
REFUSED, UNKNOWN = "refused loudly", "not known"
LEAKS, MUTATES, SHARES, UNDETECTED = "leaks", "mutates", "shares memory", "not detected"
MISFITS, NOT_FINITE, STALE, CRASHES, HANGS, ERROR = "misfits", "not finite", "stale", "crashes", "hangs", "error"

# Verdicts that blame nobody.
NOTES = frozenset((REFUSED, UNKNOWN))
# Verdicts of which no more is known than that the process was lost.
LOST = frozenset((CRASHES, HANGS))

# Verdicts of properties whose failures are of one kind; the others are "wrong".
_KINDS = {
    "MEM-FREE": LEAKS,
    "FWD-PURE": MUTATES,
    "VJP-INPLACE-SAFE": UNDETECTED,
    "VJP-FINITE": NOT_FINITE,
    "VJP-FIT": MISFITS,
    "FWD-DTYPE": MISFITS,
    "DBL-ONCE": STALE,
}
# The same, by how the finding starts.
_BY_FINDING = {
    "what came of the call": RAISES,
    "what backward changed": MUTATES,
    "what shares memory": SHARES,
}

ADVICE = {
    "FWD-VALUE": "a cast or a constant of another dtype inside forward; or the reference is of something else",
    "FWD-MASK": "forward branches on needs_input_grad or grad mode; let that decide only what is saved",
    "FWD-LAYOUT": (
        "forward reads memory as if it were contiguous (data_ptr, view, as_strided); call contiguous() first,"
        " or use reshape"
    ),
    "FWD-EMPTY": "a reduction or a division by a size that may be 0; return early when there are no elements",
    "FWD-PURE": "forward changes its input in place: work on a clone, or call mark_dirty and return the input",
    "FWD-GRADFLAG": (
        "forward returns an input, or a tensor it made elsewhere; return a new one, and mark outputs without "
        "a gradient with mark_non_differentiable"
    ),
    "FWD-DTYPE": "a tensor is made in forward with the default dtype; make it with x.new_zeros or "
    "zeros_like; if it is meant, declare casts=True",
    "VJP-REF": "the formula in backward; if low precision alone is wrong, a sum or constant in another dtype",
    "VJP-FD": (
        "backward is not the derivative of forward: a factor, a sign, a sum over a broadcast dimension; if "
        "that is meant, declare surrogate=True, or soft=the function whose derivative it is"
    ),
    "VJP-NEEDS": "a subclass or a wrapper changes what ctx.needs_input_grad says; leave it alone",
    "VJP-NONE": (
        "backward returns its gradients in another order, or one too many: one for each argument of forward, "
        "None for what is no tensor"
    ),
    "VJP-MASK": (
        "a gradient is computed only if another input needs one; guard each with its own ctx.needs_input_grad[i]"
    ),
    "VJP-SUBSET": (
        "a gradient is computed only if another input needs one; guard each with its own ctx.needs_input_grad[i]"
    ),
    "VJP-COTANGENT-LAYOUT": (
        "backward reads grad_output as if it were contiguous, and sum() sends an expanded one; call "
        "grad_output.contiguous(), or use reshape in place of view"
    ),
    "VJP-UNUSED": (
        "backward assumes that every output is used: with set_materialize_grads(False) grad_output may be None"
    ),
    "VJP-NONDIFF": "an integer or helper output takes part in the graph: call ctx.mark_non_differentiable",
    "VJP-LINEAR": "backward thresholds, normalizes or adds to grad_output; if that is meant, declare nonlinear=True",
    "VJP-FIT": (
        "a gradient is not brought back to its input's shape and dtype: sum what was broadcast, and keep the dtype"
    ),
    "VJP-PURE": "backward writes into grad_output or a saved tensor, or gives the same tensor away twice; clone it",
    "VJP-REPEAT": (
        "state is kept between calls (a class attribute, a module's buffer, a cache) or on ctx beyond "
        "backward; keep it on ctx, and do not delete or change it in backward"
    ),
    "VJP-ACCUMULATE": "backward gives away a tensor that it keeps or changes; return a new one",
    "VJP-SAME-TENSOR": "the two arguments are told apart by identity, or one gradient is written into the other",
    "VJP-INPLACE-SAFE": (
        "a tensor is kept as an attribute of ctx (ctx.x = x), where no change is noticed; use ctx.save_for_backward"
    ),
    "VJP-FINITE": (
        "a term of backward overflows or is 0 / 0 where the result is not; rewrite it (a sigmoid's gradient "
        "from its output, say), or use where() on the input and not on the result"
    ),
    "VJP-CHAIN": "backward or forward keeps something of an earlier call, or relies on what comes before or after it",
    "DBL-CORRECT": (
        "an intermediate was saved, or computed outside of the graph (.data, detach, NumPy, no_grad): save "
        "inputs or outputs, return the intermediate as an output, or decorate backward with "
        "once_differentiable"
    ),
    "DBL-ONCE": (
        "it is declared once=True, and gives second derivatives; drop once=True, or decorate backward with "
        "once_differentiable"
    ),
    "JVP-REF": "the formula in jvp, or what setup_context saved for it with save_for_forward",
    "JVP-ADJOINT": "jvp and backward are not those of one derivative; compare their formulas",
    "BATCH-VMAP": (
        "the static method vmap moves or drops a batch dimension; or generate_vmap_rule is set and backward "
        "depends on values"
    ),
    "ENV-COMPILE": "forward or backward depends on Python state or values that a compiler fixes when it traces",
    "ENV-AUTOCAST": "matrix products inside run in lower precision; use custom_fwd and custom_bwd",
    "ENV-SAVED-HOOKS": (
        "backward compares identities of saved tensors, reads ctx.saved_tensors more than once, or keeps tensors as "
        "attributes of ctx; use ctx.save_for_backward"
    ),
    "ENV-THREADS": "a class attribute or a global is written in forward and read in backward; keep it on ctx",
    "MEM-FREE": (
        "an output (or ctx itself) is kept as an attribute of ctx, which makes a cycle; use ctx.save_for_backward"
    ),
}

_OF_REFUSALS = {
    "FWD-EMPTY": "say so with sizes, or return early when there are no elements",
    "DBL-CORRECT": "declare once=True if that is meant",
    "FWD-LAYOUT": "call contiguous() first if such tensors should be taken",
    "BATCH-VMAP": "if these should be taken, let the static method vmap move each batch dimension to the front first",
}


# What is most telling comes first.
_FIRST = ("VJP-FD", "VJP-REF", "FWD-VALUE")
ORDER = (*_FIRST, *(name for name in PROPERTIES if name not in _FIRST))


@dataclass(frozen=True)
class Verdict:
    """What became of a property: a word, what to do, and the property from whose failure it follows, if it does."""

    word: str
    advice: str
    follows: str = ""

    @property
    def fault(self) -> bool:
        return self.word not in NOTES


def verdict(line: report.Line) -> Verdict | None:
    """The verdict on a result line; None if the property holds in most examples, or was not asked."""
    claim, outcome = line["property"], line["outcome"]
    if mostly_refused(line) or (outcome == "vacuous" and line["reason"].startswith(report.REFUSED)):
        return Verdict(REFUSED, _OF_REFUSALS.get(claim, ""))
    if outcome == "vacuous":
        return Verdict(UNKNOWN, _inconclusive(claim))
    if outcome not in ("fail", "error"):
        return None
    failure = line["failure"]
    if outcome == "error":
        word = {DEATH: CRASHES, HANG: HANGS}.get(failure.get("type", ""), ERROR)
        return Verdict(word, "the traceback says where" if failure.get("traceback") else "")
    follows = next((p for p, hint in FOLLOWS.items() if failure.get("hint") == hint), None)
    if follows is not None:
        return Verdict(WRONG, ADVICE[follows], follows)
    if failure["got"] == DETACHED:
        return Verdict(DETACHED, ADVICE[claim])
    found = next((w for start, w in _BY_FINDING.items() if failure["what"].startswith(start)), _KINDS.get(claim, WRONG))
    if found == RAISES:
        return Verdict(RAISES, "" if claim in _FIRST else ADVICE.get(claim, ""))
    if claim.startswith("DBL") and failure["got"] == "nan":
        return Verdict(
            found, "a 0 / 0 or an overflow inside backward, hidden behind where(): let where() choose its operands"
        )
    return Verdict(found, ADVICE.get(claim, ""))


def mostly_refused(line: report.Line) -> bool:
    """Whether a property holds, but only in the fewer examples that were not refused."""
    return line["outcome"] in ("pass", "emulated") and 2 * line.get("excused", 0) > line["examples"]


def _inconclusive(claim: str) -> str:
    if claim == "VJP-FD":
        return (
            "finite differences cannot tell: forward has kinks or is noisy nearly everywhere (does it compute in lower "
            "precision inside?), or is not finite there: the gradient was not verified; narrow the arguments, as in "
            "float[n] positive, or give reference="
        )
    return "nothing could be compared; narrow the arguments"

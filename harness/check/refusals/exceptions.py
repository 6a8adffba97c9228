"""What an exception of a user's Function means: a mistake in its code, or that it may not take a call."""

from __future__ import annotations

from autograd_conformance.harness.outcomes import message_of
from autograd_conformance.implementations.misbehaving import Misbehaves

# What to do about an exception that is no mistake: of forward, of backward, and of tensors without elements alone.
IN_FORWARD = "forward raises here; if such arguments are invalid, declare narrower ones, as in 'float[n] positive'"
IN_BACKWARD = "forward accepted this call, so backward must not raise"
HANDLE = "handle it there, or let forward refuse it"
WHEN_EMPTY = f"{IN_BACKWARD}, which it does for tensors without elements alone"
RETURN_EARLY = "return early there, and give reshape and view whole shapes: -1 means nothing without elements"

_MISFIT = "returned an invalid gradient"
_MISCOUNT = "returned an incorrect number of gradients"
# What the engine and torch.library say of a backward that returns too much, too little, or what is no tensor.
_NO_GRADIENTS = (_MISCOUNT, "a gradient different than None", "expected Variable or None", "return from backward")
# Words of a message, each with what it means for the author of the Function.
_WORDS = {
    "forward grad to be floating point": "jvp must return a floating-point tangent for each floating-point output",
    "expected Variable or None": "backward must return tensors or None, and returned something else",
    "INTERNAL ASSERT": "an assertion inside the framework failed: a tensor is used in a way that its metadata forbids",
    "expected layout": "backward returns a gradient in a layout that the engine does not take for this input; return "
    "a dense one, or a sparse COO tensor, by .to_dense() or .to_sparse()",
    "may not alias any inputs": "the operator returns an argument, or a view of one; return a clone of it",
    _MISFIT: "backward returns a gradient that does not fit its input; return a tensor of the input's shape, and sum "
    "over the dimensions that were broadcast, if there are any",
    _MISCOUNT: "backward must return one gradient for each argument of forward, None for each that is not a tensor",
}


# Exceptions that say what a Function does not take, and words of those of Python that look alike.
_REFUSALS = (ValueError, TypeError, RuntimeError, AssertionError, IndexError)
_ACCIDENTS = ("list index out of range", "tuple index out of range", "string index out of range", "recursion depth")


def deliberate(raised: BaseException) -> bool:
    """Whether an exception of forward may say that it does not take a call, and so is no accident of its code."""
    text = message_of(raised)
    return isinstance(raised, _REFUSALS) and not mistake(raised) and not any(words in text for words in _ACCIDENTS)


def accidental(raised: BaseException) -> bool:
    """Whether an exception shows a mistake whatever the arguments are."""
    return isinstance(raised, NameError | AttributeError | Misbehaves)


def mistake(raised: BaseException) -> str:
    """What an exception says is wrong with the code; empty if it may be a refusal."""
    if isinstance(raised, NameError):
        return "a name is used that has no value: this is a mistake in the code, not a refusal"
    if isinstance(raised, AttributeError):
        return "an attribute is used that does not exist: this is a mistake in the code, not a refusal"
    if isinstance(raised, Misbehaves):
        return raised.cure
    text = message_of(raised)
    return next((meaning for words, meaning in _WORDS.items() if words in text), "")


def miscounted(raised: BaseException) -> bool:
    """Whether the engine says that backward returned the wrong number of gradients."""
    return _MISCOUNT in message_of(raised)


def returned_wrongly(raised: BaseException) -> str:
    """The property about what backward returned, for an exception of the engine that takes it; else VJP-REF."""
    text = message_of(raised)
    if _MISFIT in text:
        return "VJP-FIT"
    return "VJP-NONE" if any(words in text for words in _NO_GRADIENTS) else "VJP-REF"

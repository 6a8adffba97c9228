"""Rules for vmap that raise: which ones refuse a batch, and which ones break on where its dimensions are."""

from __future__ import annotations

from collections.abc import Iterator

from autograd_conformance.harness.check.declaration.classes import overrides
from autograd_conformance.harness.testing import transforms
from autograd_conformance.harness.testing.attempts import raised_by
from autograd_conformance.harness.testing.examined import own_frames
from autograd_conformance.harness.testing.subject import Subject

# How a line begins that raises on purpose.
_ON_PURPOSE = ("raise", "assert", "torch._check")

ADVICE = (
    "the rule takes the same batch in other dimensions, and vmap may give it any in_dims; move each batch dimension to "
    "the front with movedim, and let the rule raise NotImplementedError for what it refuses"
)


def breaks(subject: Subject, raised: Exception) -> bool:
    """Whether a written rule raised because of where the batch dimensions are, and not on purpose."""
    axes, size = (subject.choices.get(label) for label in (transforms.AXES, transforms.SIZE))
    if axes is None or size is None or not overrides(subject.cls, subject.implementation, "vmap"):
        return False
    if isinstance(raised, NotImplementedError) or _on_purpose(subject, raised):
        return False
    example = subject.made(subject.tried[-1])
    batches = (transforms.Batch(example, other, size) for other in _simpler(tuple(axes)))
    return any(raised_by(_run, batch) is None for batch in batches)


def _run(batch: transforms.Batch) -> None:
    batch.run()[1]()


def _on_purpose(subject: Subject, raised: Exception) -> bool:
    """Whether a line of the user's raised, and not an operation in it."""
    frames = own_frames(raised, subject.implementation)
    return bool(frames) and (frames[-1].line or "").strip().startswith(_ON_PURPOSE)


def _simpler(axes: tuple[int | None, ...]) -> Iterator[tuple[int | None, ...]]:
    """The same tensors batched along their first dimensions, and all tensors."""
    for other in (tuple(None if axis is None else 0 for axis in axes), (0,) * len(axes)):
        if other != axes:
            yield other

"""The file of declarations that recorded calls become."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autograd_conformance.harness.check.declaration import intentions
from autograd_conformance.harness.drafting import inferring, settling, writing
from autograd_conformance.harness.drafting.recording import Recorded
from autograd_conformance.harness.drafting.writing import Drafted
from autograd_conformance.harness.outcomes import UsageProblem

_NOTHING = (
    "no custom Function was called, so nothing is written; calls of torch's own Functions, calls in code that "
    "torch.compile compiled, and those of a Python that runs with -I, -E or -S are not recorded"
)

_NEXT = "complete its block in the file, where it is a comment"


@dataclass(frozen=True)
class Written:
    """What was written: a sentence for each Function, and how many of them are declared."""

    sentences: tuple[str, ...]
    declared: int


def verify(output: Path) -> None:
    """Raise UsageProblem for a file that cannot be written: one that is there may have been edited.

    Also for a pyproject.toml that cannot be read: its words become part of the declarations.
    """
    intentions.read(Path.cwd())
    if output.suffix != ".py":
        raise UsageProblem(f"declarations are Python: name a file that ends in .py, not {output}")
    if output.exists():
        raise UsageProblem(
            f"{output} is there already, and may have been edited; remove it, or name another with -o FILE"
        )
    if not output.resolve().parent.is_dir():
        raise UsageProblem(f"{output.parent} is not a folder; name a file in one that is there with -o FILE")


def write(found: Recorded, output: Path, command: str, *, seconds: float) -> Written:
    """Write declarations of what was recorded. Raises UsageProblem if there is nothing to write."""
    if not found.functions:
        raise UsageProblem(_NOTHING)
    drafted = [Drafted(function, draft) for function in found.functions for draft in inferring.drafts(function)]
    settled = settling.settled(drafted, output.resolve(), "torch", seconds=seconds)
    results = writing.meant(settled, Path.cwd())
    written = writing.text(results, output.resolve(), _shown(command))
    compile(written, str(output), "exec")
    output.write_text(written, encoding="utf-8")
    left_out = _left_out(results, output.resolve())
    calls = {each.function.name: each.function.calls for each in results}
    unchecked = {each.function.name: writing.unchecked(each.draft) for each in results}
    sentences = [_sentence(name, number, left_out.get(name, ""), unchecked[name]) for name, number in calls.items()]
    declared = len(calls) - len(left_out)
    sentences.append(f"{output}: {declared} of {len(calls)} Functions are declared")
    hidden = {each.function.module.partition(".")[0] for each in results} & {output.stem}
    if declared and hidden:
        sentences.append(f"Rename it: {output.name} hides the package {output.stem}, which it imports")
    elif declared:
        sentences.append(f"Read it, and then: autograd-conformance check {output}")
    return Written(tuple(sentences), declared)


def _left_out(results: Sequence[Drafted], path: Path) -> dict[str, str]:
    """Why Functions have no declaration at all, by name: calls of several kinds have one each."""
    reasons = [(each.function.name, writing.why(each, path)) for each in results]
    declared = {name for name, why in reasons if not why}
    return {name: why for name, why in reasons if name not in declared}


def _shown(command: str) -> str:
    """The first words of a command, up to its options: the value of an option may be a secret."""
    words = command.split()
    first = next((n for n, word in enumerate(words) if word.startswith("-") and word != "-m"), len(words))
    kept = words[: min(first, 3)]
    return " ".join([*kept, *["..."] * (len(kept) < len(words))])


def _sentence(name: str, calls: int, left_out: str, unchecked: str) -> str:
    called = f"{name}: {calls} call{'s' * (calls != 1)}"
    about = f"left out: {left_out}; {_NEXT}" if left_out else unchecked
    return "; ".join(filter(None, [called, about]))

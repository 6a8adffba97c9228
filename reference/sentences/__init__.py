"""The inventory: the sentences of PyTorch's documentation around custom Functions, and the clauses that ask them.

A file of this folder starts with what it covers: the public names whose docstrings it has, or a page of the manual. ::

    names: torch.autograd.function torch.Tensor.backward
    page: docs/source/notes/extending.md of pytorch/pytorch at 104998231faa

A module stands for its public names, and a class for its public methods. Each name, and each section of a page
(``# extending: Step 1``), has a heading, and below it a sentence a line, with its answer in the line after it::

    # torch.autograd.function.FunctionCtx.save_for_backward
    In forward, ``save_for_backward`` should be called at most once.
    = CTX-04 SAVE-12
    See extending-autograd for more details.
    - reference: to another page
    Tensors that are saved can be read on another thread.
    ! not asked: backward on another thread than forward

The sentences are PyTorch's own (BSD-3-Clause), without examples and markup.

``=`` has the ids of clauses and properties that ask the sentence, ``-`` the kind of reason why none does (a word of
REASONS, and after a colon more if need be), and ``!`` what a clause would ask that is still missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from autograd_conformance.reference.clauses import CLAUSES
from autograd_conformance.reference.properties import PROPERTIES

HERE = Path(__file__).resolve().parent

# Why nothing asks a sentence.
REASONS = {
    "advice": "it tells the user what to do, and nothing follows from it that could be seen",
    "context": "it leads to what follows, or explains why",
    "definition": "it says what a thing is called, or what an argument means, and is used by what is asked elsewhere",
    "example": "it belongs to an example",
    "derivation": "it is a step of a derivation, of which clauses ask the result",
    "reference": "it points to another document",
    "performance": "it is about time or memory that no test can measure without guessing",
    "prototype": "it says that something may change",
    "internal": "it describes how something is built, for those who change it",
    "other subject": "it is about something else than derivatives of custom Functions and operators",
    "old interface": "it is about what is kept for old code alone",
    "no such device": "it takes a device or a compiler that the suite does not have",
}


@dataclass(frozen=True)
class Sentence:
    """One sentence of the documentation, with what asks it or why nothing does."""

    name: str
    text: str
    ids: tuple[str, ...] = ()
    reason: str = ""
    missing: str = ""

    @property
    def answer(self) -> str:
        """The ids, the reason, or what a clause would ask."""
        return " ".join(self.ids) or self.reason or f"not asked: {self.missing}"


@dataclass
class Document:
    """A file of the inventory: what it covers, and its sentences in their order."""

    path: Path
    names: list[str] = field(default_factory=list)
    page: str = ""
    sentences: list[Sentence] = field(default_factory=list)


def inventory(folder: Path = HERE) -> list[Document]:
    """All files of the inventory. Raises ValueError for one that is not as described above."""
    return [read(path) for path in sorted(folder.glob("*.txt"))]


def read(path: Path) -> Document:
    """A file of the inventory. Raises ValueError that names the line and says what to do."""
    document, heading, seen = Document(path), "", set[tuple[str, str]]()
    lines = _lines(path)
    for number, line in lines:
        where = f"{path.name}:{number}"
        if line.startswith("names: "):
            document.names += line.split()[1:]
        elif line.startswith("page: "):
            document.page = line.removeprefix("page: ")
        elif line.startswith("# "):
            heading = line.removeprefix("# ")
        elif not heading:
            raise ValueError(f"{where}: a sentence stands before the first heading; write '# NAME' above it")
        elif (heading, line) in seen:
            raise ValueError(f"{where}: the sentence stands twice under {heading}; remove one: {line}")
        else:
            seen.add((heading, line))
            document.sentences.append(_answered(heading, line, next(lines, (number, ""))[1], where))
    return document


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if line.strip():
            yield number, line.strip()


def _answered(name: str, text: str, answer: str, where: str) -> Sentence:
    mark, _, rest = answer.partition(" ")
    match mark:
        case "=" if rest:
            ids = tuple(rest.split())
            for unknown in (id for id in ids if id not in CLAUSES and id not in PROPERTIES):
                raise ValueError(f"{where}: there is no clause or property {unknown}; see list clauses")
            return Sentence(name, text, ids=ids)
        case "-":
            if (kind := rest.partition(":")[0]) not in REASONS:
                raise ValueError(f"{where}: {kind!r} is no kind of reason; choose from: {', '.join(REASONS)}")
            return Sentence(name, text, reason=rest)
        case "!" if rest.startswith("not asked: "):
            return Sentence(name, text, missing=rest.removeprefix("not asked: "))
        case _:
            cure = "write '= IDS', '- REASON' or '! not asked: WHAT' below it"
            raise ValueError(f"{where}: the sentence has no answer; {cure}: {text}")

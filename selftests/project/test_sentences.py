"""The inventory of sentences: complete for the installed docstrings, and read without a guess."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

pytest.importorskip("torch")

import torch

from autograd_conformance.harness.catalogue import PACKAGE
from autograd_conformance.harness.cli import main
from autograd_conformance.implementations.torch import documents
from autograd_conformance.reference.clauses import CONTRACT
from autograd_conformance.reference.sentences import REASONS, Document, inventory, read
from autograd_conformance.reference.sentences.splitting import sentences

PINNED = next(
    line.partition("==")[2]
    for line in (PACKAGE / "constraints.txt").read_text("utf-8").splitlines()
    if line.startswith("torch==")
)


def listed(*options: str) -> str:
    done = CliRunner().invoke(main, ["list", "sentences", *options])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.skipif(torch.__version__.partition("+")[0] != PINNED, reason="the inventory is of another release")
def test_the_inventory_is_that_of_the_installed_docstrings():
    assert documents.changes(inventory()) == ([], [])
    assert "nothing changed" in listed("--changed")


def test_what_is_new_or_gone_in_a_docstring_is_reported_with_its_name(monkeypatch):
    name = "torch.autograd.function.FunctionCtx.mark_dirty"
    method = torch.autograd.function.FunctionCtx.mark_dirty
    monkeypatch.setattr(method, "__doc__", method.__doc__.replace("doesn't matter whether", "matters how often"))
    new, gone = (
        [row.split("\t") for row in listed("--changed").splitlines() if row.startswith(f"{word}\t{name}")]
        for word in ("new", "gone")
    )
    assert new == [["new", name, "It matters how often the function is called before or after modification."]]
    assert gone == [["gone", name, "It doesn't matter whether the function is called before or after modification."]]


def test_a_name_that_is_new_or_gone_is_reported(monkeypatch):
    monkeypatch.setattr(torch.func, "__all__", [n for n in torch.func.__all__ if n != "linearize"])
    _, gone = documents.changes(inventory())
    assert {name for name, _ in gone} == {"torch.func.linearize"}


def test_a_name_is_documented_in_one_file():
    found = [name for document in inventory() for name in dict.fromkeys(s.name for s in document.sentences)]
    assert len(found) == len(set(found))


# Documents of clauses that the inventory leaves out, and clauses whose words it does not have.
LEFT_OUT = {"tutorials", "compiler", "source"}
UNNAMED = {"CHECK-05": "the docstring leaves the option out"}


def test_each_clause_from_these_documents_is_named():
    named = {id for document in inventory() for sentence in document.sentences for id in sentence.ids}
    cited = {
        clause.id
        for clause in CONTRACT.values()
        if clause.level == "documented" and clause.document.partition(":")[0] not in LEFT_OUT
    }
    assert len(cited) > 200
    assert cited - named == set(UNNAMED)


def test_each_kind_of_reason_is_used():
    used = {sentence.reason.partition(":")[0] for document in inventory() for sentence in document.sentences} - {""}
    assert used == set(REASONS)


def test_each_file_says_what_it_covers():
    assert [d.path.name for d in inventory() if bool(d.names) == bool(d.page)] == []


def test_the_list_has_a_row_for_each_sentence_and_the_table_one_for_each_file():
    found = inventory()
    assert len(listed().splitlines()) == 1 + sum(len(document.sentences) for document in found)
    table = listed("--coverage")
    assert len(table.splitlines()) == 3 + len(found)
    assert table in (PACKAGE / "docs" / "clauses" / "index.md").read_text("utf-8")


GOOD = "names: torch.func\n\n# torch.func.grad\n\nA sentence.\n= FUNC-02 VJP-REF\nAnother.\n- advice: of little use\n"


def test_ids_reasons_and_what_is_missing_are_answers(tmp_path):
    document = written(tmp_path, GOOD + "A third.\n! not asked: whether it nests\n")
    assert document.names == ["torch.func"]
    assert [s.answer for s in document.sentences] == [
        "FUNC-02 VJP-REF",
        "advice: of little use",
        "not asked: whether it nests",
    ]


# A mistake, and what is said of it, after the place.
MISTAKES = {
    "unknown id": (("= FUNC-02", "= FUNC-99"), "part.txt:5: there is no clause or property FUNC-99; see list clauses"),
    "no id": (("= FUNC-02 VJP-REF", "="), "part.txt:5: the sentence has no answer; write '= IDS'"),
    "no answer": (("= FUNC-02 VJP-REF\n", ""), "part.txt:5: the sentence has no answer; write '= IDS'"),
    "no answer at the end": (
        ("- advice: of little use\n", ""),
        "part.txt:7: the sentence has no answer; write '= IDS'",
    ),
    "a question": (("- advice", "? advice"), "part.txt:7: the sentence has no answer; write '= IDS'"),
    "unknown reason": (("- advice", "- because"), "part.txt:7: 'because' is no kind of reason; choose from: advice,"),
    "twice": (("Another", "A sentence"), "part.txt:7: the sentence stands twice under torch.func.grad; remove one"),
    "no heading": (("# torch.func.grad", ""), "part.txt:5: a sentence stands before the first heading; write '# NAME'"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_refused_with_their_place_and_what_to_do(tmp_path, mistake):
    (old, new), words = MISTAKES[mistake]
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        written(tmp_path, GOOD.replace(old, new))
    assert str(caught.value).startswith(words)


def written(folder, text: str) -> Document:
    path = folder / "part.txt"
    path.write_text(text, "utf-8")
    return read(path)


DOCSTRING = """Do a thing, e.g. This one, w.r.t. that. Wrapped over
two lines, see :func:`~torch.func.grad`! Once more?

.. note:: This counts.
    And this.

.. code-block:: python

    not.this()

Args:
    x (Tensor): the first
        argument. It may be None.
    y (Tensor, optional): the second one

1. an item
2. another item

Example::

    >>> nor_this()

>>> nor this
or this

A Heading
---------
The end.  The end.
"""


def test_a_docstring_is_split_into_its_sentences():
    assert sentences(DOCSTRING) == [
        "Do a thing, e.g. This one, w.r.t. that.",
        "Wrapped over two lines, see ``torch.func.grad``!",
        "Once more?",
        "This counts.",
        "And this.",
        "x (Tensor): the first argument.",
        "It may be None.",
        "y (Tensor, optional): the second one",
        "an item",
        "another item",
        "The end.",
    ]


def test_coverage_and_changes_exclude_each_other():
    done = CliRunner().invoke(main, ["list", "sentences", "--coverage", "--changed"])
    assert done.exit_code == 2
    assert "give one of them" in done.output


def test_without_torch_its_changes_are_refused(monkeypatch):
    ways = {"torch": ("no_such_package.module:Name", "torch==2.13.0")}
    monkeypatch.setattr("autograd_conformance.implementations.ADAPTERS", ways)
    done = CliRunner().invoke(main, ["list", "sentences", "--changed"])
    assert done.exit_code == 2
    assert "install" in done.output

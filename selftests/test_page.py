"""The page over implementations: what it shows, and that it needs nothing but itself."""

from __future__ import annotations

import json
import subprocess
from html.parser import HTMLParser

import pytest

from autograd_conformance.harness import page
from autograd_conformance.selftests.conftest import COMMAND

HEADER = {
    "kind": "header",
    "schema": 1,
    "suite": {"name": "autograd-conformance", "version": "0.1.0"},
    "implementation": {"name": "mine", "named": "folder/mine one.py", "version": "1.2", "location": "/x"},
    "devices": ["cpu"],
    "profile": "quick",
    "examples": 5,
    "seed": 7,
    "functions": ["Exp", "Sort"],
    "properties": ["VJP-REF"],
    "clauses": ["NIG-01", "NIG-02"],
    "dtype": None,
    "python": "3.11.7",
    "platform": "p",
    "packages": {},
    "started": "2026-01-01T00:00:00+00:00",
    "expected": 5,
}
FAILURE = {"what": "a <b>bold</b> claim", "got": "1", "expected": "2", "call": "Call('Exp')", "script": "print(1 < 2)"}
FIGURES = dict.fromkeys(("examples", "checks", "inconclusive", "refused", "worst", "seconds"), 0)


def result(claim, outcome, function="", variant="", **more):
    where = {"property": claim, "function": function} if function else {"clause": claim, "level": "documented"}
    id = f"{claim}[{function}-cpu]" if function else f"{claim}/{variant}[cpu]"
    return {"kind": "result", "id": id, **where, "device": "cpu", "outcome": outcome, **more, **FIGURES}


RESULTS = [
    result("VJP-REF", "fail", "Exp", failure=FAILURE),
    result("VJP-REF", "pass", "Sort"),
    result("NIG-01", "unsupported", reason="mine does not claim it"),
    result("NIG-02", "known", failure={"what": "w", "got": "g", "expected": "e"}, reason="a reason (a link; seen)"),
    result("NIG-02", "unsupported", variant="b", reason="nor that"),
]
FOOTER = {
    "kind": "footer",
    "counts": {"fail": 1},
    "verdict": "falls short",
    "examples": 5,
    "seconds": 1,
    "finished": HEADER["started"],
}


@pytest.fixture
def write(tmp_path):
    def to(name, *lines, implementation="mine"):
        header = {**HEADER, "implementation": {**HEADER["implementation"], "name": implementation}}
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in (header, *lines)))
        return tmp_path / name

    return to


class Found(HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.words = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(" ".join(data.split()))

    @property
    def text(self):
        return " ".join(filter(None, self.words))


@pytest.fixture
def found(write):
    reports = page.read([write("a.ndjson", *RESULTS, FOOTER), write("b.ndjson", RESULTS[1], implementation="other")])
    return Found(page.html(reports))


def test_it_is_whole_and_loads_nothing(found):
    assert found.open == []
    assert not [tag for tag, _ in found.tags if tag in ("script", "link", "img", "iframe")]
    assert not [attrs for _, attrs in found.tags if attrs.keys() & {"src", "onclick"}]
    assert {attrs["href"][0] for tag, attrs in found.tags if tag == "a"} == {"#"}
    assert [a["content"] for _, a in found.tags if "content" in a and "default-src" in a["content"]] == [
        "default-src 'none'; style-src 'unsafe-inline'"
    ]


def test_every_click_leads_somewhere(found):
    ids = [attrs["id"] for _, attrs in found.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    targets = [attrs.get("popovertarget") or attrs.get("href", "#")[1:] for _, attrs in found.tags]
    assert {target for target in targets if target} == set(ids)


def test_it_tells_outcome_counterexample_and_reproduction(found):
    for told in (
        "mine 1.2", "falls short", "did not finish", "1/2 fail", "a <b>bold</b> claim", "Call('Exp')", "print(1 < 2)",
        "a reason (a link; seen)", "! known", "not asked",
        "autograd-conformance run 'folder/mine one.py' --properties VJP-REF --functions Exp --device cpu "
        "--profile quick --seed 7",
    ):  # fmt: skip
        assert told in found.text, told
    assert "bold" not in {tag for tag, _ in found.tags}


def test_why_something_was_not_asked_is_told(found):
    assert "mine does not claim it" in [attrs.get("title") for _, attrs in found.tags]


def test_every_outcome_has_a_sign_of_its_own():
    assert set(page.SIGNS) == set(page.OUTCOMES)
    assert len(set(page.SIGNS.values())) == len(page.SIGNS)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "name the reports"),
        (("none.ndjson",), "none.ndjson cannot be read"),
        (("page.txt",), "page.txt is not a report"),
        (("empty.ndjson",), "empty.ndjson has no results"),
        (("a.ndjson", "-o", "nowhere/m.html"), "cannot be written to nowhere/m.html"),
        (("a.ndjson", "--output"), "--output"),
    ],
)
def test_mistakes_are_told_in_a_sentence(write, tmp_path, words, told):
    write("a.ndjson", *RESULTS, FOOTER)
    write("empty.ndjson")
    (tmp_path / "page.txt").write_text("text\n")
    done = subprocess.run([COMMAND, "report", *words], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert told in done.stderr
    assert not (tmp_path / "matrix.html").exists()


def test_the_command_writes_the_page_and_warns_of_what_did_not_finish(write, tmp_path):
    write("a.ndjson", *RESULTS, FOOTER)
    write("b.ndjson", *RESULTS)
    words = [COMMAND, "report", "a.ndjson", "b.ndjson", "-o", "m.html"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert (done.stdout, done.stderr) == (
        "m.html: 2 implementations\n",
        "warning: the run of b.ndjson did not finish\n",
    )
    assert (tmp_path / "m.html").read_text().startswith("<!doctype html>")

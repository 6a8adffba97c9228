"""The page over implementations: what it shows, and that it needs nothing but itself."""

from __future__ import annotations

import time
from html.parser import HTMLParser

import pytest

from autograd_conformance.harness.reports import ndjson, reading
from autograd_conformance.harness.views import page
from autograd_conformance.reference.definitions import FLOATING
from autograd_conformance.selftests.support import reports
from autograd_conformance.selftests.support.reports import result
from autograd_conformance.selftests.support.warm import started

FAILURE = {"what": "a <b>bold</b> claim", "got": "1", "expected": "2", "call": "Call('Exp')", "script": "print(1 < 2)"}
RESULTS = [
    result("VJP-REF[Exp-cpu]", "fail", failure=FAILURE),
    result("VJP-REF[Sort-cpu]"),
    result("NIG-01[cpu]", "unsupported", reason="mine does not claim it"),
    result(
        "NIG-02[cpu]", "known", failure={"what": "w", "got": "g", "expected": "e"}, reason="a reason (a link; seen)"
    ),
    result("NIG-02/b[cpu]", "unsupported", reason="nor that"),
]
CLAIMS = {"clauses": ["NIG-01", "NIG-02"]}


@pytest.fixture
def write(tmp_path):
    def to(name, results=RESULTS, *, whole=True, implementation="mine", version="1.2", **header):
        about = {"name": implementation, "named": "folder/mine one.py", "version": version, "location": "/x"}
        lines = reports.lines(results, implementation=about, **CLAIMS, **header)
        return reports.write(tmp_path / name, lines if whole else lines[:-1])

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

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(" ".join(data.split()))

    @property
    def text(self):
        return " ".join(filter(None, self.words))


def made(*paths):
    return Found(page.html(reading.read_all(paths)))


@pytest.fixture
def found(write):
    return made(write("a.ndjson"), write("b.ndjson", RESULTS[1:2], whole=False, implementation="other"))


def test_it_is_whole_and_loads_nothing(write):
    found = made(write("a.ndjson"), write("b.ndjson", RESULTS[1:]))
    assert found.open == []
    assert not [tag for tag, _ in found.tags if tag in ("script", "link", "img", "iframe", "image")]
    assert not [attrs for _, attrs in found.tags if attrs.keys() & {"src", "onclick", "onload"}]
    assert {attrs["href"][0] for _, attrs in found.tags if "href" in attrs} == {"#"}
    assert [a["content"] for _, a in found.tags if "content" in a and "default-src" in a["content"]] == [
        "default-src 'none'; style-src 'unsafe-inline'"
    ]


def test_every_click_leads_somewhere(write):
    found = made(write("a.ndjson"), write("b.ndjson"))
    ids = [attrs["id"] for _, attrs in found.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    targets = {a.get("popovertarget") or a.get("href", "#")[1:] for _, a in found.tags} - {""}
    assert targets == set(ids)


def test_it_shows_outcome_counterexample_and_reproduction(found):
    for shown in (
        "mine 1.2", "fails", "did not finish (every test id has a", "1/2 fail",
        "a <b>bold</b> claim", "Call('Exp')", "print(1 < 2)", "a reason (a link; seen)", "! known",
        "autograd-conformance run 'folder/mine one.py' -n 0 --properties VJP-REF --functions Exp --device cpu "
        "--profile gate --seed 0",
    ):  # fmt: skip
        assert shown in found.text, shown
    assert "bold" not in {tag for tag, _ in found.tags}


def test_what_was_replayed_is_replayed_again(write):
    text = made(write("a.ndjson", replay="old one.ndjson", profile="replay")).text
    assert "--profile replay --seed 0 --replay 'old one.ndjson'" in text


def test_why_there_is_no_result_is_reported(write, found):
    assert "mine does not claim it" in [attrs.get("title") for _, attrs in found.tags]
    assert found.text.count("not reached") == 2
    assert "not selected" not in found.text
    part = made(write("a.ndjson"), write("b.ndjson", RESULTS[1:2], implementation="other", shard="2/7")).text
    assert part.count("in another shard") == 2
    assert "shard 2/7, gate" in part
    finished = made(write("a.ndjson"), write("b.ndjson", RESULTS[1:2], implementation="other")).text
    assert finished.count("not selected") == 2
    assert "not reached" not in finished


def test_every_outcome_has_a_sign_of_its_own():
    assert set(page.SIGNS) == set(page.OUTCOMES)
    assert len(set(page.SIGNS.values())) == len(page.SIGNS)


def test_runs_of_one_implementation_are_next_to_each_other(write):
    given = [
        write("a.ndjson", version="1.9", started="2026-01-01T00:00:00+00:00"),
        write("b.ndjson", implementation="other"),
        write("c.ndjson", version="1.9", started="2026-02-01T00:00:00+00:00"),
    ]
    columns = "1.9 2026-01-01 00:00 1.9 2026-02-01 00:00 1.2"
    assert f"what must hold mine other {columns}" in made(*given).text


def test_a_report_of_an_older_format_is_shown(write):
    path = write("a.ndjson", version="1.1")
    text = path.read_text().replace(f'"schema": {ndjson.SCHEMA}', '"schema": 1')
    path.write_text(text.replace('"replay": null, ', ""))
    text = made(path, write("b.ndjson")).text
    assert "mine 1.1 Python 3.11.7 fails ✓" in text


def test_a_report_that_was_changed_is_not_trusted(write):
    path = write("a.ndjson")
    path.write_text(path.read_text().replace('"outcome": "fail"', '"outcome": "pass"'))
    assert "has a damaged report (it was changed after the run wrote it)" in made(path).text


def test_a_page_of_eight_is_small_and_made_quickly(write):
    functions = [f"F{n}" for n in range(30)]
    claims = list(page.PROPERTIES)
    failure = {**FAILURE, "script": "print('x')\n" * 60}
    lines = [
        {**result(f"{claim}[{function}-cpu]", "known", failure=failure), "worst_by_dtype": dict.fromkeys(FLOATING, 0.1)}
        if number % 20 == 0 else {**result(f"{claim}[{function}-cpu]"), "worst_by_dtype": dict.fromkeys(FLOATING, 0.1)}
        for number, (claim, function) in enumerate((c, f) for c in claims for f in functions)
    ]  # fmt: skip
    paths = [write(f"{n}.ndjson", lines, implementation=f"implementation-{n}") for n in range(8)]
    before = time.process_time()
    text = page.html(reading.read_all(paths))
    assert time.process_time() - before < 5
    assert len(text.encode()) < 5_000_000


# The command.


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ((), "give the reports"),
        (("none.ndjson",), "none.ndjson cannot be read"),
        (("page.txt",), "page.txt is not a report"),
        (("empty.ndjson",), "empty.ndjson has no results"),
        (("a.ndjson", "-o", "nowhere/m.html"), "cannot be written to nowhere/m.html"),
        (("a.ndjson", "--output"), "--output"),
    ],
)
def test_mistakes_are_reported_in_a_sentence(write, tmp_path, words, shown):
    write("a.ndjson")
    write("empty.ndjson", [])
    (tmp_path / "page.txt").write_text("text\n")
    done = started("report", *words, folder=tmp_path)
    assert done.returncode == 2
    assert shown in done.stderr
    assert not (tmp_path / "matrix.html").exists()


def test_the_command_writes_the_page_and_warns_of_what_did_not_finish(write, tmp_path):
    write("a.ndjson")
    write("b.ndjson", whole=False)
    done = started("report", "a.ndjson", "b.ndjson", "-o", "m.html", folder=tmp_path)
    assert (done.stdout, done.stderr) == (
        "m.html: 2 runs of 1 implementation\n",
        "warning: the run of b.ndjson did not finish: every test id has a result, but its last line is missing\n",
    )
    assert (tmp_path / "m.html").read_text().startswith("<!doctype html>")

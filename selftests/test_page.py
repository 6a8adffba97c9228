"""The page over implementations: what it shows, and that it needs nothing but itself."""

from __future__ import annotations

import re
import time
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from autograd_conformance.harness.reports import history, ndjson, reading
from autograd_conformance.harness.views import page, plots
from autograd_conformance.reference.definitions import FLOATING
from autograd_conformance.selftests import reports
from autograd_conformance.selftests.reports import result
from autograd_conformance.selftests.warm import started

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
    one = write("a.ndjson", [{**RESULTS[0], "worst_by_dtype": {"float64": 0.2}}, *RESULTS[1:]])
    found = made(one, write("b.ndjson", RESULTS[1:]))
    assert "svg" in {tag for tag, _ in found.tags}
    assert found.open == []
    assert not [tag for tag, _ in found.tags if tag in ("script", "link", "img", "iframe", "image")]
    assert not [attrs for _, attrs in found.tags if attrs.keys() & {"src", "onclick", "onload"}]
    assert {attrs["href"][0] for _, attrs in found.tags if "href" in attrs} == {"#"}
    assert [a["content"] for _, a in found.tags if "content" in a and "default-src" in a["content"]] == [
        "default-src 'none'; style-src 'unsafe-inline'"
    ]


def test_every_click_leads_somewhere(write):
    found = made(
        write("a.ndjson", [{**line, "worst_by_dtype": {"float64": 0.2}} for line in RESULTS]), write("b.ndjson")
    )
    ids = [attrs["id"] for _, attrs in found.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    targets = {a.get("popovertarget") or a.get("href", "#")[1:] for _, a in found.tags} - {""}
    shapes = {f"m-{dtype}" for dtype in FLOATING}
    assert targets | shapes == set(ids)


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


def test_every_outcome_and_change_has_a_sign_of_its_own():
    assert set(page.SIGNS) == set(page.OUTCOMES)
    signs = [*page.SIGNS.values(), *history.SIGNS.values()]
    assert len(set(signs)) == len(signs)


# History.

OTHER = [result("VJP-REF[Exp-cpu]"), *RESULTS[1:3], result("NIG-02[cpu]"), result("NIG-03[cpu]")]


def test_runs_are_in_the_order_of_versions_and_time(write):
    given = [
        write("a.ndjson", version="1.10", started="2026-01-01T00:00:00+00:00"),
        write("b.ndjson", version="1.9", started="2026-02-01T00:00:00+00:00"),
        write("c.ndjson", implementation="other"),
        write("d.ndjson", version="1.9", started="2026-01-01T00:00:00+00:00"),
        write("e.ndjson", version="nobody knows"),
        write("f.ndjson", version="1.9+local", started="2026-01-01T00:00:00+00:00"),
    ]
    found = history.ordered(reading.read_all(given))
    assert "".join(run.path.stem for run in found) == "edbfac"
    text = made(*given).text
    columns = "nobody knows 1.9 2026-01-01 00:00 1.9 2026-02-01 00:00 1.9+local 1.10 1.2"
    assert f"what must hold mine other {columns}" in text


def test_what_changed_is_reported_with_sign_and_word(write):
    old = write("a.ndjson", version="1.1")
    new = write("b.ndjson", OTHER, version="1.2", profile="nightly")
    (step,) = history.steps(history.ordered(reading.read_all([new, old])))
    assert [(change.id, change.kind) for change in step.changes] == [
        ("VJP-REF[Exp-cpu]", "recovered"), ("NIG-02[cpu]", "changed"), ("NIG-03[cpu]", "new"),
        ("NIG-02/b[cpu]", "gone"),
    ]  # fmt: skip
    text = made(new, old).text
    for shown in (
        "mine: 1.1 → 1.2", "▲ 1 recovered ◆ 1 changed + 1 new ○ 1 gone",
        "The runs differ in profile (gate, then nightly).",
        "▲ recovered VJP-REF[Exp-cpu] : fail → pass", "○ gone NIG-02/b[cpu] : unsupported → no result",
    ):  # fmt: skip
        assert shown in text, shown
    # The cells of the newer run.
    assert re.search(r"✓ 2/2 pass ▲ 1 recovered", text)
    assert re.search(r"VJP-REF gradients equal .{0,60} ✗ 1/2 fail (?!▼)", text)
    back = made(write("a.ndjson", OTHER, version="1.1"), write("b.ndjson", version="1.2")).text
    assert "▼ broke VJP-REF[Exp-cpu] : pass → fail; a <b>bold</b> claim: got 1, expected 2" in back
    assert "✗ 1/2 fail ▼ 1 broke" in back


@pytest.mark.parametrize("unfinished", ["old", "new"])
def test_what_a_run_did_not_reach_is_neither_new_nor_gone(write, unfinished):
    few, all_ = (write("a.ndjson", RESULTS[:2], version="1"), write("b.ndjson", version="2"))
    if unfinished == "new":
        few, all_ = (write("b.ndjson", version="1"), write("a.ndjson", RESULTS[:2], version="2"))
    (step,) = history.steps(reading.read_all([few, all_]))
    assert {change.kind for change in step.changes} == ({"gone"} if unfinished == "new" else {"new"})
    changed = {"version": "1" if unfinished == "old" else "2"}
    cut = write("c.ndjson", RESULTS[:2], whole=False, **changed)
    pair = [cut, all_] if unfinished == "old" else [few, cut]
    (step,) = history.steps(reading.read_all(pair))
    assert step.changes == ()
    text = made(*pair).text
    assert "Nothing changed." in text
    assert "did not finish: every test id has a result, but its last line is missing." in text


def test_two_implementations_have_no_history(write):
    found = made(write("a.ndjson"), write("b.ndjson", OTHER, implementation="other"))
    assert "What changed" not in found.text


def test_many_changes_are_cut(write, monkeypatch):
    monkeypatch.setattr(page, "CHANGES", 2)
    text = made(write("a.ndjson", version="1"), write("b.ndjson", OTHER, version="2")).text
    assert text.count("→") == 3  # of the heading, and of two changes
    assert "and 2 more, in the tables" in text


def test_a_report_of_an_older_format_is_shown(write):
    path = write("a.ndjson", version="1.1")
    text = path.read_text().replace(f'"schema": {ndjson.SCHEMA}', '"schema": 1')
    path.write_text(text.replace('"replay": null, ', ""))
    text = made(path, write("b.ndjson", OTHER)).text
    assert "mine 1.1 Python 3.11.7 fails ✓" in text


def test_a_report_that_was_changed_is_not_trusted(write):
    path = write("a.ndjson")
    path.write_text(path.read_text().replace('"outcome": "fail"', '"outcome": "pass"'))
    assert "has a damaged report (it was changed after the run wrote it)" in made(path).text


# Errors against their bounds.


def test_errors_are_plotted_and_told(write):
    lines = [
        {**result("VJP-REF[Exp-cpu]"), "worst_by_dtype": {"float64": 0.1, "bfloat16": 0.0}},
        {**result("VJP-REF[Sort-cpu]"), "worst_by_dtype": {"float64": 0.02, "float32": 1e300}},
        {**result("FWD-VALUE[Sort-cpu]"), "worst_by_dtype": {"complex64": 1.0}},
        result("VJP-FD[Sort-cpu]"),
    ]
    found = made(write("a.ndjson", lines), write("b.ndjson", lines[:1], implementation="other"))
    # The legend's marks have no tooltip and come first.
    dots = [attrs for tag, attrs in found.tags if tag == "use"][len(FLOATING) :]
    assert [(dot["href"], dot["x"]) for dot in dots] == [
        ("#m-complex64", "73.0%"), ("#m-float64", "50.0%"), ("#m-float32", "96.0%"), ("#m-bfloat16", "4.0%"),
        ("#m-float64", "50.0%"), ("#m-bfloat16", "4.0%"),
    ]  # fmt: skip
    assert len({dot["class"] for dot in dots[1:4]}) == len({dot["y"] for dot in dots[1:4]}) == 3
    assert "mine 1.2 0.1 Exp 1e+300 Sort — 0 Exp — —" in found.text
    assert "other 1.2 0.1 Exp — — 0 Exp — —" in found.text
    assert "VJP-FD gradients agree" not in found.text.rpartition("Errors against their bounds")[2]


def test_no_plot_without_measurements(found):
    assert "Errors against their bounds" not in found.text


def test_the_axis_is_logarithmic():
    places = [plots.place(ratio) for ratio in (0.001, 0.01, 0.1, 1, 10)]
    assert [round(b - a, 6) for a, b in pairwise(places)] == [23] * 4
    assert (plots.place(0), plots.place(1e9)) == (places[0], places[-1])
    assert dict(plots.ticks())[places[3]] == "bound"


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

"""Which reports are complete."""

from __future__ import annotations

import pytest

from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.reports import baseline, ndjson
from autograd_conformance.selftests.support.reports import IDS, lines, result, write

WHOLE = [result(id) for id in IDS]


def doubled(found):
    return [*found[:2], *found[1:]]


BROKEN = {
    "no footer": (lambda found: found[:-1], "did not finish: every test id has a result"),
    "stopped at once": (
        lambda found: changed(found[:1], 0, expected=0),
        "it ended before the first test",
    ),
    "stopped early": (lambda found: changed(found[:1], 0, expected=None), "it ended before the first test"),
    "stopped before": (lambda found: found[:-2], "did not finish: 1 of"),
    "a line missing": (lambda found: [*found[:2], *found[3:]], "3 results, but its header announces 4"),
    "an id twice": (doubled, " twice"),
    "an id instead of another": (lambda found: [*found[:2], found[1], *found[3:]], " twice"),
    "two runs": (lambda found: found * 2, "2 headers"),
    "a run behind half of one": (lambda found: found[:3] + found, "2 headers"),
    "something behind the footer": (lambda found: [*found, found[1]], "lines after its footer"),
    "another order": (lambda found: [found[0], *found[-2:0:-1], found[-1]], "was changed"),
    "another outcome": (lambda found: changed(found, 1, outcome="emulated"), "was changed"),
    "another reason": (lambda found: changed(found, 1, reason="x"), "was changed"),
    "another seed": (lambda found: changed(found, 0, seed=1), "was changed"),
    "another verdict": (lambda found: changed(found, -1, verdict="fails"), "was changed"),
    "another format": (lambda found: changed(found, 0, schema=1), "format 1"),
    "another expectation": (lambda found: changed(found, 0, expected=5), "4 results, but its header announces 5"),
    "an unknown line": (lambda found: [*found[:2], {"kind": "x"}, *found[2:]], "not a header, a result or a footer"),
}


def changed(found, place, **fields):
    found = list(found)
    found[place] = {**found[place], **fields}
    return found


def test_a_whole_report_is_complete(tmp_path):
    found = lines(WHOLE)
    assert not ndjson.flaw(found)
    assert not ndjson.flaw(ndjson.read(write(tmp_path / "r", found)))


@pytest.mark.parametrize("damage", BROKEN)
def test_what_is_not_whole_is_not_complete(said, base, tmp_path, damage):
    assert base
    damaged, reason = BROKEN[damage][0](lines(WHOLE)), BROKEN[damage][1]
    assert reason in str(ndjson.flaw(damaged))
    write(tmp_path / "new.ndjson", damaged)
    for words in (
        ("compare", "base.txt", "new.ndjson"),
        ("accept", "new.ndjson"),
        ("compare", "new.ndjson", "old.ndjson"),
    ):
        status, out = said(*words)
        assert status == 2
        assert "new.ndjson" in out
    assert not (tmp_path / baseline.DEFAULT_PATH).exists()


def test_no_part_of_a_report_is_complete(tmp_path):
    path = write(tmp_path / "r", lines(WHOLE))
    text = path.read_bytes()
    for length in range(1, len(text), 11):
        path.write_bytes(text[:length])
        try:
            found = ndjson.read(path)
        except UsageProblem:
            assert b"\n" not in text[:length]
        else:
            assert ndjson.flaw(found)


def test_a_garbled_letter_is_seen(tmp_path):
    path = write(tmp_path / "r", lines(WHOLE))
    text = path.read_text()
    for place in range(0, len(text), 13):
        letter = "1" if text[place] == "0" else "0"
        path.write_text(text[:place] + letter + text[place + 1 :])
        try:
            found = ndjson.read(path)
        except UsageProblem:
            continue
        assert ndjson.flaw(found), text[place - 20 : place + 20]


def test_messages_with_any_character_survive(tmp_path):
    odd = "line\u2028separator \x85 \x0b \x1b[0m half \udcff pair \U0001f600"
    found = lines([result(IDS[0], "vacuous", reason=odd)])
    file = ndjson.ReportFile(tmp_path / "r")
    for line in found:
        file.write(line)
    file.close()
    assert ndjson.read(tmp_path / "r") == found
    assert not ndjson.flaw(ndjson.read(tmp_path / "r"))

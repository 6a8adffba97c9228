"""A listed deviation that passes: whether it is fixed, or its fault shows in another place, is said wherever it is."""

from __future__ import annotations

import pytest

from autograd_conformance.harness.reports import reading
from autograd_conformance.harness.views import describe, markdown, page, summary
from autograd_conformance.selftests.support.reports import HEADER, lines, result, write

GONE = result("COMPILE-02/argument[cpu]", "fixed", reason="the gradients are wrong (a link; seen)")
ELSEWHERE = [result("NIG-01[cpu]", "fail"), result("COMPILE-15[cpu]"), result("COMPILE-13[cpu]", "known")]
NEAR = [result("COMPILE-12[cpu]", "fail"), result("COMPILE-02/dirty[cpu]", "fail")]
REMOVE = "if nothing else fails, remove it from the list: the gradients are wrong"
LOOK = "others of COMPILE fail, and may be the same fault in another place, so look at them first: "


def _terminal(results, _):
    return "\n".join(summary.failures(results, HEADER))


def _of_report(view):
    def said(results, tmp_path):
        return view(reading.read(write(tmp_path / "r.ndjson", lines(results)))).replace("\\", "")

    return said


VIEWS = {
    "terminal": _terminal,
    "markdown": _of_report(markdown.text),
    "page": _of_report(lambda report: page.html([report])),
}


@pytest.mark.parametrize("view", VIEWS)
def test_what_fails_in_the_group_of_a_deviation_that_is_gone_comes_first(view, tmp_path):
    text = VIEWS[view]([GONE, *ELSEWHERE, *NEAR], tmp_path)
    assert f"{LOOK}COMPILE-02/dirty[cpu], COMPILE-12[cpu]; if this still passes when they hold" in text
    assert REMOVE not in text


@pytest.mark.parametrize("view", VIEWS)
def test_a_deviation_that_is_gone_alone_may_be_removed(view, tmp_path):
    text = VIEWS[view]([GONE, *ELSEWHERE], tmp_path)
    assert REMOVE in text
    assert "others of" not in text


def test_a_group_of_properties_is_that_of_all_with_its_first_word():
    gone = result("VJP-REF[Sort-cpu]", "fixed", reason="r")
    near = [result(f"VJP-CHAIN[F{n}-cpu]", "error") for n in range(7)] + [result("FWD-VALUE[Sort-cpu]", "fail")]
    text = describe.message(gone, [gone, *near])
    assert "others of VJP fail" in text
    assert text.count("VJP-CHAIN") == 5
    assert " and 2 more;" in text
    assert "FWD" not in text

"""Text that an implementation chooses: it reaches every reader as something to read, and ends no run."""

from __future__ import annotations

import os

import pytest

from autograd_conformance.harness import text
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.selftests.support.reports import FINDING, lines, result
from autograd_conformance.selftests.support.warm import started

# What ends a parallel run, clears a screen, sets a title, turns text round, hides it, or ends a line.
HOSTILE = "a\ud800\x1b[2J\x1b]0;owned\x07\u202eb\u2066\x9b31m\x00\rc\u2028d\ufeff\U000e0041"
READABLE = r"a\ud800\x1b[2J\x1b]0;owned\x07\u202eb\u2066\x9b31m\x00\rc\u2028d\ufeff\U000e0041"
ACTIVE = [c for c in HOSTILE if c not in "abcd[]2J0;ownedm31"]

ADAPTER = f"""
import sys

from autograd_conformance.implementations.model import ModelImplementation
from autograd_conformance.implementations.protocol import Environment

HOSTILE = {HOSTILE!r}


class Mine(ModelImplementation):
    name = "mine"
    calls = 0

    def environment(self):
        return Environment(HOSTILE, "/" + HOSTILE)

    def vjp(self, *args, **kwargs):
        # The smoke stage is let through.
        Mine.calls += "autograd_conformance.harness.probing.smoke" not in sys.orig_argv
        if Mine.calls > 30:
            raise ValueError(HOSTILE * 50_000)
        return super().vjp(*args, **kwargs)
"""


def verify_harmless(said):
    assert [c for c in ACTIVE if c in said.replace("\r\n", "\n")] == []
    # pytest colours nothing here.
    assert "\x1b" not in said


@pytest.mark.parametrize("workers", ["0", "1"])
def test_messages_versions_and_locations_are_shown(tmp_path, workers):
    (tmp_path / "mine.py").write_text(ADAPTER)
    words = ("--functions", "LLTM", "--properties", "VJP-REF", "-n", workers, "--markdown", "m.md")
    done = started("run", "mine.py", *words, folder=tmp_path)
    out, err = done.stdout, done.stderr
    assert done.returncode == 1, out + err
    assert READABLE in out
    for path in ("autograd-conformance.ndjson", "m.md"):
        verify_harmless((tmp_path / path).read_text(encoding="utf-8"))
        assert (tmp_path / path).stat().st_size < 100_000
    verify_harmless(out + err)
    header, line, _ = ndjson.read(tmp_path / "autograd-conformance.ndjson")
    assert header["implementation"]["version"] == READABLE
    # White space in a message becomes a blank.
    assert READABLE.partition(r"\r")[0] in line["failure"]["got"]
    assert line["failure"]["got"].endswith(" ...")
    assert len(line["failure"]["got"]) < text.LONGEST + 50


@pytest.mark.parametrize(("workers", "status"), [("0", 0), ("1", 2)])
def test_a_folder_may_have_a_name_that_is_not_utf_8(tmp_path, workers, status):
    folder = os.fsencode(tmp_path) + b"/\xff"
    os.mkdir(folder)
    words = ("model", "--functions", "LLTM", "--properties", "VJP-REF", "-n", workers)
    done = started("run", *words, folder=folder)
    assert done.returncode == status, done.stdout + done.stderr
    expected = f"Error: {tmp_path}/\\udcff is not UTF-8, and so cannot be sent to a worker; use another name, or no "
    assert done.stderr == (f"{expected}workers: -n 0\n" if status else "")


def test_a_hostile_report_is_harmless_to_who_compares_it(said, tmp_path):
    failed = result("VJP-REF[Exp-cpu]", "fail", failure=FINDING | {"got": HOSTILE, "call": HOSTILE})
    mine = {"name": "mine", "named": "mine.py", "version": HOSTILE, "location": HOSTILE}
    for name, line in (("old", result("VJP-REF[Exp-cpu]")), ("new", failed)):
        (tmp_path / f"{name}.ndjson").write_text(ndjson.text(lines([line], implementation=mine)))
    for words in (("compare", "old.ndjson", "new.ndjson"), ("report", "new.ndjson"), ("keep", "new.ndjson")):
        out = said(*words)[1]
        assert out
        verify_harmless(out)
    verify_harmless((tmp_path / "matrix.html").read_text())


OWN = f"""
import torch


class Bad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        raise ValueError({HOSTILE!r})
"""


def test_check_shows_them_as_well(tmp_path):
    (tmp_path / "ops.py").write_text(OWN)
    words = ("ops.py:Bad", "--arg", "float[n]", "--properties", "VJP-REF", "--report", "r")
    done = started("check", *words, folder=tmp_path, torch=True)
    out = done.stdout + done.stderr
    assert done.returncode in (1, 2), out
    assert r"\x1b[2J" in out
    verify_harmless(out)
    verify_harmless((tmp_path / "r").read_text())


def test_what_is_read_again_stays_whole():
    long = "x" * 2 * text.LONGEST
    cut = text.of_result({"id": long, "failure": {"call": long, "script": long, "got": long, "traceback": [long]}})
    assert (cut["id"], cut["failure"]["call"], cut["failure"]["script"]) == (long, long, long)
    assert cut["failure"]["got"] == cut["failure"]["traceback"][0] == f"{'x' * text.LONGEST} ... (8000 characters)"


def test_what_people_write_stays_as_it_is():
    written = "größer → 1e-3 ± ε\n\tx̂ 漢字 ✅ ⚠️ שלום"
    assert text.visible(written) == written

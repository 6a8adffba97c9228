"""What commands write: never over what is not their own, and whole or not at all."""

from __future__ import annotations

import os
import resource
import subprocess
import time

import pytest

from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.reports import files, ndjson
from autograd_conformance.selftests.conftest import COMMAND, OUTSIDE
from autograd_conformance.selftests.support.reports import FINDING, lines, result, write

CALL = "Call('Exp', args=(Tensor((2,), 'float64'),))"
FAILED = result("VJP-REF[Exp-cpu]", "fail", failure=FINDING | {"call": CALL})


@pytest.fixture
def folder(said, tmp_path):
    """A folder with a file of each kind."""
    write(tmp_path / "r.ndjson", lines([FAILED]))
    write(tmp_path / "held.ndjson", lines([result("VJP-REF[Exp-cpu]")]))
    write(tmp_path / "s1.ndjson", lines([], all_ids=["VJP-REF[Exp-cpu]"], shard="1/2"))
    write(tmp_path / "s2.ndjson", lines([result("VJP-REF[Exp-cpu]")], shard="2/2"))
    (tmp_path / "mine.py").write_text("Mine = None\n")
    (tmp_path / "receipt.json").write_text('{"install": []}\n')
    (tmp_path / "notes.md").write_text("# Notes\n\nthat matter\n")
    made = (
        ("accept", "held.ndjson", "-o", "base.txt"),
        ("keep", "r.ndjson", "--corpus", "kept.txt"),
        ("report", "r.ndjson", "-o", "page.html"),
        ("export", "r.ndjson", "--markdown", "m.md"),
    )
    for words in made:
        assert said(*words)[0] == 0, words
    return tmp_path


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


OTHERS = ("r.ndjson", "base.txt", "kept.txt", "page.html", "m.md", "mine.py", "notes.md")
COMMANDS = {
    "r.ndjson": ("run", "model", "--functions", "Exp", "--report"),
    "base.txt": ("accept", "held.ndjson", "-o"),
    "kept.txt": ("keep", "held.ndjson", "--corpus"),
    "page.html": ("report", "held.ndjson", "-o"),
    "m.md": ("export", "held.ndjson", "--markdown"),
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("own", COMMANDS)
def test_a_file_of_another_kind_is_not_overwritten(said, folder, own, other):
    if own == other:
        return
    before = contents(folder)
    status, out = said(*COMMANDS[own], other)
    assert status == 2
    assert out.splitlines()[-1].startswith("Error: ")
    assert other in out.splitlines()[-1]
    assert contents(folder) == before


@pytest.mark.parametrize("own", [own for own in COMMANDS if own != "r.ndjson"])
@pytest.mark.parametrize("old", [None, ""], ids=["own", "empty"])
def test_an_old_file_of_the_same_kind_is_overwritten(said, folder, own, old):
    if old is not None:
        (folder / own).write_text(old)
    os.chmod(folder / own, 0o640)
    before = contents(folder)
    assert said(*COMMANDS[own], own)[0] == 0
    after = contents(folder)
    assert {name for name in after if after[name] != before.get(name)} <= {own}
    # A corpus grows: the report that is kept has nothing for it.
    assert after[own] != before[own] or own == "kept.txt" or (own, old) == ("base.txt", None)
    assert (folder / own).stat().st_mode & 0o777 == 0o640


INPUTS = (
    (("report", "r.ndjson", "-o"), "r.ndjson"),
    (("accept", "held.ndjson", "-o"), "held.ndjson"),
    (("keep", "r.ndjson", "--corpus"), "r.ndjson"),
    (("export", "r.ndjson", "--markdown"), "r.ndjson"),
    (("merge", "s1.ndjson", "s2.ndjson", "-o"), "s2.ndjson"),
    (("run", "model", "--corpus", "kept.txt", "--report"), "kept.txt"),
    (("run", "model", "--baseline", "base.txt", "--report"), "base.txt"),
    (("run", "model", "--profile", "replay", "--replay", "r.ndjson", "--report"), "r.ndjson"),
    (("run", "model", "--shard", "1/2", "--balance", "r.ndjson", "--report"), "r.ndjson"),
    (("run", "model", "--expect", "receipt.json", "--report"), "receipt.json"),
    (("run", "mine.py", "--report"), "mine.py"),
    (("check", "mine.py", "--report"), "mine.py"),
)
WAYS = {
    "itself": lambda path: path.name,
    "roundabout": lambda path: f"../{path.parent.name}/{path.name}",
    "symlink": lambda path: (path.with_name("link").symlink_to(path.name), "link")[1],
    "hard link": lambda path: (os.link(path, path.with_name("link")), "link")[1],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("words", "input"), INPUTS, ids=lambda value: " ".join(value) if type(value) is tuple else "")
def test_an_input_is_not_overwritten(said, folder, words, input, way):
    target = WAYS[way](folder / input)
    before = contents(folder)
    status, out = said(*words, target)
    assert status == 2
    assert f"{target} would overwrite " in out.splitlines()[-1]
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("one", "other"),
    [("x", "x"), ("x", "../{}/x"), ("x", "X"), ("caf\u00e9", "cafe\u0301")],
)
def test_two_outputs_do_not_have_one_name(said, folder, one, other):
    before, other = contents(folder), other.format(folder.name)
    status, out = said("run", "model", "--report", one, "--markdown", other)
    assert (status, contents(folder)) == (2, before)
    assert f"--markdown {other} would overwrite the report; name another file" in out


def test_names_that_differ_are_two_files(said, folder):
    (folder / "X").write_bytes((folder / "m.md").read_bytes())
    assert said("export", "r.ndjson", "--markdown", "x")[0] == 0
    assert (folder / "x").read_bytes() == (folder / "X").read_bytes()


@pytest.mark.parametrize("option", ["--report", "--markdown"])
def test_a_protected_file_is_left_alone_also_by_root(said, folder, option):
    path = folder / ("r.ndjson" if option == "--report" else "m.md")
    path.chmod(0o444)
    before = contents(folder)
    words = ("run", "model", "--functions", "Exp") if option == "--report" else ("export", "held.ndjson")
    status, out = said(*words, option, path.name)
    assert (status, contents(folder)) == (2, before)
    assert f"cannot be written to {path.name}: permission denied; choose another file with {option} FILE" in out


@pytest.mark.parametrize("place", ["/dev/stdout", "/dev/null", "/dev/full", "pipe"])
def test_a_report_is_a_file_that_can_be_read_again(fast, folder, place):
    os.mkfifo(folder / "pipe")
    words = [fast, "run", "model", "--functions", "Exp", "--report", place]
    expected = f"cannot be written to {place}: it is not a file of its own; choose another file with --report FILE"
    with (folder / "out").open("wb") as file:
        for out in (subprocess.PIPE, file):
            done = subprocess.run(words, cwd=folder, env=OUTSIDE, stdout=out, stderr=subprocess.PIPE, text=True)
            assert (done.returncode, done.stderr) == (2, f"Error: the report {expected}\n")


def test_an_export_may_go_to_stdout(fast, folder):
    done = subprocess.run(
        [fast, "export", "r.ndjson", "--markdown", "/dev/stdout"], cwd=folder, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, (folder / "m.md").read_bytes())
    with (folder / "out.md").open("wb") as out:
        done = subprocess.run([fast, "export", "r.ndjson", "--markdown", "/dev/stdout"], cwd=folder, stdout=out)
    assert (done.returncode, (folder / "out.md").read_bytes()) == (0, (folder / "m.md").read_bytes())


FULL = [(*words, name) for name, words in COMMANDS.items() if words[0] != "run"]
FULL += [(*words, "new") for words in (*COMMANDS.values(), ("merge", "s1.ndjson", "s2.ndjson", "-o"))]


@pytest.mark.parametrize("words", FULL, ids=" ".join)
def test_a_full_disk_leaves_what_was_there(fast, folder, words):
    if words[0] == "keep":
        words = ("keep", "r.ndjson", *words[2:])
    before = contents(folder)
    done = subprocess.run(
        [fast, *words], cwd=folder, env=OUTSIDE, capture_output=True, text=True, timeout=300, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20)),
    )  # fmt: skip
    assert done.returncode == 2, done.stdout + done.stderr
    said = done.stderr if words[0] != "run" else done.stdout
    assert f"cannot be written to {words[-1]}: File too large" in said
    assert "Traceback" not in done.stdout + done.stderr
    assert contents(folder) == before


def test_a_file_system_without_room_leaves_nothing(fast, folder):
    """A full file system of a few pages."""
    place = folder / "full"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", place], capture_output=True)
    if mounted.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        (place / "filler").write_bytes(bytes(12_000))
        with (place / "filler").open("ab", buffering=0) as filler, pytest.raises(OSError, match="No space"):
            filler.writelines(bytes(512) for _ in range(100))
        words = [fast, "export", "r.ndjson", "--markdown", "full/x"]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
        expected = "Error: the file of --markdown cannot be written to full/x: No space left on device"
        assert (done.returncode, done.stderr.partition(";")[0]) == (2, expected)
        assert [path.name for path in place.iterdir()] == ["filler"]
    finally:
        subprocess.run(["umount", place], check=True)


def test_a_new_report_leaves_a_hard_link_to_the_old_one(tmp_path):
    write(tmp_path / "r", lines([FAILED]))
    os.link(tmp_path / "r", tmp_path / "kept")
    before = (tmp_path / "kept").read_bytes()
    file = ndjson.ReportFile(tmp_path / "r")
    assert (tmp_path / "r").read_bytes() == before
    file.write({"kind": "header"})
    assert (tmp_path / "r").read_bytes() == b'{"kind": "header"}\n'
    file.close()
    assert (tmp_path / "kept").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "r"]


def test_a_report_is_written_through_a_link(tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "latest").symlink_to("runs/3")
    files.Output(tmp_path / "latest", files.REPORT).write("{}")
    assert (tmp_path / "latest").is_symlink()
    assert (tmp_path / "runs" / "3").read_text() == "{}"


def test_a_loop_of_links_is_a_sentence(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(UsageProblem, match=r"cannot be written to .*/a: "):
        files.verify([files.Output(tmp_path / "a", files.REPORT)], {})


MISTAKES = {
    "--functions Nope": "no Function matches 'Nope'",
    "--suite nope": "unknown suite 'nope'",
    "--device cuda:9": "model has no device 'cuda:9' on this machine",
    "--markdown no/x": "there is no folder no",
    "-- --nope": "unrecognized arguments: --nope",
}


def test_two_runs_in_one_folder_do_not_share_a_report(command, tmp_path):
    path = tmp_path / ndjson.DEFAULT_PATH
    first = subprocess.Popen(
        [COMMAND, "run", "model", "--profile", "quick", "--seed", "1", "-n", "0"], cwd=tmp_path, env=OUTSIDE,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        second = command("model", "--functions", "Exp", "-n", "0", "--markdown", "second.md", folder=tmp_path)
        expected = f"{path.name}: another run is writing it; choose another file with --report FILE"
        assert second.status == 2
        assert second.err.strip() == f"ERROR: the report cannot be written to {expected}"
        assert not (tmp_path / "second.md").exists()
        # What is wrong with the command comes first.
        for words, problem in MISTAKES.items():
            mistaken = command("model", *words.split(), folder=tmp_path)
            assert (mistaken.status, problem in mistaken.err) == (2, True), mistaken.err
            assert "another run" not in mistaken.err
        assert ndjson.read(path)[0]["implementation"]["name"] == "model"
        assert len(ndjson.read(path)[0]["functions"]) > 1
        assert command("model", "--functions", "Exp", "-n", "0", "--report", "r", folder=tmp_path).status == 0
    finally:
        first.terminate()
        first.communicate()
    # The report of a run that was ended belongs to nobody.
    assert command("model", "--functions", "Exp", "-n", "0", folder=tmp_path).status == 0

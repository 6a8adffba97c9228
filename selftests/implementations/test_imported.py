"""What an adapter imports belongs to the identity of a run, and an import leaves the working folder as it is."""

from __future__ import annotations

import ctypes
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from autograd_conformance.harness.provenance.imported import Imports
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.selftests.gate.attacking import checked
from autograd_conformance.selftests.support.warm import started

# How an adapter comes to the module beside it: when it is imported, or in a function that no import runs.
AT_ONCE = "import helper"
LATER = "def later():\n    import helper\n    return helper"


def names(folder, text, **files):
    """What an adapter with this text is found to import from the files beside it."""
    (folder / "importing.py").write_text(text)
    for name, content in files.items():
        path = folder / f"{name.replace('__', '/').replace('package', '__init__')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    return Imports((folder / "importing.py",)).written()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (AT_ONCE, {"helper", "deep"}),
        (LATER, {"helper", "deep"}),
        ("from helper import x as y", {"helper", "deep"}),
        ("from . import helper", {"helper", "deep"}),
        ("import parts.one", {"parts.one"}),
        ("from parts import one", {"parts.one"}),
        ("import numpy, os, pytest, absent.one", set()),
        ("from autograd_conformance.implementations import model", set()),
        ("import absent, deep", {"deep", "helper"}),
        ("def (", set()),
    ],
)
def test_what_an_adapter_imports_is_found_from_what_is_written(tmp_path, text, expected):
    found = names(tmp_path, text, helper="import deep, importing", deep="import helper", parts__one="", unused="")
    assert found.keys() == expected


def test_a_package_that_has_a_digest_of_its_own_is_left_out(tmp_path):
    found = names(tmp_path, "import parts.one, helper", helper="", parts__package="", parts__one="")
    assert found.keys() == {"helper", "parts", "parts.one"}
    build = (tmp_path / "parts" / "__init__.py",)
    assert Imports((tmp_path / "importing.py",), build).written().keys() == {"helper"}


def test_a_module_that_no_text_names_and_a_library_are_found_in_memory(tmp_path, monkeypatch):
    (tmp_path / "patched_for_imports.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    __import__("".join(("patched_for", "_imports")))
    library = tmp_path / "lib_for_imports.so"
    shutil.copy(next(Path(np.__file__).parent.rglob("_multiarray_umath*.so")), library)
    found = Imports((), ()).all()
    assert "patched_for_imports" in found
    assert "lib_for_imports.so" not in found
    try:
        kept = ctypes.CDLL(str(library))
    except OSError:
        pytest.skip("the copy of a library cannot be loaded here")
    assert kept is not None
    if sys.platform == "linux":
        assert "lib_for_imports.so" in Imports((), ()).all()
    assert not [name for name in found if name.startswith(("numpy", "autograd_conformance.", "os.", "libpython"))]


def test_a_changed_helper_is_neither_resumed_nor_merged(tmp_path):
    (tmp_path / "helper.py").write_text("FACTOR = 1")
    report, how = tmp_path / "autograd-conformance.ndjson", LATER
    for shard in ("1/2", "2/2"):
        assert checked(tmp_path, "-n", "0", "--shard", shard, "--report", shard[0], at_import=how).returncode == 0
    assert checked(tmp_path, "-n", "1", at_import=how).returncode == 0
    assert ndjson.read(report)[0]["imports"].keys() == {"helper"}
    report.write_text("".join(report.read_text().splitlines(keepends=True)[:2]))
    interrupted = report.read_bytes()

    (tmp_path / "helper.py").write_text("FACTOR = 2")
    done = checked(tmp_path, "-n", "0", "--resume", report.name, at_import=how)
    assert (done.returncode, report.read_bytes()) == (2, interrupted)
    assert "cannot be resumed: its module helper is " in done.stderr
    assert checked(tmp_path, "-n", "0", "--shard", "2/2", "--report", "2", at_import=how).returncode == 0
    done = started("merge", "1", "2", "-o", "all", folder=tmp_path)
    assert done.returncode == 2
    assert "are not of the same run: module helper is " in done.stderr

    # The right twins: the helper of the first parts.
    (tmp_path / "helper.py").write_text("FACTOR = 1")
    assert checked(tmp_path, "-n", "0", "--shard", "2/2", "--report", "2", at_import=how).returncode == 0
    assert started("merge", "1", "2", "-o", "all", folder=tmp_path).returncode == 0
    done = checked(tmp_path, "-n", "0", "--resume", report.name, at_import=how)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not ndjson.flaw(ndjson.read(report))


@pytest.mark.parametrize("workers", ["0", "1"])
def test_an_import_may_change_the_working_folder(tmp_path, workers):
    """The relative names of the adapter and of the report stay what they are."""
    done = checked(tmp_path, "-n", workers, at_import="os.chdir('/')")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "autograd-conformance.ndjson").is_file()

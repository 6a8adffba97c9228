"""The identity of a run: its id, and the build that it checks."""

from __future__ import annotations

import pytest

from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.provenance import identity


@pytest.mark.parametrize(
    ("given", "environment", "id"),
    [
        (None, {}, None),
        ("mine", {"GITHUB_RUN_ID": "7"}, "mine"),
        (None, {"GITHUB_RUN_ID": "7"}, "github 7"),
        (None, {"CI_PIPELINE_ID": "8", "CI_JOB_ID": "9"}, "gitlab 8"),
        (None, {"SLURM_ARRAY_JOB_ID": "8", "SLURM_JOB_ID": "9"}, "slurm 8"),
    ],
)
def test_the_jobs_of_a_run_have_one_id(given, environment, id):
    assert identity.run_id(given, environment) == id


@pytest.mark.parametrize("given", ["", " ", "a\nb", "\x1b[2J", "x" * 300])
def test_an_odd_run_id_is_refused(given):
    with pytest.raises(UsageProblem, match="is no id"):
        identity.run_id(given, {})


def test_a_build_is_known_by_its_files(tmp_path):
    def build():
        return identity.build.__wrapped__(str(tmp_path / "__init__.py"))

    (tmp_path / "__init__.py").write_text("1")
    seen = [build()]
    for name, text in (("a.py", "x"), ("a.py", "y"), ("_C.so", "1"), ("_C.so", "2"), ("lib.so.1", "1")):
        (tmp_path / name).write_text(text)
        seen.append(build())
    assert len(set(seen)) == len(seen)
    (tmp_path / "notes.txt").write_text("no code")
    assert build() == seen[-1]
    assert identity.build.__wrapped__(str(tmp_path / "none")) == ""


def test_a_native_module_brings_its_libraries_and_a_package_its_parts(tmp_path, monkeypatch):
    (tmp_path / "lib").mkdir()
    module, library, part = tmp_path / "core.so", tmp_path / "lib" / "it.dylib", tmp_path / "lib" / "__init__.py"
    for file in (module, library, part):
        file.write_text("1")

    def build(*locations):
        return identity.build.__wrapped__(*map(str, locations))

    before = build(module)
    library.write_text("2")
    assert build(module) != before
    assert build(module, part) != build(module)
    # A folder of packages is not one.
    monkeypatch.syspath_prepend(str(tmp_path))
    alone = build(module)
    library.write_text("3")
    assert build(module) == alone

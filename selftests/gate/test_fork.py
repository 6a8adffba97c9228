"""A fork is checked only if it is what was imported, and each of its regressions is named by its clause."""

from __future__ import annotations

import configparser
import hashlib
import json
import os
import pkgutil
import subprocess
import sys
from base64 import urlsafe_b64encode
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from autograd_conformance.harness import catalogue, cli
from autograd_conformance.harness.catalogue import PACKAGE
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.provenance import fork
from autograd_conformance.harness.reports import baseline, gate, ndjson
from autograd_conformance.harness.running import header
from autograd_conformance.harness.running.selection import Selection
from autograd_conformance.harness.testing.marks import claims_in
from autograd_conformance.implementations.protocol import Environment
from autograd_conformance.selftests.gate import forked
from autograd_conformance.selftests.support import warm

# What the regressions are about, and what they leave alone.
CHOICE = (
    "--properties", "NIG-*,ND-*,GRAD-*,ENG-02,CKPT-*,MAT-*,CLEAR-*", "--profile", "quick", "--seed", "0", "-n", "0",
    "--device", "cpu",
)  # fmt: skip

SHIPPED = PACKAGE / "implementations" / "baselines" / "torch-2.13.0.txt"


class Installed:
    """An environment of its own, over this one, with the fork."""

    def __init__(self, folder: Path, **which: bool) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
        self.python = next(p for p in (folder / "env/bin/python", folder / "env/Scripts/python.exe") if p.exists())
        shown = self._run("-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
        self.packages = Path(shown.stdout.strip())
        outer = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
        (self.packages / "outer.pth").write_text("".join(f"import site; site.addsitedir({p!r})\n" for p in outer))
        self.wheel = forked.wheel(folder, **which)
        self.installing = self._run(
            "-m", "autograd_conformance.harness.provenance.fork", "fork.json", FORK=str(self.wheel)
        )

    def _run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        constraints = str(PACKAGE / "constraints.txt")
        alone = {"PIP_NO_INDEX": "1", "PIP_CONSTRAINT": constraints, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        return subprocess.run(
            [self.python, *words], cwd=self.folder, env={**os.environ, **alone, **environment}, capture_output=True,
            text=True, timeout=900, check=False,
        )  # fmt: skip

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """The command in this environment."""
        return self._run("-c", "from autograd_conformance.harness.cli import main; main()", *words)


@pytest.fixture(scope="module")
def stock(command):
    """A run of the release that is installed, and the baseline that it makes."""
    pytest.importorskip("torch")
    run = command("torch", *CHOICE)
    base = run.path.parent / "base.txt"
    accepted = CliRunner().invoke(cli.main, ["accept", str(run.path), "-o", str(base)])
    assert accepted.exit_code == 0, run.out + accepted.output
    return run, base


@pytest.fixture(scope="module")
def fork_of_torch(stock, tmp_path_factory):
    """The fork, and the result of comparing it with the release."""
    installed = Installed(tmp_path_factory.mktemp("fork"))
    assert installed.installing.returncode == 0, installed.installing.stderr
    run = installed.command("run", "torch", *CHOICE, "--expect", "fork.json", "--baseline", str(stock[1]))
    return installed, run


def test_each_regression_is_named_by_its_clause(fork_of_torch):
    run = fork_of_torch[1]
    assert run.returncode == 1, run.stdout + run.stderr
    shown = [line.split()[1] for line in run.stdout.splitlines() if line.startswith("broken: ")]
    shown += [line.split()[0].rstrip(":") for line in run.stdout.splitlines() if " pass -> fail" in line]
    clauses = {id.partition("/")[0].partition("[")[0] for id in shown}
    assert clauses >= forked.REGRESSIONS.keys()
    # What a regression touches next to its clause is of the same group, except for a list of gradients.
    assert {clause.partition("-")[0] for clause in clauses} == {c.partition("-")[0] for c in forked.REGRESSIONS}


def test_the_release_has_none(stock):
    run, base = stock
    assert run.status == 0
    held = CliRunner().invoke(cli.main, ["compare", str(base), str(run.path)])
    assert held.exit_code == 0, held.output


def test_a_regression_is_shown_with_its_example_which_the_release_passes(fork_of_torch, stock, tmp_path):
    installed, _ = fork_of_torch
    words = ["compare", str(stock[1]), str(installed.folder / ndjson.DEFAULT_PATH)]
    found = CliRunner().invoke(cli.main, [*words, "--verify", warm.command(tmp_path / "released", torch=True)])
    assert found.exit_code == 1, found.output
    version = stock[0].header["implementation"]["version"]
    shown = [text for text in found.output.split("\n\n") if text.startswith("broken: ") and "  before: pass" in text]
    assert len(shown) > 3
    for text in shown:
        assert f"  before, with this counterexample: pass, on {version}\n" in text
        assert "  with: " in text


def test_the_report_says_what_was_imported(fork_of_torch):
    installed, run = fork_of_torch
    header = ndjson.read(installed.folder / ndjson.DEFAULT_PATH)[0]
    found = header["implementation"]["fork"]
    assert (found["name"], found["version"], found["url"]) == (forked.NAME, forked.VERSION, installed.wheel.as_uri())
    assert (found["modules"], found["others"]) == (3, 1)
    assert found["total"] > 100
    assert f"which is the fork {forked.NAME} {forked.VERSION} from {installed.wheel.as_uri()}: 3 of " in run.stdout


def test_the_release_in_the_place_of_the_fork_is_refused(tmp_path):
    pytest.importorskip("torch")
    installed = Installed(tmp_path, effective=False)
    run = installed.command("run", "torch", "--expect", "fork.json")
    assert run.returncode == 2
    assert f"no module of the fork {forked.NAME} {forked.VERSION} was imported: torch is" in run.stderr
    assert not (tmp_path / ndjson.DEFAULT_PATH).exists()


# A fork of a small package, in this process.

CODE = {"__init__.py": "from . import inner\n", "inner.py": "VALUE = 1\n", "lazy.py": ""}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A distribution ``mine`` with a package of another name, which is imported; how it may be changed before."""
    name = f"package_{tmp_path.name}".replace("-", "_")
    monkeypatch.syspath_prepend(tmp_path)

    def make(version="1+mine", files=CODE, listed=None, direct=None, distribution="mine"):
        (tmp_path / name).mkdir(exist_ok=True)
        for file, text in CODE.items():
            (tmp_path / name / file).write_text(text)
        info = tmp_path / f"{distribution}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        rows = listed if listed is not None else {f"{name}/{file}": text for file, text in files.items()}
        (info / "RECORD").write_text("".join(f"{path},sha256={digest(text)},\n" for path, text in rows.items()))
        if direct is not None:
            (info / "direct_url.json").write_text(json.dumps(direct))
        invalidate_caches()
        module = import_module(name)
        found = Environment("1", str(module.__file__))
        return SimpleNamespace(name="mine", environment=lambda: found)

    make.name = name
    yield make
    for module in [module for module in sys.modules if module.partition(".")[0] == name]:
        del sys.modules[module]


def digest(text):
    return urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@pytest.mark.parametrize("expected", ["mine", "Mine==1+mine", "mine>=1"])
def test_what_belongs_to_the_distribution_is_counted(package, expected):
    found = fork.verified(expected, package())
    assert found == fork.Fork("mine", "1+mine", "", modules=2, total=2, others=0)


def test_a_part_of_the_package_may_belong_to_it(package):
    found = fork.verified("mine", package(files={"inner.py": CODE["inner.py"]}))
    assert (found.modules, found.total) == (1, 2)


def test_one_that_is_used_where_it_is(package, tmp_path):
    direct = {"url": tmp_path.as_uri(), "dir_info": {"editable": True}}
    found = fork.verified("mine", package(listed={}, direct=direct))
    assert (found.modules, found.total, found.url) == (2, 2, tmp_path.as_uri())


@pytest.mark.parametrize(
    ("expected", "changes", "problem"),
    [
        ("mine", {"listed": {"other/__init__.py": ""}}, "no module of the fork mine 1+mine was imported: mine is 1"),
        ("mine", {"files": {**CODE, "inner.py": "VALUE = 2\n"}}, "was changed after the fork mine 1+mine had been"),
        ("mine==2", {}, "must be mine==2, but 1+mine is installed"),
        ("yours", {}, "the fork yours is not installed"),
        ("-r all", {}, "'-r all' must be NAME, NAME==VERSION or pip's report"),
        ("none.json", {}, "cannot be read from none.json: No such file or directory; give the FILE.json"),
    ],
)
def test_what_is_not_the_fork_is_refused(package, expected, changes, problem):
    implementation = package(**changes)
    with pytest.raises(UsageProblem) as raised:
        fork.verified(expected, implementation)
    assert problem in str(raised.value)


def test_a_module_that_came_from_elsewhere_is_refused(package):
    listed = {f"{package.name}/__init__.py": CODE["__init__.py"], f"shadow/{package.name}/inner.py": "VALUE = 2\n"}
    with pytest.raises(UsageProblem, match=rf"{package.name}\.inner was imported from .* instead of .*shadow"):
        fork.verified("mine", package(listed=listed))


def receipt(path, *found):
    installed = [{"metadata": {"name": name, "version": "1+mine"}, "requested": asked} for name, asked in found]
    path.write_text(json.dumps({"version": "1", "install": installed}))
    return str(path)


def test_what_pip_was_asked_for_is_expected(package, tmp_path):
    path, implementation = receipt(tmp_path / "fork.json", ("numpy", False), ("mine", True)), package()
    assert fork.verified(path, implementation).name == "mine"
    for found in ((), (("a", True), ("b", True)), (("mine", False),)):
        with pytest.raises(UsageProblem, match=r"a fork is one distribution, but by .* pip was asked to install"):
            fork.verified(receipt(tmp_path / "fork.json", *found), implementation)
    (tmp_path / "fork.json").write_text("[]")
    with pytest.raises(UsageProblem, match="it is not a report of pip install --report"):
        fork.verified(str(tmp_path / "fork.json"), implementation)


@pytest.mark.parametrize("version", ["2.13.0", "2.13.0+cpu", "2.13.0+cu130"])
def test_the_release_is_no_fork(package, version):
    installed = package(version=version, distribution="torch")
    torch = SimpleNamespace(name="torch", environment=installed.environment)
    with pytest.raises(UsageProblem, match=rf"not a fork, but the release torch {version.replace('+', '.')} itself"):
        fork.verified("torch", torch)


@pytest.mark.parametrize("changes", [{"version": "2.13.0+mine"}, {"version": "2.13.0", "direct": {"url": "file:///w"}}])
def test_one_of_its_name_may_be(package, changes):
    installed = package(distribution="torch", **changes)
    torch = SimpleNamespace(name="torch", environment=installed.environment)
    assert fork.verified("torch", torch).version == changes["version"]


# Installing one.


@pytest.fixture
def pip(monkeypatch, tmp_path):
    """Calls of pip, each with its words and the constraints that it was given."""
    calls = []

    def call(words, env):
        constraints = env["PIP_CONSTRAINT"]
        calls.append((words[4:], Path(constraints).read_text() if constraints else ""))
        receipt(Path(words[words.index("--report") + 1]), ("Torch", True))
        return 0

    monkeypatch.setattr(fork.subprocess, "call", call)
    (tmp_path / "pins").write_text("numpy==1\ntorch==2.13.0\ntorchvision==3\n")
    monkeypatch.setenv("PIP_CONSTRAINT", str(tmp_path / "pins"))
    return calls


def test_the_pins_hold_for_all_but_the_fork(pip, tmp_path):
    blank = tmp_path / "a fork.whl"
    blank.write_text("")
    for given, words in ((str(blank), [str(blank)]), ("-e 'x y'", ["-e", "x y"]), ("torch==9", ["torch==9"])):
        pip.clear()
        assert fork.install(given, tmp_path / "fork.json") == 0
        (trial, unbound), (real, pinned) = pip
        assert trial[-len(words) :] == real[-len(words) :] == words
        assert "--dry-run" in trial
        assert "--dry-run" not in real
        assert unbound == ""
        assert pinned == "numpy==1\ntorchvision==3\n"


def test_without_a_fork_it_says_what_to_set(capsys, monkeypatch):
    monkeypatch.setenv("FORK", " ")
    assert fork.main() == 2
    assert "FORK=mine.whl tox run -e fork" in capsys.readouterr().err


# What is shipped.


def test_tox_does_the_whole_exercise():
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(PACKAGE / "tox.ini")
    words = parser["testenv:fork"]["commands"].replace("{tox_root}{/}", "").replace("{/}", "/").split()
    assert PACKAGE / words[words.index("--baseline") + 1] == SHIPPED
    assert words[words.index("--expect") + 1] == "{env_tmp_dir}/fork.json"
    assert parser["testenv:fork"]["commands_pre"].endswith("{env_tmp_dir}{/}fork.json")
    assert parser["testenv:fork"]["recreate"] == "true"


def test_the_shipped_baseline_is_of_this_suite(request):
    pytest.importorskip("torch")
    usual = dict.fromkeys(("functions", "properties", "device", "dtype", "seed", "replay", "corpus", "shard"))
    whole = {"implementation": "torch", "profile": "gate", "expect": None, "file_or_dir": [str(catalogue.SUITES)]}
    selection = Selection.from_options(SimpleNamespace(**{**vars(request.config.option), **usual, **whole}))
    base = baseline.read(SHIPPED)
    gate.verify_alike(base, baseline.parameters(header.header(selection, None)), where=str(SHIPPED))
    assert base.version.startswith("2.13.0")
    packages = [
        import_module(f"autograd_conformance.suites.{name}") for name in ("functions", "contract", "dialects.torch")
    ]
    names = [f"{p.__name__}.{found.name}" for p in packages for found in pkgutil.iter_modules(p.__path__)]
    claims = [claim for name in names for claim, _ in claims_in(import_module(name))]
    subjects = [subject for claim in claims for subject in selection.subjects(claim)]
    ids = {subject.key["id"] for subject in subjects if subject.device in ("cpu", "lazy", "meta")}
    again = f"autograd-conformance run torch && autograd-conformance accept {ndjson.DEFAULT_PATH} -o {SHIPPED}"
    assert base.entries.keys() == ids, f"make it again: {again}"

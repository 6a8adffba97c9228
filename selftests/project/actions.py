"""Workflows and composite actions, run as GitHub's runner does, as far as one machine can."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml

from autograd_conformance.harness.catalogue import PACKAGE
from autograd_conformance.selftests.conftest import OUTSIDE

ACTION = yaml.safe_load((PACKAGE / "action.yml").read_text(encoding="utf-8"))
# How the documentation names it.
OURS = "OWNER/autograd-conformance@COMMIT"

# Steps that need more than this machine: what is installed, and where it is proposed.
ELSEWHERE = ("Install", "Propose")

Context = Mapping[str, Any]
_EXPRESSION = re.compile(r"\$\{\{ (.*?) \}\}")


def evaluated(expression: str, context: Context) -> Any:
    """The value of an expression of the few kinds that are used here."""
    for operator, decisive in ((" || ", True), (" && ", False)):
        left, found, right = expression.partition(operator)
        if found:
            value = evaluated(left, context)
            return value if bool(value) is decisive else evaluated(right, context)
    one, comparison, other = re.fullmatch(r"(.+?)(?: (==|!=) (.+))?", expression).groups()
    if comparison:
        return (evaluated(one, context) == evaluated(other, context)) == (comparison == "==")
    if expression in ("always()", "!cancelled()"):
        return True
    if expression.startswith("'"):
        return expression.strip("'")
    value = context
    for name in expression.split("."):
        value = value.get(name, {})
    return value or ""


def substituted(text: str, context: Context) -> str:
    """The text with the values of its expressions."""
    return _EXPRESSION.sub(lambda found: str(evaluated(found[1], context)), text)


@dataclass
class Runner:
    """A folder with the checkout of a repository; the steps of workflows run in it.

    ``done`` has what each step printed and its exit status, of the last job.
    """

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    done: dict[str, subprocess.CompletedProcess[str]] = field(default_factory=dict)

    def job(self, workflow: str, name: str, *, index: int = 0, **github: str) -> dict[str, int]:
        """Run a job of a workflow, or one of its matrix. Returns the exit status of each step that ran."""
        job = yaml.safe_load(workflow)["jobs"][name]
        (axis, values) = next(iter(job.get("strategy", {}).get("matrix", {}).items()), ("", [""]))
        temporary = self.folder / "temporary" / f"{name}-{index}"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        context = {
            "strategy": {"job-index": str(index), "job-total": str(len(values))},
            "matrix": values[index] if axis == "include" else {axis: values[index]},
            "runner": {"temp": str(temporary)},
            "github": github,
        }
        self.done = {}
        self._steps(job["steps"], context)
        return {name: done.returncode for name, done in self.done.items()}

    def _steps(self, steps: list[dict[str, Any]], context: Context) -> tuple[dict[str, Any], bool]:
        """Run steps. Returns their outputs, and whether all succeeded."""
        outputs: dict[str, Any] = {}
        well = True
        for step in steps:
            now = {**context, "steps": outputs}
            condition = step.get("if", "success()").removeprefix("${{ ").removesuffix(" }}")
            unconditional = "always()" in condition or "!cancelled()" in condition
            if step.get("name") in ELSEWHERE or not (well or unconditional):
                continue
            if condition != "success()" and not evaluated(condition, now):
                continue
            found, held = self._step(step, now)
            outputs[step.get("id", "")] = {"outputs": found}
            well = well and held
        return outputs, well

    def _step(self, step: dict[str, Any], context: Context) -> tuple[dict[str, str], bool]:
        given = {name: substituted(str(value), context) for name, value in step.get("with", {}).items()}
        if step.get("uses") == OURS:
            defaults = {name: each["default"] for name, each in ACTION["inputs"].items()}
            assert given.keys() <= defaults.keys()
            inner = {**context, "inputs": {**defaults, **given}}
            steps, held = self._steps(ACTION["runs"]["steps"], inner)
            values = {name: each["value"] for name, each in ACTION["outputs"].items()}
            return {name: substituted(value, {**inner, "steps": steps}) for name, value in values.items()}, held
        action = step.get("uses", "").partition("@")[0]
        if action == "actions/upload-artifact" and Path(given["path"]).exists():
            shutil.copytree(given["path"], self.folder / "artifacts" / given["name"], dirs_exist_ok=True)
        if action == "actions/download-artifact":
            Path(given["path"]).mkdir(parents=True, exist_ok=True)
            for artifact in sorted((self.folder / "artifacts").iterdir()):
                if fnmatch(artifact.name, given["pattern"]):
                    shutil.copytree(artifact, given["path"], dirs_exist_ok=True)
        return self._script(step, context) if "run" in step else ({}, True)

    def _script(self, step: dict[str, Any], context: Context) -> tuple[dict[str, str], bool]:
        output = self.folder / "output"
        output.write_text("")
        own = {name: substituted(value, context) for name, value in step.get("env", {}).items()}
        path = f"{self.folder}/bin{os.pathsep}{os.environ['PATH']}"
        files = {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md")}
        place = {"RUNNER_TEMP": context["runner"]["temp"], "GITHUB_ACTION_PATH": str(PACKAGE)}
        assert step["shell"] == "bash"
        done = self.done[step["name"]] = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]], cwd=self.folder,
            env={**OUTSIDE, "PATH": path, **files, **place, **self.environment, **own},
            capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
        found = dict(line.split("=", 1) for line in output.read_text().splitlines())
        return found, done.returncode == 0

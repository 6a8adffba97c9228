"""The shard that the scheduler of this job stands for, read from its environment variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autograd_conformance.harness.outcomes import UsageProblem


@dataclass(frozen=True)
class Scheduler:
    """How a scheduler numbers the jobs of a set, by the names of environment variables.

    ``first`` is the number of the first job, or the variable that has it. Without ``count`` the scheduler does not say
    how many jobs there are.
    """

    name: str
    index: str
    count: str | None
    first: int | str = 0
    step: str | None = None


# Their documentation names these variables. GitHub has none: the workflow sets them, see docs/ci.md.
SCHEDULERS = (
    Scheduler("a GitHub matrix", "STRATEGY_JOB_INDEX", "STRATEGY_JOB_TOTAL"),
    Scheduler("GitLab", "CI_NODE_INDEX", "CI_NODE_TOTAL", first=1),
    Scheduler("CircleCI", "CIRCLE_NODE_INDEX", "CIRCLE_NODE_TOTAL"),
    Scheduler("Buildkite", "BUILDKITE_PARALLEL_JOB", "BUILDKITE_PARALLEL_JOB_COUNT"),
    Scheduler("Azure Pipelines", "SYSTEM_JOBPOSITIONINPHASE", "SYSTEM_TOTALJOBSINPHASE", first=1),
    Scheduler(
        "a Slurm array",
        "SLURM_ARRAY_TASK_ID",
        "SLURM_ARRAY_TASK_COUNT",
        first="SLURM_ARRAY_TASK_MIN",
        step="SLURM_ARRAY_TASK_STEP",
    ),
    Scheduler("an AWS Batch array", "AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE"),
    Scheduler("a Kubernetes Indexed Job", "JOB_COMPLETION_INDEX", None),
)


def resolved(text: str | None, environment: Mapping[str, str]) -> str | None:
    """The shard as I/N, where ``text`` may be "auto" or "auto/N". Raises UsageProblem if no scheduler says it."""
    if text is None or text.partition("/")[0] != "auto":
        return text
    running = [each for each in SCHEDULERS if environment.get(each.index)]
    if len(running) != 1:
        raise UsageProblem(f"--shard {text}: {_which(running)}; give --shard I/N")
    (scheduler,) = running
    given = text.partition("/")[2]
    count = environment.get(scheduler.count or "") or given
    if not count:
        raise UsageProblem(f"--shard {text}: {scheduler.name} does not say how many jobs it has; give --shard auto/N")
    if given and given != count:
        raise UsageProblem(f"--shard {text}: {scheduler.name} has {count} jobs ({scheduler.count}); give --shard auto")
    return _shard(scheduler, environment, count)


def _which(running: list[Scheduler]) -> str:
    if running:
        return f"the environment variables of {' and '.join(each.name for each in running)} are set"
    return f"none of {', '.join(each.index for each in SCHEDULERS)} is set"


def _shard(scheduler: Scheduler, environment: Mapping[str, str], count: str) -> str:
    """The shard as I/N, with I from 1. Raises UsageProblem for numbers that are not those of N jobs."""
    first = scheduler.first if isinstance(scheduler.first, int) else environment.get(scheduler.first, "0")
    step = environment.get(scheduler.step or "", "1")
    index = environment[scheduler.index]
    try:
        place, rest = divmod(int(index) - int(first), int(step))
        if rest == 0 and 0 <= place < int(count):
            return f"{place + 1}/{int(count)}"
    except (ValueError, ZeroDivisionError):
        pass
    raise UsageProblem(
        f"{scheduler.index} is {index}, which is not the number of one of {count} jobs that start at {first} in steps "
        f"of {step}; give --shard I/N"
    )

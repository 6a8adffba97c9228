"""Operators of torch.library with planted faults, and what opcheck and `check` say of each."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.reports.ndjson import Line
from autograd_conformance.selftests.check.checking import faults_in, lines_of
from autograd_conformance.suites.declared import Checked

SPACE = "autograd_conformance_planted"

# The tests of opcheck, in its order, and what a row shows of each.
OPCHECK = {
    "test_schema": "schema",
    "test_autograd_registration": "registration",
    "test_faketensor": "fake",
    "test_aot_dispatch_dynamic": "compiled",
}


# Instead of a test: `check` says that every call raises.
REFUSED = "every call raises"

# In the table, of what finds nothing.
NOTHING = "nothing"
HEAD = "| fault | `opcheck` | `gradcheck` | `check` |\n| --- | --- | --- | --- |"


@dataclass(frozen=True, kw_only=True)
class Operator:
    """What `torch.library` is told of an operator: a schema, kernels and rules."""

    schema: str
    kernel: Callable[..., Any]
    backward: Callable[..., Any] | None = None
    setup_context: Callable[..., Any] | None = None
    fake: Callable[..., Any] | None = None
    vmap: Callable[..., Any] | None = None
    # Kernels of single devices.
    kernels: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    mutates: tuple[str, ...] = ()

    def register(self, name: str) -> Any:
        """Register the operator under this name."""
        op = torch.library.custom_op(f"{SPACE}::{name}", self.kernel, mutates_args=self.mutates, schema=self.schema)
        if self.fake is not None:
            op.register_fake(self.fake)
        if self.backward is not None:
            op.register_autograd(self.backward, setup_context=self.setup_context)
        if self.vmap is not None:
            op.register_vmap(self.vmap)
        for device, kernel in self.kernels.items():
            op.register_kernel(device)(kernel)
        return op


@dataclass(frozen=True, kw_only=True)
class Planted:
    """An operator with a fault, and its right twin.

    ``arguments`` and ``options`` are what `check` is told, ``test`` is the test of `check` that finds the fault.
    ``samples`` makes the arguments of the calls that opcheck looks at, as its documentation advises: several, with
    tensors that require grad. ``says`` is the fault in words. ``call`` makes what `check` calls of the operator, where
    that is not the operator itself.
    """

    name: str
    says: str
    wrong: Operator
    right: Operator
    samples: Callable[[], Sequence[tuple[Any, ...]]]
    arguments: tuple[str, ...]
    test: str
    options: Mapping[str, Any] = field(default_factory=dict)
    call: Callable[[Any], Callable[..., Any]] = lambda op: op


def of(
    right: Operator, arguments: tuple[str, ...], samples: Callable[[], Any], call: Any = lambda op: op
) -> Callable[..., Planted]:
    """Faults of this operator: ``changed`` is what they change."""

    def planted(name: str, says: str, test: str, /, *, options: Any = None, **changed: Any) -> Planted:
        return Planted(
            name=name, says=says, wrong=replace(right, **changed), right=right, samples=samples, arguments=arguments,
            test=test, options=options or {}, call=call,
        )  # fmt: skip

    return planted


@contextmanager
def quiet() -> Iterator[None]:
    """A context without warnings: opcheck and the compiler have many, which are about neither operator."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def opcheck(op: Any, samples: Sequence[tuple[Any, ...]]) -> list[str]:
    """The tests of opcheck that one of the calls fails, in its words."""
    failed = set()
    with quiet():
        for args in samples:
            found = torch.library.opcheck(op, args, raise_exception=False)
            failed |= {name for name, result in found.items() if result != "SUCCESS"}
    return [said for name, said in OPCHECK.items() if name in failed]


def gradcheck(op: Any, samples: Sequence[tuple[Any, ...]]) -> list[str]:
    """Which functions of torch.autograd find something wrong in one of the calls."""
    failed = []
    for name in ("gradcheck", "gradgradcheck"):
        with quiet():
            if not all(_accepted(getattr(torch.autograd, name), op, args) for args in samples):
                failed.append(name)
    return failed


def _accepted(judge: Callable[..., bool], op: Any, args: tuple[Any, ...]) -> bool:
    listed = isinstance(args[0], list)
    try:
        return judge((lambda *xs: op(list(xs))) if listed else op, tuple(args[0]) if listed else args)
    except Exception:  # noqa: BLE001 - a fault may raise anything
        return False


def check(planted: Planted, op: Any, *tests: str) -> list[str]:
    """What `check` finds in an operator, by these tests alone or by all: the test and the verdict, or `REFUSED`."""
    declared = Declaration(planted.call(op), *planted.arguments, name=planted.name, **planted.options)
    checked = Checked(declared, seed=0, shrink=False)
    try:
        lines = list(lines_of(checked, *tests) if tests else checked.lines())
    except UsageProblem as problem:
        if "every simple call that the declaration describes raises" not in str(problem):
            raise
        return [REFUSED]
    return [f"{verdict.word}: {_test(line)}" for line, verdict in faults_in(lines)]


def _test(line: Line) -> str:
    return "/".join(filter(None, (line["property"], line.get("variant"))))


def row(planted: Planted) -> str:
    """The row of a fault in the table: what is wrong, and who finds it."""
    op, samples = planted.wrong.register(f"{planted.name}_wrong"), planted.samples()
    test = "VJP-FD" if planted.test == REFUSED else planted.test
    found = (opcheck(op, samples), gradcheck(op, samples), check(planted, op, test)[:1])
    return f"| {planted.says} | {' | '.join(', '.join(each) or NOTHING for each in found)} |"

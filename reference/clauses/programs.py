"""Clauses on small programs of Functions, operators, hooks, changes and contexts, which are drawn."""

from autograd_conformance.reference.clauses.compilers import SEMANTICS, TRACING
from autograd_conformance.reference.clauses.definitions import Clause

CLAUSES = (
    Clause(
        "PROG-01",
        "documented",
        "A small program of Functions, operators, built-ins, hooks, changes in place and contexts does under a "
        "compiler, on any device, what it does without on the CPU: results, gradients, which of them are None, what "
        "hooks get, what is changed.",
        TRACING,
        quote=SEMANTICS,
        needs="compile",
        since="2.13",
        fault="compiled code hooks nothing that it computes itself",
    ),
    Clause(
        "PROG-02",
        "documented",
        "A small program that neither changes nor hooks its inputs does within a non-reentrant checkpoint, on any "
        "device, what it does without on the CPU.",
        "checkpoint: checkpoint",
        needs="checkpoint",
        fault="what a recomputation saves is put in the place of another saved tensor",
    ),
    Clause(
        "PROG-03",
        "documented",
        "func.vjp of a small program, on any device, has the result of a call on the CPU, the gradients of a backward "
        "pass there, and calls its hooks.",
        "func.grad: torch.func.vjp",
        fault="func.vjp gives its function tensors that are detached once more",
    ),
)

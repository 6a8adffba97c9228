"""Clauses on the operators for control flow: cond, scan, map, associative_scan and while_loop.

They are asked of releases from 2.13 on: earlier ones refuse much of this, such as gradients and captured tensors.
"""

from __future__ import annotations

from autograd_conformance.reference.clauses.definitions import Clause

_OPERATORS = "source: torch/_higher_order_ops/"
_SINCE = "2.13"

CLAUSES = (
    Clause(
        "FLOW-01",
        "documented",
        "torch.cond gives the outputs of the branch that the predicate chooses, and its gradients for the operands, "
        "nested ones too, and for the tensors that it captures.",
        f"{_OPERATORS}cond.py, cond",
        quote="Assuming the constraints on `cond`'s arguments are met, `cond` is equivalent to the following",
        needs="compile",
        since=_SINCE,
        fault="cond gives the gradients of the other branch",
    ),
    Clause(
        "FLOW-02",
        "documented",
        "scan gives the last carry and the stacked results of a loop, along any dimension and reversed, and its "
        "gradients for whatever requires grad of the carry, the xs and the captured tensors.",
        f"{_OPERATORS}scan.py, scan",
        quote="each tensor leaf is a stacked output along first dim, where each slice is the output of a scan "
        "iteration",
        needs="compile",
        since=_SINCE,
        fault="scan gives a captured tensor the gradient of the last step alone",
    ),
    Clause(
        "FLOW-03",
        "observed",
        "map gives the stacked results of a loop, and its gradients for xs, further arguments and captured tensors.",
        f"{_OPERATORS}map.py, map",
        needs="compile",
        since=_SINCE,
        fault="map gives its further arguments no gradient",
    ),
    Clause(
        "FLOW-04",
        "observed",
        "A generic associative_scan gives the results of a loop, along any dimension and reversed, and its gradients.",
        f"{_OPERATORS}associative_scan.py, associative_scan",
        needs="compile vmap",
        since=_SINCE,
        fault="associative_scan ignores reverse",
    ),
    Clause(
        "FLOW-05",
        "documented",
        "while_loop gives the last values of a loop, also where there is no round; where something requires grad it "
        "raises, or the gradients are those of the loop.",
        f"{_OPERATORS}while_loop.py, while_loop",
        quote="`while_loop` is equivalent to the following",
        needs="compile",
        since=_SINCE,
        fault="while_loop gives captured tensors the gradient of the last round",
    ),
    Clause(
        "FLOW-06",
        "observed",
        "A Function, or an operator with a formula, that a branch of cond or the body of scan or map calls is "
        "differentiated by its own backward.",
        "compiler: Non-strict Tracing Programming Model",
        needs="compile",
        since=_SINCE,
        fault="cond differentiates the operations of a Function's forward",
    ),
    Clause(
        "FLOW-07",
        "documented",
        "What the documentation of cond, scan and while_loop forbids raises: a result of another shape or dtype, "
        "another number of them, a changed argument, and a result that is an argument or another result.",
        f"{_OPERATORS}scan.py, scan",
        quote="The combine_fn's init carry should match the next_carry in pytree structure and in tensor metadata.",
        needs="compile inplace",
        since=_SINCE,
        fault="cond accepts branches with different outputs",
    ),
    Clause(
        "FLOW-08",
        "observed",
        "cond, scan, map, associative_scan and while_loop raise for arguments that they do not take; cond of a "
        "constant is the call of its branch.",
        f"{_OPERATORS}scan.py, scan",
        needs="compile",
        since=_SINCE,
        fault="scan takes a number for reverse",
    ),
)

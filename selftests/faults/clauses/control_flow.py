"""Faults of the operators for control flow, most of them lines of torch's Python files."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from importlib import import_module
from typing import Any

import torch

from autograd_conformance.selftests.faults import plants
from autograd_conformance.selftests.faults.clauses.compile import COMPOSITE
from autograd_conformance.selftests.faults.clauses.definitions import Fix
from autograd_conformance.selftests.faults.clauses.editing import edit
from autograd_conformance.selftests.faults.planting import fault

_OPERATORS = "torch._higher_order_ops"
_COND_ITSELF = f"{_OPERATORS}.cond:cond"
_COND, _SCAN = f"{_OPERATORS}.cond:CondAutogradOp", f"{_OPERATORS}.scan"
_MAP, _WHILE = f"{_OPERATORS}.map:MapAutogradOp.backward", f"{_OPERATORS}.while_loop:WhileLoopAutogradOp"
_FLIPPED = "if reverse:\n        leaves"
_ASSOCIATIVE = f"{_OPERATORS}.associative_scan:associative_scan"


def _branch(pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
    return (true_fn if pred else false_fn)(*operands)


def _looped() -> AbstractContextManager[Any]:
    """while_loop is a loop in Python."""

    def while_loop(cond_fn: Any, body_fn: Any, carry: Any) -> Any:
        while cond_fn(*carry):
            carry = body_fn(*carry)
        return carry

    # Compiled code would make a graph of the rounds, and takes long for it.
    compile = plants.put(torch, "compile", lambda function, **_: function)
    module = import_module(f"{_OPERATORS}.while_loop")
    return plants.all_of(compile, plants.put(module, "while_loop", while_loop))


FAULTS = (
    fault(
        "FLOW-01",
        edit(f"{_COND}.backward", "true_bw_gm,\n            false_bw_gm", "false_bw_gm,\n            true_bw_gm"),
        "gradients",
    ),
    fault(
        "FLOW-01: cond gives its last operand no gradient",
        edit(f"{_COND}.backward", "fill_none_with_masks(grads, grads_tensor_masks)",
              "fill_none_with_masks(grads, grads_tensor_masks)[:-1], None"),
        "gradients",
    ),
    fault("FLOW-02", edit(f"{_SCAN}:ScanAutogradImpl.call_backward", "prev + cur", "cur"), "gradients"),
    fault(
        "FLOW-02: scan takes a carry that requires no grad at first for a constant",
        edit(f"{_SCAN}:scan_autograd", "and not t.requires_grad", "and False"),
        "gradients",
    ),
    fault("FLOW-02: scan ignores reverse", edit(f"{_SCAN}:scan", _FLIPPED, "if False:\n        leaves"), "outputs"),
    fault(
        "FLOW-03",
        edit(_MAP, "*fill_none_with_masks(grads, grads_tensor_masks)",
              "*fill_none_with_masks(grads, grads_tensor_masks)[:num_mapped_args], *[None] * num_pos_args"),
        "gradients",
    ),
    fault("FLOW-04", edit(_ASSOCIATIVE, _FLIPPED, "if False:\n        leaves"), "outputs"),
    fault("FLOW-05", edit(f"{_WHILE}.backward", "cur_grad + grad", "cur_grad"), "gradients"),
    fault("FLOW-06", partial(plants.all_of, COMPOSITE, plants.put(torch, "cond", _branch)), "gradients"),
    fault(
        "FLOW-08",
        edit(f"{_SCAN}:scan", "if not isinstance(r, bool):", "if False:"),
    ),
    fault(
        "FLOW-08: associative_scan takes any mode",
        edit(_ASSOCIATIVE, 'if cm not in ["pointwise", "generic"]:', "if False:"),
    ),
    fault(
        "FLOW-08: cond of a constant runs the other branch",
        edit(_COND_ITSELF, "            return true_fn(*operands)", "            return false_fn(*operands)"),
    ),
    fault("FLOW-07", plants.put(torch, "cond", _branch), "no error"),
)  # fmt: skip

FIXES = tuple(Fix("FLOW-05", _looped, variant=variant) for variant in ("none", "mixed"))

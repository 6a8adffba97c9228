"""Small programs around custom Functions, drawn and not listed: run in two ways, they give the same."""

import torch
from hypothesis import reject
from torch.utils.checkpoint import checkpoint

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.strategies.programs import programs
from autograd_conformance.suites.dialects.torch._compiled import fresh
from autograd_conformance.suites.dialects.torch._programs import Outcome, SavesOutput, outcome, transformed

# Steps of which the derivative needs values that forward had.
_VALUED = (
    "multiply", "SavesInput", "SavesOutput", "KeepsInput", "Product", "operator", "autocast", "checkpoint",
    "saved_tensors_hooks", "vmap", "grad",
)  # fmt: skip


def _drawn(subject, data, leave_out, without=(), to_inputs=("change", "hook")):
    """A program that can be run and differentiated, with what comes of it on the CPU where nothing is special."""
    if not torch.amp.is_autocast_available(torch.device(subject.device).type):
        without = (*without, "autocast")
    program = subject.draw(data, programs(without, to_inputs), "program")
    expected = outcome(program, "cpu")
    if expected.raised or not expected.tracked or leave_out(program, expected):
        reject()
    return program, expected


def _assert_same(subject, where, got, expected):
    for name, mine, theirs in ((name, vars(got)[name], vars(expected)[name]) for name in vars(Outcome())):
        subject.assert_equal(f"{_WORDS[name]} {where}", got=mine, expected=theirs)


_WORDS = {
    "raised": "part of the program that raised, and what,",
    "value": "result",
    "tracked": "requires_grad of the result",
    "inputs": "inputs after the program",
    "changed": "inputs with a new version",
    "gradients": "gradients of the leaves",
    "hooks": "what hooks got, sorted,",
}


def _named_by_others(program, expected):
    """Whether compiled code differs for a cause that one of the next four tests is about."""
    unused = {name for name, gradient in expected.gradients.items() if gradient is None}
    zeros = unused and (program.changes_an_input or unused & program.hooked)
    valued = [step for step in program.steps if step.operation in _VALUED]
    kept = [step for step in valued if step.operation == "KeepsInput" and step.operands[0] in program.names]
    noticed = (valued and program.changes_an_input) or (program.changed and valued != kept)
    return zeros or noticed or program.changed_after_a_hook


@keeps("PROG-01", examples=0.4)
def test_programs_do_in_a_traced_graph_what_they_do(subject, data):
    """A program that dynamo traces has the results, gradients and hooks' arguments of one that it does not."""
    _assert_same_when_compiled(subject, data, "eager")


@keeps("PROG-01", variant="ahead", slow=True, examples=0.4)
def test_programs_do_compiled_ahead_of_time_what_they_do(subject, data):
    """A program that is compiled ahead of time has the results, gradients and hooks' arguments of one that is not."""
    _assert_same_when_compiled(subject, data, "aot_eager")


def _assert_same_when_compiled(subject, data, backend):
    program, expected = _drawn(subject, data, _named_by_others, without=("grad",))
    with fresh():
        got = outcome(program, subject.device, lambda call: torch.compile(call, backend=backend))
    _assert_same(subject, "of compiled code", got, expected)


def _assert_compiled_right(subject, data, call, then=lambda x: None):
    """The gradients of compiled code, of the intermediate x and the leaf y, are those of uncompiled code."""
    factor = subject.draw(data, (2.0, -3.0), "factor")

    def gradients(call):
        leaf, y = subject.tensors(([1.0, 2.0], [3.0, -1.0]))
        leaf.requires_grad_(), y.requires_grad_()
        x = leaf * factor
        result = call(x, y)
        then(x)
        return torch.autograd.grad(result.sum(), (leaf, y), allow_unused=True)

    expected = gradients(call)
    with fresh():
        got = gradients(torch.compile(call, backend="aot_eager"))
    subject.assert_all_same("gradients of compiled code", got=got, expected=expected)


@keeps("PROG-01", variant="hooked", slow=True, examples=0.08)
def test_a_hook_on_an_input_that_is_changed_later_is_called(subject, data):
    """A hook on an input of compiled code is called if the input is changed in place after it was registered."""

    def call(x, y):
        x.register_hook(lambda g: 10 * g)
        x.mul_(5)
        return x + y

    _assert_compiled_right(subject, data, call)


@keeps("PROG-01", variant="unused", slow=True, examples=0.08)
def test_a_hook_on_an_input_without_a_part_in_the_result_is_not_called(subject, data):
    """A hook on an input of compiled code is not called if the result does not depend on it."""

    def call(x, y):
        y.register_hook(lambda g: 10 * g)
        _ = x * y
        return 2 * x

    _assert_compiled_right(subject, data, call)


@keeps("PROG-01", variant="none", slow=True, examples=0.08)
def test_an_input_without_a_part_in_the_result_has_no_gradient(subject, data):
    """The gradient of an input is None, though compiled code changes it, if the result does not depend on it."""

    def call(x, y):
        x.mul_(5)
        return 2 * y

    _assert_compiled_right(subject, data, call)


@keeps("PROG-01", variant="saved", slow=True, examples=0.08)
def test_an_input_of_which_only_a_result_is_saved_may_be_changed(subject, data):
    """After compiled code has run its input may be changed, if a Function saved its output and not its input."""

    def call(x, y):
        return SavesOutput.apply(x) * 1 + y

    def change(x):
        with torch.no_grad():
            x.add_(1)

    _assert_compiled_right(subject, data, call, change)


def _changes_an_input(program, _):
    """Whether a second run does something else, and func.vjp refuses a tensor that is no argument."""
    return program.changes_an_input


@keeps("PROG-02", examples=2)
def test_checkpointed_programs_do_what_others_do(subject, data):
    """A program within a checkpoint has the results, gradients and hooks' arguments of one that is not."""
    program, expected = _drawn(subject, data, _changes_an_input, without=("grad",), to_inputs=())
    got = outcome(program, subject.device, lambda call: lambda *xs: checkpoint(call, *xs, use_reentrant=False))
    _assert_same(subject, "within a checkpoint", got, expected)


@keeps("PROG-03", examples=1.5)
def test_transformed_programs_do_what_others_do(subject, data):
    """func.vjp of a program gives its results and gradients, and calls its hooks."""
    without = ("operator", "saved_tensors_hooks", "checkpoint")
    program, expected = _drawn(subject, data, _changes_an_input, without, to_inputs=("hook",))
    got = transformed(program, subject.device)
    for name in ("value", "gradients", "hooks"):
        subject.assert_equal(f"{_WORDS[name]} of func.vjp", got=getattr(got, name), expected=getattr(expected, name))

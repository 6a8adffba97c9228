"""Hooks on tensors and cells, hooks for saved tensors, and recomputation, around custom Functions."""

import mindspore as ms
from hypothesis import strategies as st
from mindspore import nn, ops

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.mindspore._functions import FUNCTIONS, MindSporeCase
from autograd_conformance.suites.dialects.shared import sentences
from autograd_conformance.suites.dialects.shared.sentences import row

# What a hook may do to a gradient.
CHANGES = {"doubled": lambda g: 2 * g, "negated": lambda g: -g, "raised": lambda g: g + 1}
HOOKS = st.lists(st.sampled_from(sorted(CHANGES)), min_size=1, max_size=3)


def _single(subject, data):
    """A case of one argument and one output, and the right gradient as a function of the cotangent."""
    case = MindSporeCase(subject, data, arguments=1, outputs=1)
    return case, lambda g: case.expected([g])[0]


class Plain(nn.Cell):
    """A cell without a ``bprop``."""

    def __init__(self, f):
        super().__init__()
        self.f = f

    def construct(self, x):
        return self.f(x)


def _cell(subject, data, case):
    kind = subject.draw(data, ("bprop", "function"), "rule of the cell")
    return case.cell if kind == "bprop" else Plain(case.apply)


@keeps("MINDSPORE-HOOK-01")
def test_hooks_on_a_tensor_change_its_gradient_in_turn(subject, data):
    """The hooks of a tensor change its gradient in order; removed hooks do not run."""
    case, _ = _single(subject, data)
    names = subject.draw(data, HOOKS, "hooks")
    removed = subject.draw(data, st.sets(st.sampled_from(range(len(names)))), "hooks that are removed")
    apply = case.apply

    def f(x):
        y = 2 * x
        handles = [y.register_hook(CHANGES[name]) for name in names]
        for i in removed:
            handles[i].remove()
        return apply(y)

    expected = case.rule([2 * case.linear.points[0]], case.linear.cotangents)[0]
    for i, name in enumerate(names):
        expected = expected if i in removed else CHANGES[name](expected)
    subject.assert_all_same("gradient", got=case.gradients(f), expected=[2 * expected])


@keeps("MINDSPORE-HOOK-01", variant="output")
def test_hooks_on_an_output_change_the_cotangent(subject, data):
    """A hook on the output of a custom Function changes the cotangent that backward gets."""
    case, slope = _single(subject, data)
    name = subject.draw(data, sorted(CHANGES), "hook")
    apply = case.apply

    def f(x):
        y = apply(x)
        y.register_hook(CHANGES[name])
        return y * 1

    expected = slope(CHANGES[name](case.linear.cotangents[0]))
    subject.assert_all_same("gradient", got=case.gradients(f), expected=[expected])


# Non-functions.
OTHERS = ("text", 1, None)


@keeps("MINDSPORE-HOOK-02")
def test_a_hook_has_to_be_a_function(subject, data):
    """Registering a non-function as a hook raises TypeError, in every place for hooks."""
    case, _ = _single(subject, data)
    other = subject.draw(data, OTHERS, "hook")
    cell = Plain(case.apply)
    owners = {
        "tensor": case.points[0].register_hook,
        "HookBackward": ops.HookBackward,
        "backward": cell.register_backward_hook,
        "backward_pre": cell.register_backward_pre_hook,
        "forward": cell.register_forward_hook,
        "forward_pre": cell.register_forward_pre_hook,
    }
    owner = subject.draw(data, sorted(owners), "where it is registered")
    subject.assert_raises(TypeError, lambda: owners[owner](other), f"{other!r} as a hook")


@keeps("MINDSPORE-HOOK-02", variant="bprop")
def test_a_forward_hook_of_a_cell_with_bprop_has_to_be_a_function(subject, data):
    """Registering a non-function as a forward hook raises TypeError on a cell with bprop too."""
    case, _ = _single(subject, data)
    other = subject.draw(data, OTHERS, "hook")
    subject.assert_raises(TypeError, lambda: case.cell.register_forward_hook(other), f"{other!r} as a hook")


@keeps("MINDSPORE-HOOK-03")
def test_hook_backward_passes_values_and_changes_gradients(subject, data):
    """HookBackward passes the value on, and its hook sees the gradient and may change it."""
    case, slope = _single(subject, data)
    name = subject.draw(data, (None, *sorted(CHANGES)), "hook")
    seen = []

    def hook(given):
        seen.append(given[0])
        return CHANGES[name](given[0]) if name else None

    apply, node = case.apply, ops.HookBackward(hook)
    output, pullback = ms.vjp(lambda x: node(apply(x)), *case.points)
    got = pullback(*case.cotangents)
    (g,) = case.linear.cotangents
    subject.assert_same("output", got=output, expected=case.linear.primal(*case.linear.points)[0])
    subject.assert_all_same("gradients in the hook", got=seen, expected=[g])
    subject.assert_all_same("gradient", got=got, expected=[slope(CHANGES[name](g) if name else g)])


@keeps("MINDSPORE-HOOK-04")
def test_backward_hooks_see_and_change_the_gradients_of_a_cell(subject, data):
    """A backward hook sees the cell's gradients and may change the input's, until it is removed."""
    case, _ = _single(subject, data)
    cell = _cell(subject, data, case)
    name = subject.draw(data, (None, *sorted(CHANGES)), "hook")
    seen = []

    def hook(owner, grad_input, grad_output):
        seen.append((owner is cell, len(grad_input), len(grad_output)))
        seen.extend((*grad_input, *grad_output))
        return (CHANGES[name](grad_input[0]),) if name else None

    handle = cell.register_backward_hook(hook)
    got = case.gradients(lambda x: cell(2 * x))
    handle.remove()
    got_without = case.gradients(lambda x: cell(2 * x))
    (g,) = case.linear.cotangents
    (inner,) = case.rule([2 * case.linear.points[0]], [g])
    subject.assert_equal("the hook's cell and numbers of gradients", got=seen[0], expected=(True, 1, 1))
    subject.assert_all_same("grad_input and grad_output", got=seen[1:], expected=[inner, g])
    subject.assert_all_same("gradient", got=got, expected=[2 * (CHANGES[name](inner) if name else inner)])
    subject.assert_all_same("gradient without the hook", got=got_without, expected=[2 * inner])


@keeps("MINDSPORE-HOOK-05")
def test_backward_pre_hooks_change_what_a_cell_gets(subject, data):
    """A backward pre-hook sees the gradient of the cell's output and may change it."""
    case, slope = _single(subject, data)
    cell = _cell(subject, data, case)
    name = subject.draw(data, (None, *sorted(CHANGES)), "hook")
    seen = []

    def hook(owner, grad_output):
        seen.extend(grad_output)
        return (CHANGES[name](grad_output[0]),) if name else None

    cell.register_backward_pre_hook(hook)
    got = case.gradients(cell)
    (g,) = case.linear.cotangents
    subject.assert_all_same("grad_output", got=seen, expected=[g])
    subject.assert_all_same("gradient", got=got, expected=[slope(CHANGES[name](g) if name else g)])


def _with_a_forward_hook(subject, data, make):
    case, slope = _single(subject, data)
    scale = subject.draw(data, (2, -3), "what the hook multiplies the output with")
    cell = make(case)
    cell.register_forward_hook(lambda owner, args, output: scale * output)
    output, pullback = ms.vjp(cell, *case.points)
    got = pullback(*case.cotangents)
    subject.assert_same("output", got=output, expected=scale * case.linear.primal(*case.linear.points)[0])
    subject.assert_all_same("gradient", got=got, expected=[slope(scale * case.linear.cotangents[0])])


@keeps("MINDSPORE-HOOK-06")
def test_what_a_forward_hook_returns_is_differentiated(subject, data):
    """What a forward hook returns is the cell's output and is differentiated."""
    _with_a_forward_hook(subject, data, lambda case: Plain(case.apply))


@keeps("MINDSPORE-HOOK-06", variant="bprop")
def test_what_a_forward_hook_of_a_cell_with_bprop_returns_is_differentiated(subject, data):
    """What a forward hook returns is the output of a cell with bprop too, and is differentiated."""
    _with_a_forward_hook(subject, data, lambda case: case.cell)


@keeps("MINDSPORE-HOOK-07")
def test_what_a_forward_pre_hook_returns_is_differentiated(subject, data):
    """What a forward pre-hook returns are the arguments of construct, and they are differentiated."""
    case, _ = _single(subject, data)
    cell = _cell(subject, data, case)
    scale = subject.draw(data, (2, -3), "what the hook multiplies the argument with")
    cell.register_forward_pre_hook(lambda owner, args: (scale * args[0],))
    output, pullback = ms.vjp(cell, *case.points)
    got = pullback(*case.cotangents)
    moved = [scale * case.linear.points[0]]
    subject.assert_same("output", got=output, expected=case.linear.primal(*moved)[0])
    subject.assert_all_same("gradient", got=got, expected=[scale * case.rule(moved, case.linear.cotangents)[0]])


@keeps("MINDSPORE-SAVED-01")
def test_saved_tensors_are_packed_once_and_unpacked_for_backward(subject, data):
    """Each saved tensor is packed once, and backward uses what unpack returns."""
    case, packed = MindSporeCase(subject, data), []
    scale = subject.draw(data, (1, 2, -3), "what unpacking multiplies with")
    apply = case.apply

    def pack(x):
        packed.append(x.asnumpy())
        return packed[-1]

    def f(*xs):
        with ms.saved_tensors_hooks(pack, lambda array: ms.Tensor(scale * array)):
            return apply(*xs)

    got = case.gradients(f)
    subject.assert_all_same("tensors that were packed", got=packed, expected=case.linear.points)
    case.assert_gradients(got, xs=[scale * x for x in case.linear.points])


def _recomputing(reentrant):
    def recompute(f):
        class Block(nn.Cell):
            def construct(self, *xs):
                return f(*xs)

        return lambda *xs: ms.recompute(Block(), *xs, use_reentrant=reentrant)

    return recompute


test_recomputation = row(
    "MINDSPORE-RECOMPUTE-01",
    sentences.recomputation_runs_the_function_again,
    FUNCTIONS,
    ways={"reentrant": _recomputing(True), "not reentrant": _recomputing(False)},
)


@keeps("MINDSPORE-RECOMPUTE-02")
def test_only_cells_are_recomputed_by_the_reentrant_way(subject, data):
    """recompute raises TypeError for a plain function by default."""
    case = MindSporeCase(subject, data)
    action = lambda: ms.recompute(case.apply, *case.points)  # noqa: E731
    subject.assert_raises(TypeError, action, "a function as a block", naming=["Cell"])

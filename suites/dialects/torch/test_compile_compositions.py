"""Custom Functions under torch.compile together with transforms, changes in place, hooks and repeated runs."""

from contextlib import suppress

import numpy as np
import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.torch._compiled import BACKENDS, assert_right_or_refused, fresh
from autograd_conformance.suites.dialects.torch._func_transforms import FORWARD, REVERSE
from autograd_conformance.suites.dialects.torch._powers import power_function

# The derivatives of these Functions are off by factors: so a result shows whether the own rules were used.
FACTORS = (4, -3)
VALUES = st.lists(st.sampled_from((1.0, 2.0, -3.0)), min_size=2, max_size=3).map(np.array)


@keeps("COMPILE-11", slow=True, examples=0.2)
def test_a_vmap_is_compiled(subject, data):
    """A compiled vmap of a Function has right outputs, and the Function's own backward."""
    written = subject.draw(data, (False, True), "batching rule written by hand")
    factor, values = subject.draw(data, FACTORS, "factor"), subject.draw(data, VALUES, "x")
    backend = subject.draw(data, BACKENDS, "backend")
    cls, x = power_function(subject, 2, factor, written), subject.tensor(values).requires_grad_()

    def check(output):
        subject.assert_same("output of a compiled vmap", got=output, expected=values**2)
        (got,) = torch.autograd.grad(output.sum(), x)
        subject.assert_same("gradient of a compiled vmap", got=got, expected=2 * factor * values)

    assert_right_or_refused(backend, lambda x: torch.func.vmap(cls.apply)(x), [x], check)


@keeps("COMPILE-11", variant="grad", slow=True, examples=0.08)
def test_compiled_reverse_transforms_use_the_own_backward(subject, data):
    """A compiled func.grad, func.vjp or func.jacrev uses the Function's own backward."""
    _assert_transform_right(subject, data, REVERSE)


@keeps("COMPILE-11", variant="jvp", slow=True, examples=0.08)
def test_compiled_forward_transforms_use_the_own_jvp(subject, data):
    """A compiled func.jvp or func.jacfwd uses the Function's own jvp."""
    _assert_transform_right(subject, data, FORWARD)


def _assert_transform_right(subject, data, transforms):
    transform = transforms[subject.draw(data, tuple(transforms), "transform")]
    factor, values = subject.draw(data, FACTORS, "factor"), subject.draw(data, VALUES, "x")
    backend = subject.draw(data, BACKENDS, "backend")
    tracked = subject.draw(data, (False, True), "x requires grad")
    cls, x = power_function(subject, 2, factor), subject.tensor(values).requires_grad_(tracked)

    def check(output):
        subject.assert_same("derivative by compiled code", got=output, expected=2 * factor * values)

    assert_right_or_refused(backend, lambda x: transform(cls.apply)(x), [x], check)


@keeps("COMPILE-11", variant="outside", slow=True, examples=0.12)
def test_transforms_of_compiled_code_use_the_own_rules(subject, data):
    """func.grad, func.vjp and func.jvp of compiled code use the Function's own rules."""
    transforms = {"grad": REVERSE["grad"], "vjp": REVERSE["vjp"], "jvp": FORWARD["jvp"]}
    transform = transforms[subject.draw(data, tuple(transforms), "transform")]
    factor, values = subject.draw(data, FACTORS, "factor"), subject.draw(data, VALUES, "x")
    backend = subject.draw(data, BACKENDS, "backend")
    cls = power_function(subject, 2, factor)
    with fresh():
        got = transform(torch.compile(lambda x: cls.apply(x), backend=backend))(subject.tensor(values))
    subject.assert_same("derivative of compiled code", got=got, expected=2 * factor * values)


@keeps("COMPILE-11", variant="mapped", slow=True, examples=0.08)
def test_a_vmap_of_compiled_code_uses_the_own_backward(subject, data):
    """The gradient of a vmap of compiled code is that of the Function's own backward."""
    factor, values = subject.draw(data, FACTORS, "factor"), subject.draw(data, VALUES, "x")
    cls, x = power_function(subject, 2, factor), subject.tensor(values).requires_grad_()
    with fresh():
        output = torch.func.vmap(torch.compile(lambda x: cls.apply(x), backend="eager"))(x)
        (got,) = torch.autograd.grad(output.sum(), x)
    subject.assert_same("output of a vmap of compiled code", got=output, expected=values**2)
    subject.assert_same("gradient of a vmap of compiled code", got=got, expected=2 * factor * values)


def _plus(x, y, inside):
    """The sum; ``inside`` puts it into x."""
    if inside:
        x += y
        return x
    return x + y


@keeps("COMPILE-12", slow=True, examples=0.2)
def test_changes_in_place_are_compiled(subject, data):
    """Changes in place of intermediates, within the methods and around the call, give right results."""
    before, within, behind, after = subject.draw(data, st.tuples(*[st.booleans()] * 4), "changes in place")
    factor, values = subject.draw(data, FACTORS, "factor"), subject.draw(data, VALUES, "x")
    backend = subject.draw(data, BACKENDS, "backend")

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return _plus(factor * x * g, g, behind)

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return _plus(x * x, x, within)

    cls, x = subject.define(forward=forward, backward=backward), subject.tensor(values).requires_grad_()

    def call(x):
        return _plus(cls.apply(_plus(2 * x, x, before)), x, after)

    def check(output):
        subject.assert_same("output of compiled code", got=output, expected=9 * values**2 + 4 * values)
        (got,) = torch.autograd.grad(output, x, subject.tensor(values))
        expected = 3 * (factor * 3 * values * values + values) + values
        subject.assert_same("gradient of compiled code", got=got, expected=expected)

    assert_right_or_refused(backend, call, [x], check)


@keeps("COMPILE-12", variant="saved", slow=True, examples=0.08)
def test_changes_of_saved_tensors_are_noticed(subject, data):
    """Where compiled code changes a saved tensor, the gradient is right, or there is an error."""
    changed = subject.draw(data, ("input", "output"), "saved, and changed after the call")
    factor, values = subject.draw(data, FACTORS, "factor"), subject.draw(data, VALUES, "x")
    backend = subject.draw(data, BACKENDS, "backend")

    def forward(ctx, x):
        y = x * x
        ctx.save_for_backward({"input": x, "output": y}[changed])
        return y

    cls = subject.define(forward=forward, backward=lambda ctx, g: factor * ctx.saved_tensors[0] * g)

    def call(x):
        twice = 2 * x
        output = cls.apply(twice)
        saved = {"input": twice, "output": output}[changed]
        saved += 1
        return output

    def check(output):
        expected = 4 * values**2 + (changed == "output")
        subject.assert_same("output after a change in compiled code", got=output, expected=expected)
        with suppress(RuntimeError):
            (got,) = torch.autograd.grad(output.sum(), x)
            saved = {"input": 2 * values, "output": 4 * values**2}[changed]
            subject.assert_same("gradient after a change in compiled code", got=got, expected=2 * factor * saved)

    x = subject.tensor(values).requires_grad_()
    assert_right_or_refused(backend, call, [x], check)


@keeps("COMPILE-02", variant="kept", slow=True, examples=0.12)
def test_changes_after_compiled_code_count_as_without_a_compiler(subject, data):
    """After the call a saved tensor may not be changed; one that is an attribute of ctx may, and counts as it is."""
    kept = subject.draw(data, st.tuples(*[st.sampled_from(("attribute", "saved"))] * 2), "how x and y are kept")
    changed = subject.draw(data, (0, 1, None), "place of the argument that is changed")
    backends = BACKENDS[::-1] if changed is None or kept[changed] == "attribute" else ("aot_eager",)
    _assert_kept_right(subject, data, kept, changed, subject.draw(data, backends, "backend"))


@keeps("COMPILE-12", variant="later", slow=True, examples=0.04)
def test_later_changes_of_saved_tensors_are_noticed_with_backend_eager(subject, data):
    """With a backend that runs the graph as it is, too, a saved tensor may not be changed after the call."""
    changed = subject.draw(data, (0, 1), "place of the argument that is changed")
    _assert_kept_right(subject, data, ("saved", "saved"), changed, "eager")


def _assert_kept_right(subject, data, kept, changed, backend):
    """A Function keeps its arguments in these ways; one of them, or None, is changed after the call."""
    values, others = subject.draw(data, st.tuples(VALUES, VALUES), "x and y")
    leaf, factor = subject.draw(data, st.booleans(), "x and y are leaves"), subject.draw(data, FACTORS, "factor")
    numbers = [values, np.resize(others, len(values))]

    def forward(ctx, *tensors):
        ctx.save_for_backward(*(t if how == "saved" else None for t, how in zip(tensors, kept, strict=True)))
        ctx.tensors = tuple(t if how == "attribute" else None for t, how in zip(tensors, kept, strict=True))
        return tensors[0] * tensors[1]

    def backward(ctx, g):
        x, y = (a if b is None else b for a, b in zip(ctx.tensors, ctx.saved_tensors, strict=True))
        return factor * y * g, factor * x * g

    cls = subject.define(forward=forward, backward=backward)
    leaves = [subject.tensor(each).requires_grad_() for each in numbers]
    primals = leaves if leaf else [x * 1 for x in leaves]
    with fresh():
        output = torch.compile(lambda x, y: cls.apply(x, y), backend=backend)(*primals)
        subject.assert_same("output of compiled code", got=output, expected=numbers[0] * numbers[1])
        if changed is not None:
            with torch.no_grad():
                primals[changed].add_(1)
            numbers[changed] = numbers[changed] + 1
        if changed is not None and kept[changed] == "saved":
            what = "a backward pass of compiled code after a change of what was saved"
            subject.assert_raises(RuntimeError, lambda: torch.autograd.grad(output.sum(), leaves), what)
            return
        got = subject.assert_accepted(lambda: torch.autograd.grad(output.sum(), leaves), "a backward pass")
    expected = [factor * numbers[1], factor * numbers[0]]
    subject.assert_all_same("gradients after a change of an attribute", got=got, expected=expected)


@keeps("COMPILE-13", variant="twice", slow=True, examples=0.08)
def test_one_tensor_may_be_returned_twice(subject, data):
    """A compiled Function may return one tensor for two outputs."""
    # One tensor has one cotangent, whichever of the two outputs it is given for.
    weights = subject.draw(data, ((4, 4), (-3, -3)), "weights of the cotangents")
    _assert_shared_right(subject, data, BACKENDS, lambda y: y, weights)


@keeps("COMPILE-13", variant="view", slow=True, examples=0.08)
def test_a_view_of_another_output_may_be_returned(subject, data):
    """A compiled Function may return a view of another output."""
    views = {"first": lambda y: y[:1], "all": lambda y: y[:], "row": lambda y: y[None]}
    view = views[subject.draw(data, tuple(views), "view")]
    weights = subject.draw(data, (FACTORS, FACTORS[::-1]), "weights of the cotangents")
    _assert_shared_right(subject, data, ("aot_eager",), view, weights)


def _assert_shared_right(subject, data, backends, view, weights):
    """A Function whose second output is a view of the first, or the same tensor."""
    values, backend = subject.draw(data, VALUES, "x"), subject.draw(data, backends, "backend")

    def forward(ctx, x):
        y = x * x
        return y, view(y)

    def backward(ctx, *cotangents):
        return sum(w * g.sum() for w, g in zip(weights, cotangents, strict=True)).expand(len(values))

    cls, x = subject.define(forward=forward, backward=backward), subject.tensor(values).requires_grad_()

    def gradients(outputs):
        subject.assert_all_same("outputs that share memory", got=outputs, expected=[values**2, view(values**2)])
        given = [torch.full_like(y, n + 2.0) for n, y in enumerate(outputs)]
        (got,) = torch.autograd.grad(outputs, x, given)
        total = sum(w * (n + 2) * view(values).size ** n * len(values) ** (1 - n) for n, w in enumerate(weights))
        subject.assert_same("gradient of outputs that share memory", got=got, expected=np.full(len(values), total))

    assert_right_or_refused(backend, lambda x: cls.apply(x), [x], gradients)


@keeps("COMPILE-14", slow=True, examples=0.08)
def test_unused_outputs_give_none_in_compiled_code(subject, data):
    """backward of compiled code gets None for an unused output."""
    used = subject.draw(data, (0, 1), "output that is used")
    factor, values = subject.draw(data, FACTORS, "factor"), subject.draw(data, VALUES, "x")
    backend = subject.draw(data, BACKENDS, "backend")

    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return 2 * x, 3 * x

    def backward(ctx, *cotangents):
        return factor * cotangents[used] + (0 if cotangents[1 - used] is None else 100)

    cls, x = subject.define(forward=forward, backward=backward), subject.tensor(values).requires_grad_()

    def check(output):
        subject.assert_same("output of compiled code", got=output, expected=(used + 2) * values)
        (got,) = torch.autograd.grad(output, x, subject.tensor(values))
        subject.assert_same("gradient where an output is unused", got=got, expected=factor * values)

    assert_right_or_refused(backend, lambda x: cls.apply(x)[used] * 1, [x], check)


@keeps("COMPILE-15", slow=True, examples=0.2)
def test_calls_and_hooks_share_a_compiled_region(subject, data):
    """Several Functions in one region, with hooks in between, give right gradients."""
    steps = subject.draw(
        data, st.lists(st.tuples(st.sampled_from(FACTORS), st.integers(0, 2)), min_size=2, max_size=4),
        "factor of each call, and hooks on its output",
    )  # fmt: skip
    values, backend = subject.draw(data, VALUES, "x"), subject.draw(data, BACKENDS, "backend")
    doubles = [_doubled(subject, factor) for factor in FACTORS]

    def call(x):
        for factor, hooks in steps:
            x = doubles[FACTORS.index(factor)].apply(x)
            for n in range(hooks):
                x.register_hook(lambda g, n=n: (n + 2) * g)
        return x

    x = subject.tensor(values).requires_grad_()

    def check(output):
        subject.assert_same("output of compiled code", got=output, expected=2 ** len(steps) * values)
        (got,) = torch.autograd.grad(output, x, subject.tensor(values))
        slope = np.prod([factor * (1, 2, 6)[hooks] for factor, hooks in steps])
        subject.assert_same("gradient of compiled code", got=got, expected=slope * values)

    assert_right_or_refused(backend, call, [x], check)


def _doubled(subject, factor):
    return subject.define(forward=lambda ctx, x: 2 * x, backward=lambda ctx, g: factor * g)


# Other names of a tensor, whose hooks see what comes through them alone.
_ALIASES = {"the tensor": None, "a view": lambda y: y[:], "an alias": lambda y: y.view_as(y)}


@keeps("COMPILE-15", variant="places", slow=True, examples=0.12)
def test_a_hook_sees_all_uses_of_its_tensor(subject, data):
    """A hook counts for uses before and after it was registered, and that of a view for uses of the view alone."""
    weights = subject.draw(data, st.tuples(*[st.sampled_from((5, 1, -2))] * 3), "weights of the uses")
    place = subject.draw(data, (1, 0, 2), "uses of the tensor before the hook is registered")
    name = subject.draw(data, tuple(_ALIASES), "the hook is registered on")
    made = subject.draw(data, ("operation", "Function"), "the tensor comes of")
    values, backend = subject.draw(data, VALUES, "x"), subject.draw(data, BACKENDS, "backend")
    factor, alias = subject.draw(data, FACTORS, "factor"), _ALIASES[name]
    double = _doubled(subject, factor)

    def call(x):
        y = double.apply(x) if made == "Function" else 2 * x
        hooked = y if alias is None else alias(y)
        total = y * 0
        for n, weight in enumerate(weights[:2]):
            if n == place:
                hooked.register_hook(lambda g: 7 * g)
            total = total + weight * y
        if place == 2:
            hooked.register_hook(lambda g: 7 * g)
        return total + weights[2] * hooked

    x = subject.tensor(values).requires_grad_()

    def check(output):
        subject.assert_same("output of compiled code", got=output, expected=2 * sum(weights) * values)
        (got,) = torch.autograd.grad(output, x, subject.tensor(values))
        plain, seen = (0, sum(weights)) if alias is None else (sum(weights[:2]), weights[2])
        slope = (factor if made == "Function" else 2) * (plain + 7 * seen)
        subject.assert_same("gradient of compiled code", got=got, expected=slope * values)

    assert_right_or_refused(backend, call, [x], check)


@keeps("COMPILE-15", variant="runs", slow=True, examples=0.2)
def test_runs_before_a_backward_pass_are_apart(subject, data):
    """Passes over several runs of one compiled function, in any order, are those of their own run."""
    drawn = st.lists(st.tuples(VALUES, st.sampled_from((2.0, 5.0))), min_size=2, max_size=3)
    runs = subject.draw(data, drawn, "x of each run, and a number on ctx")
    order = subject.draw(data, st.permutations(range(len(runs))), "order of the passes")
    factor, backend = subject.draw(data, FACTORS, "factor"), subject.draw(data, BACKENDS, "backend")

    def forward(ctx, x, number):
        ctx.save_for_backward(x)
        ctx.number = number
        return number * x * x

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return factor * ctx.number * x * g, None

    cls = subject.define(forward=forward, backward=backward)
    leaves = [subject.tensor(values).requires_grad_() for values, _ in runs]
    with fresh():
        compiled = torch.compile(lambda x, number: cls.apply(x, number), backend=backend)
        outputs = [compiled(x, number) for x, (_, number) in zip(leaves, runs, strict=True)]
        for n in order:
            values, number = runs[n]
            subject.assert_same("output of a run", got=outputs[n], expected=number * values**2)
            (got,) = torch.autograd.grad(outputs[n].sum(), leaves[n])
            subject.assert_same("gradient of a run", got=got, expected=factor * number * values)

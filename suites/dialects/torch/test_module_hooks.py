"""Backward hooks of modules whose forward calls a custom Function."""

from math import prod

import numpy as np
import torch
from hypothesis import strategies as st
from torch.nn.utils import parametrize

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.contract._derivatives import drawn_cotangents
from autograd_conformance.suites.dialects.torch._module_hooks import (
    KINDS,
    Called,
    Calling,
    Hook,
    asked_of,
    drawn_call,
    hooks_of,
    in_order,
)


def _check_log(subject, call, got, expected):
    """Each hook ran once, in this order, with these values."""
    kinds = [hook.kind for hook, _ in expected]
    subject.assert_equal("hooks that ran", got=[hook.kind for hook, _ in got], expected=kinds)
    for number, ((hook, mine), (right, theirs)) in enumerate(zip(got, expected, strict=True)):
        subject.assert_equal(f"what ran in place {number}", got=hook, expected=right)
        what = f"types of what {hook.kind} {number} gets"
        subject.assert_equal(what, got=[type(values) for values in mine], expected=[tuple] * len(theirs))
        *gradients, cotangents = mine
        subject.assert_all_same(f"grad_output of {hook.kind} {number}", got=cotangents, expected=theirs[-1])
        for values in gradients:
            what = f"number of the entries of grad_input of {hook.kind} {number}"
            subject.assert_equal(what, got=len(values), expected=call.positional)
            pick = lambda them: [them[i] for i in call.documented]  # noqa: E731
            what = f"grad_input of {hook.kind} {number}, of what is no tensor or requires grad"
            subject.assert_all_same(what, got=pick(values), expected=pick(theirs[0]))


def _check_until_removed(subject, data, kind):
    """Passes with some hooks, and a call without those that are removed."""
    call = drawn_call(subject, data)
    hooks = subject.draw(data, hooks_of((kind,)), "hooks")
    removed = subject.draw(data, st.sets(st.sampled_from(range(len(hooks)))), "hooks removed before the second call")
    cotangents = drawn_cotangents(subject, data, call.polynomial)
    asked = asked_of(subject, data, call)
    passes = subject.draw(data, (1, 2), "passes")
    with call.hooked(hooks) as (log, handles):
        for gone in ((), removed):
            [handles[i].remove() for i in gone]
            expected, right = call.right([h for i, h in enumerate(hooks) if i not in gone], cotangents, asked)
            outputs = call.outputs()
            for _ in range(passes):
                log.clear()
                gradients = call.gradients(outputs, cotangents, asked)
                _check_log(subject, call, log, expected)
                subject.assert_all_same("gradients", got=gradients, expected=right)


@keeps("MODULE-01")
def test_hooks_of_a_module_replace_the_gradients_of_its_inputs(subject, data):
    """Hooks see and replace the gradients of positional arguments in each pass; removed ones no longer run."""
    _check_until_removed(subject, data, "hook")


@keeps("MODULE-02")
def test_pre_hooks_of_a_module_replace_the_gradients_of_its_outputs(subject, data):
    """Pre-hooks see and replace the gradients of outputs in each pass; removed ones no longer run."""
    _check_until_removed(subject, data, "pre-hook")


@keeps("MODULE-04")
def test_hooks_of_modules_run_in_the_documented_order(subject, data):
    """Pre-hooks run before hooks; of each kind first those of all modules, then those with prepend."""
    call = drawn_call(subject, data)
    hooks = subject.draw(data, hooks_of(KINDS, everywhere=True, least=3, most=8), "hooks")
    expected = [hook for kind in KINDS for hook in in_order(hooks, kind)]
    with call.hooked(hooks) as (log, _):
        call.gradients(call.outputs(), call.polynomial.cotangents(), call.tracked)
    subject.assert_equal("hooks that ran, in their order", got=[hook for hook, _ in log], expected=expected)


@keeps("MODULE-01", variant="differentiable")
def test_what_hooks_of_a_module_return_is_differentiated(subject, data):
    """Second derivatives go through what hooks return, and the second pass runs no hook that it does not reach."""
    polynomial = subject.polynomial(data, arguments=("tracked",), outputs=("float",), max_outputs=1, powers=(2,))
    call = Called(subject, polynomial, len(polynomial.arguments))
    hooks = subject.draw(data, hooks_of(("hook",)), "hooks")
    cotangents = polynomial.cotangents()
    (g,) = subject.tensors(cotangents, polynomial.dtype)
    with call.hooked(hooks) as (log, _):
        first = torch.autograd.grad(call.outputs(), call.leaves, g, create_graph=True)
        number = len(log)
        ones = [torch.ones_like(x) for x in first]
        second = torch.autograd.grad(first, call.leaves, ones)
        what = "hooks that the first pass ran, and those that the second one ran"
        subject.assert_equal(what, got=[number, len(log) - number], expected=[len(hooks), 0])
    factor = prod(hook.factor or 1 for hook in hooks)
    expected = [2 * factor * weight * cotangents[0] for weight in polynomial.weights[0]]
    subject.assert_all_same("second derivatives", got=second, expected=expected)


@keeps("MODULE-03")
def test_hooks_of_a_module_fire_without_an_input_that_requires_grad(subject, data):
    """With none but keyword arguments that require grad hooks run with None for each input, once a pass."""
    call = drawn_call(subject, data, inputs=False)
    hooks = subject.draw(data, st.lists(st.builds(Hook, st.sampled_from(KINDS)), min_size=1, max_size=3), "hooks")
    cotangents, asked = drawn_cotangents(subject, data, call.polynomial), asked_of(subject, data, call)
    nothing = (None,) * call.positional
    expected = [(h, (cotangents,)) for h in hooks if h.kind == "pre-hook"]
    expected += [(h, (nothing, cotangents)) for h in hooks if h.kind == "hook"]
    with call.hooked(hooks) as (log, _):
        outputs = call.outputs()
        for _ in range(subject.draw(data, (1, 2), "passes")):
            log.clear()
            gradients = call.gradients(outputs, cotangents, asked)
            _check_log(subject, call, log, expected)
            right = call.polynomial.vjp(cotangents)
            subject.assert_all_same("gradients", got=gradients, expected=[right[i] for i in asked])


STOPPED = {
    "under no_grad": (torch.no_grad(), lambda x: x, lambda y: y),
    "with detached inputs": (torch.enable_grad(), torch.Tensor.detach, lambda y: y),
    "with a forward that detaches": (torch.enable_grad(), lambda x: x, torch.Tensor.detach),
}


@keeps("MODULE-03", variant="outputs")
def test_hooks_of_a_module_do_not_fire_without_an_output_that_requires_grad(subject, data):
    """Where no output requires grad a pass over what was made of outputs and inputs runs no hook."""
    way = subject.draw(data, STOPPED, "the module is called")
    mode, of_inputs, of_outputs = STOPPED[way]
    call = drawn_call(subject, data, outputs=("float",))
    function = call.module.function
    call.module.function = lambda *args: tuple(map(of_outputs, function(*args)))
    hooks = subject.draw(data, hooks_of(KINDS, everywhere=True), "hooks")
    with call.hooked(hooks) as (log, _):
        with mode:
            outputs = call.outputs(of_inputs)
        x = call.leaf_of(call.tracked[0])
        y = outputs if call.form == "tensor" else outputs[0]
        gradient = torch.autograd.grad((x * y).sum(), x)[0]
    subject.assert_same("gradient", got=gradient, expected=call.polynomial.forward()[0])
    subject.assert_equal("hooks that ran", got=[hook.kind for hook, _ in log], expected=[])


CHANGES = {
    "add_": lambda t: t.add_(1),
    "zero_": lambda t: t.zero_(),
    "index": lambda t: t.__setitem__(..., 0),
    "data of another": lambda t: t.copy_(torch.ones_like(t)),
}


def _shares(a, b):
    return a is not b and a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


@keeps("MODULE-05")
def test_inputs_of_a_module_with_hooks_are_views(subject, data):
    """forward gets a view of each tensor, and changing one that requires grad raises; without hooks it does not."""
    change = subject.draw(data, CHANGES, "change")
    seen, which = [], []
    call = drawn_call(subject, data, before=lambda args: (seen.append(args), [CHANGES[change](args[i]) for i in which]))
    hooks = subject.draw(data, hooks_of(KINDS, everywhere=True), "hooks")
    argument = subject.draw(data, call.tracked, "argument that forward changes")
    tensors = [i for i in call.polynomial.tensors if i < call.positional]
    given = {}
    prepare = lambda x: given.setdefault(id(x), x * 1)  # noqa: E731
    with call.hooked(hooks):
        call.outputs(prepare)
        got = [_shares(seen[0][i], given[id(call.leaf_of(i))]) for i in tensors]
        subject.assert_equal("tensors of forward that are views", got=got, expected=[True] * len(tensors))
        which.append(argument)
        what = "a change of an input in the forward of a module with hooks"
        subject.assert_raises(RuntimeError, lambda: call.outputs(prepare), what, naming=[("view", "views")])
    given.clear()
    subject.assert_accepted(lambda: call.outputs(prepare), "a change of an input in a module without hooks")


@keeps("MODULE-05", variant="outputs")
def test_outputs_of_a_module_with_hooks_are_views(subject, data):
    """The caller gets a view of each tensor, and changing one that requires grad raises; without hooks it does not."""
    change = subject.draw(data, CHANGES, "change")
    call = drawn_call(subject, data)
    hooks = subject.draw(data, hooks_of(KINDS, everywhere=True), "hooks")
    output = subject.draw(data, call.polynomial.float_outputs, "output that is changed")
    made, function = [], call.module.function
    call.module.function = lambda *args: made.append(function(*args)) or made[-1]
    with call.hooked(hooks):
        outputs = call.outputs()
        got = (outputs,) if call.form == "tensor" else tuple(outputs)
        pairs = [(a, b) for a, b in zip(got, made[0], strict=True) if isinstance(a, torch.Tensor)]
        what = "outputs of the module that are views"
        subject.assert_equal(what, got=[_shares(*pair) for pair in pairs], expected=[True] * len(pairs))
        what = "a change of an output of a module with hooks"
        subject.assert_raises(RuntimeError, lambda: CHANGES[change](got[output]), what, naming=[("view", "views")])
    plain = call.outputs()
    y = plain if call.form == "tensor" else plain[output]
    subject.assert_accepted(lambda: CHANGES[change](y), "a change of an output of a module without hooks")


COUNTS = {"a value too few": -1, "a value too many": 1}


@keeps("MODULE-06")
def test_hooks_of_a_module_return_as_many_values_as_they_get(subject, data):
    """A hook that returns one value too few or too many raises, after others that are right."""
    call = drawn_call(subject, data)
    kind = subject.draw(data, KINDS, "hook")
    way = subject.draw(data, COUNTS, "returned")
    before = subject.draw(
        data, st.lists(st.builds(Hook, st.just(kind), st.sampled_from((None, 2))), max_size=2), "before"
    )
    count = len(call.polynomial.outputs) if kind == "pre-hook" else call.positional
    asked = call.polynomial.tracked
    with call.hooked(before):
        Hook(kind).register(call.module, lambda module, values, *_: (*values, None)[: len(values) + COUNTS[way]])
        outputs = call.outputs()
        run = lambda: call.gradients(outputs, call.polynomial.cotangents(), asked)  # noqa: E731
        naming = [count, count + COUNTS[way]]
        subject.assert_raises(RuntimeError, run, f"a module's {kind} that returns {way}", naming=naming)


@keeps("MODULE-06", variant="inputs")
def test_hooks_of_a_module_without_inputs_replace_nothing(subject, data):
    """Where no input requires grad a hook may return None, once or for each input, and nothing else."""
    call = drawn_call(subject, data, inputs=False)
    position = subject.draw(data, range(-1, call.positional), "place of a tensor in what the hook returns, -1 for none")
    whole = subject.draw(data, (False, position < 0), "the hook returns None")
    cotangents, asked = call.polynomial.cotangents(), call.reached

    def hook(module, gradients, cotangents):
        given = next(g for g in cotangents if g is not None)
        return None if whole else tuple(given if i == position else g for i, g in enumerate(gradients))

    call.module.register_full_backward_hook(hook)
    outputs = call.outputs()
    run = lambda: call.gradients(outputs, cotangents, asked)  # noqa: E731
    if position < 0:
        got = subject.assert_accepted(run, "a hook without inputs that returns None")
        right = call.polynomial.vjp(cotangents)
        subject.assert_all_same("gradients", got=got, expected=[right[i] for i in asked])
    else:
        subject.assert_raises(RuntimeError, run, "a hook without inputs that returns a tensor", naming=["None"])


@keeps("MODULE-07")
def test_a_parametrization_has_the_gradient_of_its_function(subject, data):
    """Through Functions as parametrizations the gradient reaches the original of a tensor."""
    count = subject.draw(data, (1, 2), "parametrizations, of which each calls the Function")
    # Squares of squares have too many digits for half precision.
    powers = (1, 2) if count == 1 else (1,)
    first = subject.polynomial(data, max_arguments=1, max_outputs=1, powers=powers)
    reads = subject.draw(data, (1, 2), "reads of the tensor")
    cached = subject.draw(data, st.booleans(), "under parametrize.cached")
    module = torch.nn.Module()
    module.register_parameter("weight", torch.nn.Parameter(subject.primals(first)[0]))
    function = subject.implementation.function(subject.body(first))
    for _ in range(count):
        parametrize.register_parametrization(module, "weight", Calling(function, "tensor"))
    (cotangent,) = first.cotangents()
    g = subject.tensor(cotangent, first.dtype)
    with parametrize.cached() if cached else torch.enable_grad():
        values = [module.weight for _ in range(reads)]
    torch.autograd.backward(values, [g] * reads)
    value, slope, weight = first.values[0], 1, first.weights[0, 0]
    for _ in range(count):
        slope = slope * weight * (2 * value if first.power == 2 else 1)
        value = weight * value**first.power
    subject.assert_all_same("value", got=values, expected=[value] * reads)
    got = module.parametrizations.weight.original.grad
    subject.assert_same("gradient of the original", got=got, expected=reads * slope * cotangent)


class _Halves(torch.nn.Module):
    """A tensor as the sum of two, of which each is half of it at first, or of one in a list or alone."""

    def __init__(self, add, count):
        super().__init__()
        self.add, self.count = add, count

    def forward(self, *parts):
        """The sum, by the Function."""
        return self.add(*parts) if self.count == 2 else self.add(parts[0], 0 * parts[0])

    def right_inverse(self, whole):
        """The parts of a value."""
        parts = [whole / self.count] * self.count
        return parts[0].clone() if self.count == 1 else [part.clone() for part in parts]


# The names of the originals, by their number.
_ORIGINALS = {1: ["original"], 2: ["original0", "original1"]}


@keeps("MODULE-08")
def test_a_value_set_goes_to_the_originals(subject, data):
    """right_inverse takes what is set apart; each original has a gradient, and removal leaves one tensor."""
    count = subject.draw(data, (2, 1), "originals")
    buffer, left = subject.draw(data, st.tuples(st.booleans(), st.booleans()), "a buffer, left parametrized")
    # Powers of two can be halved in each precision.
    powers = st.lists(st.sampled_from((2.0, -4.0, 8.0)), min_size=2, max_size=2)
    values = [np.array(each) for each in subject.draw(data, st.tuples(powers, powers), "values")]
    add = subject.custom(forward=lambda ctx, x, y: x + y, backward=lambda ctx, g: (3 * g, 5 * g))
    module = torch.nn.Module()
    if buffer:
        module.register_buffer("weight", subject.tensor(values[0]))
    else:
        module.weight = torch.nn.Parameter(subject.tensor(values[0]))
    parametrize.register_parametrization(module, "weight", _Halves(add, count))
    originals = [getattr(module.parametrizations.weight, name) for name in _ORIGINALS[count]]
    for number, value in enumerate(values):
        if number:
            module.weight = subject.tensor(value)
        subject.assert_same(f"value {number}", got=module.weight, expected=value)
        subject.assert_all_same("originals", got=originals, expected=[value / count] * count)
    kinds = [isinstance(each, torch.nn.Parameter) for each in originals]
    subject.assert_equal("originals that are parameters", got=kinds, expected=[not buffer] * count)
    if not buffer:
        module.weight.sum().backward()
        slopes = [np.full(2, slope) for slope in (3.0, 5.0)[:count]]
        subject.assert_all_same("gradients", got=[each.grad for each in originals], expected=slopes)
    # Of several originals only the sum is left.
    parametrize.remove_parametrizations(module, "weight", leave_parametrized=left or count == 2)
    subject.assert_same("value after removal", got=module.weight, expected=values[1])
    about = (parametrize.is_parametrized(module), isinstance(module.weight, torch.nn.Parameter))
    subject.assert_equal("whether it is parametrized then, and a parameter", got=about, expected=(False, not buffer))


def _returning(result, inverse=None):
    """A parametrization that returns this of its argument."""
    members = {"forward": lambda self, x: result(x), **({"right_inverse": inverse} if inverse else {})}
    return type("Returning", (torch.nn.Module,), members)()


# A parametrization that changes what it must not, by its methods.
_REFUSED = {
    "another shape": lambda: _returning(lambda x: x[:1]),
    "another dtype": lambda: _returning(lambda x: x.to(torch.float16)),
    "no tensor": lambda: _returning(lambda x: None),
    "an inverse of another dtype": lambda: _returning(lambda x: x, lambda self, x: x.to(torch.float16)),
    "an inverse that is no tensor": lambda: _returning(lambda x: x, lambda self, x: 3),
    "parts that are no tensors": lambda: _returning(lambda x: x, lambda self, x: [x, 3]),
}


@keeps("MODULE-08", variant="unsafe")
def test_an_unsafe_parametrization_may_change_shape_and_dtype(subject, data):
    """With unsafe=True a parametrization may give another shape or dtype, which the tensor then has."""
    changed = _REFUSED[subject.draw(data, ("another shape", "another dtype"), "what it gives")]
    module = torch.nn.Module()
    module.weight = torch.nn.Parameter(subject.tensor(np.array([2.0, 4.0])))
    register = lambda: parametrize.register_parametrization(module, "weight", changed(), unsafe=True)  # noqa: E731
    subject.assert_accepted(register, "registering it")
    expected = changed()(subject.tensor(np.array([2.0, 4.0])))
    got = (tuple(module.weight.shape), module.weight.dtype)
    subject.assert_equal("shape and dtype", got=got, expected=(tuple(expected.shape), expected.dtype))
    subject.assert_equal("whether it is parametrized", got=parametrize.is_parametrized(module), expected=True)
    # An attribute of a module's own may have the name that parametrizations use.
    other = torch.nn.Module()
    other.parametrizations = [1]
    subject.assert_equal("whether another is", got=parametrize.is_parametrized(other), expected=False)


@keeps("MODULE-08", variant="refused")
def test_a_parametrization_keeps_shape_and_dtype(subject, data):
    """Registering one that gives another shape, dtype or type raises and leaves the module as it was."""
    wrong = _REFUSED[subject.draw(data, tuple(_REFUSED), "what it gives")]
    second = subject.draw(data, st.booleans(), "after another one")
    module = torch.nn.Module()
    module.weight = torch.nn.Parameter(subject.tensor(np.array([2.0, 4.0])))
    if second:
        parametrize.register_parametrization(module, "weight", _returning(lambda x: 2 * x, lambda self, x: x / 2))
    register = lambda: parametrize.register_parametrization(module, "weight", wrong())  # noqa: E731
    subject.assert_raises(ValueError, register, "registering it")
    subject.assert_same("weight after it", got=module.weight, expected=np.array([2.0, 4.0]))

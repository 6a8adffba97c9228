"""Modules as functions of their parameters: functional_call and stack_module_state, with a custom Function inside."""

import numpy as np
import torch
from hypothesis import strategies as st
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.nn.utils import parametrize

from autograd_conformance.harness.testing.marks import keeps

# Gradients of this Function are too large by this factor: they show that its backward was used.
FACTOR = 3
SIZE = (2,)


def _product(subject):
    """The apply of a Function for products of numbers and tensors."""

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return FACTOR * g * y, FACTOR * g * x

    members = {"forward": lambda x, y: x * y, "setup_context": setup_context, "backward": backward}
    return subject.custom(**members, separate=True, generate_vmap_rule=True)


class Scaled(torch.nn.Module):
    """The product of its argument, its weight, which is shared with an inner module if `tied`, and their sum."""

    def __init__(self, subject, product, values, tied, counting):
        super().__init__()
        self.product, self.counting = product, counting
        self.weight = torch.nn.Parameter(subject.tensor(values[0]))
        self.inner = torch.nn.Module()
        self.inner.bias = self.weight if tied else torch.nn.Parameter(subject.tensor(values[1]))
        self.register_buffer("calls", subject.tensor(np.zeros(())))

    def forward(self, x, *, factor=1):
        """``factor * weight * x + bias``."""
        if self.counting == "in place":
            self.calls.add_(1)
        elif self.counting == "assigned":
            self.calls = self.calls + 1
        return factor * self.product(self.weight, x) + self.inner.bias


def _numbers(subject, data, count, what):
    """So many small arrays."""
    some = st.lists(st.sampled_from((1.0, -2.0, 3.0)), min_size=2, max_size=2)
    return [np.array(each) for each in subject.draw(data, st.tuples(*[some] * count), what)]


@keeps("FUNC-23")
def test_functional_call_is_a_function_of_what_it_gets(subject, data):
    """The result and the gradients are those of the given tensors; the module keeps its own."""
    tied = subject.draw(data, st.booleans(), "tied weights")
    counting = subject.draw(data, ("in place", "assigned", ""), "how the buffer counts")
    own, given, x = _numbers(subject, data, 2, "own"), _numbers(subject, data, 2, "given"), np.array((2.0, -1.0))
    module = Scaled(subject, _product(subject), own, tied, counting)
    names = ["weight"] if tied else subject.draw(data, (["weight", "inner.bias"], ["inner.bias"]), "replaced")
    replaced = {"weight": given[0], "inner.bias": given[1]}
    state = {name: subject.tensor(replaced[name]) for name in names}
    buffers = {"calls": subject.tensor(np.array(5.0))}
    # What is assigned is put into the dict itself, of which there is to be one.
    in_two = subject.draw(data, (False,) if counting == "assigned" else (False, True), "a tuple of dicts")
    factor, tie = subject.draw(data, (1, 2), "factor"), subject.draw(data, (True, False), "tie_weights")

    def called(state, buffers):
        dicts = (state, buffers) if in_two else {**state, **buffers}
        result = functional_call(module, dicts, subject.tensor(x), {"factor": factor}, tie_weights=tie)
        if not in_two:
            buffers["calls"] = dicts["calls"]
        return result

    weight = given[0] if "weight" in names else own[0]
    bias = (given[0] if tie else own[0]) if tied else given[1]
    subject.assert_same("result", got=called(state, buffers), expected=factor * weight * x + bias)
    got = grad(lambda state: called(state, {"calls": buffers["calls"].clone()}).sum())(state)
    of_weight = FACTOR * factor * x + (tied and tie)
    expected = {"weight": of_weight, "inner.bias": np.ones(SIZE)}
    subject.assert_all_same(
        "gradients of what is given", got=[got[n] for n in names], expected=[expected[n] for n in names]
    )
    mine = [module.weight, module.inner.bias, module.calls]
    kept = [own[0], own[0] if tied else own[1], np.zeros(())]
    subject.assert_all_same("what the module has after it", got=mine, expected=kept)
    subject.assert_equal("gradient of the module's weight", got=module.weight.grad, expected=None)
    subject.assert_same("the given buffer", got=buffers["calls"], expected=np.array(5.0 + bool(counting)))


# A call of functional_call that is refused, by the module's state and options.
_REFUSED = {
    "a dict of a key twice": (ValueError, lambda module, s: functional_call(module, (s, s), s["weight"])),
    "no dict": (ValueError, lambda module, s: functional_call(module, 3, s["weight"])),
    "a tuple of others than dicts": (ValueError, lambda module, s: functional_call(module, (s, 3), s["weight"])),
    "a missing key, strict": (RuntimeError, lambda module, s: functional_call(module, s, s["weight"], strict=True)),
    "an unknown key, strict": (
        RuntimeError,
        lambda module, s: functional_call(
            module, {**s, "inner.bias": s["weight"], "calls": module.calls, "no": s["weight"]}, s["weight"], strict=True
        ),
    ),
    "two values for a tied weight": (
        ValueError,
        lambda module, s: functional_call(module, {**s, "inner.bias": s["weight"] + 1}, s["weight"]),
    ),
}


@keeps("FUNC-23", variant="refused")
def test_functional_call_refuses_what_is_ambiguous(subject, data):
    """What is forbidden raises, and leaves the module as it was."""
    error, call = _REFUSED[subject.draw(data, tuple(_REFUSED), "call")]
    (own,) = _numbers(subject, data, 1, "own")
    module = Scaled(subject, _product(subject), [own], tied=True, counting="")
    given = {"weight": subject.tensor(own + 1)}
    subject.assert_raises(error, lambda: call(module, given), "functional_call")
    subject.assert_same("weight after it", got=module.weight, expected=own)


@keeps("FUNC-23", variant="parametrized")
def test_a_value_for_a_parametrized_tensor_is_taken_as_it_is(subject, data):
    """By the regular name a value stays as it is, and by the name of the original it is parametrized."""
    (value,) = _numbers(subject, data, 1, "value")
    by_original = subject.draw(data, (False, True), "by the name of the original")

    class Halved(torch.nn.Module):
        def forward(self, x):
            return x / 2

        def right_inverse(self, x):
            return x.clone()

    module = torch.nn.Linear(2, 1, bias=False, device=subject.device)
    parametrize.register_parametrization(module, "weight", Halved())
    name = "parametrizations.weight.original" if by_original else "weight"
    state = {name: subject.tensor(value, "float32").reshape(1, 2)}
    ones = subject.tensor(np.ones(2), "float32")
    got = torch.func.functional_call(module, state, (ones,))
    expected = value.sum() / (2 if by_original else 1)
    subject.assert_same("result", got=got, expected=np.array([expected], "float32"))


@keeps("FUNC-24")
def test_stacked_modules_are_an_ensemble(subject, data):
    """In vmap, stacked modules have the results and gradients of each; stacking makes new leaves."""
    count = subject.draw(data, (2, 3, 1), "modules")
    fixed = subject.draw(data, st.booleans(), "weights that require no grad")
    product, x = _product(subject), np.array((2.0, -1.0))
    weights, biases = _numbers(subject, data, count, "weights"), _numbers(subject, data, count, "biases")
    modules = [Scaled(subject, product, pair, False, "") for pair in zip(weights, biases, strict=True)]
    [module.weight.requires_grad_(not fixed) for module in modules]
    parameters, buffers = stack_module_state(modules)
    shapes = {name: tuple(t.shape) for name, t in {**parameters, **buffers}.items()}
    right = {"weight": (count, *SIZE), "inner.bias": (count, *SIZE), "calls": (count,)}
    subject.assert_equal("shapes of what is stacked", got=shapes, expected=right)
    about = {name: (t.requires_grad, t.is_leaf) for name, t in parameters.items()}
    expected = {"weight": (not fixed, True), "inner.bias": (True, True)}
    subject.assert_equal("what is a leaf, and requires grad", got=about, expected=expected)

    def called(parameters, buffers, x):
        return functional_call(modules[0], (parameters, buffers), (x,))

    results = vmap(called, in_dims=(0, 0, None))(parameters, buffers, subject.tensor(x))
    subject.assert_same("results", got=results, expected=np.stack(weights) * x + np.stack(biases))
    results.sum().backward()
    got = [parameters["inner.bias"].grad, *([] if fixed else [parameters["weight"].grad])]
    slopes = [np.ones((count, *SIZE)), *([] if fixed else [np.tile(FACTOR * x, (count, 1))])]
    subject.assert_all_same("gradients of what is stacked", got=got, expected=slopes)
    own = [module.inner.bias.grad for module in modules]
    subject.assert_equal("gradients of the modules themselves", got=own, expected=[None] * count)


# Lists of modules that are not alike.
_UNLIKE = {
    "none": lambda make: [],
    "training and not": lambda make: [make(), make().eval()],
    "of two classes": lambda make: [make(), torch.nn.Linear(2, 2)],
    "requires grad and not": lambda make: [make(), make().requires_grad_(False)],
}


@keeps("FUNC-24", variant="refused")
def test_modules_that_are_not_alike_are_not_stacked(subject, data):
    """stack_module_state raises for no module, for two modes or classes, and where requires_grad differs."""
    listed = _UNLIKE[subject.draw(data, tuple(_UNLIKE), "modules")]
    product = _product(subject)

    def make():
        return Scaled(subject, product, [np.ones(SIZE), np.ones(SIZE)], False, "")

    subject.assert_raises(RuntimeError, lambda: stack_module_state(listed(make)), "stack_module_state")

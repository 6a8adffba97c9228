"""In-place changes of views and shared storages, and tensor hooks around them."""

from functools import partial

import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.strategies.generated_functions import views
from autograd_conformance.suites.contract._inplace_and_views import NONEMPTY, applied, drawn_change, with_history


def without_grad(make):
    """The same view, made under no_grad."""
    return lambda x: torch.no_grad()(make)(x)


# Views of the same shape as their base: of a leaf that requires grad, one of several from one operation, and made
# under no_grad.
REFUSED = {
    "view_as of a leaf": lambda x: x.view_as(x),
    "index of a leaf": lambda x: x[None][0],
    "transpose of a leaf": lambda x: x[None].transpose(0, -1).transpose(0, -1)[0],
    "unbind": lambda x: with_history(x)[None].unbind()[0],
    "chunk": lambda x: with_history(x)[None].chunk(1)[0][0],
    "split": lambda x: torch.stack([x, x]).split(1)[0][0],
    "view of a leaf under no_grad": without_grad(lambda x: x[...]),
    "view of another tensor under no_grad": lambda x: without_grad(lambda y: y[...])(with_history(x)),
}


@keeps("DIRTY-05")
def test_views_that_cannot_be_followed_are_refused(subject, data):
    """Marking such a view as dirty raises; another view is accepted."""
    change = drawn_change(subject, data, shapes=NONEMPTY, new_outputs=0, arguments=("tracked", "fixed"))
    kind = subject.draw(data, REFUSED, "changed argument")

    def prepare(i, x):
        return REFUSED[kind](x) if i in change.changed else with_history(x)

    def followed(i, x):
        return with_history(x)[None][0] if i in change.changed else with_history(x)

    call = partial(applied, subject, change)
    what = "marking as dirty a view that cannot be followed"
    subject.assert_raises(RuntimeError, partial(call, prepare), what, naming=[("view", "leaf")])
    subject.assert_accepted(partial(call, followed), "marking as dirty another view")


@keeps("DIRTY-16")
def test_a_storage_that_others_refer_to_is_refused(subject, data):
    """Changing a tensor whose memory another tensor shares raises."""
    change = drawn_change(subject, data, shapes=NONEMPTY, new_outputs=0)
    position = subject.draw(data, change.changed, "argument that another tensor shares memory with")
    view = subject.draw(data, views(change.shape, empty=False), "the other tensor")
    others = []

    def prepare(i, x):
        argument = with_history(x)
        others.extend([view(argument)] if i == position else [])
        return argument

    call = partial(applied, subject, change)
    subject.assert_accepted(call, "a change in place of tensors that share no memory")
    what = "a change in place of a tensor that another shares memory with"
    subject.assert_raises(RuntimeError, partial(call, prepare), what)


@keeps("DIRTY-17")
def test_hooks_stay_with_the_value_that_they_were_registered_on(subject, data):
    """Each hook gets the gradient of the value at its registration, and later values' hooks run first."""
    events = subject.draw(data, st.lists(st.sampled_from(("hook", "change")), min_size=1, max_size=6), "events")
    factor = subject.draw(data, st.sampled_from((2, 3, -1)), "factor of each change")
    seen = {}

    def forward(ctx, x):
        x *= factor
        ctx.mark_dirty(x)
        return x

    scale = subject.custom(forward=forward, backward=lambda ctx, cotangent: factor * cotangent)
    leaf = subject.tensor([1.0, 2.0]).requires_grad_()
    x = with_history(leaf)
    for position, event in enumerate(events):
        if event == "hook":
            x.register_hook(lambda g, at=position: seen.__setitem__(at, g.clone()))
        else:
            scale(x)
    x.backward(subject.tensor([1.0, -1.0]))
    hooks = [i for i, event in enumerate(events) if event == "hook"]
    # Hooks of later values run first; hooks of one value run in order of registration.
    order = sorted(hooks, key=lambda i: (-events[:i].count("change"), i))
    subject.assert_equal("order in which the hooks ran", got=list(seen), expected=order)
    cotangent = subject.tensor([1.0, -1.0])
    expected = [cotangent * factor ** events[i:].count("change") for i in order]
    subject.assert_all_same("gradients that the hooks saw", got=list(seen.values()), expected=expected)
    subject.assert_same("gradient of the leaf", got=leaf.grad, expected=cotangent * factor ** events.count("change"))

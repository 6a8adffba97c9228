"""save_on_cpu: what is saved comes back as it was."""

import numpy as np
import torch
from hypothesis import strategies as st
from torch.autograd import graph

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.contract._ctx_observers import observing_ctx

DTYPES = ("float64", "float32", "float16", "bfloat16", "complex64", "int64", "uint8", "bool")
LAYOUTS = {
    "contiguous": lambda t: t,
    "transposed": lambda t: t.mT,
    "expanded": lambda t: t[:1].expand(4, 2, 2),
    "sparse": lambda t: t.to_sparse(),
}


@keeps("PACK-08", variant="cpu")
def test_save_on_cpu_gives_saved_tensors_back(subject, data):
    """Under save_on_cpu, backward gets the saved values in their dtype and on their device."""
    polynomial = subject.polynomial(data, separate=None)
    pinned = subject.draw(data, (False, True), "pin_memory")
    cotangents, seen = polynomial.cotangents(), []
    cls = observing_ctx(subject, polynomial, leave=lambda ctx: seen.extend(ctx.saved_tensors))
    run = subject.run(polynomial, cls=cls, under=lambda: graph.save_on_cpu(pin_memory=pinned))
    got = run.gradients(cotangents)
    subject.assert_all_same("gradients", got=got, expected=polynomial.vjp(cotangents))
    describe = subject.implementation.describe
    saved = [polynomial.values[i] for i in polynomial.floating]
    subject.assert_all_same("saved tensors in backward", got=seen, expected=saved)
    kinds = [(polynomial.dtype, subject.device)] * len(saved)
    what = "dtypes and devices of saved tensors in backward"
    subject.assert_equal(what, got=[(describe(t).dtype, describe(t).device) for t in seen], expected=kinds)


@keeps("PACK-08", needs="sparse", variant="kinds")
def test_save_on_cpu_gives_back_tensors_of_every_kind(subject, data):
    """Under save_on_cpu, what is saved comes back in its dtype and layout, and with its shape and values."""
    pinned = subject.draw(data, (False, True), "pin_memory")
    kinds = st.lists(st.tuples(st.sampled_from(DTYPES), st.sampled_from(tuple(LAYOUTS))), min_size=1, max_size=3)
    kinds, values = subject.draw(data, kinds, "dtypes and layouts of what is saved"), np.arange(8).reshape(2, 2, 2) % 3
    options = {"device": subject.device}
    saved = [LAYOUTS[form](torch.tensor(values, dtype=getattr(torch, dtype), **options)) for dtype, form in kinds]
    got = []

    def forward(ctx, x, *others):
        ctx.save_for_backward(*others)
        return 2 * x

    def backward(ctx, g):
        got.extend(ctx.saved_tensors)
        return (2 * g, *(None for _ in saved))

    apply = subject.custom(forward=forward, backward=backward)
    with graph.save_on_cpu(pin_memory=pinned):
        y = apply(torch.ones(2, **options).requires_grad_(), *saved)
    subject.assert_accepted(y.sum().backward, "a backward pass")
    describe = lambda t: (t.dtype, t.layout, t.device, t.shape)  # noqa: E731
    what = "dtypes, layouts, devices and shapes of what comes back"
    subject.assert_equal(what, got=[*map(describe, got)], expected=[*map(describe, saved)])
    found, expected = ([t.to_dense().resolve_conj().tolist() for t in each] for each in (got, saved))
    subject.assert_equal("values of what comes back", got=found, expected=expected)


@keeps("PACK-08", variant="no-copy")
def test_save_on_cpu_copies_nothing_that_is_there(subject, data):
    """Under save_on_cpu a tensor that is on the CPU is saved as it is, and one of another device is not."""
    size = subject.draw(data, st.integers(1, 4), "size")
    kept = torch.ones(size, device=subject.device)
    got = []

    def backward(ctx, g):
        got.append(ctx.saved_tensors[0].data_ptr() == kept.data_ptr())
        return g

    apply = subject.custom(forward=lambda ctx, x: (ctx.save_for_backward(kept), 2 * x)[1], backward=backward)
    with graph.save_on_cpu():
        y = apply(torch.ones(size, device=subject.device).requires_grad_())
    y.sum().backward()
    subject.assert_equal("whether its memory is shared", got=got, expected=[kept.device.type == "cpu"])

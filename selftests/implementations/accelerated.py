"""Experiments with the simulated accelerator: each fails if the device has the fault that it is about.

``python selftests/implementations/accelerated.py`` makes all of them on the right device and with each fault, and
prints the failures as JSON. They have a process of their own: one that has this device keeps it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "accelerator"))

import simulated_accelerator as device

HERE, THERE = "simulated:0", "simulated:1"
EXPERIMENTS: dict[str, Callable[[], None]] = {}

MATRIX = torch.tensor([[0.5, 2.0, 1.0], [3.0, 0.25, 4.0]], dtype=torch.float64)

OPERATIONS: dict[str, Callable[..., torch.Tensor | tuple[torch.Tensor, ...]]] = {
    "arithmetic": lambda x: (2 * x - 1) / x**2,
    "comparison": lambda x: x > 1,
    "logarithm": torch.log,
    "sum of rows": lambda x: x.sum(dim=0, keepdim=True),
    "mean of columns": lambda x: x.mT.mean(dim=0),
    "sum of integers": lambda x: (x * 2**31).long().sum(),
    "product of matrices": lambda x: x @ x.mT,
    "product of float32 matrices": lambda x: x.float() @ x.float().mT.contiguous(),
    "solution": lambda x: torch.linalg.solve(x[:, :2], x[:, 2]),
    "cumulative sum": lambda x: x.cumsum(1),
    "sorting": lambda x: tuple(x.sort(dim=1, descending=True)),
    "largest elements": lambda x: tuple(x.topk(2)),
    "selection by a mask": lambda x: x[x > 1],
    "selection by indices": lambda x: x[:, torch.tensor([2, 0], device=x.device)],
    "index_select": lambda x: x.index_select(1, torch.tensor([2, 0], device=x.device)),
    "choice": lambda x: torch.where(x > 1, x, 0.0),
    "concatenation": lambda x: torch.cat([x, x.flip(0)], dim=1),
    "padding": lambda x: torch.nn.functional.pad(x, (1, 1)),
    "complex numbers": lambda x: torch.complex(x, -x).conj() * 2j,
    "transposed result": lambda x: x.mT * 2,
    "no elements": lambda x: (x[:, :0].sum(dim=1), x[:0] * 2),
    "result of another size": lambda x: torch.mul(x, 2, out=torch.empty(0, dtype=x.dtype, device=x.device)),
    "windows": lambda x: x.unfold(1, 2, 1).sum(dim=-1),
}


class Exp(torch.autograd.Function):
    """A Function as users write it; its gradient is twice the right one, by a product with a number."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0] * 2


def experiment(made: Callable[[], None]) -> Callable[[], None]:
    """Register an experiment by its name."""
    EXPERIMENTS[made.__name__] = made
    return made


def same(got, expected) -> None:
    """Assert that results of the device are those of the CPU, and lie as these do."""
    got, expected = (each if isinstance(each, tuple) else (each,) for each in (got, expected))
    for mine, right in zip(got, expected, strict=True):
        assert str(mine.device) == HERE
        assert (mine.shape, mine.dtype, mine.stride()) == (right.shape, right.dtype, right.stride())
        torch.testing.assert_close(mine.cpu(), right, rtol=1e-12 if right.dtype == torch.float64 else 1e-6, atol=0)


def operation(name: str) -> Callable[[], None]:
    def holds() -> None:
        same(OPERATIONS[name](MATRIX.to(HERE)), OPERATIONS[name](MATRIX))

    holds.__name__ = name
    return holds


for _name in OPERATIONS:
    experiment(operation(_name))


@experiment
def dtypes_survive_a_copy() -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.complex64, torch.int8, torch.uint8, torch.bool):
        values = MATRIX.to(dtype)
        assert torch.equal(values.to(HERE).cpu(), values)
        assert torch.equal(MATRIX.to(HERE).to(dtype).cpu(), values)
    assert torch.from_numpy(np.eye(2)).to(HERE).tolist() == [[1.0, 0.0], [0.0, 1.0]]


@experiment
def views_share_memory() -> None:
    x = MATRIX.to(HERE)
    for view in (x.mT[1], x.view(3, 2)[0], x.as_strided((2,), (1,), 1), x[0].unfold(0, 2, 1)[0]):
        before = x.cpu()
        assert view._is_view()
        assert view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        view.add_(1)
        assert not torch.equal(x.cpu(), before)


@experiment
def a_view_is_copied_from_its_offset() -> None:
    x = MATRIX.to(HERE)
    assert torch.equal(x[1].cpu(), MATRIX[1])
    assert torch.equal(x[:, 1:].cpu(), MATRIX[:, 1:])


@experiment
def a_conjugate_is_copied() -> None:
    x = torch.complex(MATRIX, MATRIX)
    assert torch.equal(x.to(HERE).conj().cpu(), x.conj().resolve_conj())
    assert torch.equal(x.conj().to(HERE).cpu(), x.conj().resolve_conj())


@experiment
def versions_count_what_is_written() -> None:
    x = torch.zeros(3, device=HERE)
    before = x._version
    x.add_(1)
    x[1:].mul_(2)
    assert x._version == before + 2


@experiment
def tensors_are_on_the_device_that_was_asked_for() -> None:
    for name in (HERE, THERE):
        made = (torch.tensor([1.0], device=name), torch.zeros(1).to(name), torch.ones(1, device=name).exp())
        assert [str(each.device) for each in made] == [name] * 3
    with device.device(1):
        assert torch.ones(1, device="simulated").device.index == 1


@experiment
def devices_do_not_mix() -> None:
    x = MATRIX.to(HERE)
    assert refused(lambda: x + MATRIX).startswith("Expected all tensors to be on the same device")
    assert refused(lambda: x @ MATRIX.mT.to(THERE)).startswith("Expected all tensors to be on the same device")
    assert "no device simulated:2" in refused(lambda: torch.ones(1, device="simulated:2"))
    assert torch.equal((x + torch.tensor(1.0)).cpu(), MATRIX + 1)


def refused(call: Callable[[], object]) -> str:
    """The message of the error that a call raises; empty if it raises none."""
    try:
        call()
    except RuntimeError as error:
        return str(error)
    return ""


@experiment
def a_copy_between_devices_waits_for_both() -> None:
    x = MATRIX.to(HERE).exp()
    y = x.to(THERE)
    assert torch.equal(y.cpu(), MATRIX.exp())


@experiment
def a_function_has_its_gradients() -> None:
    x = MATRIX.to(HERE).requires_grad_()
    (first,) = torch.autograd.grad(Exp.apply(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert str(first.device) == str(second.device) == HERE
    torch.testing.assert_close(first.detach().cpu(), 2 * MATRIX.exp(), rtol=1e-12, atol=0)
    torch.testing.assert_close(second.cpu(), 4 * MATRIX.exp(), rtol=1e-12, atol=0)


@experiment
def float32_gradients_stay_on_the_device() -> None:
    x = torch.ones(3, device=HERE, requires_grad=True)
    (gradient,) = torch.autograd.grad(Exp.apply(x).sum(), x)
    assert str(gradient.device) == HERE


@experiment
def gradients_accumulate() -> None:
    x = MATRIX.to(HERE).requires_grad_()
    for _ in range(2):
        (x * x).sum().backward()
    assert torch.equal(x.grad.cpu(), 4 * MATRIX)


@experiment
def transforms_and_contexts() -> None:
    x = MATRIX.to(HERE)
    same(torch.func.vmap(torch.sin)(x), MATRIX.sin())
    same(torch.func.jvp(torch.sin, (x,), (torch.ones_like(x),))[1], MATRIX.cos())
    leaf = MATRIX.to(HERE).requires_grad_()
    y = torch.utils.checkpoint.checkpoint(torch.sin, leaf, use_reentrant=False)
    same(torch.autograd.grad(y.sum(), leaf)[0], MATRIX.cos())
    with torch.autocast("simulated", dtype=torch.bfloat16):
        assert (x.float() @ x.float().mT).dtype == torch.bfloat16
        assert x.bfloat16().exp().dtype == torch.float32


@experiment
def random_numbers_are_those_of_the_device() -> None:
    drawn = []
    for _ in range(2):
        torch.manual_seed(3)
        drawn.append(torch.rand(4, device=HERE).tolist())
    assert drawn[0] == drawn[1]
    ones = torch.ones(20, device=HERE)
    for draw in (torch.rand_like, torch.nn.functional.dropout, torch.bernoulli):
        state, kept = torch.get_rng_state(), device.get_rng_state()
        first = draw(ones).tolist()
        assert torch.equal(state, torch.get_rng_state())
        assert not torch.equal(kept, device.get_rng_state())
        device.set_rng_state(kept)
        assert draw(ones).tolist() == first
    own = [torch.rand(4, device=HERE, generator=torch.Generator(HERE).manual_seed(1)).tolist() for _ in range(2)]
    assert own[0] == own[1]
    assert "Expected a generator" in refused(lambda: torch.rand(4, device=HERE, generator=torch.Generator()))


@experiment
def operations_are_carried_out_when_somebody_waits() -> None:
    x = torch.ones(3, device=HERE)
    device.synchronize()
    y = x + 1
    stale = y.to("cpu", non_blocking=True)
    assert device.waiting() == 2
    assert stale.isnan().all()
    device.synchronize()
    assert device.waiting() == 0
    assert stale.tolist() == [2.0, 2.0, 2.0]


@experiment
def a_copy_to_the_host_waits() -> None:
    x = torch.ones(3, device=HERE).mul(3)
    assert x.cpu().tolist() == [3.0, 3.0, 3.0]
    assert x.add(1).sum().item() == 12.0


@experiment
def a_copy_to_the_device_has_read_the_host() -> None:
    host = torch.ones(3)
    x = host.to(HERE)
    host.zero_()
    assert x.tolist() == [1.0, 1.0, 1.0]


@experiment
def a_copy_from_pinned_memory_reads_the_host_later() -> None:
    host = torch.ones(3).pin_memory()
    assert host.is_pinned()
    x = host.to(HERE, non_blocking=True)
    host.zero_()
    assert x.tolist() == [0.0, 0.0, 0.0]


@experiment
def new_memory_holds_garbage() -> None:
    x = torch.empty(3, device=HERE)
    assert x.isnan().all().item()
    place = x.data_ptr()
    x.zero_()
    device.synchronize()
    del x
    again = torch.empty(3, device=HERE)
    assert again.data_ptr() == place
    assert again.isnan().all().item()


@experiment
def freed_memory_is_kept_while_work_is_queued() -> None:
    x = torch.ones(1000, device=HERE)
    device.synchronize()
    y = x * 2
    del x
    z = torch.zeros(1000, device=HERE)
    assert y.sum().item() == 2000.0
    assert z.sum().item() == 0.0


@experiment
def streams_have_no_common_order() -> None:
    side = torch.Stream(device=HERE)
    with side:
        x = torch.ones(3, device=HERE)
    assert x.isnan().all().item()
    side.synchronize()
    assert x.tolist() == [1.0, 1.0, 1.0]


@experiment
def an_event_orders_streams() -> None:
    side, event = torch.Stream(device=HERE), torch.Event(HERE)
    with device.stream(side):
        x = torch.ones(3, device=HERE) * 2
        event.record()
    assert not event.query()
    device.current_stream().wait_event(event)
    assert (x + 1).tolist() == [3.0, 3.0, 3.0]
    assert event.query()


@experiment
def backward_is_on_the_stream_of_forward() -> None:
    x = torch.ones(3, device=HERE, requires_grad=True)
    device.synchronize()
    with device.stream(torch.Stream(device=HERE)):
        (gradient,) = torch.autograd.grad(Exp.apply(x), x, torch.ones(3, device=HERE))
        found = gradient.cpu()
    torch.testing.assert_close(found, 2 * torch.ones(3).exp())


@experiment
def backward_leaves_the_current_device() -> None:
    for index in range(device.device_count()):
        device.set_device(index)
        x = torch.ones(3, device="simulated", requires_grad=True)
        Exp.apply(x).sum().backward()
        assert device.current_device() == index
        assert x.grad.device.index == index


@experiment
def an_error_of_a_kernel_comes_when_somebody_waits() -> None:
    y = torch.index_select(MATRIX.to(HERE), 1, torch.tensor([7], device=HERE))
    assert "aten::index_select" in refused(y.cpu)


@experiment
def what_runs_on_the_host_is_counted() -> None:
    before = device.fallbacks()
    x = MATRIX.to(HERE)
    x.exp().sum().item()
    assert device.fallbacks() == before
    x.nonzero()
    assert device.fallbacks() == {**before, "aten::nonzero": before.get("aten::nonzero", 0) + 1}


def failure(name: str, fault: str) -> str:
    """How an experiment fails with a fault; empty if it does not."""
    device.plant(fault)
    try:
        EXPERIMENTS[name]()
    except Exception as raised:  # noqa: BLE001 - a fault may raise anything
        return f"{type(raised).__name__}: {raised}"
    finally:
        device.plant("")
        device.set_device(0)
    return ""


if __name__ == "__main__":
    print(json.dumps({fault: {n: failure(n, fault) for n in EXPERIMENTS} for fault in ("", *device.FAULTS)}))

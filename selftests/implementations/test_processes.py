"""A function in several processes: its parts, its gradients, and what is said when a process cannot go on."""

from __future__ import annotations

import gc
import inspect
import os
import pickle
import signal
import sys
import threading
import time

import pytest

torch = pytest.importorskip("torch")

from torch import distributed  # noqa: E402 - torch may be missing
from torch.autograd.gradcheck import GradcheckError  # noqa: E402

from autograd_conformance import in_processes  # noqa: E402
from autograd_conformance.selftests.support.ended import assert_that_they_end  # noqa: E402

pytestmark = pytest.mark.skipif(not distributed.is_gloo_available(), reason="skip: this torch is without gloo")


def leaf(*shape):
    return torch.arange(1.0, 1 + torch.Size(shape).numel(), dtype=torch.float64).view(shape).requires_grad_()


class Summed(torch.autograd.Function):
    @staticmethod
    def forward(_, x):
        x = x.clone()
        distributed.all_reduce(x)
        return x

    @staticmethod
    def backward(_, g):
        g = g.clone()
        distributed.all_reduce(g)
        return g


class Lonely(Summed):
    """Its backward is right as long as there is one process."""

    @staticmethod
    def backward(_, g):
        return g.clone()


class Stuck(Summed):
    """One process waits in backward for the other."""

    @staticmethod
    def backward(ctx, g):
        return Summed.backward(ctx, g) if distributed.get_rank() == 0 else g.clone()


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_a_right_function_has_the_derivative_of_the_whole(processes):
    assert torch.autograd.gradcheck(in_processes(Summed.apply, processes), leaf(processes, 2))


def test_one_process_cannot_show_what_two_show():
    assert torch.autograd.gradcheck(in_processes(Lonely.apply, 1), leaf(1, 2))
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        torch.autograd.gradcheck(in_processes(Lonely.apply, 2), leaf(2, 2))


def test_each_process_has_its_part_and_its_rank():
    call = in_processes(lambda x, k: (x * k, torch.tensor(distributed.get_rank())), 3)
    y, ranks = call(leaf(3, 2), 10)
    assert y.tolist() == [[10, 20], [30, 40], [50, 60]]
    assert ranks.tolist() == [0, 1, 2]
    assert (y.requires_grad, ranks.requires_grad) == (True, False)


def test_gradients_are_asked_for_where_they_are_needed():
    """A process sees which arguments require grad, and what has no gradient is None."""
    call = in_processes(lambda x, w: (x + w.detach(), torch.tensor(float(w.requires_grad))))
    x, w = leaf(2, 2), leaf(2, 2)
    assert call(x, w.detach())[1].tolist() == [0, 0]
    y, flags = call(x, w)
    assert flags.tolist() == [1, 1]
    gx, gw = torch.autograd.grad(y.sum(), (x, w), allow_unused=True)
    assert (gx.tolist(), gw) == ([[1, 1], [1, 1]], None)


def test_none_in_one_of_the_processes_is_zeros():
    call = in_processes(lambda x: x * 2 if distributed.get_rank() else torch.zeros_like(x))
    x = leaf(2, 1)
    assert torch.autograd.grad(call(x).sum(), x)[0].tolist() == [[0], [2]]


def test_what_is_replicated_goes_to_all_and_counts_once():
    doubled = in_processes(lambda x: x * 2, replicated=(0,), replicated_outputs=True)
    x = leaf(3)
    y = doubled(x)
    assert y.tolist() == [2, 4, 6]
    assert torch.autograd.grad(y.sum(), x)[0].tolist() == [2, 2, 2]


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float16, torch.complex128])
def test_outputs_of_any_dtype_are_compared(dtype):
    one, other = torch.tensor([1, 0]).to(dtype), torch.tensor([0, 0]).to(dtype)
    assert in_processes(lambda _: one, replicated_outputs=True)(leaf(2, 1)).equal(one)
    with pytest.raises(RuntimeError, match="output 0 must be the same"):
        in_processes(lambda _: other if distributed.get_rank() else one, replicated_outputs=True)(leaf(2, 1))


def test_several_calls_are_kept_apart_and_may_be_differentiated_twice():
    call = in_processes(lambda x: x**2)
    x, other = leaf(2, 1), leaf(2, 1)
    y, z = call(x), call(10 * other)
    for _ in range(2):
        assert torch.autograd.grad(y.sum(), x, retain_graph=True)[0].tolist() == [[2], [4]]
    assert torch.autograd.grad(z.sum(), other)[0].tolist() == [[200], [400]]


def test_threads_share_the_processes():
    call, x, found = in_processes(Summed.apply), leaf(2, 1), []

    def run():
        found.append(torch.autograd.grad(call(x).sum(), x)[0].tolist())

    threads = [threading.Thread(target=run) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join(30) for thread in threads]
    assert found == [[[2], [2]]] * 4


def test_calls_that_nobody_holds_are_dropped():
    held = in_processes(lambda x: (x * 1, torch.tensor(len(calls_of_this_process()))))
    x = leaf(2, 1)
    counts = [held(x)[1].tolist() for _ in range(5)]
    assert counts == [[0, 0]] * 5
    kept = [held(x) for _ in range(4)]
    assert kept[-1][1].tolist() == [3, 3]


def calls_of_this_process():
    """The calls that the process which runs this keeps."""
    frame = sys._getframe()
    while "calls" not in getattr(frame.f_locals.get("self"), "__dict__", {}):
        frame = frame.f_back
    return frame.f_locals["self"].calls


def test_a_process_that_raises_says_what_and_the_next_call_works():
    def refusing(x):
        if x.sum() < 0 and distributed.get_rank() == 1:
            raise TypeError("x must be positive, got a negative one")
        return Summed.apply(x)

    call = in_processes(refusing)
    with pytest.raises(RuntimeError, match=r"^process 1 raised TypeError: x must be positive, got a negative one$"):
        call(-leaf(2, 1))
    assert call(leaf(2, 1)).tolist() == [[3], [3]]


def test_a_process_that_dies_is_named():
    with pytest.raises(RuntimeError, match="process 0 died"):
        in_processes(lambda x: os._exit(3) if distributed.get_rank() == 0 else x)(leaf(2, 1))


def test_a_process_that_died_between_two_calls_is_named_and_the_next_call_works():
    call = in_processes(lambda x: (x, torch.tensor(os.getpid())))
    os.kill(call(leaf(2, 1))[1][1].item(), 9)
    time.sleep(0.2)
    with pytest.raises(RuntimeError, match="process 1 died"):
        call(leaf(2, 1))
    assert call(leaf(2, 1))[0].tolist() == [[1], [2]]


def test_an_argument_that_cannot_be_sent_leaves_no_process_waiting():
    call = in_processes(lambda x, f: x if f is None else f(x))
    with pytest.raises((AttributeError, pickle.PicklingError)):
        call(leaf(2, 1), lambda x: x)
    assert call(leaf(2, 1), None).tolist() == [[1], [2]]


def test_a_process_that_waits_for_ever_is_ended_and_has_less_patience_then():
    call, x = in_processes(Stuck.apply, seconds=2), leaf(2, 1)
    with pytest.raises(RuntimeError, match=r"process 0 .*(Timed out|no answer)"):
        torch.autograd.grad(call(x).sum(), x)
    with pytest.raises(RuntimeError, match=r"Timed out waiting 1000ms|no answer within 1 s"):
        torch.autograd.grad(call(x).sum(), x)


def test_second_derivatives_are_refused():
    x = leaf(2, 1)
    (gx,) = torch.autograd.grad(in_processes(lambda x: x**3)(x).sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="first derivatives only"):
        gx.sum().backward()


def rank(x):
    return x * (1 + distributed.get_rank())


@pytest.mark.parametrize(
    ("make", "kind", "says"),
    [
        (lambda: in_processes(rank, 0), ValueError, "processes must be an integer of at least 1, got 0"),
        (lambda: in_processes(rank, 2.0), ValueError, "got 2.0"),
        (lambda: in_processes(rank, replicated=0), ValueError, "replicated must be positions .* got 0"),
        (lambda: in_processes(rank, replicated=(-1,)), ValueError, r"from 0 on, .* got \(-1,\)"),
        (lambda: in_processes(rank, replicated=(True,)), ValueError, r"got \(True,\)"),
        (lambda: in_processes(rank, replicated_outputs=(0,)), ValueError, r"True or False, of all .* got \(0,\)"),
        (lambda: in_processes(rank, seconds=-1), ValueError, "seconds must be a positive number, got -1"),
        (lambda: in_processes(rank, seconds="20"), ValueError, "seconds must be a positive number, got '20'"),
        (lambda: in_processes(lambda x, k: x * k, replicated=(1,))(leaf(2, 1), 3), ValueError,
         "argument 1 must be a tensor, since it is replicated, got int"),
        (lambda: in_processes(rank, replicated=(5,))(leaf(2, 1)), ValueError,
         "replicated must be positions of the 1 arguments, got 5"),
        (lambda: in_processes(lambda x: (x,) * (1 + distributed.get_rank()))(leaf(2, 1)), RuntimeError,
         "the outputs must be as many in all processes"),
        (lambda: in_processes(lambda x: (x, None))(leaf(2, 1)), RuntimeError,
         r"must return a tensor or a tuple of tensors, got tuple of \['Tensor', 'NoneType'\]"),
        (lambda: in_processes(lambda x: x.to(torch.float32 if distributed.get_rank() else None))(leaf(2, 1)),
         RuntimeError, r"output 0 must have one dtype and shape in all processes, got float32\[1\], float64\[1\]"),
        (lambda: in_processes(rank, replicated="x"), ValueError, r"replicated must be positions .* \(0,\), got 'x'"),
        (lambda: in_processes(rank)(leaf(3, 1)), ValueError, r"argument 0 must have 2 .* got the shape \(3, 1\)"),
        (lambda: in_processes(rank)(torch.tensor(1.0)), ValueError, r"got the shape \(\)"),
        (lambda: in_processes(rank, replicated_outputs=True)(leaf(2, 1)), RuntimeError, "output 0 must be the same"),
        (lambda: in_processes(rank, replicated=(0,))(leaf(1)).sum().backward(), RuntimeError,
         r"gradient of argument 0 must be the same .* at \(0,\) process 1 has 2.0, process 0 has 1.0; is an"),
        (lambda: in_processes(lambda x: x[: 1 + distributed.get_rank()])(leaf(2, 3)), RuntimeError,
         r"output 0 must have one dtype and shape in all processes, got float64\[1\], float64\[2\]"),
        (lambda: in_processes(lambda _: None)(leaf(2, 1)), RuntimeError,
         "process 0 raised TypeError: the function must return a tensor or a tuple of tensors, got NoneType"),
    ],
)  # fmt: skip
def test_each_mistake_has_a_message(make, kind, says):
    with pytest.raises(kind, match=says):
        make()


def test_a_change_in_place_is_one_of_the_callers_tensors():
    """So that a check sees it: of an argument, and of a cotangent that a collective writes to."""

    def changing(x, y):
        y.mul_(2)
        return Overwriting.apply(x)

    x, y, g = leaf(2, 1), leaf(2, 1).detach(), torch.ones(2, 1, dtype=torch.float64)
    z = in_processes(changing)(x, y)
    assert (y.tolist(), y._version) == ([[2], [4]], 2)
    torch.autograd.grad(z, x, g)
    assert g.tolist() == [[2], [2]]
    assert x._version == 0


class Overwriting(Summed):
    @staticmethod
    def backward(_, g):
        distributed.all_reduce(g)
        return g.clone()


def test_random_numbers_are_those_of_the_caller():
    call, x = in_processes(lambda x: x * torch.rand(1)), leaf(2, 1).detach()
    torch.manual_seed(3)
    first, second = call(x), call(x)
    torch.manual_seed(3)
    assert call(x).equal(first)
    assert not second.equal(first)
    torch.manual_seed(3)
    assert torch.rand(1).item() == pytest.approx(first[0].item())


def test_autocast_is_that_of_the_caller():
    call = in_processes(lambda x: x @ x)
    with torch.autocast("cpu", torch.bfloat16):
        assert call(torch.ones(2, 1, 1)).dtype is torch.bfloat16
    assert call(torch.ones(2, 1, 1)).dtype is torch.float32


def test_a_class_stands_for_its_apply_and_arguments_have_the_names_of_forward():
    call = in_processes(Summed)
    assert (call.__name__, [*inspect.signature(call).parameters]) == ("Summed", ["x"])
    assert call(leaf(2, 1)).tolist() == [[3], [3]]


def test_an_interrupted_call_leaves_no_answer_for_the_next_one():
    def interrupt(*_):
        raise KeyboardInterrupt

    call = in_processes(lambda x: (time.sleep(x[0].item()), x)[1])
    call(torch.zeros(2, 1))
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    with pytest.raises(KeyboardInterrupt):
        call(torch.full((2, 1), 5.0))
    signal.signal(signal.SIGALRM, before)
    assert call(torch.zeros(2, 1)).tolist() == [[0], [0]]


def test_what_all_processes_refuse_leaves_other_calls_as_they_are():
    def refusing(x):
        if x.dtype is torch.float32:
            raise TypeError("x must be in double precision, got float32")
        return x**2

    call, x = in_processes(refusing), leaf(2, 1)
    y = call(x)
    with pytest.raises(RuntimeError, match="process 0 raised TypeError: x must be in double precision, got float32"):
        call(torch.zeros(2, 1))
    assert torch.autograd.grad(y.sum(), x)[0].tolist() == [[2], [4]]


def test_backward_after_the_processes_have_ended_says_so():
    call = in_processes(lambda x: os._exit(1) if x.sum() < 0 else x**2)
    x = leaf(2, 1)
    y = call(x)
    with pytest.raises(RuntimeError, match="process 0 died"):
        call(-x)
    with pytest.raises(RuntimeError, match="backward must be in the process of its call, before another call fails"):
        torch.autograd.grad(y.sum(), x)


def pids_of(call):
    return call(torch.zeros(2, 1)).tolist()


def test_processes_end_with_the_function_though_others_run():
    first, second = (in_processes(lambda _: torch.tensor(os.getpid())) for _ in range(2))
    pids, others = pids_of(first), pids_of(second)
    del first
    gc.collect()
    assert_that_they_end(pids)
    assert pids_of(second) == others


def test_other_pipes_of_the_parent_end_although_the_processes_run():
    reading, writing = os.pipe()
    call = in_processes(Summed.apply)
    call(leaf(2, 1))
    os.close(writing)
    assert os.read(reading, 1) == b""
    assert call(leaf(2, 1)).tolist() == [[3], [3]]


def test_a_process_that_computes_for_ever_is_ended(tmp_path):
    def spin(x):
        (tmp_path / f"{os.getpid()}").touch()
        while x.sum() >= 0:
            pass

    with pytest.raises(RuntimeError, match="process 0 gave no answer within 1 s; process 1 gave"):
        in_processes(spin, seconds=1)(torch.zeros(2, 1))
    assert_that_they_end([int(path.name) for path in tmp_path.iterdir()])


def test_a_backward_that_never_works_is_given_up():
    """The processes of each call that failed are ended, and others started: a thousand of these take minutes."""

    class Raising(Summed):
        @staticmethod
        def backward(_, g):
            if distributed.get_rank():
                raise ValueError("no gradient here")
            return Summed.backward(_, g)

    call, x, says = in_processes(Raising.apply), leaf(2, 1), "process 1 raised ValueError: no gradient here"
    for _ in range(20):
        with pytest.raises(RuntimeError, match=says):
            torch.autograd.grad(call(x).sum(), x)
    y = call(x).sum()
    for _ in range(5):
        with pytest.raises(RuntimeError, match=says):
            torch.autograd.grad(y, x, retain_graph=True)
    assert call(x).tolist() == [[3], [3]]


def test_a_backward_that_has_worked_is_never_given_up():
    class Picky(Summed):
        @staticmethod
        def backward(_, g):
            if g.sum() < 0 and distributed.get_rank():
                raise ValueError("g must not be negative")
            return Summed.backward(_, g)

    call, x = in_processes(Picky.apply), leaf(2, 1)
    torch.autograd.grad(call(x).sum(), x)
    for _ in range(25):
        with pytest.raises(RuntimeError, match="g must not be negative"):
            torch.autograd.grad(-call(x).sum(), x)
    assert torch.autograd.grad(call(x).sum(), x)[0].tolist() == [[2], [2]]

"""A function in several processes, called by programs that have forked, have a group, or end in the midst of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch import distributed  # noqa: E402 - torch may be missing

from autograd_conformance.selftests.support.ended import assert_that_they_end  # noqa: E402

pytestmark = pytest.mark.skipif(not distributed.is_gloo_available(), reason="skip: this torch is without gloo")

IMPORTS = """
import os, signal, sys, threading, time
import torch
from torch import distributed
from autograd_conformance import in_processes
"""

FORKING = """
call = in_processes(lambda x: (time.sleep(x[0].item()), torch.tensor(os.getpid()))[1])
mine = call(torch.zeros(2, 1)).tolist()
thread = threading.Thread(target=call, args=(torch.full((2, 1), 1.0),))
thread.start()
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    os.write(writing, str(call(torch.zeros(2, 1)).tolist()).encode())
    os._exit(0)
os.waitpid(child, 0)
os.close(writing)
theirs = os.read(reading, 100).decode()
thread.join()
assert theirs and theirs != str(mine), theirs
assert call(torch.zeros(2, 1)).tolist() == mine
"""

NESTING = """
from torch.distributed.nn.functional import all_reduce


class Nested(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, levels):
        ctx.levels = levels
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        if ctx.levels:
            with torch.enable_grad():
                x = torch.zeros_like(g).requires_grad_()
                torch.autograd.grad(Nested.apply(x, ctx.levels - 1), x, g)
        return g.clone(), None


x = torch.ones(2, 1, dtype=torch.float64, requires_grad=True)
torch.autograd.grad(Nested.apply(x, 100).sum(), x)
if os.fork() == 0:
    try:
        x.sum().backward()
    except RuntimeError:
        print("a fork runs no backward pass", flush=True)
    os._exit(0)
os.wait()
assert torch.autograd.gradcheck(in_processes(all_reduce), x)
"""


def ran(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The program that this code is, after it has ended."""
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, "-c", IMPORTS + code]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=60, check=False)


def test_a_group_that_is_there_is_refused(tmp_path):
    done = ran(
        "distributed.init_process_group('gloo', init_method=f'file://{os.getcwd()}/store', rank=0, world_size=1)\n"
        "in_processes(lambda x: x)(torch.zeros(2, 1))\n",
        tmp_path,
    )
    assert "call torch.distributed.destroy_process_group()" in done.stderr


def test_a_fork_has_processes_of_its_own_though_a_thread_of_its_parent_is_in_a_call(tmp_path):
    done = ran(FORKING, tmp_path)
    assert done.returncode == 0, done.stderr


def test_it_works_once_the_engine_has_threads(tmp_path):
    """Many passes within another make the engine start some, after which it refuses to run in a fork."""
    done = ran(NESTING, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "a fork runs no backward pass\n"


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), 9)", "sys.exit()", "signal.signal(15, lambda *_: None)"])
def test_no_process_outlives_the_one_that_asked(end, tmp_path):
    done = ran(
        "signal.signal(15, lambda *_: None)\n"
        "call = in_processes(lambda _: torch.tensor(os.getpid()))\n"
        "print(*call(torch.zeros(2, 1)).tolist(), flush=True)\n"
        f"{end}\n",
        tmp_path,
    )
    pids = [int(word) for word in done.stdout.split()]
    assert len(pids) == 2, done.stderr
    assert_that_they_end(pids)

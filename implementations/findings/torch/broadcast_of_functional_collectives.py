"""The gradient of a functional broadcast is each process's own cotangent, with a warning and without an error.

The process that sends should get the sum of all, and the others zeros, as of torch.distributed.nn.functional.broadcast,
whose warning says: "torch.distributed.nn.functional.broadcast is deprecated, use
torch.distributed._functional_collectives.broadcast instead."
https://github.com/pytorch/pytorch/blob/main/torch/distributed/nn/functional.py
"""

import os
import tempfile

import torch
from torch import distributed, multiprocessing
from torch.distributed import _functional_collectives as functional


def run(rank, folder):
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    x = torch.ones(1, requires_grad=True)
    y = functional.broadcast(x, 0, distributed.group.WORLD)
    (g,) = torch.autograd.grad(y, x, torch.tensor([10.0 + 90 * rank]))
    torch.save(g, f"{folder}/{rank}")
    distributed.destroy_process_group()


if __name__ == "__main__":
    folder = tempfile.mkdtemp()
    multiprocessing.start_processes(run, (folder,), 2, start_method="fork")
    found = [torch.load(f"{folder}/{rank}").item() for rank in range(2)]
    if found != [110, 0]:
        print(f"the gradients of the two processes are {found}, but should be [110.0, 0.0]")
        raise SystemExit(1)
    print("holds")

"""Gradients of all_gather and gather have their elements in another order, if a cotangent is transposed.

The collectives of backward read and write memory as if it were contiguous. There is no error.
https://github.com/pytorch/pytorch/blob/main/torch/distributed/nn/functional.py
"""

import os
import tempfile
import warnings

import torch
from torch import distributed, multiprocessing
from torch.distributed.nn.functional import all_gather, gather

RIGHT = [[1.0, 3.0], [2.0, 4.0]]


def run(rank, folder):
    warnings.simplefilter("ignore", FutureWarning)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    x = torch.zeros(2, 2, requires_grad=True)
    g = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).T if rank == 0 else torch.zeros(2, 2)
    found = [torch.autograd.grad(collective(x), x, [g, g])[0] for collective in (all_gather, gather)]
    torch.save(torch.stack(found), f"{folder}/{rank}")
    distributed.destroy_process_group()


if __name__ == "__main__":
    folder = tempfile.mkdtemp()
    multiprocessing.start_processes(run, (folder,), 2, start_method="fork")
    found = [torch.load(f"{folder}/{rank}").tolist() for rank in range(2)]
    if found != [[RIGHT, RIGHT], [RIGHT, RIGHT]]:
        print(f"the gradients of all_gather and gather in two processes are {found}, but should all be {RIGHT}")
        raise SystemExit(1)
    print("holds")

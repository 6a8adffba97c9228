"""The gradient of an all_reduce, reduce or reduce_scatter by MAX, MIN or PRODUCT is wrong, without an error.

Backward reduces the cotangents by the same operation, which is right of a sum and of a mean alone. Functional
collectives refuse the others.
https://github.com/pytorch/pytorch/blob/main/torch/distributed/nn/functional.py
"""

import os
import tempfile
import warnings

import torch
from torch import distributed, multiprocessing
from torch.distributed.nn.functional import all_reduce


def run(rank, folder):
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    x = torch.tensor([2.0 + rank], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        y = all_reduce(x, distributed.ReduceOp.PRODUCT)
    try:
        torch.save(torch.autograd.grad(y, x)[0], f"{folder}/{rank}")
    except RuntimeError:
        torch.save(torch.tensor(float("nan")), f"{folder}/{rank}")
    distributed.destroy_process_group()


if __name__ == "__main__":
    folder = tempfile.mkdtemp()
    multiprocessing.start_processes(run, (folder,), 2, start_method="fork")
    found = [torch.load(f"{folder}/{rank}").item() for rank in range(2)]
    if found != [6, 4] and found[0] == found[0]:
        print(f"the gradients of 2 * 3 in two processes, each with a loss, are {found}, but should be [6.0, 4.0]")
        raise SystemExit(1)
    print("holds")

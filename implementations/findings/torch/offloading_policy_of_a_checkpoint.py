"""Under selective checkpointing an operator whose output is to be offloaded to the CPU runs again in the backward pass.

The documentation says: "{MUST,PREFER}_CPU_OFFLOAD: The operation's output will be saved during the forward pass,
offloaded to CPU, and reloaded to GPU during the backward pass".
https://docs.pytorch.org/docs/stable/checkpoint.html#torch.utils.checkpoint.CheckpointPolicy
"""

from functools import partial

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts


class Counting(TorchDispatchMode):
    runs = 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        self.runs += operator is torch.ops.aten.exp.default
        return operator(*args, **(kwargs or {}))


def policy(ctx, operator, *args, **kwargs):
    return CheckpointPolicy.MUST_CPU_OFFLOAD


x = torch.ones(2, requires_grad=True)
contexts = partial(create_selective_checkpoint_contexts, policy)
with Counting() as counting:
    checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False, context_fn=contexts).sum().backward()
if counting.runs != 1:
    print(f"exp ran {counting.runs} times, but its output should be saved")
    raise SystemExit(1)
print("holds")

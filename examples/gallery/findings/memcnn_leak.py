"""memcnn 1.5.2: what a forward without a backward holds is freed by the garbage collector only: a reference cycle."""

import gc
import warnings
import weakref

import torch

warnings.simplefilter("ignore")

from memcnn import AdditiveCoupling, InvertibleModuleWrapper  # noqa: E402

wrapped = InvertibleModuleWrapper(AdditiveCoupling(torch.nn.Linear(1, 1), split_dim=1), keep_input=True)
gc.collect()
gc.disable()
inputs = []
for _ in range(5):
    x = torch.ones(1000, 2, requires_grad=True)
    y = wrapped(x)
    inputs.append(weakref.ref(x))
    del x, y
alive = sum(x() is not None for x in inputs)
gc.collect()
print(alive, "of 5 inputs are alive, after gc.collect()", sum(x() is not None for x in inputs))
raise SystemExit(alive > 0)

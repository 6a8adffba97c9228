"""norse 1.1.0: the gradient of LIFSparseAdjointFunction raises always: the gradient of its spikes is sparse."""

import torch
from norse.torch.functional.adjoint.lif_adjoint import LIFAdjointFunction, LIFSparseAdjointFunction
from norse.torch.functional.lif import LIFParameters

none, weights = torch.zeros(1, 2), torch.zeros(2, 2)
bad = 0
for function, first in ((LIFAdjointFunction, none), (LIFSparseAdjointFunction, none.to_sparse())):
    v = torch.tensor([[1.5, 0.2]], requires_grad=True)
    i = torch.full((1, 2), 3.0)
    spikes, voltage, _ = function.apply(none, first, v, i, weights, weights, LIFParameters(), 0.001)
    for what, output in (("spikes", spikes.to_dense()), ("voltage", voltage)):
        try:
            gradient = torch.autograd.grad(output.sum(), v, retain_graph=True)[0]
            print(f"{function.__name__}: {what} {output.tolist()}, gradient {gradient.tolist()}")
        except NotImplementedError as error:
            print(f"{function.__name__}: {what} {output.tolist()}, gradient raises {str(error).splitlines()[0][:75]} ...")
            bad += 1
raise SystemExit(bad > 0)

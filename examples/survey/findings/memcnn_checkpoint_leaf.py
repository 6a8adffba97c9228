"""memcnn 1.5.2: the gradient of a leaf that InvertibleCheckpointFunction gets is twice what it should be.

backward writes to .grad of its inputs, "to mimic backwards", and returns the gradient as well: the engine adds it.
"""

import warnings

import torch

warnings.simplefilter("ignore")

from memcnn.models.additive import AdditiveCoupling  # noqa: E402
from memcnn.models.revop import InvertibleModuleWrapper  # noqa: E402

torch.manual_seed(0)
coupling = AdditiveCoupling(torch.nn.Linear(1, 1), torch.nn.Linear(1, 1))
gradients = []
for layer in (coupling, InvertibleModuleWrapper(coupling, keep_input=True)):
    x = torch.tensor([[0.3, -0.2]], requires_grad=True)
    layer(x).sum().backward()
    gradients.append(x.grad)
plain, wrapped = gradients
print(f"gradient of the leaf: {wrapped.tolist()}; without the wrapper: {plain.tolist()}")
raise SystemExit(not torch.allclose(plain, wrapped))

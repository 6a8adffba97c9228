"""memcnn 1.5.2: an output of InvertibleCheckpointFunction that changes in place makes gradients wrong without a word.

Inputs and outputs are kept on ctx, and backward computes with what they are by then.
"""

import warnings

import torch

warnings.simplefilter("ignore")

from memcnn.models.revop import InvertibleCheckpointFunction  # noqa: E402


def square(x):
    return x * x


def root(y):
    return y.sqrt()


gradients = []
for change in (False, True):
    leaf = torch.tensor([2.0, 3.0], requires_grad=True)
    x = leaf * 1
    y = InvertibleCheckpointFunction.apply(square, root, True, 1, False, 1, x)[0]
    if change:
        with torch.no_grad():
            x.fill_(7.0)
    try:
        y.sum().backward()
    except RuntimeError as error:
        print("refused, as it should be:", error)
        raise SystemExit(0) from None
    gradients.append(leaf.grad)
before, after = gradients
print(f"gradient: {before.tolist()}; with an input that was changed before backward: {after.tolist()}")
raise SystemExit(not torch.allclose(before, after))

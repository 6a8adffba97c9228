"""grad_fn.metadata() is a TypeError: metadata is an attribute that holds the dictionary.

It should be a method. The documentation shows "Node.metadata()": "Return the metadata."
https://docs.pytorch.org/docs/stable/generated/torch.autograd.graph.Node.metadata.html
"""

import torch

node = (2 * torch.ones(2, requires_grad=True)).grad_fn
assert isinstance(node, torch.autograd.graph.Node)
try:
    got = node.metadata()
except TypeError as error:
    got = repr(error)
if got != {}:
    print(f"node.metadata() gives {got}, but should give {{}}")
    raise SystemExit(1)
print("holds")

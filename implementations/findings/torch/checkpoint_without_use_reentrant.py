"""torch.utils.checkpoint.checkpoint still only warns if use_reentrant is not given.

It should raise. Its documentation says: "In version 2.9 we will raise an exception if use_reentrant is not passed."
The documentation of 2.15 has put this off to a future release.
https://docs.pytorch.org/docs/2.13/checkpoint.html#torch.utils.checkpoint.checkpoint
"""

import warnings

import torch
from torch.utils.checkpoint import checkpoint

with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    try:
        checkpoint(torch.sin, torch.ones(2, requires_grad=True))
    except (TypeError, ValueError, RuntimeError) as error:
        print(f"holds: {error!r}")
        raise SystemExit(0) from None
release, said = torch.__version__, [str(w.message)[:120] for w in warned]
print(f"checkpoint without use_reentrant runs on torch {release}, but should raise an exception; it warns: {said}")
raise SystemExit(1)

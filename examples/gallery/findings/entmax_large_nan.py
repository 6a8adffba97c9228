"""entmax 1.3: EntmaxBisectFunction gives NaN for large scores, for which softmax is finite."""

import torch
from entmax.root_finding import EntmaxBisectFunction

bad = 0
for dtype, large in ((torch.float32, 1e8), (torch.float16, 6e3), (torch.bfloat16, 1e3)):
    scores = torch.tensor([[0.0, large, 1.0]], dtype=dtype, requires_grad=True)
    p = EntmaxBisectFunction.apply(scores, 1.5, -1)
    print(f"{dtype} {scores.tolist()}: entmax {p.tolist()}, softmax {scores.softmax(-1).tolist()}")
    bad += not torch.isfinite(p).all()
raise SystemExit(bad > 0)

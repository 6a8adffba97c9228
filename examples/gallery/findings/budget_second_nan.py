"""entmax 1.3: a penalty on BudgetBisectFunction's gradient is NaN for a row that is all 0 and 1: 0 / 0 in backward."""

import torch
from entmax.root_finding import BudgetBisectFunction

scores = torch.tensor([[-5.0, 5.0, 5.0]], dtype=torch.float64, requires_grad=True)
weights = torch.ones(3, dtype=torch.float64, requires_grad=True)
p = BudgetBisectFunction.apply(scores, 2, -1, 60)
first = torch.autograd.grad((p * weights).sum(), scores, create_graph=True)[0]
penalty = torch.autograd.grad((first**2).sum(), weights)[0]
print("output", p.tolist(), "gradient", first.tolist())
print("the penalty's gradient by the weights", penalty.tolist(), "but should be 0")
raise SystemExit(bool(penalty.isnan().any()))

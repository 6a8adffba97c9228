"""norse 1.1.0: the backward of ToSpikeTimes raises for too few spikes, and in every dtype but float32."""

import torch
from norse.torch.functional.spikes_to_times_decoder import ToSpikeTimes

bad = 0
for what, trains, dtype in (
    ("each has two spikes", [[1, 1, 0], [1, 0, 1]], torch.float32),
    ("each has two spikes", [[1, 1, 0], [1, 0, 1]], torch.float64),
    ("one has one spike", [[1, 0, 0], [1, 0, 1]], torch.float32),
):
    spikes = torch.tensor(trains, dtype=dtype).T[:, None].clone().requires_grad_()
    times = ToSpikeTimes.apply(spikes, torch.tensor(2))
    try:
        gradient = torch.autograd.grad(torch.where(times.isinf(), 0, times).sum(), spikes)[0]
        print(f"{what}, {dtype}: times {times.tolist()}, gradient {gradient.tolist()}")
    except RuntimeError as error:
        print(f"{what}, {dtype}: times {times.tolist()}, gradient raises: {error}")
        bad += 1
raise SystemExit(bad > 0)

"""backward waits for a lock that it already holds if it runs twice."""

import threading

import torch

from autograd_conformance import Declaration


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.lock = threading.Lock()
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        ctx.lock.acquire()
        return 2 * g


# Fixed:


class FixedDouble(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.lock = threading.Lock()
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        with ctx.lock:
            return 2 * g


faulty = Declaration(Double, "float[n]")
fixed = Declaration(FixedDouble, "float[n]")
options = ["--properties", "VJP-REPEAT", "--time-limit", "20"]

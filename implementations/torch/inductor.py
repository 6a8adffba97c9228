"""PyTorch with every custom Function compiled by inductor, the back end that `torch.compile` has by default."""

from __future__ import annotations

import torch._inductor.config
from torch._inductor.codegen import common
from torch._inductor.cpp_builder import get_cpp_compiler

from autograd_conformance.implementations.protocol import Unavailable
from autograd_conformance.implementations.torch.compile import TorchCompileImplementation


class TorchInductorImplementation(TorchCompileImplementation):
    """As torch-compile, but what is traced becomes C++ or Triton code, which a compiler builds."""

    name = "torch-inductor"
    backend = "inductor"
    # A compiler builds each graph, which takes seconds.
    share_of_examples = 0.04

    def __init__(self) -> None:
        super().__init__()
        try:
            get_cpp_compiler()
        except RuntimeError as problem:
            raise Unavailable(f"torch-inductor: {problem}") from problem
        # A worker of a run starts no processes of its own.
        torch._inductor.config.compile_threads = 1
        common.init_backend_registration()

    def devices(self) -> tuple[str, ...]:
        return tuple(device for device in super().devices() if common.get_scheduling_for_device(device))

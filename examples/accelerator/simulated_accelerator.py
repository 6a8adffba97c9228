"""A device of torch without hardware, `simulated`, with two of them: import this module, and it is there.

It simulates what makes a device unlike the CPU. Operations are queued on the current stream, and carried out when
somebody waits for that stream: synchronization, a copy to the host, an event. So a missing wait shows each time: what
was not carried out yet is NaN, -1 or True. Memory that is freed is overwritten, and handed out again. Work comes in the
order of each stream, and no other; nothing depends on time or chance. The kernels are those of the CPU. There are no
convolutions, and no sparse tensors.

    SIMULATED_FAULT=wrong_event python mine.py      a device with a fault: `FAULTS` lists them
    torch.simulated.plant("wrong_event")            the same, within a process; "" repairs it

The first import compiles the C++ beside this file: ten seconds.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

NAME = "simulated"

FAULTS = {
    "no_synchronisation": "a copy to the host, and item(), do not wait for the queue",
    "wrong_stream": "operations of backward are queued on the default stream, and do not wait for the one of forward",
    "guard_left": "a kernel of backward leaves another device current, for all threads",
    "stale_memory": "a block that is freed is handed out again while work on it is queued",
    "wrong_stride": "a result that is not contiguous is written as if it were",
    "gradient_on_cpu": "in backward, a product with a number is a tensor of the CPU",
    "accumulation_elsewhere": "in backward, add_ writes into a buffer that is lost",
    "coarse_exp": "float64 exp and log are as accurate as float32",
    "coarse_product": "float32 matrix products are as accurate as bfloat16",
    "non_blocking_lies": "a copy to the device reads the host's memory later, although nobody asked for non_blocking",
    "dropped_offset": "a copy from the device starts where the storage starts, whatever the offset of the view",
    "conj_forgotten": "a copy from the device forgets that a view is a conjugate",
    "lost_version": "an operation in place does not count in the version of its tensor",
    "wrong_event": "a stream does not wait for the event that it was told to wait for",
    "unordered_copy": "a copy between the devices does not order their streams",
    "empty_launch": "an operation with an argument without elements does not write its result",
    "wrong_dtype": "a sum of int64 wraps like one of int32",
    "index_mixed": "tensors for simulated:1 are made on simulated:0",
    "silent_fallback": "exp waits, and runs on the host: no wrong value, but fallbacks() counts it",
}

_HERE = Path(__file__).parent
_SOURCES = [
    _HERE / name
    for name in (
        "simulated_accelerator.cpp",
        "calls.h",
        "tensors.h",
        "guard.h",
        "streams.h",
    )
]


def _compile(library: Path) -> None:
    include = Path(torch.__file__).parent / "include"
    libraries = Path(torch.__file__).parent / "lib"
    command = [
        *shlex.split(os.environ.get("CXX", "c++")), "-std=c++20", "-O1", "-w", "-shared", "-fPIC", str(_SOURCES[0]),
        f"-I{include}", f"-I{include}/torch/csrc/api/include", f"-L{libraries}", "-ltorch_cpu", "-lc10",
        "-o", str(library),
    ]  # fmt: skip
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", None) or error
        message = f"cannot compile {_SOURCES[0].name}; it needs a C++20 compiler: name one in the variable CXX\n{said}"
        raise ImportError(message) from error


def _load() -> None:
    """Load the library that was compiled of these sources for this torch, or compile it."""
    contents = torch.__version__.encode() + b"".join(source.read_bytes() for source in _SOURCES)
    digest = hashlib.sha256(contents).hexdigest()[:16]
    cache = os.environ.get("TORCH_EXTENSIONS_DIR") or Path.home() / ".cache" / "torch_extensions"
    library = Path(cache, f"simulated_accelerator_{digest}.so")
    if not library.exists():
        # Compiled elsewhere and moved: another process may import this, too.
        library.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=library.parent) as folder:
            _compile(Path(folder, library.name))
            Path(folder, library.name).replace(library)
    torch.ops.load_library(library)


_load()
_OPS = torch.ops.simulated_accelerator


def _index(device: Any = None) -> int:
    if isinstance(device, int):
        return device
    index = torch.device(NAME if device is None else device).index
    return torch.accelerator.current_device_index() if index is None else index


def plant(fault: str) -> None:
    """Plant a fault of `FAULTS`, or none: "". What is queued is carried out first, and its errors are forgotten."""
    if fault and fault not in FAULTS:
        raise ValueError(f"SIMULATED_FAULT={fault}: there is no such fault; choose one of {', '.join(FAULTS)}")
    _OPS.plant(fault)


def fallbacks() -> dict[str, int]:
    """The operations that ran on the host, as the device has no kernel for them, and how often each did."""
    return dict(_OPS.fallbacks())


def waiting() -> int:
    """The number of operations that are queued on all streams."""
    return int(_OPS.waiting())


def is_available() -> bool:
    """Whether there is a device: there is."""
    return True


def is_initialized() -> bool:
    """Whether the device is ready: it is."""
    return True


def device_count() -> int:
    """The number of devices: 2."""
    return 2


def current_device() -> int:
    """The index of the current device of this thread."""
    return torch.accelerator.current_device_index()


def set_device(device: Any) -> None:
    """Make a device the current one of this thread."""
    torch.accelerator.set_device_index(_index(device))


def device(device: Any) -> Any:
    """A context in which a device is the current one of this thread."""
    return torch.accelerator.device_index(_index(device))


def synchronize(device: Any = None) -> None:
    """Carry out all that is queued on a device."""
    torch.accelerator.synchronize(_index(device))


def current_stream(device: Any = None) -> torch.Stream:
    """The current stream of a device in this thread."""
    return torch.accelerator.current_stream(_index(device))


@contextmanager
def stream(chosen: torch.Stream) -> Iterator[torch.Stream]:
    """A context in which a stream is the current one of its device."""
    with chosen:
        yield chosen


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The dtypes that autocast may cast to."""
    return [torch.float16, torch.bfloat16]


def get_rng_state(device: Any = NAME) -> torch.Tensor:
    """The state of the random numbers of a device."""
    return _OPS.generator(_index(device)).get_state()


def set_rng_state(new_state: torch.Tensor, device: Any = NAME) -> None:
    """Set the state of the random numbers of a device."""
    _OPS.generator(_index(device)).set_state(new_state)


def manual_seed(seed: int) -> None:
    """Seed the random numbers of the current device."""
    _OPS.generator(_index()).manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seed the random numbers of all devices."""
    for index in range(device_count()):
        _OPS.generator(index).manual_seed(seed)


def _is_in_bad_fork() -> bool:
    return False


def _lazy_init() -> None:
    pass


def _register() -> None:
    torch.utils.rename_privateuse1_backend(NAME)
    module = ModuleType(f"torch.{NAME}", __doc__)
    module.Stream, module.Event = torch.Stream, torch.Event
    # Checkpoints keep the random state of a device only if this is so.
    module._initialized = True
    vars(module).update({name: value for name, value in globals().items() if callable(value)})
    torch._register_device_module(NAME, module)
    torch.utils.generate_methods_for_privateuse1_backend(unsupported_dtype=[torch.quint8])


_register()
plant(os.environ.get("SIMULATED_FAULT", ""))

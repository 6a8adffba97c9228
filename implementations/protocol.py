"""What an adapter supplies so that the suite can run on an implementation of autograd."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import metadata
from typing import Any, NamedTuple

Tensors = tuple[Any, ...]
Mask = Sequence[bool]
Pullback = Callable[..., Tensors]
Gradients = Callable[[Sequence[Any], Mask, bool], Sequence[Any]]

DTYPES = (
    "float64", "float32", "float16", "bfloat16", "complex128", "complex64",
    "int64", "int32", "int16", "int8", "uint8", "bool",
)  # fmt: skip

CAPABILITIES = {
    "context": "a ctx, the same in forward and backward, holds attributes and saved tensors",
    "classes": "a Function is a class with methods of documented names, setup_context among them",
    "keywords": "arguments may be left out or given by keyword",
    "objects": "forward may return objects that are not tensors",
    "tuples": "a Function may have several outputs",
    "gradient_count": "backward has to return one gradient for each argument",
    "gradient_checks": "a gradient that is no tensor, or of a wrong shape, is an error",
    "gradient_fitting": "gradients are summed and cast to their input's shape and dtype, unneeded ones ignored",
    "none_gradients": "backward may return None for a tensor that has no gradient",
    "cotangent_checks": "a cotangent that does not fit its output is an error, another real dtype is cast",
    "needs_input_grad": "ctx.needs_input_grad tells which arguments require grad",
    "materialize": "ctx.set_materialize_grads(False) passes None for unused outputs",
    "nondifferentiable": "ctx.mark_non_differentiable",
    "inplace": "ctx.mark_dirty and a version counter",
    "once_differentiable": "a backward can be declared not differentiable",
    "double_backward": "gradients can be differentiated again",
    "requires_grad": "tensors carry requires_grad and a graph node, and recording can be switched off",
    "accumulate": "backward() adds to the .grad of leaves",
    "saved_check": "changing a saved tensor in place before backward is an error",
    "jvp": "a Function may define a forward-mode rule",
    "vmap": "Functions can be batched, by a generated or a written rule",
    "batched_cotangents": "one backward pass can be run for a batch of cotangents",
    "compile": "a compiler traces Functions",
    "autocast": "a context in which some operations run in lower precision",
    "saved_hooks": "saved tensors can be packed and unpacked by hooks",
    "checkpoint": "a call can be recomputed in backward instead of saving",
    "threads": "calls from several threads at once are supported",
    "memory": "memory is freed by reference counting, without a garbage-collection pass",
    "views": "strided views, and in-place changes seen through them",
    "sparse": "sparse matrices",
    "numpy": "arrays convert to NumPy and back inside a Function",
}


class Description(NamedTuple):
    """What can be said of a tensor without its values."""

    shape: tuple[int, ...]
    dtype: str
    device: str


@dataclass(frozen=True)
class Environment:
    """The installed implementation, as the header names it."""

    version: str
    location: str


@dataclass(frozen=True)
class ScriptText:
    """Python text in the implementation's own words, from which `harness.script` puts together a script.

    ``names`` are the expressions for the names of ``xp`` that the framework spells otherwise, ``name`` the pattern of
    the others; ``ag`` and ``tensor`` are expressions; ``devices`` are the lines that start a device. ``tools`` are
    functions that the ``demonstrations`` use: one a property, by its id or its id and a test's variant
    (``VJP-PURE/leaves``), and under the empty id the plain call, against the reference.
    """

    imports: str
    devices: Mapping[str, str]
    names: Mapping[str, str]
    name: str
    ag: str
    tensor: str
    tools: str
    demonstrations: Mapping[str, str]


@dataclass(frozen=True)
class Deviation:
    """What an implementation is known not to keep: a clause, or a property of a ``function``.

    ``id`` names it as test ids do (``FN-12``, ``FN-12/kwargs``); several ids or Functions are separated by blanks.
    ``what`` is the finding of the test, or the message of its death, with what came behind a colon where that tells it
    from others (``what came of the call: *TypeError: *``); ``*`` in it stands for any text, `` | `` is between several.
    Any other finding there is a failure. ``reason`` and ``link`` say why and where to read about it,
    ``versions`` where it was seen.
    ``releases``, a version specifier such as ``<2.15``, leaves out releases on which it is known to hold.

    ``promise`` quotes the sentence of the implementation's own documentation that is broken; without one it is a
    difference from PyTorch and nobody's fault. ``script`` names the file in implementations/findings/NAME that shows it
    without this suite: it prints what is wrong and exits 1 while it is. ``sometimes`` says that few of the calls that
    may be drawn show it, so that a pass is no news; ``always`` that all do, so that few have to be drawn.
    ``without_elements`` says that it may end the process of any test, beside those that it names, in a call with a
    tensor without elements.
    """

    id: str
    what: str
    reason: str
    link: str
    versions: str
    function: str = ""
    releases: str = ""
    promise: str = ""
    script: str = ""
    sometimes: bool = False
    always: bool = False
    without_elements: bool = False

    def names(self, id: str, function: str = "") -> bool:
        """Whether it is about that test, of that Function."""
        return id in self.id.split() and function in (self.function.split() or [""])

    def covers(self, what: str, got: str = "") -> bool:
        """Whether it tells of that finding."""
        texts = (".*".join(map(re.escape, text.split("*"))) for text in self.what.split(" | "))
        return any(re.fullmatch(text, said, re.DOTALL) for text in texts for said in (what, f"{what}: {got}"))


class Unavailable(Exception):
    """The implementation's package is missing or unusable; the message says what to install."""


def as_tuple(outputs: Any) -> Tensors:
    """The outputs as a tuple, of one if they are a bare tensor."""
    return tuple(outputs) if isinstance(outputs, tuple | list) else (outputs,)


class Implementation(ABC):
    """One implementation of custom autograd Functions.

    The abstract methods are the whole obligation; each of the others belongs to a capability and is called only if
    ``capabilities`` claims it. A capability is claimed when the implementation's documentation does. ``emulated``
    lists those that the adapter supplies itself.
    """

    name: str
    capabilities: frozenset[str]
    emulated: frozenset[str] = frozenset()
    deviations: tuple[Deviation, ...] = ()
    dtypes: tuple[str, ...]
    xp: Any
    ag: Any
    # The imported package that is checked.
    package: Any
    # The part of suites/dialects that checks this implementation's own interface; "" if there is none.
    dialect: str = ""
    # The versions that the adapter was written for, as a specifier such as ">=2.4"; "" if any.
    supported: str = ""
    # With what a failure is shown without this suite; None if that cannot be done.
    script: ScriptText | None = None
    # The share of a profile's examples that it gets, below 1 where each example is expensive: compiled, say.
    share_of_examples: float = 1.0
    # Whether the clauses of PyTorch's contract are asked of it, or the properties of the documented Functions alone.
    keeps_contract: bool = True
    # Whether it runs only Functions that have a setup_context.
    needs_setup_context: bool = False
    # Whether an input that has no gradient, or an output that has no tangent, gets zeros instead of None.
    zeros_for_none: bool = False
    # Whether tensors without elements are supported.
    empty: bool = True
    # Of how many shapes a rank calls of a Function are drawn; None for all. For an implementation that compiles every
    # operation for every shape it meets, which takes far longer than computing on it.
    shapes_per_rank: int | None = None
    # Exceptions by which the implementation refuses a misuse, as opposed to dying of it.
    refusals: tuple[type[Exception], ...] = (RuntimeError, TypeError, ValueError, NotImplementedError)

    def environment(self) -> Environment:
        """Version and location of what is installed: those of ``package``, unless overridden."""
        version = getattr(self.package, "__version__", None) or metadata.version(self.package.__name__)
        return Environment(version, str(self.package.__file__))

    def devices(self) -> tuple[str, ...]:
        """Devices usable here, the default one first."""
        return ("cpu",)

    @abstractmethod
    def array(self, values: Any, dtype: str, device: str) -> Any:
        """A new contiguous tensor, outside any graph, from a NumPy array."""

    @abstractmethod
    def numpy(self, tensor: Any) -> Any:
        """A NumPy copy: float64 or complex128 for floating dtypes, else the integers or booleans themselves."""

    def describe(self, tensor: Any) -> Description:
        """Shape, dtype and device, in the suite's names; those of a tensor on the CPU, unless overridden."""
        return Description(tuple(tensor.shape), str(tensor.dtype).rpartition(".")[2], "cpu")

    def function(self, cls: Any) -> Callable[..., Any]:
        """The callable through which users call the custom Function ``cls`` (built by a body over ``xp``, ``ag``)."""
        apply: Callable[..., Any] = cls.apply
        return apply

    @abstractmethod
    def differentiate(self, f: Callable[..., Tensors], primals: Tensors, tracked: Mask) -> tuple[Tensors, Gradients]:
        """Run ``f`` on the primals, of which those that are ``tracked`` are differentiated.

        Returns the outputs and ``gradients(cotangents, wanted, differentiable)``, which may be called several times. It
        gives one gradient for each primal; what it gives for one that is not ``wanted`` is not looked at. The rest is
        said of `vjp`, which is made of this.
        """

    def vjp(
        self, f: Callable[..., Any], primals: Sequence[Any], *, track: Mask | None = None
    ) -> tuple[Tensors, Pullback]:
        """Run ``f`` on the primals, tracking those that ``track`` says (default: all).

        Returns the outputs and a pullback, ``pullback(cotangents, wrt=None, differentiable=False)``, which may be
        called several times. It gives one gradient per primal: None for those outside ``wrt`` (default: the tracked
        ones) and where there is none. A cotangent None means that the output is not used. With ``differentiable``
        the gradients can be differentiated again, by an enclosing `vjp`.
        """
        tracked = [True] * len(primals) if track is None else list(track)
        outputs, gradients = self.differentiate(lambda *given: as_tuple(f(*given)), tuple(primals), tracked)

        def pullback(cotangents: Sequence[Any], wrt: Mask | None = None, differentiable: bool = False) -> Tensors:
            wanted = tracked if wrt is None else [t and w for t, w in zip(tracked, wrt, strict=True)]
            found = gradients(cotangents, wanted, differentiable)
            return tuple(g if w else None for g, w in zip(found, wanted, strict=True))

        return outputs, pullback

    def predates(self, release: str) -> bool:
        """Whether what is installed is older than that release of the implementation."""
        return False

    def is_tensor(self, value: Any) -> bool:
        """Whether a value inside a Function is one of the implementation's tensors."""
        raise NotImplementedError

    def simulated_devices(self) -> tuple[str, ...]:
        """Devices that run on this machine without their hardware, for the properties that are about devices."""
        return ()

    def abstract_devices(self) -> tuple[str, ...]:
        """Devices whose tensors have shape and dtype but no values."""
        return ()

    def lacking(self, device: str) -> frozenset[str]:
        """The claimed capabilities that a device does not have."""
        return frozenset()

    def start_device(self, device: str) -> None:
        """Prepare a simulated device; called once, before it is used."""

    def limit_threads(self) -> None:
        """Compute on one thread, so that parallel workers do not compete for cores."""

    def synchronize(self, device: str) -> None:
        """Wait until the device has done what was asked of it."""

    def reseed(self, seed: int = 0) -> None:
        """Let the random numbers that follow be those of the seed; for users' Functions that draw them."""
        raise NotImplementedError

    # requires_grad
    def requires_grad(self, tensor: Any) -> bool:
        raise NotImplementedError

    def node(self, tensor: Any) -> Any:
        """The graph node that made the tensor, or None."""
        raise NotImplementedError

    def no_grad(self) -> AbstractContextManager[Any]:
        raise NotImplementedError

    # inplace
    def version(self, tensor: Any) -> int:
        raise NotImplementedError

    # views
    def shares_memory(self, a: Any, b: Any) -> bool:
        raise NotImplementedError

    def fill_(self, tensor: Any, value: float) -> None:
        """Overwrite in place, as a user would under no_grad."""
        raise NotImplementedError

    def strides(self, tensor: Any) -> tuple[int, ...]:
        raise NotImplementedError

    # accumulate
    def backward(
        self, f: Callable[..., Any], primals: Sequence[Any], cotangents: Sequence[Any], *, track: Sequence[bool],
        initial: Sequence[Any] | None = None, differentiable: bool = False,
    ) -> Tensors:  # fmt: skip
        """Run ``f`` on leaves whose ``.grad`` holds ``initial``, call backward, and return each leaf's ``.grad``."""
        raise NotImplementedError

    # jvp
    def jvp(self, f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Tensors, Tensors]:
        """Outputs and their tangents; a tangent None means that the primal does not move."""
        raise NotImplementedError

    # vmap
    def vmap(self, f: Callable[..., Any], in_axes: Sequence[int | None]) -> Callable[..., Any]:
        raise NotImplementedError

    # batched_cotangents
    def batched_vjp(
        self, f: Callable[..., Any], primals: Sequence[Any], cotangents: Sequence[Any], *, track: Sequence[bool]
    ) -> Tensors:
        """Gradients for cotangents that carry one more leading dimension."""
        raise NotImplementedError

    # compile
    def compile(self, f: Callable[..., Any]) -> Callable[..., Any]:
        raise NotImplementedError

    # autocast
    def autocast(self, device: str, dtype: str) -> AbstractContextManager[Any]:
        raise NotImplementedError

    # saved_hooks
    def offload(self) -> AbstractContextManager[Any]:
        """Within it every saved tensor is packed into another form and unpacked when needed."""
        raise NotImplementedError

    # checkpoint
    def checkpoint(self, f: Callable[..., Any]) -> Callable[..., Any]:
        raise NotImplementedError

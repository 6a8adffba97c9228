"""What an adapter supplies so that the suite can run on an implementation of autograd."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from autograd_conformance.implementations.deviations import Deviation, by_release
from autograd_conformance.implementations.scripting import Named, Shown
from autograd_conformance.reference.definitions import Function

Tensors = tuple[Any, ...]
Mask = Sequence[bool]
Pullback = Callable[..., Tensors]
# Takes cotangents, which primals are wanted, and whether the gradients can be differentiated; returns the gradients.
BackwardPass = Callable[[Sequence[Any], Mask, bool], Sequence[Any]]

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
    "gradient_checks": "a gradient that is not a tensor, or has a wrong shape, is an error",
    "gradient_fitting": "gradients are summed and cast to their input's shape and dtype, unneeded ones ignored",
    "none_gradients": "backward may return None for a tensor that has no gradient",
    "cotangent_checks": "a cotangent that does not fit its output is an error, another real dtype is cast",
    "needs_input_grad": "ctx.needs_input_grad says which arguments require grad",
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
    "settings": "settings of the process and the state of random numbers can be read, and set back",
    "new_memory": "memory that is allocated can be filled with NaN",
}

# The methods that an adapter must have for a capability that it claims.
METHODS: dict[str, tuple[str, ...]] = {
    "requires_grad": ("requires_grad", "node", "no_grad"),
    "inplace": ("version",),
    "views": ("shares_memory", "fill_", "strides"),
    "accumulate": ("backward",),
    "jvp": ("jvp",),
    "vmap": ("vmap",),
    "batched_cotangents": ("batched_vjp",),
    "compile": ("compile",),
    "autocast": ("autocast",),
    "saved_hooks": ("offload",),
    "checkpoint": ("checkpoint",),
    "settings": ("reseed",),
    "new_memory": ("new_memory",),
}


class Description(NamedTuple):
    """The shape, dtype and device of a tensor."""

    shape: tuple[int, ...]
    dtype: str
    device: str


class Setting(NamedTuple):
    """A setting of the process that changes what the framework computes or records."""

    name: str
    get: Callable[[], Any]
    set: Callable[[Any], Any]


class RandomState(NamedTuple):
    """A global generator of random numbers. ``get`` returns its state, as a value that can be compared."""

    name: str
    get: Callable[[], Any]
    seed: Callable[[int], Any]


@dataclass(frozen=True)
class Environment:
    """Version and location of the installed implementation, for the header of a report."""

    version: str
    location: str


@dataclass(frozen=True)
class ScriptText:
    """How an implementation writes a reproduction script in its own words.

    ``imports`` are import statements by the name that they bind. A name of ``xp`` is one of ``package``, unless
    ``names`` spells it: a lambda, whose body replaces the call, or another expression. ``keywords`` are the package's
    names of keyword arguments, ``ag`` its names of the autograd namespace. ``tensor(named, device, place)`` writes a
    tensor as an expression, where ``place`` makes its layout, ``prelude`` has the lines that start a device,
    and ``seed`` the one that seeds random numbers. ``demonstrate`` writes what shows that a property, with
    the test's variant if it has one (``VJP-PURE/leaves``), does not hold for a call; it raises `NoScript` where it
    cannot.
    """

    imports: Mapping[str, str]
    package: str
    names: Mapping[str, str]
    keywords: Mapping[str, str]
    ag: Mapping[str, str]
    tensor: Callable[[Named, str, Callable[..., Any]], str]
    prelude: Mapping[str, str]
    seed: str
    demonstrate: Callable[[str, Shown], str]


class Unavailable(Exception):
    """The implementation's package is missing or unusable; the message says what to install."""


class Unreadable(TypeError):
    """The values of a tensor are no array; the message says why."""


def as_tuple(outputs: Any) -> Tensors:
    """The outputs as a tuple; a bare tensor becomes a tuple of one."""
    return tuple(outputs) if isinstance(outputs, tuple | list) else (outputs,)


class Implementation(ABC):
    """One implementation of custom autograd Functions.

    Only the abstract methods are required. Each of the others belongs to a capability and is called only if
    ``capabilities`` claims it. An adapter claims what the implementation's documentation claims. ``emulated`` lists the
    capabilities that the adapter supplies itself.
    """

    name: str
    capabilities: frozenset[str]
    emulated: frozenset[str] = frozenset()
    deviations: tuple[Deviation, ...] = ()
    # The deviations of packages that register accelerators: they say nothing about other devices.
    of_accelerators: tuple[Deviation, ...] = ()
    dtypes: tuple[str, ...]
    xp: Any
    ag: Any
    # The imported package that is checked.
    package: Any
    # The part of suites/dialects that checks this implementation's own interface; "" if there is none.
    dialect: str = ""
    # The versions that the adapter was written for, as a specifier such as ">=2.4"; "" if any.
    supported: str = ""
    # The parts of a standalone script that shows a failure; None if there can be no such script.
    script: ScriptText | None = None
    # Whether a script can leave out what this very class overrides, because it only says how a Function is called.
    transparent: bool = False
    # The share of a profile's examples that it gets: below 1 if each example is expensive, because it is compiled, say.
    share_of_examples: float = 1.0
    # Whether the clauses of PyTorch's contract are checked, or only the properties of the documented Functions.
    keeps_contract: bool = True
    # Whether it runs only Functions that have a setup_context.
    needs_setup_context: bool = False
    # The documented Functions that cannot be written for it, and why: by name, and by a property ("" for all).
    limits: Mapping[tuple[str, str], str] = MappingProxyType({})
    # Whether a Function can be observed while it runs: its methods are Python.
    sees_inside: bool = True
    # Whether an input that has no gradient, or an output that has no tangent, gets zeros instead of None.
    zeros_for_none: bool = False
    # Whether tensors without elements are supported.
    empty: bool = True
    # How many shapes of each rank calls are drawn from; None for all. For an implementation that compiles every
    # operation for every new shape, which takes far longer than running it.
    shapes_per_rank: int | None = None
    # The exceptions with which the implementation refuses a misuse; any other exception is a failure.
    refusals: tuple[type[Exception], ...] = (RuntimeError, TypeError, ValueError, NotImplementedError)

    # Other packages that are part of the implementation, as one with its native code.
    parts: tuple[Any, ...] = ()
    # The name of a package that another one stands for, which may lack parts of it; "" if it is the package itself.
    drop_in: str = ""
    # The dtypes that were found not to be taken by the device that the adapter is for.
    untaken: frozenset[str] = frozenset()
    # The dtypes that autocast computes in, the usual one first; of an accelerator those that were found out.
    autocast_dtypes: tuple[str, ...] = ("bfloat16", "float16")
    # The versions of packages that the user adds, by name: of one that registers a device, say.
    added: Mapping[str, str] = MappingProxyType({})

    # The framework's settings and generators of the process; with the capability "settings", as `reseed`.
    settings: tuple[Setting, ...] = ()
    random_states: tuple[RandomState, ...] = ()

    def environment(self) -> Environment:
        """Version and location of what is installed: by default those of ``package``."""
        name = self.package.__name__
        try:
            version = getattr(self.package, "__version__", None) or metadata.version(name)
        except metadata.PackageNotFoundError:
            raise Unavailable(
                f"{name} has no __version__, and is not installed as a distribution; give it one, or override "
                "environment() in the adapter"
            ) from None
        return Environment(version, str(self.package.__file__))

    def checked(self) -> tuple[str, ...]:
        """The releases that deviations were looked for on, the oldest first; empty if none are listed."""
        return by_release(version for each in self.deviations for version in each.cause.checked)

    def devices(self) -> tuple[str, ...]:
        """The devices that can be used here, the default one first."""
        return ("cpu",)

    def accelerators(self) -> tuple[str, ...]:
        """The devices beside the default one, of which is found out what they take."""
        return self.devices()[1:]

    @abstractmethod
    def array(self, values: Any, dtype: str, device: str) -> Any:
        """A new contiguous tensor, outside any graph, from a NumPy array."""

    @abstractmethod
    def numpy(self, tensor: Any) -> Any:
        """A NumPy copy: float64 or complex128 for floating dtypes, the values themselves for integers and booleans.

        Raises Unreadable for a kind of tensor that has no such copy.
        """

    def unusual(self, tensor: Any) -> str:
        """The kind of a tensor that most operations do not take, such as ``sparse_coo``; empty for a usual one."""
        return ""

    def describe(self, tensor: Any) -> Description:
        """Shape, dtype and device, in the suite's names; by default the tensor is on the CPU."""
        return Description(tuple(tensor.shape), str(tensor.dtype).rpartition(".")[2], "cpu")

    def files(self) -> Sequence[Path]:
        """The files of the adapter."""
        kinds = [kind for kind in type(self).__mro__ if issubclass(kind, Implementation)]
        return [Path(str(sys.modules[kind.__module__].__file__)) for kind in kinds]

    def build(self, function: Function) -> Any:
        """A documented Function as a class of the implementation."""
        return function.body(self.xp, self.ag)

    def function(self, cls: Any) -> Callable[..., Any]:
        """What users call to run the custom Function ``cls``, a class that a body built over ``xp`` and ``ag``."""
        apply: Callable[..., Any] = cls.apply
        return apply

    @abstractmethod
    def differentiate(self, f: Callable[..., Tensors], primals: Tensors, tracked: Mask) -> tuple[Tensors, BackwardPass]:
        """Run ``f``, which returns a tuple, and differentiate it with respect to the primals that are ``tracked``.

        Returns the outputs and ``gradients(cotangents, wanted, differentiable)``, which may be called several times. It
        returns one gradient for each primal, None if there is none; those that are not ``wanted`` are ignored. A
        cotangent None means that the output is not used. With ``differentiable`` the gradients can be differentiated
        again, by an enclosing call of `differentiate`.
        """

    def vjp(
        self, f: Callable[..., Any], primals: Sequence[Any], *, track: Mask | None = None
    ) -> tuple[Tensors, Pullback]:
        """Run ``f`` on the primals, tracking those in the mask ``track`` (default: all).

        Returns the outputs and a pullback, ``pullback(cotangents, wrt=None, differentiable=False)``, which may be
        called several times. It returns one gradient per primal: None for those outside the mask ``wrt`` (default: the
        tracked ones), and None if there is no gradient. A cotangent None means that the output is not used. With
        ``differentiable`` the gradients can be differentiated again, by an enclosing `vjp`.
        """
        tracked = [True] * len(primals) if track is None else list(track)
        outputs, gradients = self.differentiate(lambda *given: as_tuple(f(*given)), tuple(primals), tracked)

        def pullback(cotangents: Sequence[Any], wrt: Mask | None = None, differentiable: bool = False) -> Tensors:
            wanted = tracked if wrt is None else [t and w for t, w in zip(tracked, wrt, strict=True)]
            found = gradients(cotangents, wanted, differentiable)
            return tuple(g if w else None for g, w in zip(found, wanted, strict=True))

        return outputs, pullback

    def predates(self, release: str) -> bool:
        """Whether the installed implementation is older than this release."""
        return False

    def operator(self, name: str) -> tuple[Callable[..., Any], str] | None:
        """The operator that is registered as ``space::name.overload``, and a script's text for it; None if none is."""
        return None

    def operators(self) -> Sequence[str]:
        """The names of all registered operators."""
        return ()

    def parameters_of(self, function: Any, count: int) -> Sequence[str]:
        """The names of an operator's arguments, if it can be called with this number of them; else empty."""
        return ()

    def keywords_of(self, function: Any) -> Sequence[str]:
        """The keyword-only arguments of an operator, which a call by position leaves at their defaults."""
        return ()

    def foretells(self, function: Any) -> bool:
        """Whether an operator has a kernel for tensors without values, by which compilers know its outputs."""
        return False

    def foretold(self, f: Callable[..., Any], primals: Sequence[Any]) -> Sequence[Any]:
        """The outputs of ``f``, which calls such an operator, for tensors like these without values."""
        raise NotImplementedError

    def held_dtypes(self, function: Any) -> frozenset[str]:
        """The floating dtypes of the parameters that a callable holds, such as a layer; empty if it holds none."""
        return frozenset()

    def is_tensor(self, value: Any) -> bool:
        """Whether a value inside a Function is a tensor of the implementation."""
        raise NotImplementedError

    def operators_of(self, package: str) -> Mapping[str, tuple[Any, Callable[..., Any]]]:
        """The custom operators with a backward that a package defines: by name what is called, and its function."""
        return {}

    def simulated_devices(self) -> tuple[str, ...]:
        """Devices that run on this machine without their hardware, for the properties about devices."""
        return ()

    def abstract_devices(self) -> tuple[str, ...]:
        """Devices whose tensors have a shape and a dtype but no values."""
        return ()

    def lacking(self, device: str) -> frozenset[str]:
        """The claimed capabilities that this device does not have."""
        return frozenset()

    def prepare(self) -> None:
        """Build what a run needs, once. Raises Unavailable if that is not possible."""

    def start_device(self, device: str) -> None:
        """Prepare a simulated device; called once, before it is used."""

    def limit_threads(self) -> None:
        """Compute on one thread, so that parallel workers do not compete for cores."""

    def synchronize(self, device: str) -> None:
        """Wait until the device has finished its work."""

    def redispatched(self, action: Callable[[], Any]) -> frozenset[str]:
        """The operations of an action that call themselves again, as one does that is left to another device."""
        return frozenset()

    def reseed(self, seed: int = 0) -> None:
        """Seed the random numbers, for users' Functions that draw them."""
        raise NotImplementedError

    # requires_grad
    def requires_grad(self, tensor: Any) -> bool:
        raise NotImplementedError

    def node(self, tensor: Any) -> Any:
        """The graph node that computed the tensor, or None."""
        raise NotImplementedError

    def no_grad(self) -> AbstractContextManager[Any]:
        raise NotImplementedError

    # inplace
    def version(self, tensor: Any) -> int:
        raise NotImplementedError

    # views
    def shares_memory(self, a: Any, b: Any) -> bool:
        raise NotImplementedError

    def fill_(self, tensor: Any, value: Any) -> None:
        """Overwrite in place, as a user would under no_grad, with a number or with an array of the tensor's shape."""
        raise NotImplementedError

    def strides(self, tensor: Any) -> tuple[int, ...]:
        raise NotImplementedError

    # accumulate
    def backward(
        self, f: Callable[..., Any], primals: Sequence[Any], cotangents: Sequence[Any], *, track: Sequence[bool],
        initial: Sequence[Any] | None = None, differentiable: bool = False,
    ) -> Tensors:  # fmt: skip
        """Run ``f`` on leaves whose ``.grad`` is ``initial``, call backward, and return the ``.grad`` of each leaf."""
        raise NotImplementedError

    # jvp
    def jvp(self, f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Tensors, Tensors]:
        """The outputs and their tangents; a tangent None means that the primal is constant."""
        raise NotImplementedError

    # vmap
    def vmap(self, f: Callable[..., Any], in_axes: Sequence[int | None]) -> Callable[..., Any]:
        raise NotImplementedError

    # batched_cotangents
    def batched_vjp(
        self, f: Callable[..., Any], primals: Sequence[Any], cotangents: Sequence[Any], *, track: Sequence[bool]
    ) -> Tensors:
        """The gradients for a batch of cotangents, which have one more leading dimension."""
        raise NotImplementedError

    # compile
    def compile(self, f: Callable[..., Any]) -> Callable[..., Any]:
        raise NotImplementedError

    # autocast
    def autocast(self, device: str, dtype: str) -> AbstractContextManager[Any]:
        raise NotImplementedError

    # saved_hooks
    def offload(self) -> AbstractContextManager[Any]:
        """A context in which every saved tensor is packed into another form, and unpacked when it is used."""
        raise NotImplementedError

    # new_memory
    def new_memory(self, fill: bool) -> AbstractContextManager[Any]:
        """A context in which memory that is allocated is filled with NaN, or one in which it is filled with zeros."""
        raise NotImplementedError

    # checkpoint
    def checkpoint(self, f: Callable[..., Any]) -> Callable[..., Any]:
        raise NotImplementedError


def absent_methods(implementation: Implementation, capability: str) -> list[str]:
    """The methods that an adapter needs for a capability, and does not have."""
    wanted = METHODS.get(capability, ())
    return [name for name in wanted if getattr(type(implementation), name) is getattr(Implementation, name)]

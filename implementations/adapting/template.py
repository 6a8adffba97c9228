"""The text of a new adapter: every part that its author has to write, with the words of the protocol."""

from __future__ import annotations

import inspect
import keyword
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from autograd_conformance.implementations.adapting import NumPyImplementation, TransformingImplementation
from autograd_conformance.implementations.adapting.filling import NAME
from autograd_conformance.implementations.protocol import CAPABILITIES, DTYPES, METHODS, Implementation
from autograd_conformance.reference.namespace import ARRAY_NAMES, EXTRA_NAMES
from autograd_conformance.reference.uses import ALWAYS, FUNCTIONS, OPERATORS, Use

# How users of a framework write a custom Function.
KINDS = {
    "torch": "a class with forward, backward and a ctx",
    "jax": "a function with a rule for its derivative",
}

_WIDTH = 119

# Stands for a space at which a line is not broken.
_JOINT = "~"

# Uses of names that are made of no other tensor, or that only a capability needs.
_CALLS = {
    "arange": "xp.arange(3, device=x.device)",
    "zeros": "xp.zeros((2, 3), dtype=x.dtype, device=x.device)",
    "to_numpy": "xp.to_numpy(x)",
    "from_numpy": "xp.from_numpy(a, like=x)",
    "sparse_matmul": "xp.sparse_matmul(indices, values, (2, 3), b)",
}
_ONLY = {"to_numpy": "numpy", "from_numpy": "numpy", "sparse_matmul": "sparse"}


def text(name: str, kind: str) -> str:
    """The adapter of an implementation with that name, whose Functions are of that one of `KINDS`."""
    rules = kind == "jax"
    base = TransformingImplementation if rules else Implementation
    bases = (TransformingImplementation, NumPyImplementation) if rules else (NumPyImplementation,)
    return _TEMPLATE.format(
        name=name,
        cls=class_name(name),
        kind=KINDS[kind],
        fill_in=NAME,
        imports=_RULES_IMPORTS.format(fill_in=NAME) if rules else _CLASSES_IMPORTS.format(fill_in=NAME),
        bases=", ".join(each.__name__ for each in bases),
        operators=_comment(_operators(), "# ").replace(_JOINT, " "),
        always=", ".join(use.text for use in OPERATORS if use.differentiated == ALWAYS),
        namespace="".join(_namespace()),
        ag=_RULES if rules else _CLASSES.format(fill_in=NAME),
        own_is_tensor=_OWN_IS_TENSOR if rules else "",
        capabilities="".join(_capabilities()),
        dtypes=_comment(", ".join(DTYPES[1:]), "    # Others that can be added: "),
        methods="".join(
            _method(each)
            for each in _required(base, NumPyImplementation)
            if not (rules and each is Implementation.is_tensor)
        ),
        optional="".join(_optional(bases)),
    )


def _operators() -> str:
    """The uses of operators, none of which is broken over two lines."""
    return ", ".join(use.text.replace(" ", _JOINT) for use in OPERATORS if not use.needs)


def class_name(name: str) -> str:
    """The name of the adapter's class."""
    words = re.findall(r"[A-Za-z0-9]+", name)
    found = "".join(word[0].upper() + word[1:] for word in words) + "Implementation"
    return found if found.isidentifier() and not keyword.iskeyword(found) else f"An{found}"


def _namespace() -> Iterator[str]:
    """The names of the array namespace, those that are differentiated first, with how bodies call them."""
    uses: dict[str, list[Use]] = {name: [] for name in (*ARRAY_NAMES, *EXTRA_NAMES)}
    for use in FUNCTIONS:
        uses[use.name].append(use)
    for said, wanted in (
        ("The suite differentiates through these, whatever is claimed.", _always),
        ('Through these too, if "double_backward" is claimed.', _twice),
        ("Through these it does not: values are enough.", lambda *_: True),
    ):
        mine = [name for name, found in uses.items() if name not in _ONLY and wanted(found)]
        yield f"    # {said}\n"
        for name in mine:
            calls = [use.text for use in uses.pop(name)] or [_CALLS[name]]
            yield f"    {name}={NAME},  # {'; '.join(calls)}\n"
    for name, capability in _ONLY.items():
        yield f'    # {name}=...,  # only with "{capability}": {_CALLS[name]}\n'


def _always(uses: list[Use]) -> bool:
    return any(use.differentiated == ALWAYS for use in uses)


def _twice(uses: list[Use]) -> bool:
    return any(use.differentiated for use in uses)


def _capabilities() -> Iterator[str]:
    for name, said in CAPABILITIES.items():
        methods = f" (needs {', '.join(METHODS[name])})" if name in METHODS else ""
        yield _comment(f"{said}{methods}", f'        # "{name}",  # ', "        #     # ")


def _required(*bases: Any) -> list[Callable[..., Any]]:
    """The methods that an adapter of these bases has to have, in the order of the protocol."""
    names = frozenset[str]().union(*(each.__abstractmethods__ for each in bases))
    supplied = {name for each in bases for name in vars(each) if name not in each.__abstractmethods__}
    found = [name for name in dict.fromkeys((*vars(Implementation), *names)) if name in names - supplied]
    methods = [next(getattr(each, name) for each in bases if hasattr(each, name)) for name in found]
    return [*methods, Implementation.is_tensor]


def _optional(bases: Iterable[type[Implementation]]) -> Iterator[str]:
    """The methods that belong to capabilities, as comments."""
    for capability, names in METHODS.items():
        for name in names:
            if any(name in vars(each) for base in bases for each in base.__mro__ if each is not Implementation):
                continue
            method = getattr(Implementation, name)
            yield f"    # {capability}: def {name}({_arguments(method)})\n"
            if method.__doc__:
                yield _comment(_first(method), "    #     ")


def _first(method: Callable[..., Any]) -> str:
    return (inspect.getdoc(method) or "").partition("\n")[0]


def _arguments(method: Callable[..., Any]) -> str:
    """The parameters without their types."""
    signature = inspect.signature(method)
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))[1:-1]


def _method(method: Callable[..., Any]) -> str:
    """A method that is still to be written, with its docstring."""
    said = textwrap.indent(inspect.getdoc(method) or "", "        ").strip()
    end = "\n        " if "\n" in said else ""
    return f'\n    def {method.__name__}({_arguments(method)}):\n        """{said}{end}"""\n        raise {NAME}\n'


def _comment(said: str, first: str, rest: str | None = None) -> str:
    rest = "    # " if rest is None and first.startswith("    #") else "# " if rest is None else rest
    lines = textwrap.wrap(said, _WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
    return "\n".join(lines) + "\n"


_CLASSES_IMPORTS = """\
from autograd_conformance.implementations.adapting import NumPyImplementation
from autograd_conformance.implementations.adapting.filling import {fill_in}
"""

_RULES_IMPORTS = """\
from autograd_conformance.implementations.adapting import NumPyImplementation, TransformingImplementation
from autograd_conformance.implementations.adapting.filling import {fill_in}
from autograd_conformance.implementations.adapting.lowering import autograd_namespace
"""

_CLASSES = """\
# The base class of your custom Functions, and the decorator that declares a backward not differentiable; if you have no
# such decorator: once_differentiable=lambda backward: backward. Whatever is claimed, bodies call ctx.save_for_backward
# and ctx.save_for_forward, read ctx.saved_tensors and ctx.needs_input_grad, and set attributes of ctx. forward returns
# a tensor or a tuple, also of one. It gets arguments that are no tensors (numbers, tuples, None) as they are; backward
# returns None for those. With a setup_context(ctx, inputs, output), forward gets no ctx. With several or unused outputs
# bodies call ctx.mark_non_differentiable and ctx.set_materialize_grads too.
ag = SimpleNamespace(
    Function={fill_in},
    once_differentiable={fill_in},
)
"""

_RULES = '''\

def _is_tensor(value):
    """Whether a value inside a Function is a tensor of the implementation."""
    raise FILL_IN


def _apply(lowered):
    """Call a body as a custom function of yours, of the tensors in lowered.tensors.

    Its forward is ``outputs, ctx = lowered.forward(tensors)``, where the outputs are a tuple. Its rule is
    ``gradients = lowered.backward(ctx, cotangents)``, one for each tensor. Return ``lowered.returned(outputs)``.
    """
    raise FILL_IN


# Bodies are written as classes with a ctx; this makes functions of them.
ag = autograd_namespace(_apply, _is_tensor)
'''

_OWN_IS_TENSOR = "    is_tensor = staticmethod(_is_tensor)\n"

_TEMPLATE = '''\
"""The adapter of {name} for autograd-conformance. A custom Function of {name} is {kind}.

Replace each {fill_in}. At any time, this says what is missing and what is wrong, all at once:

    autograd-conformance run FILE

An adapter translates notation, and repairs nothing. docs/adding-an-implementation.md of the project explains each part.
"""

from types import SimpleNamespace

{imports}
# What bodies do with tensors, whatever is claimed. They give operators tensors and Python numbers, no NumPy scalars.
{operators}# They read x.shape, x.ndim, x.dtype and x.device. The suite differentiates through {always}.

# The array namespace: names and arguments as in NumPy. namespace(module, sum=..., ...) of
# autograd_conformance.implementations.adapting takes names from a module, and those that differ from you.
xp = SimpleNamespace(
{namespace})

{ag}

class {cls}({bases}):
    name = "{name}"
    # The imported package that is checked: its __version__ and __file__ stand in reports.
    package = {fill_in}
    # What its documentation claims: remove the # of a line. What is not claimed runs too, and never fails a run.
    capabilities = frozenset({{
{capabilities}    }})
    dtypes = ("float64",)
{dtypes}    xp = xp
    ag = ag
{own_is_tensor}{methods}
    # Methods that a capability needs:
{optional}'''

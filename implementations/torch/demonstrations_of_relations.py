"""What shows on torch that a result is not the one that other calls give together, as a declaration promises."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import replace

from autograd_conformance.implementations.scripting import NoScript, OtherCall
from autograd_conformance.implementations.torch.words import CONTIGUOUS, Words

_COPIED = f"""\
def copied(view, track=False):
    return view.detach().{CONTIGUOUS}.requires_grad_(track)


"""


def _related(w: Words) -> str:
    if w.shown.aspect not in ("value", "raised"):
        raise NoScript("the outputs of two calls do not fit")
    parts: list[OtherCall] = w.shown.more["parts"]()
    number, tracked = w.shown.number, w.shown.tracked
    slot = next((slot for part in parts for slot in part.statics), None)
    of_output = w.shown.kind == "output"
    own = [] if slot is None else [w.shown.arguments[slot]]
    whole = f"run({', '.join([*w.names, *own, *_cotangents(w)])})"
    lines = f"joined = torch.zeros_like({whole if of_output else w.names[number]})\n"
    for part in parts:
        found = f"run({', '.join(_given(w, part))})"
        if of_output:
            lines += f"joined{part.outputs[number]}.add_({'-' * (part.sign < 0)}{found})\n"
            continue
        for n, (source, view) in enumerate(part.tensors):
            if source == number and n in tracked:
                lines += f"joined{view}.add_({found}[{tracked.index(n)}])\n"
    lines = _run(w, slot) + _COPIED * ("copied(" in lines) + lines
    return lines + w.compare("joined", whole if of_output else f"{whole}[{w.position}]")


def _cotangents(w: Words) -> list[str]:
    """The names of the cotangents, where gradients are compared."""
    return [] if w.shown.kind == "output" else [g.name for g in w.cotangents if g]


def _given(w: Words, part: OtherCall) -> list[str]:
    """What `run` gets for a part: tensors, the other argument that differs, cotangents."""
    given = []
    for n, (source, view) in enumerate(part.tensors):
        track = ", True" * (n in w.shown.tracked)
        given.append(f"copied({w.names[source]}{view}{track})" if view else w.names[source])
    given += part.statics.values()
    sign = "-" * (part.sign < 0)
    views = [part.outputs[n] for n in w.shown.used]
    pairs = zip(_cotangents(w), views, strict=False)
    return given + [f"{sign}copied({g}{view})" if view else f"{sign}{g}" for g, view in pairs]


def _run(w: Words, slot: int | None) -> str:
    """The function that gives the output, or all gradients; the argument in the slot becomes its parameter."""
    parameters = [*w.names, *(["axis"] if slot is not None else []), *_cotangents(w)]
    arguments = ["axis" if n == slot else argument for n, argument in enumerate(w.shown.arguments)]
    inner = Words(replace(w.shown, arguments=tuple(arguments)))
    end = w.shown.outputs[w.shown.number] if w.shown.kind == "output" else inner.grad()
    lines = textwrap.indent(f"{inner.forward()}return {end}\n", "    ")
    helpers = w.helpers() if w.shown.kind == "gradient" else ""
    return f"{helpers}def run({', '.join(parameters)}):\n{lines}\n\n"


RELATIONS: dict[str, Callable[[Words], str]] = dict.fromkeys(
    ("DECL-INDEPENDENT", "DECL-AXIS", "DECL-SYMMETRIC"), _related
)

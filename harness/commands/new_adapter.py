"""``autograd-conformance new-adapter``: write the file with which an implementation joins."""

from __future__ import annotations

import re
from pathlib import Path

import click

from autograd_conformance.harness.commands import Problem, echo
from autograd_conformance.harness.outcomes import choose_from
from autograd_conformance.implementations.adapting import template, template_over

_KINDS = "; ".join(f"{kind}: a custom Function is {said}" for kind, said in template.KINDS.items()) + "."


@click.command("new-adapter")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--name", metavar="NAME", help="Name of the implementation in reports; default: that of FILE.")
@click.option("--like", metavar="|".join(template.KINDS), help=f"{_KINDS}  [default: torch]")
@click.option("--over", metavar="|".join(template_over.TEXTS),
              help="The implementation sits on top of this one, as a jit does, and calls its Functions.")  # fmt: skip
def new_adapter(file: Path, name: str | None, like: str | None, over: str | None) -> None:
    """Write a new adapter to FILE, with which an implementation of your own joins.

    The file can be run at once: run FILE says all that is still to be filled in.
    """
    name = file.stem if name is None else name
    for option, value, there in (("--like", like, template.KINDS), ("--over", over, template_over.TEXTS)):
        if value is not None and value not in there:
            raise Problem(f"unknown kind {option} {value!r}; {choose_from(value, there)}")
    if like is not None and over is not None:
        raise Problem(f"--like {like} and --over {over} write different adapters; give one of them")
    if file.suffix != ".py":
        raise Problem(f"{file} is not the name of a Python file; give one, as in: new-adapter {file.name}.py")
    if re.fullmatch(r"[\w.-]+", name) is None:
        raise Problem(f"--name {name!r} is not a word of letters, digits, _, - and .; give one")
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(template.text(name, like or "torch") if over is None else template_over.text(name, over))
    except FileExistsError:
        raise Problem(f"{file} exists, and is not overwritten; give another name, or remove it") from None
    except OSError as problem:
        raise Problem(f"{file} cannot be written: {problem.strerror}") from None
    echo(f"{file} is written; what to fill in: autograd-conformance run {file}")

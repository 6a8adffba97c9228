"""The subcommands of ``autograd-conformance``, and their common exit status and errors."""

from __future__ import annotations

import math
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from autograd_conformance import implementations
from autograd_conformance.harness.outcomes import UNDECIDED, choose_from, shortage
from autograd_conformance.harness.text import shown


class Problem(click.ClickException):
    """An error: one sentence on stderr, and exit status 2."""

    exit_code = UNDECIDED

    def __init__(self, message: str) -> None:
        super().__init__(shown(message))


class Number(click.FloatRange):
    """A number from ``least`` on, whole or not, which is neither infinite nor NaN."""

    def __init__(self, least: float, *, whole: bool = False) -> None:
        super().__init__(least)
        self._least, self._whole = least, whole

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            number = int(value) if self._whole else float(value)
        except ValueError:
            number = math.nan
        if not self._least <= number < math.inf:
            kind = "whole" if self._whole else "finite"
            self.fail(f"{value} is not a {kind} number of at least {self._least:g}", param, ctx)
        return number


def _verify_module(option: str, name: str, example: str) -> None:
    if not all(map(str.isidentifier, name.split("."))):
        raise Problem(f"{option} must be the name of a package, as in {option} {example}, got {name!r}")


def _verify_import(name: str) -> None:
    path, colon, function = name.partition(":")
    _verify_module("--import", path, "torchvulkan")
    if colon and not function.isidentifier():
        raise Problem(
            f"--import calls a function of a package, as in --import mypackage:register, got {function!r} as its name"
        )


def _import_everywhere(context: click.Context, option: click.Parameter, names: tuple[str, ...]) -> None:  # noqa: ARG001
    """Let this process and all its children import these packages."""
    for name in names:
        _verify_import(name)
    if names:
        os.environ[implementations.IMPORTS] = ",".join(dict.fromkeys((*implementations.to_import(), *names)))


import_option = click.option(
    "--import", multiple=True, metavar="PACKAGE[:FUNCTION]", expose_value=False, callback=_import_everywhere,
    help="Import this package in every process, as one that registers a device, and call its function; repeatable.",
)  # fmt: skip


def _import_instead(context: click.Context, option: click.Parameter, name: str | None) -> None:  # noqa: ARG001
    """Let this process and all its children import this package instead."""
    if name is not None:
        _verify_module("--package", name, "mindtorch.torch")
        os.environ[implementations.PACKAGE] = name


package_option = click.option(
    "--package", metavar="NAME", expose_value=False, callback=_import_instead,
    help="Check this package instead of torch, which it imitates: it has its API under another name.",
)  # fmt: skip


def echo(text: str, *, err: bool = False) -> None:
    """Print a line."""
    click.echo(shown(text), err=err)


@contextmanager
def _in_a_sentence(context: click.Context | None = None) -> Iterator[None]:
    """A context in which click's usage errors, which take five lines or one, become a Problem as all others.

    Click does not say of every error which command it is about; then it is that of ``context``.
    """
    try:
        yield
    except click.UsageError as error:
        about = error.ctx or context
        help_ = f"{about.command_path} --help" if about is not None else "autograd-conformance --help"
        said = error.format_message().removesuffix(".")
        if isinstance(error, click.NoSuchOption):
            near = " or ".join(error.possibilities or ())
            said = f"unknown option {error.option_name}" + (f" (did you mean {near}?)" if near else "")
        raise Problem(f"{said[0].lower()}{said[1:]}; see {help_}") from None


class Group(click.Group):
    @property
    def names(self) -> tuple[str, ...]:
        """The names of its commands, those that are used most first."""
        return tuple(self.commands)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        with _in_a_sentence():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _in_a_sentence(ctx):
                return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        # A crash is not a failure of the implementation, which would be exit status 1.
        except Exception as raised:  # noqa: BLE001
            lack = shortage(raised)
            if lack:
                raise Problem(lack) from None
            traceback.print_exc()
            sys.exit(UNDECIDED)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in self.names:
            raise Problem(f"unknown command {args[0]!r}; {choose_from(args[0], self.names)}")
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            _refuse_empty(command, click.Context(command, info_name=name, parent=ctx), rest)
        return name, command, rest


def _refuse_empty(command: click.Command, context: click.Context, args: list[str]) -> None:
    """Raise Problem for an empty option or argument, as a variable that is not set leaves."""
    with _in_a_sentence(context):
        given, _, _ = command.make_parser(context).parse_args(list(args))
    for parameter in command.params:
        found = given.get(parameter.name)
        several = found if isinstance(found, list | tuple) else (found,)
        if "" in several and parameter.type is not click.UNPROCESSED:
            named = parameter.opts[-1] if isinstance(parameter, click.Option) else parameter.human_readable_name
            raise Problem(f"{named} is empty; give it a value, or leave it out")

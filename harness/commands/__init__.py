"""The subcommands of ``autograd-conformance``, and their common exit status and errors."""

from __future__ import annotations

import sys
import traceback
from typing import Any

import click

from autograd_conformance.harness.outcomes import choose_from

USAGE = 2


class Problem(click.ClickException):
    """An error: one sentence on stderr, and exit status 2."""

    exit_code = USAGE


class Group(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        # A crash is not a failure of the implementation, which would be exit status 1.
        except Exception:  # noqa: BLE001
            traceback.print_exc()
            sys.exit(USAGE)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            raise Problem(f"unknown command {args[0]!r}; {choose_from(args[0], self.commands)}")
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            _refuse_empty(command, click.Context(command, info_name=name, parent=ctx), rest)
        return name, command, rest


def _refuse_empty(command: click.Command, context: click.Context, args: list[str]) -> None:
    """Raise Problem for an empty option or argument, as a variable that is not set leaves."""
    given, _, _ = command.make_parser(context).parse_args(list(args))
    for parameter in command.params:
        found = given.get(parameter.name)
        several = found if isinstance(found, list | tuple) else (found,)
        if "" in several and parameter.type is not click.UNPROCESSED:
            named = parameter.opts[-1] if isinstance(parameter, click.Option) else parameter.human_readable_name
            raise Problem(f"{named} is empty; give it a value, or leave it out")

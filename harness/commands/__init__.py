"""The subcommands of ``autograd-conformance``, a module for each kind, and what they share."""

from __future__ import annotations

from typing import Any

import click

USAGE = 2


class Problem(click.ClickException):
    """One sentence on stderr, and the exit status of a usage error."""

    exit_code = USAGE


class Group(click.Group):
    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            raise Problem(f"unknown command {args[0]!r}; choose from: {', '.join(self.commands)}")
        return super().resolve_command(ctx, args)

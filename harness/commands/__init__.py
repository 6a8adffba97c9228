"""The subcommands of ``autograd-conformance``, a module for each kind, and what they share."""

from __future__ import annotations

import sys
import traceback
from typing import Any

import click

USAGE = 2


class Problem(click.ClickException):
    """One sentence on stderr, and the exit status of a usage error."""

    exit_code = USAGE


class Group(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        # Nothing was found out; exit status 1 would say that something falls short.
        except Exception:  # noqa: BLE001
            traceback.print_exc()
            sys.exit(USAGE)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            raise Problem(f"unknown command {args[0]!r}; choose from: {', '.join(self.commands)}")
        return super().resolve_command(ctx, args)

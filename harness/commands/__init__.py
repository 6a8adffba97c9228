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
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        # A crash is not a failure of the implementation, which would be exit status 1.
        except Exception:  # noqa: BLE001
            traceback.print_exc()
            sys.exit(USAGE)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            raise Problem(f"unknown command {args[0]!r}; {choose_from(args[0], self.commands)}")
        return super().resolve_command(ctx, args)

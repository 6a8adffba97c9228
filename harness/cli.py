"""The command ``autograd-conformance``."""

from __future__ import annotations

from importlib import import_module

import click

from autograd_conformance.harness.commands import Group, Problem
from autograd_conformance.harness.reports.ndjson import version_of
from autograd_conformance.harness.text import origin

# Where each command is: a module of harness/commands, and the name in it.
_PLACES = {
    "run": "run:run",
    "check": "check:check",
    "record": "record:record",
    "watch": "watch:watch",
    "compare": "gate:compare",
    "accept": "gate:accept",
    "merge": "gate:merge",
    "report": "report:report",
    "export": "report:export_",
    "keep": "keep:keep",
    "list": "listing:list_",
    "new-adapter": "new_adapter:new_adapter",
}


class _Main(Group):
    """Imports a command when it is used: one does not wait for what another one needs."""

    names = tuple(_PLACES)

    def list_commands(self, ctx: click.Context | None) -> list[str]:  # noqa: ARG002
        return sorted(_PLACES)

    def get_command(self, ctx: click.Context | None, name: str) -> click.Command | None:  # noqa: ARG002
        if name not in _PLACES:
            return None
        place, attribute = _PLACES[name].split(":")
        try:
            module = import_module(f"autograd_conformance.harness.commands.{place}")
        except (Exception, KeyboardInterrupt) as raised:  # noqa: BLE001 - OpenBLAS interrupts who has no threads for it
            raise Problem(f"autograd-conformance cannot start: {origin(raised)}") from None
        command: click.Command = getattr(module, attribute)
        return command


@click.group(cls=_Main, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version_of("autograd-conformance"), package_name="autograd-conformance")
def main() -> None:
    """Check custom autograd Functions against what their documentation says."""

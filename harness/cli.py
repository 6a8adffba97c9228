"""The command ``autograd-conformance``."""

from __future__ import annotations

import click

from autograd_conformance.harness.commands import Group, checking, gating, keeping, listing, running, showing
from autograd_conformance.harness.report import version_of


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version_of("autograd-conformance"), package_name="autograd-conformance")
def main() -> None:
    """Check custom autograd Functions against what their documentation says."""


for _command in (
    running.run, checking.check, gating.compare, gating.accept, gating.merge, showing.report, showing.export_,
    keeping.keep, listing.list_,
):  # fmt: skip
    main.add_command(_command)

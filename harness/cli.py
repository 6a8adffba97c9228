"""The command ``autograd-conformance``."""

from __future__ import annotations

import click

from autograd_conformance.harness.commands import Group, check, gate, keep, listing, new_adapter, report, run
from autograd_conformance.harness.reports.ndjson import version_of


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version_of("autograd-conformance"), package_name="autograd-conformance")
def main() -> None:
    """Check custom autograd Functions against what their documentation says."""


for _command in (
    run.run, check.check, gate.compare, gate.accept, gate.merge, report.report, report.export_, keep.keep,
    listing.list_, new_adapter.new_adapter,
):  # fmt: skip
    main.add_command(_command)

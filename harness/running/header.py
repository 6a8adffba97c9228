"""The first line of a report: the implementation, the options and the machine."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict

from autograd_conformance import implementations
from autograd_conformance.harness.provenance import identity, sources
from autograd_conformance.harness.provenance.imported import Imports
from autograd_conformance.harness.reports.ndjson import SCHEMA, Line, now, version_of
from autograd_conformance.harness.running import corpus
from autograd_conformance.harness.running.selection import Selection
from autograd_conformance.harness.text import visible
from autograd_conformance.implementations.deviations import release_of
from autograd_conformance.implementations.protocol import Implementation

_PACKAGES = ("hypothesis", "numpy", "pytest")


def header(selection: Selection, expected: int | None) -> Line:
    """The header; ``expected`` is the number of test ids, None if they were not collected."""
    found = selection.implementation.environment()
    places = identity.places(selection.implementation) if selection.catalog.kept else ()
    known = {
        "kind": "header",
        "schema": SCHEMA,
        "suite": {
            "name": "autograd-conformance",
            "version": version_of("autograd-conformance"),
            "sources": {**sources.of_suite(), **selection.tests, **sources.of_adapter(selection.implementation)},
        },
        "implementation": {
            "name": selection.implementation.name,
            "named": selection.named,
            "version": found.version,
            "location": found.location,
            **({"checked": list(checked)} if (checked := unchecked(selection.implementation)) else {}),
            "build": identity.build(*map(str, places)),
            **({"fork": asdict(selection.fork)} if selection.fork else {}),
            **({"package": package} if (package := os.environ.get(implementations.PACKAGE)) else {}),
            **({"added": dict(added)} if (added := selection.implementation.added) else {}),
        },
        "run": identity.of_run(selection.run_id),
        **({"imports": dict(selection.imports)} if selection.imports else {}),
        "claims": _claims(selection.implementation),
        "devices": list(selection.all_devices),
        **({"facts": {device: asdict(each) for device, each in facts.items()}} if (facts := selection.facts) else {}),
        "profile": selection.profile.name,
        "examples": selection.examples,
        "seed": selection.seed,
        "replay": selection.replay,
        "corpus": selection.corpus,
        "counterexamples": _counterexamples(selection),
        **({"kept": kept} if (kept := sorted(filter(selection.should_run, selection.kept))) else {}),
        "functions": [function.name for function in selection.functions],
        "properties": list(selection.properties),
        "clauses": list(selection.clauses),
        "dtype": selection.dtype,
        "options": selection.options,
        "shard": str(selection.shard) if selection.shard else None,
        "balance": selection.shard.balance if selection.shard else None,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: version_of(name) for name in _PACKAGES},
        "started": now(),
        "expected": expected,
    }
    return visible(known)  # type: ignore[no-any-return]


def unchecked(implementation: Implementation) -> tuple[str, ...]:
    """The releases that were checked, if this one was not."""
    checked = implementation.checked()
    return () if release_of(implementation.environment().version) in checked else checked


def _counterexamples(selection: Selection) -> str | None:
    """The digest of the counterexamples that the run begins with: a file of the same name may have others elsewhere."""
    return corpus.digest(one for found in selection.kept.values() for one in found)


def _claims(i: Implementation) -> list[str]:
    """What the adapter claims to support: capabilities, dtypes, tensors without elements, every shape."""
    without_limits = {"empty": i.empty, "all-shapes": i.shapes_per_rank is None}
    return sorted({*i.capabilities, *i.dtypes, *(name for name, claimed in without_limits.items() if claimed)})


def versions(selection: Selection) -> dict[str, str]:
    """The versions that must be equal in all processes of a run."""
    own = {selection.implementation.name: str(selection.implementation.environment().version)}
    rooms = {**sources.of_suite(), **sources.of_adapter(selection.implementation)}
    suite = {f"sources of {room}": digest for room, digest in rooms.items()}
    beside = Imports(tuple(selection.implementation.files()), identity.places(selection.implementation)).written()
    suite.update({f"module {name}": digest for name, digest in beside.items()})
    kept = {"counterexamples": str(_counterexamples(selection))}
    known = {**{name: version_of(name) for name in ("autograd-conformance", *_PACKAGES)}, **suite, **own, **kept}
    return dict(visible(known))

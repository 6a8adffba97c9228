"""The selection of a run: implementation, Functions, claims, devices and examples, computed from its options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from autograd_conformance import implementations
from autograd_conformance.harness.catalogue import SUITES
from autograd_conformance.harness.outcomes import Drawn, NotRun, Record, UsageProblem, choose_from
from autograd_conformance.harness.probing import devices
from autograd_conformance.harness.probing.devices import Facts
from autograd_conformance.harness.processes import waiting
from autograd_conformance.harness.provenance import identity, imported, sources
from autograd_conformance.harness.provenance.fork import Fork, verified
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.running import corpus, shards, unclaimed
from autograd_conformance.harness.running.corpus import Counterexample
from autograd_conformance.harness.running.patterns import matching, names_test, without_variants
from autograd_conformance.harness.testing.clauses import ClauseSubject
from autograd_conformance.harness.testing.example import has_setup_context
from autograd_conformance.harness.testing.marks import AnyClaim, Claim, ClauseClaim
from autograd_conformance.harness.testing.profiles import PROFILES, Profile, choose_seed
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.implementations.protocol import CAPABILITIES, Implementation, Unavailable
from autograd_conformance.reference.clauses import CLAUSES, CONTRACT, DIALECTS
from autograd_conformance.reference.definitions import FLOATING, Function
from autograd_conformance.reference.functions import EXHIBITS, FUNCTIONS
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.strategies.calls import Call

ById = dict[str, tuple[Counterexample, ...]]

# If a test was not exercised, the number of examples is multiplied by the first number, up to the second.
_MORE, _MOST = 4, 100

_LISTS = "autograd-conformance list properties (or: list clauses)"


def _one_of(kind: str, given: str, valid: Iterable[str]) -> str:
    if given not in valid:
        raise UsageProblem(f"unknown {kind} {given!r}; {choose_from(given, valid)}")
    return given


def _implementation(given: str) -> Implementation:
    """The implementation with this name. Raises UsageProblem if it cannot be imported or its version is unsupported."""
    try:
        found = implementations.load(given)
        implementations.check_version(found)
        found.prepare()
    except Unavailable as problem:
        raise UsageProblem(str(problem)) from problem
    return found


@dataclass(frozen=True)
class Try:
    """One pass of a test: a kept call or drawn examples."""

    drawn: Drawn
    call: Call | None = None


class Catalog(Protocol):
    """The source of the Functions of a run, and which tests they get."""

    # Whether these are the documented Functions; only with them clauses are checked, too.
    documented: bool
    # Whether somebody keeps the report, so that it has to say which build it is of.
    kept: bool
    # The names to choose from; hidden names match only exactly.
    names: tuple[str, ...]
    hidden: tuple[str, ...]

    def functions(self, implementation: Implementation) -> Mapping[str, Function]:
        """The Functions by name."""
        ...

    def subject(self, implementation: Implementation, function: Function, device: str, **of_test: Any) -> Subject:
        """The subject of a test of that Function."""
        ...

    def wants(self, claim: Claim, function: Function) -> bool:
        """Whether the Function gets the test with this claim."""
        ...

    def reason_against(self, claim: Claim, function: Function) -> NotRun | None:
        """Why a test of that Function cannot run; None if it can."""
        ...


class Documented:
    """The documented Functions, and the printed examples that are wrong; they get every test but those of users'."""

    documented = True
    kept = True
    names = tuple(FUNCTIONS)
    hidden = tuple(EXHIBITS)

    def functions(self, implementation: Implementation) -> Mapping[str, Function]:  # noqa: ARG002
        return {**{name: exhibit.function for name, exhibit in EXHIBITS.items()}, **FUNCTIONS}

    def subject(self, implementation: Implementation, function: Function, device: str, **of_test: Any) -> Subject:
        return Subject(implementation, function, device, **of_test)

    def wants(self, claim: Claim, function: Function) -> bool:  # noqa: ARG002
        return not claim.own

    def reason_against(self, claim: Claim, function: Function) -> NotRun | None:  # noqa: ARG002
        return None


@dataclass(frozen=True)
class Selection:
    """The implementation, Functions, properties, devices and examples of a run.

    ``kept`` are counterexamples by result id. They run before the drawn examples, or instead of them with the profile
    replay.
    """

    implementation: Implementation
    functions: tuple[Function, ...]
    properties: tuple[str, ...]
    clauses: tuple[str, ...]
    profile: Profile
    seed: int
    # The only devices to run on; all of them if none is named.
    devices: tuple[str, ...] = ()
    dtype: str | None = None
    kept: ById = field(default_factory=dict, repr=False)
    replay: str | None = None
    # The name that the user gave the implementation.
    named: str = ""
    shard: shards.Shard | None = None
    # The options that leave something out, as given.
    options: dict[str, str | None] = field(default_factory=dict, repr=False)
    fork: Fork | None = None
    corpus: str | None = None
    catalog: Catalog = field(default=Documented(), repr=False)
    # The digest of tests that are not the suite's own, if there are any.
    tests: dict[str, str] = field(default_factory=dict, repr=False)
    run_id: str | None = None
    # The digests of what was imported that nothing else identifies, by name.
    imports: Mapping[str, str] = field(default_factory=dict, repr=False)
    # What accelerators take, by device.
    facts: Mapping[str, Facts] = field(default_factory=dict, repr=False)

    @classmethod
    def from_options(
        cls, options: Any, *, controller: Mapping[str, Any] | None = None,
        before_loading: Callable[[str], None] | None = None, catalog: Catalog | None = None,
    ) -> Selection:  # fmt: skip
        """The selection of parsed options. Raises UsageProblem.

        In a worker, ``controller`` has the seed and durations that the controller uses. ``before_loading`` is called
        with the name of the implementation, after the options that do not depend on it have been checked.
        """
        profile = PROFILES[_one_of("profile", options.profile, PROFILES)]
        kept = _counterexamples(profile, options)
        replayed = _functions_of(kept) if profile.name == "replay" else None
        chosen = replayed if options.functions is None else options.functions
        catalog = catalog or Documented()
        listing = "autograd-conformance list functions" if catalog.documented else ""
        functions = matching("Function", chosen, catalog.names, catalog.hidden, command=listing)
        if options.dtype is not None:
            _one_of("dtype", options.dtype, FLOATING)
        if before_loading is not None:
            before_loading(options.implementation)
        with waiting.during(f"the import of {options.implementation}"):
            implementation = _implementation(options.implementation)
        every = catalog.functions(implementation)
        contract = CONTRACT if implementation.keeps_contract and catalog.documented else ()
        valid = (*PROPERTIES, *contract, *DIALECTS.get(implementation.dialect, ()))
        claims = matching("property or clause", without_variants(options.properties), valid, command=_LISTS)
        properties = tuple(name for name in claims if name in PROPERTIES)
        # Clauses are not about single Functions.
        about_all = options.functions is None and catalog.documented
        clauses = tuple(name for name in claims if name in CLAUSES and about_all)
        known = tuple(every[name] for name in functions)
        seed = controller["seed"] if controller else choose_seed(profile, options.seed)
        chosen_devices = devices.chosen(options.device, implementation)
        return cls(
            implementation,
            known,
            properties,
            clauses,
            profile,
            seed,
            chosen_devices,
            options.dtype,
            kept,
            options.replay,
            options.implementation,
            _shard(options, implementation, profile, controller),
            _options(options),
            verified(options.expect, implementation) if options.expect is not None else None,
            options.corpus,
            catalog,
            sources.of_tests(_places(options.file_or_dir)),
            identity.run_id(options.run_id),
            {} if controller or not catalog.kept else imported.of(implementation, _places(options.file_or_dir)),
            devices.facts(options, implementation, chosen_devices, controller["facts"] if controller else None),
        )

    @property
    def examples(self) -> int:
        """How many examples most tests try."""
        return max(1, round(self.profile.examples * self.implementation.share_of_examples))

    @property
    def replays(self) -> bool:
        """Whether only kept counterexamples are run."""
        return self.profile.name == "replay"

    def should_run(self, test_id: str) -> bool:
        """Whether a kept test id has a test in this run, if it has one at all."""
        claim, _, place = test_id.rstrip("]").partition("[")
        function, _, device = place.rpartition("-")
        chosen = {*self.properties, *self.clauses}, {"", *(f.name for f in self.functions)}, {*self.all_devices}
        about = claim.partition("/")[0], function, device
        whole = self.profile.thorough and self.options["tests"] is None and self.options["pytest"] is None
        whole &= names_test(self.options["properties"], *claim.partition("/")[::2])
        return self.replays or (whole and all(name in names for name, names in zip(about, chosen, strict=True)))

    def tries(self, test_id: str, *, claimed: bool = True) -> Iterator[Try]:
        """The passes of a test: its kept counterexamples, and then drawn examples.

        Of what is not ``claimed`` these are the same in every run: no seed and no profile says what becomes of it.
        """
        for one in self.kept.get(test_id, ()):
            yield Try(one.drawn or Drawn(self.seed, PROFILES["replay"].examples, self.dtype), one.call)
        if not self.replays:
            yield Try(self._drawn(claimed))

    def more_tries(self, *, claimed: bool = True) -> Iterator[Try]:
        """Passes with more examples, for a test that the first ones did not exercise, as when all were refused."""
        wanted = _MORE * (first := self._drawn(claimed)).examples
        while not self.replays and wanted <= _MOST:
            yield Try(replace(first, examples=wanted))
            wanted *= _MORE

    def _drawn(self, claimed: bool) -> Drawn:
        """How examples are drawn: by the seed and the profile, or, of what is not claimed, as the gate does."""
        seed, profile = (self.seed, self.profile) if claimed else (0, PROFILES["gate"])
        return Drawn(seed, profile.examples, self.dtype)

    @property
    def all_devices(self) -> tuple[str, ...]:
        """The devices of the run."""
        return self.devices or devices.every(self.implementation)

    def wants(self, claim: AnyClaim) -> bool:
        """Whether the run includes the test with this claim."""
        chosen = claim.id in (*self.properties, *self.clauses)
        chosen &= names_test(self.options.get("properties"), claim.id, claim.variant)
        return chosen and (self.profile.thorough or not claim.slow)

    def subjects(self, claim: AnyClaim) -> Sequence[Subject | ClauseSubject]:
        """The subjects of the test with this claim."""
        if not self.wants(claim):
            return []
        return self._of_clause(claim) if isinstance(claim, ClauseClaim) else self._of_property(claim)

    def _of_clause(self, claim: ClauseClaim) -> list[ClauseSubject]:
        """A subject for each device; without an accelerator, its tests have one that is skipped."""
        i = self.implementation
        mine = tuple(d for d in i.devices()[claim.accelerator :] if d in self.all_devices)
        devices = mine or (i.devices()[:1] if claim.accelerator and not self.devices else ())
        on = {device: self.facts.get(device, Facts()).adapter(i) for device in devices}
        found = [ClauseSubject(on[d], claim.clause, d, claim.variant, self.dtype, Record()) for d in devices]
        return [subject for subject in found if self._takes(subject)]

    def _takes(self, subject: Subject | ClauseSubject) -> bool:
        return not self.replays or subject.key["id"] in self.kept

    def _of_property(self, claim: Claim) -> list[Subject]:
        functions = [f for f in self.functions if self.catalog.wants(claim, f) and claim.where(f)]
        found = [self._subject(claim, function, d) for function in functions for d in self._devices(claim, function)]
        return [subject for subject in found if self._takes(subject)]

    def _devices(self, claim: Claim, function: Function) -> tuple[str, ...]:
        """The devices of the run that the test and the Function support."""
        i = self.implementation
        found = i.devices()
        if claim.abstract:
            found = i.abstract_devices()
        elif claim.simulated:
            found = (*found[1:], *i.simulated_devices())
        elif self.devices:
            found = (*found, *i.simulated_devices())
        supported = (d for d in found if function.devices is None or d in function.devices)
        return tuple(d for d in supported if d in self.all_devices)

    def _subject(self, claim: Claim, function: Function, device: str) -> Subject:
        known = self.facts.get(device, Facts())
        of_test = {"property_id": claim.property_id, "variant": claim.variant, "allowed": claim.dtypes}
        mine, function = known.adapter(self.implementation), known.function(function)
        return self.catalog.subject(mine, function, device, dtype=self.dtype, record=Record(), **of_test)

    def not_claimed(self, claim: AnyClaim, subject: Subject | ClauseSubject) -> frozenset[str]:
        """The capabilities that a test needs, and the implementation does not claim on that device."""
        needs, i = claim.needs | subject.needs, self.implementation
        known = self.facts.get(subject.device, Facts())
        return (needs - i.capabilities) | (needs & (i.lacking(subject.device) | known.capabilities.keys()))

    def reason_against(self, claim: AnyClaim, subject: Subject | ClauseSubject) -> NotRun | None:
        """Why a test cannot run; None if it can."""
        missing, i = self.not_claimed(claim, subject) - set(subject.unclaimed), self.implementation
        if missing:
            claims = ", ".join(f"{name} ({CAPABILITIES[name]})" for name in sorted(missing))
            return NotRun("unsupported", f"{i.name} does not claim {claims} on {subject.device}")
        absent = unclaimed.absent(subject)
        if absent:
            return NotRun("unsupported", absent)
        if isinstance(claim, ClauseClaim):
            return self._reason_against_clause(claim, subject.device)
        assert isinstance(subject, Subject)
        for limited in ("", subject.property_id):
            if (why := i.limits.get((subject.function.name, limited))) is not None:
                return NotRun("unsupported", f"{i.name} cannot run it: {why}")
        if claim.looks_inside and not i.sees_inside:
            return NotRun("unsupported", f"{i.name} runs compiled Functions: nothing inside them is seen")
        if i.needs_setup_context and not has_setup_context(i, subject.cls):
            return NotRun("unsupported", f"{i.name} runs only Functions that have a setup_context")
        against = self.catalog.reason_against(claim, subject.function)
        if against is None and not subject.dtypes:
            return NotRun("skip", f"{subject.function.name} has none of the dtypes of this test and run")
        return against

    def _reason_against_clause(self, claim: ClauseClaim, device: str) -> NotRun | None:
        i, since = self.implementation, claim.clause.since
        if since and i.predates(since):
            reason = f"it came with {since}, and {i.name} {i.environment().version} is older"
            return NotRun("unsupported", reason)
        if claim.accelerator and device == i.devices()[0]:
            return NotRun("skip", "there is no accelerator on this machine")
        return None


def _shard(
    options: Any, implementation: Implementation, profile: Profile, controller: Mapping[str, Any] | None
) -> shards.Shard | None:
    shard = shards.parsed(options.shard, options.balance)
    if shard is None or options.balance is None:
        return shard
    if controller is not None:
        return replace(shard, seconds=controller["seconds"])
    return replace(shard, seconds=shards.seconds(Path(options.balance), implementation.name, profile.name))


def _options(options: Any) -> dict[str, str | None]:
    """The options that leave something out, in a form that does not depend on the machine."""
    return {
        "functions": _sorted(options.functions),
        "properties": _sorted(options.properties),
        "device": _sorted(options.device),
        "tests": _tests(options.file_or_dir),
        "pytest": options.pytest_arguments,
    }


def _sorted(patterns: str | None) -> str | None:
    return patterns and ", ".join(sorted(filter(None, map(str.strip, patterns.split(",")))))


def _tests(places: Iterable[str]) -> str | None:
    """The tests that were named; None for the complete suite."""
    paths = _places(places)
    if paths in ([], [SUITES]):
        return None
    # A folder elsewhere may have the name of one of the suite's.
    return ", ".join(
        str(path.relative_to(SUITES)) if path.is_relative_to(SUITES) else f"./{path.name}" for path in paths
    )


def _places(places: Iterable[str]) -> list[Path]:
    return [Path(place).resolve() for place in places]


def _counterexamples(profile: Profile, options: Any) -> ById:
    """The kept counterexamples: of the report or corpus of --replay, or of --corpus."""
    if profile.name != "replay":
        if options.replay is not None:
            raise UsageProblem(f"--replay {options.replay} needs --profile replay")
        return _by_id(corpus.read(Path(options.corpus))) if options.corpus is not None else {}
    if options.corpus is not None:
        raise UsageProblem(
            f"--corpus {options.corpus} does not go with --profile replay; use --replay {options.corpus}"
        )
    path = Path(ndjson.DEFAULT_PATH if options.replay is None else options.replay)
    return _by_id(corpus.read(path))


def inputs(options: Any) -> dict[str, Path | None]:
    """The files that a run with these options reads, by what they are."""
    replayed = options.replay or (ndjson.DEFAULT_PATH if options.profile == "replay" else None)
    named = {
        "the report to replay": replayed,
        "the corpus": options.corpus,
        "the file of --balance": options.balance,
        "the file of --expect": options.expect,
        "the adapter": options.implementation,
    }
    return {what: Path(name) for what, name in named.items() if name}


def _functions_of(kept: ById) -> str | None:
    """The Functions of the counterexamples, comma-separated; None if there are none."""
    return ",".join(sorted({one.function for found in kept.values() for one in found} - {""})) or None


def _by_id(found: Iterable[Counterexample]) -> ById:
    kept: ById = {}
    for one in found:
        kept[one.id] = (*kept.get(one.id, ()), one)
    return kept

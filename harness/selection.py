"""What a run checks, worked out from its options; every mistake in them is one sentence with the valid choices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from autograd_conformance import implementations
from autograd_conformance.harness import corpus, report, shards
from autograd_conformance.harness.catalogue import SUITES
from autograd_conformance.harness.clauses import ClauseSubject
from autograd_conformance.harness.corpus import Counterexample
from autograd_conformance.harness.database import Shared, opened
from autograd_conformance.harness.fork import Fork, verified
from autograd_conformance.harness.marks import AnyClaim, Claim, ClauseClaim
from autograd_conformance.harness.outcomes import Drawn, Record, UsageProblem
from autograd_conformance.harness.own.declaration import Own
from autograd_conformance.harness.own.loading import Plan
from autograd_conformance.harness.own.subject import OwnSubject
from autograd_conformance.harness.profiles import PROFILES, Profile, choose_seed
from autograd_conformance.harness.subject import Subject
from autograd_conformance.implementations.protocol import CAPABILITIES, Implementation, Unavailable
from autograd_conformance.reference.clauses import CLAUSES, CONTRACT, DIALECTS
from autograd_conformance.reference.definitions import FLOATING, Function
from autograd_conformance.reference.functions import EXHIBITS, FUNCTIONS
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.strategies.calls import Call

ById = dict[str, tuple[Counterexample, ...]]


def _one_of(kind: str, given: str, valid: Iterable[str]) -> str:
    if given not in valid:
        raise UsageProblem(f"unknown {kind} {given!r}; choose from: {', '.join(valid)}")
    return given


def matching(kind: str, patterns: str | None, valid: Iterable[str], hidden: Iterable[str] = ()) -> tuple[str, ...]:
    """The valid names that a comma-separated list of names and globs picks; hidden ones only by their exact name."""
    if patterns is None:
        return tuple(valid)
    chosen: dict[str, None] = {}
    for pattern in filter(None, map(str.strip, patterns.split(","))):
        found = [name for name in valid if fnmatchcase(name, pattern)] + [name for name in hidden if name == pattern]
        if not found:
            raise UsageProblem(f"no {kind} matches {pattern!r}; choose from: {', '.join(valid)}")
        chosen.update(dict.fromkeys(found))
    if not chosen:
        raise UsageProblem(f"no {kind} is named in {patterns!r}; choose from: {', '.join(valid)}")
    return tuple(chosen)


def _implementation(given: str) -> Implementation:
    """The implementation that the option names, of a version that its adapter supports."""
    try:
        found = implementations.load(given)
        implementations.check_version(found)
    except Unavailable as problem:
        raise UsageProblem(str(problem)) from problem
    return found


@dataclass(frozen=True)
class Try:
    """What a test is tried on: examples drawn in this way, of that call if there is one, those of a database first."""

    drawn: Drawn
    call: Call | None = None
    database: Shared | None = None


@dataclass(frozen=True)
class Selection:
    """The implementation, Functions, properties, devices and examples of a run.

    ``kept`` are the counterexamples to run again, by result id: before what is drawn, or, with the profile replay,
    instead of it.
    """

    implementation: Implementation
    functions: tuple[Function, ...]
    properties: tuple[str, ...]
    clauses: tuple[str, ...]
    profile: Profile
    seed: int
    device: str | None = None
    dtype: str | None = None
    kept: ById = field(default_factory=dict, repr=False)
    replay: str | None = None
    database: Shared | None = field(default=None, repr=False)
    # How the user named the implementation.
    named: str = ""
    shard: shards.Shard | None = None
    # What leaves something out, as the user gave it.
    options: dict[str, str | None] = field(default_factory=dict, repr=False)
    fork: Fork | None = None
    corpus: str | None = None

    @classmethod
    def from_options(
        cls, options: Any, *, controller: Mapping[str, Any] | None = None,
        before_loading: Callable[[str], None] | None = None,
    ) -> Selection:  # fmt: skip
        """The selection that parsed options describe. Raises UsageProblem.

        A worker is told what the ``controller`` drew and read. ``before_loading`` is told of the implementation once
        the options that need none are in order.
        """
        profile = PROFILES[_one_of("profile", options.profile, PROFILES)]
        kept = _counterexamples(profile, options)
        replayed = _functions_of(kept) if profile.name == "replay" else None
        declared = getattr(options, "declared", None)
        every: Mapping[str, Function] = {**{name: e.function for name, e in EXHIBITS.items()}, **FUNCTIONS}
        if declared is None:
            functions = matching("Function", options.functions or replayed, FUNCTIONS, EXHIBITS)
        if options.dtype is not None:
            _one_of("dtype", options.dtype, FLOATING)
        if before_loading is not None:
            before_loading(options.implementation)
        implementation = _implementation(options.implementation)
        if declared is not None:
            every = Plan.read(Path(declared)).functions(implementation)
            functions = matching("Function", options.functions, every)
        contract = CONTRACT if implementation.keeps_contract and declared is None else ()
        valid = (*PROPERTIES, *contract, *DIALECTS.get(implementation.dialect, ()))
        claims = matching("property or clause", options.properties, valid)
        properties = tuple(name for name in claims if name in PROPERTIES)
        # What is said of one Function is no clause.
        about_all = options.functions is None and declared is None
        clauses = tuple(name for name in claims if name in CLAUSES and about_all)
        known = tuple(every[name] for name in functions)
        seed = controller["seed"] if controller else choose_seed(profile, options.seed)
        found = cls(
            implementation,
            known,
            properties,
            clauses,
            profile,
            seed,
            options.device,
            options.dtype,
            kept,
            options.replay,
            options.database and opened(options.database, profile, implementation.name),
            options.implementation,
            _shard(options, implementation, profile, controller),
            _options(options),
            verified(options.expect, implementation) if options.expect is not None else None,
            options.corpus,
        )
        if options.device is not None:
            _one_of(f"device of {implementation.name} on this machine", options.device, found._every_device())
        return found

    @property
    def examples(self) -> int:
        """How many examples most tests try."""
        return max(1, round(self.profile.examples * self.implementation.share_of_examples))

    @property
    def replays(self) -> bool:
        """Whether only what is kept is run."""
        return self.profile.name == "replay"

    def tries(self, test_id: str) -> Iterator[Try]:
        """What a test is tried on in turn: what is kept of it, and then what is drawn."""
        for one in self.kept.get(test_id, ()):
            yield Try(one.drawn or Drawn(self.seed, PROFILES["replay"].examples, self.dtype), one.call)
        if not self.replays:
            yield Try(Drawn(self.seed, self.profile.examples, self.dtype), database=self.database)

    @property
    def all_devices(self) -> tuple[str, ...]:
        """The devices of the run."""
        return self._every_device() if self.device is None else (self.device,)

    def _every_device(self) -> tuple[str, ...]:
        i = self.implementation
        return (*i.devices(), *i.simulated_devices(), *i.abstract_devices())

    def wants(self, claim: AnyClaim) -> bool:
        """Whether the run includes the test that makes this claim."""
        return claim.id in (*self.properties, *self.clauses) and (self.profile.thorough or not claim.slow)

    def subjects(self, claim: AnyClaim) -> Sequence[Subject | ClauseSubject]:
        """The subjects of the test that makes this claim."""
        if not self.wants(claim):
            return []
        return self._of_clause(claim) if isinstance(claim, ClauseClaim) else self._of_property(claim)

    def _of_clause(self, claim: ClauseClaim) -> list[ClauseSubject]:
        """One subject a device; without an accelerator the tests of accelerators have one that is skipped."""
        i = self.implementation
        mine = tuple(d for d in i.devices()[claim.accelerator :] if self.device in (None, d))
        devices = mine or (i.devices()[:1] if claim.accelerator and self.device is None else ())
        found = [ClauseSubject(i, claim.clause, d, claim.variant, self.dtype, Record()) for d in devices]
        return [subject for subject in found if self._takes(subject)]

    def _takes(self, subject: Subject | ClauseSubject) -> bool:
        return not self.replays or subject.key["id"] in self.kept

    def _of_property(self, claim: Claim) -> list[Subject]:
        wanted = (f for f in self.functions if not isinstance(f, Own) or f.wants(claim))
        functions = filter(claim.where, wanted)
        found = [self._subject(claim, function, d) for function in functions for d in self._devices(claim, function)]
        return [subject for subject in found if self._takes(subject)]

    def _devices(self, claim: Claim, function: Function) -> tuple[str, ...]:
        """The devices on which a test runs a Function: those of the run that the Function supports."""
        i = self.implementation
        found = i.devices()
        if claim.abstract:
            found = i.abstract_devices()
        elif claim.simulated:
            found = (*found[1:], *i.simulated_devices())
        elif self.device in i.simulated_devices():
            found = (*found, *i.simulated_devices())
        supported = (d for d in found if function.devices is None or d in function.devices)
        return tuple(d for d in supported if self.device in (None, d))

    def _subject(self, claim: Claim, function: Function, device: str) -> Subject:
        kind, on = (OwnSubject, function.on) if isinstance(function, Own) else (Subject, self.implementation)
        return kind(
            on or self.implementation, function, device, claim.property_id, dtype=self.dtype, variant=claim.variant,
            allowed=claim.dtypes, record=Record(),
        )  # fmt: skip

    def reason_against(self, claim: AnyClaim, subject: Subject | ClauseSubject) -> str | None:
        """Why a test cannot run, if it cannot."""
        needs, i = claim.needs | subject.needs, self.implementation
        absent = {"": needs - i.capabilities, f" on {subject.device}": needs & i.lacking(subject.device)}
        for where, missing in absent.items():
            if missing:
                claims = ", ".join(f"{name} ({CAPABILITIES[name]})" for name in sorted(missing))
                return f"unsupported: {i.name} does not claim {claims}{where}"
        if isinstance(claim, ClauseClaim):
            return self._reason_against_clause(claim, subject.device)
        if isinstance(subject, Subject) and i.needs_setup_context and not subject.separate:
            return f"unsupported: {i.name} runs only Functions that have a setup_context"
        if isinstance(subject, Subject) and isinstance(subject.function, Own):
            function = subject.function
            if claim.looks_inside and not function.sees_inside:
                return f"skip: {function.name} is no Function class, in which could be looked"
        if isinstance(subject, Subject) and not subject.dtypes:
            return f"skip: {subject.function.name} has none of the dtypes of this test and run"
        return None

    def _reason_against_clause(self, claim: ClauseClaim, device: str) -> str | None:
        i, since = self.implementation, claim.clause.since
        if since and i.predates(since):
            return f"unsupported: {i.name} {i.environment().version} is older than {since}, which introduced it"
        if claim.accelerator and device == i.devices()[0]:
            return "skip: there is no accelerator on this machine"
        return None


def _shard(
    options: Any, implementation: Implementation, profile: Profile, controller: Mapping[str, Any] | None
) -> shards.Shard | None:
    shard = shards.parsed(options.shard, options.balance)
    if shard is None or options.balance is None:
        return shard
    if controller is not None:
        return replace(shard, seconds=controller["seconds"])
    if options.report is not None and Path(options.report).resolve() == Path(options.balance).resolve():
        raise UsageProblem(f"--report {options.report} would overwrite the report that balances the shards")
    return replace(shard, seconds=shards.seconds(Path(options.balance), implementation.name, profile.name))


def _options(options: Any) -> dict[str, str | None]:
    """What leaves something out, in a form that does not depend on the machine."""
    return {
        "functions": _sorted(options.functions),
        "properties": _sorted(options.properties),
        "device": options.device,
        "tests": _tests(options.file_or_dir),
    }


def _sorted(patterns: str | None) -> str | None:
    return patterns and ", ".join(sorted(filter(None, map(str.strip, patterns.split(",")))))


def _tests(places: Iterable[str]) -> str | None:
    """The tests that were named, None for the whole suite."""
    paths = [_file(place).resolve() for place in places]
    if paths in ([], [SUITES]):
        return None
    return ", ".join(str(path.relative_to(SUITES)) if path.is_relative_to(SUITES) else path.name for path in paths)


def _file(place: str) -> Path:
    """Where the tests are that were named by a path or as a module of this package."""
    package, *parts = place.split(".")
    if package != "autograd_conformance":
        return Path(place)
    path = SUITES.parent.joinpath(*parts)
    return path if path.exists() else path.with_suffix(".py")


def _counterexamples(profile: Profile, options: Any) -> ById:
    """What was kept to be run again: in the file that the profile replay is given, or in a corpus."""
    if profile.name != "replay":
        if options.replay is not None:
            raise UsageProblem(f"--replay {options.replay} needs --profile replay")
        return _by_id(corpus.read(Path(options.corpus))) if options.corpus is not None else {}
    if options.corpus is not None:
        raise UsageProblem(f"--corpus {options.corpus} goes with other profiles; here it is --replay {options.corpus}")
    path = Path(options.replay or report.DEFAULT_PATH)
    if options.report is not None and Path(options.report).resolve() == path.resolve():
        raise UsageProblem(f"--report {options.report} would overwrite what is replayed")
    return _by_id(corpus.read(path))


def _functions_of(kept: ById) -> str | None:
    """The Functions of counterexamples, as the option has them; None if there is none."""
    return ",".join(sorted({one.function for found in kept.values() for one in found} - {""})) or None


def _by_id(found: Iterable[Counterexample]) -> ById:
    kept: ById = {}
    for one in found:
        kept[one.id] = (*kept.get(one.id, ()), one)
    return kept

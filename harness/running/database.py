"""Hypothesis' example database, kept between runs in a folder or a Redis server; examples that failed run first."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from hypothesis.database import DirectoryBasedExampleDatabase, ExampleDatabase

from autograd_conformance.harness.checking.profiles import PROFILES, Profile
from autograd_conformance.harness.outcomes import UsageProblem, one_line

_REDIS = ("redis://", "rediss://")

# Seconds to wait for a server.
_TIMEOUT = 10


class Shared(ExampleDatabase):
    """The part of a database that belongs to one implementation.

    Tests go on without a database that is lost, for the reason ``lost``. What it kept was then not run.
    """

    def __init__(self, database: ExampleDatabase, implementation: str) -> None:
        super().__init__()
        self._database, self._prefix = database, f"{implementation} ".encode()
        self._used: set[bytes] = set()
        self.lost = ""

    def fetch(self, key: bytes) -> Iterator[bytes]:
        with self._noting_loss():
            for value in self._database.fetch(self._prefix + key) if not self.lost else ():
                self._used.add(key)
                yield value

    def has_given(self, test_id: str) -> bool:
        """Whether the database had an example of that test."""
        return test_id.encode() in self._used

    def save(self, key: bytes, value: bytes) -> None:
        with self._noting_loss():
            if not self.lost:
                self._database.save(self._prefix + key, value)

    def delete(self, key: bytes, value: bytes) -> None:
        with self._noting_loss():
            if not self.lost:
                self._database.delete(self._prefix + key, value)

    @contextmanager
    def _noting_loss(self) -> Iterator[None]:
        """A context in which what the database raises means that it is lost."""
        try:
            yield
        except Exception as raised:  # noqa: BLE001 - whatever it is, it is not the implementation's
            self.lost = one_line(raised)


def opened(place: str, profile: Profile, implementation: str) -> Shared:
    """The database in a folder or at ``redis://HOST:PORT/DB``. Raises UsageProblem if it cannot be used."""
    if profile.derandomized:
        random = " or ".join(name for name, each in PROFILES.items() if not each.derandomized)
        raise UsageProblem(
            f"the profile {profile.name} draws the same examples in every run; use --database with the profile {random}"
        )
    if place.startswith(_REDIS):
        return Shared(_redis(place), implementation)
    if "://" in place:
        # The message leaves out the address, which may have a password.
        kind = place.partition("://")[0]
        raise UsageProblem(f"--database cannot be a {kind}:// address; give a folder, or redis://HOST:PORT/DB")
    return Shared(DirectoryBasedExampleDatabase(_folder(Path(place))), implementation)


def _folder(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise UsageProblem(_refusal(path, problem.strerror or str(problem))) from None
    if not os.access(path, os.W_OK):
        raise UsageProblem(_refusal(path, "permission denied"))
    return path


def _refusal(path: Path, reason: str) -> str:
    return f"the example database cannot be kept in {path}: {reason}; choose another folder with --database DIR"


def _redis(address: str) -> ExampleDatabase:
    try:
        redis, extra = import_module("redis"), import_module("hypothesis.extra.redis")
    except ImportError:
        command = "pip install 'autograd-conformance[redis]'"
        raise UsageProblem(f"a database in Redis needs the package redis; install it with: {command}") from None
    try:
        # Without retries: a test waits for the answer, and has a time limit.
        once = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
        server = redis.Redis.from_url(address, socket_connect_timeout=_TIMEOUT, socket_timeout=_TIMEOUT, retry=once)
        server.ping()
    except (redis.RedisError, ValueError) as problem:
        raise UsageProblem(f"the Redis server of --database does not answer: {problem}") from None
    database: ExampleDatabase = extra.RedisExampleDatabase(server)
    return database

"""Hypothesis' example database, kept between runs in a folder or a Redis server: what failed is tried first."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from hypothesis.database import DirectoryBasedExampleDatabase, ExampleDatabase

from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.profiles import PROFILES, Profile

_REDIS = ("redis://", "rediss://")

# Seconds until a server has to answer.
_PATIENCE = 10


class Shared(ExampleDatabase):
    """The part of a database that belongs to one implementation."""

    def __init__(self, whole: ExampleDatabase, implementation: str) -> None:
        super().__init__()
        self._whole, self._prefix = whole, f"{implementation} ".encode()
        self._gave: set[bytes] = set()

    def fetch(self, key: bytes) -> Iterator[bytes]:
        for value in self._whole.fetch(self._prefix + key):
            self._gave.add(key)
            yield value

    def gave_of(self, test_id: str) -> bool:
        """Whether it held an example of that test."""
        return test_id.encode() in self._gave

    def save(self, key: bytes, value: bytes) -> None:
        self._whole.save(self._prefix + key, value)

    def delete(self, key: bytes, value: bytes) -> None:
        self._whole.delete(self._prefix + key, value)


def opened(place: str, profile: Profile, implementation: str) -> Shared:
    """The database at a folder or a ``redis://HOST:PORT/DB``. Raises UsageProblem for one that cannot be used."""
    if profile.derandomized:
        random = " and ".join(name for name, each in PROFILES.items() if not each.derandomized)
        raise UsageProblem(f"the profile {profile.name} is the same every time: --database goes with {random}")
    if place.startswith(_REDIS):
        return Shared(_redis(place), implementation)
    if "://" in place:
        # Not the address itself, which may hold a password.
        kind = place.partition("://")[0]
        raise UsageProblem(f"--database cannot be a {kind}:// address; give a folder, or redis://HOST:PORT/DB")
    return Shared(DirectoryBasedExampleDatabase(_folder(Path(place))), implementation)


def _folder(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise UsageProblem(f"the example database cannot be kept in {path}: {problem.strerror}") from None
    if not os.access(path, os.W_OK):
        raise UsageProblem(f"the example database cannot be kept in {path}: permission denied")
    return path


def _redis(address: str) -> ExampleDatabase:
    try:
        redis, extra = import_module("redis"), import_module("hypothesis.extra.redis")
    except ImportError:
        cure = "pip install 'autograd-conformance[redis]'"
        raise UsageProblem(f"a database in Redis needs the package redis; install it with: {cure}") from None
    try:
        server = redis.Redis.from_url(address, socket_connect_timeout=_PATIENCE, socket_timeout=_PATIENCE)
        server.ping()
    except (redis.RedisError, ValueError) as problem:
        raise UsageProblem(f"the Redis server of --database does not answer: {problem}") from None
    database: ExampleDatabase = extra.RedisExampleDatabase(server)
    return database

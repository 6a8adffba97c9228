"""The docstrings of torch's public names, and what changed in them since the inventory of sentences was written."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import takewhile
from types import ModuleType
from typing import Any

from autograd_conformance.reference.sentences import Document
from autograd_conformance.reference.sentences.splitting import sentences

# A name and one of its sentences.
Said = tuple[str, str]


def changes(documents: Iterable[Document]) -> tuple[list[Said], list[Said]]:
    """What the installed docstrings say that the inventory does not have, and what they say no more."""
    listed = [document for document in documents if document.names]
    had = {(sentence.name, sentence.text): None for document in listed for sentence in document.sentences}
    has = dict.fromkeys(said([name for document in listed for name in document.names]))
    return [one for one in has if one not in had], [one for one in had if one not in has]


def said(names: list[str]) -> Iterator[Said]:
    """Each sentence of the docstrings of these names, and of what is public in them."""
    for name in names:
        for public, documented in _public(name, set(names)):
            for sentence in sentences(inspect.cleandoc(documented.__doc__ or "")):
                yield public, sentence


def _public(name: str, names: set[str]) -> Iterator[tuple[str, Any]]:
    """What is documented under a name; another listed module's things are found there instead."""
    found = _found(name)
    if found is None:
        return
    if not isinstance(found, ModuleType):
        yield from _with_methods(name, found)
        return
    own = [key for key, value in vars(found).items() if getattr(value, "__module__", "") == name and key[0] != "_"]
    for key in getattr(found, "__all__", own):
        value = getattr(found, key, None)
        home = getattr(value, "__module__", None)
        elsewhere = home != name and home in names
        if callable(value) and not elsewhere and f"{name}.{key}" not in names:
            yield from _with_methods(f"{name}.{key}", value)


def _with_methods(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    yield name, value
    if not inspect.isclass(value):
        return
    mine = takewhile(lambda base: base is value or base.__name__.startswith("_"), value.__mro__)
    members = {key: member for base in reversed([*mine]) for key, member in vars(base).items() if key[0] != "_"}
    texts = {""}
    for key, member in members.items():
        text = member.__doc__ or ""
        if text not in texts and (inspect.isroutine(member) or isinstance(member, property)):
            texts.add(text)
            yield f"{name}.{key}", member


def _found(name: str) -> Any:
    """The module, class or function of this name, or None."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join(parts[:length]))
        except ImportError:
            continue
        for part in parts[length:]:
            found = getattr(found, part, None)
        return found
    return None

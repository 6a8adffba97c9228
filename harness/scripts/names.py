"""Names of a reproduction script that hide no other name in it."""

from __future__ import annotations

import itertools
import re
import symtable
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from keyword import iskeyword

# A word in the place of a name that is chosen when the whole script is known.
_WORD = "_named_{}_"
_WORDS = re.compile(_WORD.format(r"(\d+)"))

# What a script imports of a user: an object of a module, or the value of an assignment.
_IMPORTED = re.compile(r"^(from \S+ import )(\w+)$", re.MULTILINE)
_MADE = re.compile(r"^(\w+)(?= = )", re.MULTILINE)


@dataclass
class Names:
    """The names that a script gives to tensors and to what it imports of a user.

    Templates use `new` words. When the script is whole, `settled` puts a name in the place of each word: one that the
    script does not use where the word stands, whatever the arguments of the Function are called.
    """

    _wanted: list[tuple[str, ...]] = field(default_factory=list)

    def new(self, *wanted: str) -> str:
        """A word for something that should have the first of these names that is free."""
        self._wanted.append(wanted)
        return _WORD.format(len(self._wanted) - 1)

    def imported(self, lines: str) -> tuple[str, Mapping[str, str]]:
        """The lines that import something of a user's, with a word for each of its names, and these words."""
        known = dict[str, str]()

        def word(name: str) -> str:
            known[name] = known.get(name) or self.new(name)
            return known[name]

        lines = _IMPORTED.sub(lambda found: f"{found[1]}{found[2]} as {word(found[2])}", lines)
        return _MADE.sub(lambda found: word(found[1]), lines), known

    def settled(self, program: str) -> str:
        """The program with a name in the place of each word."""
        scopes = list(_scopes(symtable.symtable(program, "script", "exec"), frozenset(), top=True))
        every = {name for scope in scopes for name in scope.names}
        fixed = {name for name in every if not _WORDS.search(name)}
        shared = {name for scope in scopes for name in scope.shared} & fixed
        # Names that are made of a word, such as that of a gradient.
        made = sorted(name for name in every if _WORDS.search(name) and not _WORDS.fullmatch(name))
        chosen, taken = dict[str, str](), set[str]()
        for number, wanted in enumerate(self._wanted):
            word = _WORD.format(number)
            near = {name for scope in scopes if word in scope.names for name in scope.local}
            for name in _candidates([_with(chosen, each) for each in wanted]):
                given = {**chosen, word: name}
                others = {_with(given, each) for each in made if word in each}
                if name not in shared | near | taken | others and not others & (fixed | taken):
                    chosen, taken = given, taken | {name} | others
                    break
        return re.sub(r" import (\w+) as \1$", r" import \1", _with(chosen, program), flags=re.MULTILINE)


@dataclass(frozen=True)
class _Scope:
    """A part of a program: the names that it uses, those that the whole program shares, and those that hide others."""

    names: frozenset[str]
    shared: frozenset[str]
    local: frozenset[str]


def _scopes(table: symtable.SymbolTable, outer: frozenset[str], *, top: bool = False) -> Iterator[_Scope]:
    names = frozenset(symbol.get_name() for symbol in table.get_symbols())
    shared = names if top else frozenset(s.get_name() for s in table.get_symbols() if s.is_global())
    local = outer | (names - shared)
    yield _Scope(names, shared, local)
    for child in table.get_children():
        yield from _scopes(child, local)


def _with(chosen: Mapping[str, str], text: str) -> str:
    return _WORDS.sub(lambda found: chosen.get(found[0], found[0]), text)


def _candidates(wanted: list[str]) -> Iterator[str]:
    """The wanted names, as far as a variable can have them, and then the first of them with a number."""
    names = [re.sub(r"\W", "_", name) for name in wanted]
    yield from (name for name in names if name.isidentifier() and not iskeyword(name))
    stem = names[0] if names[0].isidentifier() else f"argument_{names[0]}"
    yield from (f"{stem}_{number}" for number in itertools.count())

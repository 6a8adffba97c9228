"""Turn a docstring into its sentences: without examples, headings and markup, each on one line."""

from __future__ import annotations

import re
from collections.abc import Iterator

# A directive whose text is dropped with what is indented below it; of others only the marker goes.
_DROPPED = re.compile(r"\.\. *(?:code-block|code|math|image|figure|testcode|testsetup|autosummary|currentmodule|_)")
_MARKER = re.compile(r"\.\. *[\w-]+ ?::?(?: +|$)")
_SIGNATURE = re.compile(r"\w+\(.*\) *-> *\(?\w+\)?$")
_BULLET = re.compile(r"(?:[-*+] +|\(?\w[.)] +)(?=\S)")
_ENTRY = re.compile(r"\*{0,2}[\w./]+(?:, \*{0,2}\w+)*(?: *\([^()]*(?:\([^()]*\)[^()]*)*\))?:(?: |$)")
_HEADING = re.compile(r"[A-Z][\w ]*:{1,2}$")
_RULE = re.compile(r"([-=~^*])\1{2,}$")
_ROLE = re.compile(r":(?:\w+:)?\w+:`~?([^`<]*?)\s*(?:<[^`>]*>)?`")
_END = re.compile(r"(?<=[.!?])(?:(?<=[^.].)|(?<=\.\.\.))[)\"'`]*\s+(?=[\"'`(\[*]*[A-Z0-9`])")
_ABBREVIATIONS = ("e.g.", "E.g.", "i.e.", "w.r.t.", "vs.", "cf.", "etc.", "resp.")


def sentences(text: str) -> list[str]:
    """The sentences of a docstring, in their order and each once."""
    found = [sentence for unit in _units(_prose(text.expandtabs().splitlines())) for sentence in _split(unit)]
    return list(dict.fromkeys(found))


def _prose(lines: list[str]) -> Iterator[str]:
    """The lines without examples, signatures and headings; markers of directives become empty lines."""
    in_session, fenced, deeper = False, False, -1
    for line, below in zip(map(str.rstrip, lines), (*lines[1:], ""), strict=False):
        text, indent = line.strip(), len(line) - len(line.lstrip())
        if deeper >= 0 and (not text or indent > deeper):
            continue
        deeper, in_session = -1, text.startswith(">>>") or (in_session and bool(text))
        if text.startswith("```"):
            fenced = not fenced
        elif fenced or in_session or _SIGNATURE.match(text):
            continue
        elif _DROPPED.match(text):
            deeper = indent
            yield ""
        elif text and (_RULE.match(text) or _RULE.match(below.strip())):
            yield ""
        elif marker := _MARKER.match(text):
            yield " " * indent + text[marker.end() :] if text[marker.end() :] else ""
        elif text.endswith("::"):
            deeper = indent
            yield from (line[:-1], "")
        else:
            yield line


def _units(lines: Iterator[str]) -> Iterator[str]:
    """Paragraphs, items of lists and entries of parameters, each as one line; headings are left out."""
    unit: list[str] = []
    heading, last = False, 0
    for line in (*lines, ""):
        text, indent = line.strip(), len(line) - len(line.lstrip())
        starts = not text or indent < last or bool(_BULLET.match(text) or _HEADING.match(text))
        if starts or heading or (_ENTRY.match(text) and indent <= last):
            yield from _item(unit)
            unit = []
        if text:
            unit.append(text)
            heading, last = bool(_HEADING.match(text)), indent


def _item(unit: list[str]) -> Iterator[str]:
    text = " ".join(unit)
    if text and not _HEADING.match(text):
        yield text[len(bullet.group()) :] if (bullet := _BULLET.match(text)) else text


def _split(unit: str) -> Iterator[str]:
    plain = re.sub(r"\s+", " ", _ROLE.sub(r"``\1``", unit)).strip()
    start = 0
    for end in _END.finditer(plain):
        if not plain[start : end.start()].endswith(_ABBREVIATIONS):
            yield plain[start : end.end()].strip()
            start = end.end()
    if plain[start:]:
        yield plain[start:]

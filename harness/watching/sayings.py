"""What the code of a Function says of its gradient: shown beside an accusation, and never an excuse."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

# Words of those who do not mean the derivative.
_WORDS = re.compile(
    r"straight[- ]through|surrogate|natural gradient|pseudo[- ]?gradient|tangent|adjoint|estimat|approximat"
    r"|not the (true )?(gradient|derivative)|\bste\b|revers\w+ (the )?gradient|gradient revers",
    re.IGNORECASE,
)


def saying(where: str) -> str:
    """The first line above a class, or in it, that says so, with its place; empty if there is none.

    ``where`` is the file and line of the class.
    """
    path, _, number = where.rpartition(":")
    try:
        text = Path(path).read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, ValueError, SyntaxError):
        return ""
    lines = text.splitlines()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and number in map(str, (node.lineno, _first(node))):
            for line in (*_comments_above(lines, _first(node)), *range(_first(node), (node.end_lineno or 0) + 1)):
                said = _prose(lines[line - 1])
                if said and _WORDS.search(said):
                    return f"{path}:{line} says: {said}"
    return ""


def _first(node: ast.ClassDef) -> int:
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def _comments_above(lines: list[str], first: int) -> Iterator[int]:
    above = first - 1
    while above and lines[above - 1].lstrip().startswith("#"):
        yield above
        above -= 1


def _prose(line: str) -> str:
    """A line that is no code: a comment, or text of a docstring."""
    text = line.strip()
    if "#" in text:
        return text.partition("#")[2].strip()
    is_code = re.match(r"(class|def|return|if|for|with|import|from|@)\b|[\w.\[\], ]+[=(]", text)
    return "" if is_code else text.strip("\"'")

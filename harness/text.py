"""Text from implementations and reports, made safe for terminals, JSON, XML, Markdown, HTML and the wire of xdist."""

from __future__ import annotations

import re
from typing import Any

# Characters of a text that a result keeps.
LONGEST = 4000

# Fields that are read again, and so are kept whole.
_WHOLE = ("id", "call", "script")

# What has no shape of its own but does something: controls, halves of surrogate pairs, marks that change the direction
# of writing, separators of lines, tags, and code points that are no characters. New lines and tabs stay.
_ACTIVE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff"
    "\ufdd0-\ufdef\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e0fff]"
)


# Why a command ends whose output goes to a program that has ended.
GONE = "who reads the output has ended, as head does after its lines; write it to a file to have all of it"


def visible(value: Any) -> Any:
    """The value with readable escapes (``\\x1b``) in all its texts for characters that do something when shown."""
    if isinstance(value, str):
        return _ACTIVE.sub(lambda found: found[0].encode("unicode_escape").decode(), value)
    if isinstance(value, dict):
        return {visible(key): visible(each) for key, each in value.items()}
    if isinstance(value, list):
        return [visible(each) for each in value]
    if type(value) is tuple:
        return tuple(visible(each) for each in value)
    return value


def shown(text: str) -> str:
    """The text for a terminal or a log."""
    return str(visible(text))


def of_result(value: Any, name: str = "") -> Any:
    """The value of a field of a result: visible, and cut if it is long and not read again."""
    if isinstance(value, dict):
        return {key: of_result(each, key) for key, each in value.items()}
    if isinstance(value, list):
        return [of_result(each, name) for each in value]
    found = visible(value)
    if isinstance(found, str) and len(found) > LONGEST and name not in _WHOLE:
        return f"{found[:LONGEST]} ... ({len(found)} characters)"
    return found


def origin(raised: BaseException) -> str:
    """The exception that led to this one, in one line."""
    while raised.__cause__ or raised.__context__:
        raised = raised.__cause__ or raised.__context__ or raised
    return " ".join(f"{type(raised).__name__}: {raised}".split())


def clock(seconds: float) -> str:
    """The time as minutes and seconds, or with hours: 2:05, 1:02:05."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"

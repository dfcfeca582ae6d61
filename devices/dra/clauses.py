"""A selector taken apart: the conditions that it joins by &&, so that each can be named and tried.

Works on the text, by CEL's own rules for strings, brackets and comments; whether a part is valid by
itself is for the compiler to say.
"""

from __future__ import annotations

import re
from typing import Final

_TEXT: Final = re.compile(
    r'[rR]?(?:"""(?:.|\n)*?"""|\'\'\'(?:.|\n)*?\'\'\')'
    r'|[rR](?:"[^"\n]*"|\'[^\'\n]*\')'
    r'|(?:"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')'
)
_COMMENT: Final = re.compile(r"//[^\n]*")
_OPENING, _CLOSING = "([{", ")]}"


def clauses(expression: str) -> tuple[str, ...]:
    """The conditions that all have to hold, in order: ``a && (b || c)`` gives ``a`` and
    ``b || c``. What is no conjunction at its top is one clause.
    """
    text = _bare(_uncommented(expression))
    parts, depth, start, position = [], 0, 0, 0
    while position < len(text):
        skipped = _skipped(text, position)
        if skipped:
            position = skipped
            continue
        char = text[position]
        if char in _OPENING:
            depth += 1
        elif char in _CLOSING:
            depth -= 1
        elif depth == 0:
            if text.startswith("&&", position):
                parts.append(text[start:position])
                position += 2
                start = position
                continue
            choice = char == "?" and text[position - 1 : position] != "."
            if choice or text.startswith("||", position):
                return (text,)
        position += 1
    parts.append(text[start:])
    if len(parts) == 1:
        return (text,)
    return tuple(clause for part in parts for clause in clauses(part))


def without(expression: str, index: int) -> str:
    """The expression without one of its clauses; empty where it was the only one."""
    left = [part for number, part in enumerate(clauses(expression)) if number != index]
    return " && ".join(part if len(left) == 1 else _enclosed(part) for part in left)


def _enclosed(part: str) -> str:
    """In brackets where a part binds more weakly than &&."""
    weak = "||" in part or "?" in part
    return f"({part})" if weak else part


def _bare(text: str) -> str:
    """Without brackets around the whole of it."""
    while text.startswith("(") and _matching(text) == len(text) - 1:
        text = text[1:-1].strip()
    return text


def _matching(text: str) -> int:
    """Where the first bracket is closed."""
    depth, position = 0, 0
    while position < len(text):
        skipped = _skipped(text, position)
        if skipped:
            position = skipped
            continue
        depth += (text[position] in _OPENING) - (text[position] in _CLOSING)
        if depth == 0:
            return position
        position += 1
    return -1


def _uncommented(text: str) -> str:
    found, position = [], 0
    while position < len(text):
        comment = _COMMENT.match(text, position)
        if comment is not None:
            position = comment.end()
            continue
        end = _skipped(text, position) or position + 1
        found.append(text[position:end])
        position = end
    return "".join(found).strip()


def _skipped(text: str, position: int) -> int:
    """Where the string that begins here ends; 0 where none begins. An r may also end a name."""
    if text[position] in "rR" and position and text[position - 1].isalnum():
        return 0
    string = _TEXT.match(text, position)
    return string.end() if string is not None else 0

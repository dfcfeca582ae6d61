"""The arithmetic of the audit chain: each line's digest covers the line and the digest before it.

Pure; knows no database. Changing, dropping or reordering a line changes every digest after it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

GENESIS = "0" * 64


@dataclass(frozen=True, slots=True)
class Break:
    """Where a chain stops being provable: the number of the line, and what is wrong with it."""

    number: int
    why: str


def digest(previous: str, content: Mapping[str, Any]) -> str:
    """The hex SHA-256 over the digest before and the line's canonical JSON.

    `content` holds JSON values only; keys are sorted, so their order does not count.
    """
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(f"{previous}\n{canonical}".encode()).hexdigest()


def first_break(lines: Iterable[tuple[int, str, str, Mapping[str, Any]]]) -> Break | None:
    """The first line that does not follow, or None for a whole chain.

    `lines` are (number, previous digest, digest, content) in the order of their numbers.
    """
    expected, last = GENESIS, 0
    for number, previous, own, content in lines:
        if number != last + 1:
            return Break(number, f"line {last + 1} is missing")
        if previous != expected:
            return Break(number, "it does not follow the line before")
        if digest(previous, content) != own:
            return Break(number, "its content was changed")
        expected, last = own, number
    return None

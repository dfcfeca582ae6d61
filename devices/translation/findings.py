"""What is said about a translation: a stable code, where, and a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a finding is about."""

    CHANGES = "changes"
    """It behaves otherwise than before."""
    CHECK = "check"
    """A person should look: it may not hold any more."""
    LEFT = "left"
    """It was left as it is."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence about one place: ``document`` and ``line`` count from 1, ``about`` is a kind and
    a name, empty where there is none.
    """

    code: str
    kind: Kind
    document: int
    line: int
    about: str
    words: str

    def as_json(self) -> dict[str, str | int]:
        return {name: str(value) if name == "kind" else value for name, value in self._items()}

    def _items(self) -> list[tuple[str, str | int]]:
        return [(name, getattr(self, name)) for name in self.__slots__]

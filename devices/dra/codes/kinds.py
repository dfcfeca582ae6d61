"""What a code is: its class, whose job it is, and the words for people.

Tables of codes stand beside this file; nothing here knows any single code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class Class(StrEnum):
    """What has to happen before it gets better."""

    RETRYABLE = "retryable"
    """It gets better by itself; somebody retries already."""
    NOT_RETRYABLE = "not retryable"
    """Waiting does not help: somebody has to change an object."""
    NEEDS_CLEANUP = "needs cleanup"
    """Something is left behind or broken, and a person has to look before anything is removed."""
    UNKNOWN = "unknown"
    """Nobody could say; it is shown with its text."""
    INFORMATION = "information"
    """Nothing is wrong."""


class Who(StrEnum):
    """Whose job it is."""

    TENANT = "tenant"
    PLATFORM = "platform"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class Code:
    """One reason that pages, API, metrics and alerts share.

    ``words`` is a sentence that needs no knowledge of Kubernetes, ``next_step`` what `who` does
    (or what happens by itself). Where ``patience`` is set, waiting longer than that makes it the
    platform's job. ``told`` is the same sentence with facts in braces, for where they are known.
    """

    name: str
    class_: Class
    who: Who
    words: str
    next_step: str
    patience: timedelta | None = None
    told: str = ""

    def sentence(self, facts: Mapping[str, str]) -> str:
        """The words, with the facts in them where all are known."""
        try:
            return self.told.format_map(facts) or self.words
        except KeyError:
            return self.words

    def __str__(self) -> str:
        return self.name


def table(*codes: Code) -> dict[str, Code]:
    """Codes by name; raises ValueError where two have one name."""
    return join((codes,))


def join(tables: Iterable[Iterable[Code]]) -> dict[str, Code]:
    """Several lists of codes as one dict by name; raises ValueError where two have one name."""
    found: dict[str, Code] = {}
    for codes in tables:
        for code in codes:
            if code.name in found:
                raise ValueError(f"two codes are called {code.name}")
            found[code.name] = code
    return found

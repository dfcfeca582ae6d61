"""Semantic versions (2.0) as Kubernetes compares them; build metadata never counts.

Follows ``github.com/blang/semver/v4``, which the API server and the scheduler use.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache, total_ordering

_NUMBER = r"(0|[1-9][0-9]*)"
_WORD = r"[0-9A-Za-z-]+"
_STRICT = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_WORD}(?:\.{_WORD})*))?(?:\+({_WORD}(?:\.{_WORD})*))?"
)
_MAX_UINT64 = 2**64 - 1


class SemverError(ValueError):
    """The text is not a semantic version."""


@total_ordering
@dataclass(frozen=True, slots=True)
class Semver:
    """One version; ``pre`` holds the identifiers of the pre-release, numbers as numbers."""

    major: int
    minor: int
    patch: int
    pre: tuple[int | str, ...] = ()
    build: str = field(default="", compare=False)

    def __lt__(self, other: Semver) -> bool:
        return _key(self) < _key(other)

    def __str__(self) -> str:
        pre = "-" + ".".join(map(str, self.pre)) if self.pre else ""
        return (
            f"{self.major}.{self.minor}.{self.patch}{pre}{'+' + self.build if self.build else ''}"
        )


@lru_cache(maxsize=4096)
def parse(text: str) -> Semver:
    """Reads one strict version such as 1.2.3-rc.1+build; raises SemverError for all else."""
    match = _STRICT.fullmatch(text)
    if match is None:
        raise SemverError(f"{text!r} is not a semantic version such as 1.2.3")
    major, minor, patch, pre, build = match.groups()
    numbers = int(major), int(minor), int(patch)
    if max(numbers) > _MAX_UINT64:
        raise SemverError(f"{text!r} has a number that does not fit 64 bits")
    return Semver(*numbers, _identifiers(text, pre), build or "")


def parse_leniently(text: str) -> Semver:
    """Reads what CEL's ``semver(text, true)`` reads: a leading v, missing parts, leading zeros."""
    parts = [_without_leading_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3 and ("-" in parts[-1] or "+" in parts[-1]):
        raise SemverError(f"{text!r} is too short for a pre-release or build part")
    return parse(".".join(parts + ["0"] * (3 - len(parts))))


def _without_leading_zeros(part: str) -> str:
    bare = part.lstrip("0") if len(part) > 1 else part
    return bare if bare[:1].isdigit() or len(part) <= 1 else "0" + bare


def _identifiers(text: str, pre: str | None) -> tuple[int | str, ...]:
    if not pre:
        return ()
    out: list[int | str] = []
    for word in pre.split("."):
        if word.isdigit():
            if len(word) > 1 and word[0] == "0":
                raise SemverError(f"{text!r} has a leading zero in its pre-release part")
            out.append(int(word))
        else:
            out.append(word)
    return tuple(out)


def _key(version: Semver) -> tuple[object, ...]:
    """No pre-release sorts above any; a number sorts below a word; more identifiers above fewer."""
    pre = tuple((0, part, "") if isinstance(part, int) else (1, 0, part) for part in version.pre)
    return (version.major, version.minor, version.patch, not version.pre, pre)

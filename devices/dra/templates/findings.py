"""What a check before publication finds: a code, how grave it is, a sentence, a remedy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How grave a finding is."""

    ERROR = "error"
    """It must not be published so."""
    WARNING = "warning"
    """It may be published by somebody who has read this."""
    NOTE = "note"
    """Good to know."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check found; `path` is where in the content it comes from, empty for the
    whole; `release` names the releases that it is about, empty for all of them.
    """

    code: str
    severity: Severity
    sentence: str
    remedy: str
    path: str = ""
    release: str = ""


@dataclass(frozen=True, slots=True)
class Need:
    """A feature that the template relies on. `state` is "on", "off" or "unknown" in the cluster
    looked at; `read` says that it was read there rather than assumed from the release.
    """

    gate: str
    why: str
    since: str
    state: str
    read: bool


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that a check found, the gravest first.

    `tried` sets of answers were looked at; `complete` says that there are no others. `fits` are the
    nodes on which the template with its usual answers fits now; None where no cluster was seen.
    """

    findings: tuple[Finding, ...]
    needs: tuple[Need, ...] = ()
    tried: int = 0
    complete: bool = True
    fits: tuple[str, ...] | None = None

    @property
    def may_publish(self) -> bool:
        return all(one.severity is not Severity.ERROR for one in self.findings)


ORDER = (Severity.ERROR, Severity.WARNING, Severity.NOTE)


def sorted_once(findings: list[Finding]) -> tuple[Finding, ...]:
    """The gravest first, each once."""
    once = dict.fromkeys(findings)
    return tuple(sorted(once, key=lambda one: (ORDER.index(one.severity), one.path, one.code)))

"""What the doctor says: findings, by area, each with what to do about it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final


class Severity(StrEnum):
    """`error`: something does not work. `warning`: it soon may not. `info`: good to know."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


class Area(StrEnum):
    """What is looked at, in the order in which it is told."""

    DATABASE = "Database"
    BROKER = "Broker"
    CLUSTER = "Cluster"
    RIGHTS = "Rights"
    POLICIES = "Policies"
    WATCH = "Watch"
    QUEUE = "Queue"
    CLOCK = "Clock"
    CERTIFICATES = "Certificates"
    AUDIT = "Audit log"
    DISK = "Disk"
    UPGRADE = "Before an upgrade"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be; `subject` is what it is about, such as an account."""

    code: str
    severity: Severity
    subject: str
    sentence: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Section:
    """One area: what was seen there in a sentence, and what is wrong with it."""

    area: Area
    seen: str
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """One look at everything."""

    sections: tuple[Section, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The gravest first; among equals as they are told."""
        found = [one for section in self.sections for one in section.findings]
        return tuple(sorted(found, key=lambda one: one.severity.rank))

    def count(self, severity: Severity) -> int:
        return sum(one.severity is severity for one in self.findings)

    @property
    def exit_code(self) -> int:
        """0: nothing worse than an info; 1: warnings; 2: errors."""
        if self.count(Severity.ERROR):
            return 2
        return 1 if self.count(Severity.WARNING) else 0

    def as_json(self) -> list[dict[str, Any]]:
        return [asdict(section) for section in self.sections]


def report_of(stored: Iterable[Mapping[str, Any]]) -> Report:
    """A report as it was stored."""
    return Report(
        tuple(
            Section(
                Area(section["area"]),
                section["seen"],
                tuple(
                    Finding(**{**finding, "severity": Severity(finding["severity"])})
                    for finding in section["findings"]
                ),
            )
            for section in stored
        )
    )


#: Every code, and what it means in general; `docs/doctor.md` is the same list, and a test says so.
CODES: Final[dict[str, str]] = {
    "DATABASE_OLD": "PostgreSQL is older than the oldest release that Berth is tried with.",
    "MIGRATIONS_PENDING": "The tables are those of an older Berth.",
    "BROKER_AWAY": "Valkey does not answer.",
    "BROKER_EVICTS": "Valkey throws messages away when its memory is full.",
    "CLUSTER_AWAY": "The API server does not answer.",
    "RELEASE_UNSUPPORTED": "Kubernetes is older than Berth supports.",
    "RELEASE_UNTRIED": "Kubernetes is newer than Berth was tried with.",
    "RELEASE_UNFIT": "This very release is known to harm who uses devices.",
    "KIND_NOT_SERVED": "A kind that Berth works with is not served.",
    "GATE_OFF": "A feature that Berth relies on is off.",
    "GATES_UNKNOWN": "The watch process has not read which features are on.",
    "RIGHT_MISSING": "An account lacks a right that it needs; a function of Berth fails.",
    "RIGHT_TOO_MANY": "An account has a right that it does not need.",
    "RIGHTS_NOT_LOOKED_AT": "Whoever looks may not act as that account.",
    "POLICY_MISSING": "A policy or its binding is not installed.",
    "POLICY_DIFFERS": "A policy is not the one of this Berth.",
    "POLICY_NOT_ENFORCED": "A policy is bound, and does not deny.",
    "POLICIES_NOT_LOOKED_AT": "Whoever looks may not read the policies.",
    "PARAMETER_STALE": "The API server judges by an old version of the policies' ConfigMap.",
    "PARAMETER_NOT_LOOKED_AT": "Nobody could tell which version the API server judges by.",
    "NOBODY_WATCHES": "No watch process leads.",
    "MIRROR_STALE": "What Berth shows of a kind is old.",
    "KIND_TROUBLED": "A kind cannot be followed.",
    "PROMISES_LATE": "Promised work is not done for a long time.",
    "QUEUE_LONG": "Many messages wait for a worker.",
    "CLOCK_OFF": "Two clocks differ.",
    "CERTIFICATE_EXPIRES": "A certificate is over, or soon will be.",
    "CERTIFICATE_UNKNOWN": "A certificate could not be read.",
    "AUDIT_OFF": "The API server keeps no audit log.",
    "AUDIT_UNKNOWN": "Nobody could tell whether the API server keeps an audit log.",
    "DISK_FULL": "A disk is nearly full.",
    "UPGRADE_CHANGES": "The next minor release changes what stands in this cluster.",
}

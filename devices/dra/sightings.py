"""How long something has been so: the memory that findings need before they are believed.

A kubelet's restart empties pools for minutes and controllers take seconds to tidy up, so a finding
counts once it has been seen for as long as its code's patience.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from devices.dra.codes import Code


class Finding(Protocol):
    """What a look over the cluster found; ``key`` is the same whenever the same thing is found."""

    @property
    def code(self) -> Code: ...

    @property
    def key(self) -> str: ...


Found = TypeVar("Found", bound=Finding)


def sightings(
    before: Mapping[str, datetime], findings: Iterable[Finding], now: datetime
) -> dict[str, datetime]:
    """When each finding was first seen without a break. What is not found now is forgotten."""
    return {finding.key: before.get(finding.key, now) for finding in findings}


def lasting(
    findings: Iterable[Found], first_seen: Mapping[str, datetime], now: datetime
) -> tuple[Found, ...]:
    """The findings that have lasted as long as their code has patience."""
    return tuple(
        finding
        for finding in findings
        if now - first_seen.get(finding.key, now) >= (finding.code.patience or timedelta(0))
    )

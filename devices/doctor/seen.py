"""What the doctor looked at, frozen: checks judge it, readers make it. Pure.

Each part is either seen, or `Unseen` with the reason in words; nothing is taken for well because
nobody could look.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from devices.doctor.rights import Right


@dataclass(frozen=True, slots=True)
class Unseen:
    """Why nobody could look. `refused`: whoever looked lacks the right to."""

    why: str
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Database:
    """`version` as PostgreSQL counts, 180003 for 18.3; `pending` names migrations not applied."""

    version: int
    size_bytes: int
    clock: datetime
    pending: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Broker:
    """`policy` is what Valkey does when its memory is full; empty where it does not tell."""

    version: str
    policy: str
    waiting: int


@dataclass(frozen=True, slots=True)
class Cluster:
    """The API server: its release, and of each kind that Berth uses the served version, or none."""

    release: str
    kinds: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Gate:
    """One feature as the watch process read it: on, off, absent or unknown."""

    name: str
    state: str


@dataclass(frozen=True, slots=True)
class Account:
    """One account of Berth: what it needs, what of that is denied it, and what it has.

    `whole` is False where the API server could not tell everything that it has.
    """

    name: str
    needs: frozenset[Right]
    denied: frozenset[Right]
    has: frozenset[Right]
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Policy:
    """One object of deploy/policies as it should be, and as it is (None: not there)."""

    kind: str
    name: str
    wanted: Mapping[str, Any]
    found: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Parameter:
    """The resourceVersion of the policies' ConfigMap, and the one the API server judges by.

    Empty: there is none.
    """

    written: str
    read: str


@dataclass(frozen=True, slots=True)
class Watch:
    """`leading_until` is None where nobody leads; by kind, how old the mirror is and what troubles.

    `none` as an age: that kind was never listed.
    """

    leading_until: datetime | None
    ages: Mapping[str, float | None]
    troubles: Mapping[str, str]
    window: float


@dataclass(frozen=True, slots=True)
class Queue:
    """Promises in the outbox, and the age of the oldest in seconds."""

    promises: int
    oldest: float | None
    oldest_task: str = ""


@dataclass(frozen=True, slots=True)
class Certificate:
    """One certificate that somebody showed us; `ends` is when it is over."""

    of: str
    ends: datetime


@dataclass(frozen=True, slots=True)
class Disk:
    """One folder's file system, in bytes."""

    folder: str
    free: int
    total: int


@dataclass(frozen=True, slots=True)
class Seen:
    """One look. `now` is this process's clock, `server_clock` the API server's to the second.

    `sights` are counts of what an upgrade would touch, by the words of `releases.CHANGES`.
    """

    now: datetime
    database: Database
    broker: Broker | Unseen
    cluster: Cluster | Unseen
    gates: tuple[Gate, ...] | Unseen
    accounts: Mapping[str, Account | Unseen]
    policies: tuple[Policy, ...] | Unseen
    parameter: Parameter | Unseen
    watch: Watch
    queue: Queue
    server_clock: datetime | Unseen
    certificates: Mapping[str, Certificate | Unseen]
    audit: bool | Unseen
    disks: tuple[Disk, ...]
    sights: Mapping[str, int]

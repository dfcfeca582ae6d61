"""What became of Pods with devices over a span of time: waits, success and retries, by class, path,
node pool or tenant. Two queries, whatever is asked.

Too few samples give no percentile, and Pods that are still on their way count neither as success
nor as failure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from django.db import connection

from devices.asks.history import ENOUGH, KEPT
from devices.routing.routes import Path
from portal.errors import Invalid

#: Into so many parts a span is cut for the charts.
PARTS: Final = 24
#: Groups that are shown at most; there are fewer classes, pools and tenants than that.
MOST_GROUPS: Final = 200
#: The spans that a page offers, in days.
DAYS: Final = (1, 7, 30, 90)


class By(StrEnum):
    """What the rows of the table stand for."""

    CLASS = "class"
    PATH = "path"
    POOL = "pool"
    TENANT = "tenant"


#: Word → the SQL in which it is measured, in seconds. A device plugin's devices are given at
#: binding, for it has no claim; what is not timed there, is not measured.
MEASURES: Final[Mapping[str, str]] = {
    "wait": "coalesce(allocated_at, CASE WHEN path = 'plugin' THEN bound_at END) - created_at",
    "prepare": "prepared_at - coalesce(allocated_at, bound_at)",
    "start": "ready_at - prepared_at",
    "whole": "ready_at - created_at",
}


@dataclass(frozen=True, slots=True)
class Question:
    """A span of time, what the rows stand for, and what narrows it; empty texts narrow nothing."""

    since: datetime
    until: datetime
    by: By = By.CLASS
    device_class: str = ""
    path: str = ""
    pool: str = ""
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """Seconds within which half and 95 of 100 were done, of so many; None where too few say."""

    samples: int = 0
    p50: float | None = None
    p95: float | None = None

    @property
    def enough(self) -> bool:
        return self.samples >= ENOUGH


@dataclass(frozen=True, slots=True)
class Group:
    """What became of some Pods.

    ``ran`` of them reached running; ``never_ran`` ended or went away before they did; the others
    are on their way. ``retries`` are preparations that failed and were tried again, ``failed`` are
    Pods that ended as failed, most of which their Job made anew.
    """

    key: str
    pods: int = 0
    ran: int = 0
    never_ran: int = 0
    retries: int = 0
    failed: int = 0
    figures: Mapping[str, Figure] = field(default_factory=dict)

    @property
    def under_way(self) -> int:
        return self.pods - self.ran - self.never_ran

    @property
    def percent(self) -> int | None:
        """How many of 100 that are over it came to run, rounded down; None where none is over."""
        over = self.ran + self.never_ran
        return self.ran * 100 // over if over else None


@dataclass(frozen=True, slots=True)
class Part:
    """One of the equal parts of the span."""

    start: datetime
    group: Group


@dataclass(frozen=True, slots=True)
class History:
    """The answer: all Pods together, by group (most Pods first), and over time."""

    question: Question
    whole: Group
    groups: tuple[Group, ...]
    parts: tuple[Part, ...]


def history_of(question: Question) -> History:
    """Counts; two queries."""
    where, values = _where(question)
    length = (question.until - question.since) / PARTS
    part = "least(width_bucket(extract(epoch FROM created_at), %s, %s, %s), %s)"
    cut = [question.since.timestamp(), question.until.timestamp(), PARTS, PARTS]
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT part, {_FIGURES} FROM (SELECT *, {part} AS part FROM devices_stagetimes"
            f" WHERE {where}) AS seen GROUP BY GROUPING SETS ((part), ())",
            [*cut, *values],
        )
        rows = cursor.fetchall()
        key, source = _GROUPED[question.by]
        cursor.execute(
            f"SELECT {key}, {_FIGURES} FROM (SELECT * FROM devices_stagetimes WHERE {where})"
            f" AS seen{source} GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT {MOST_GROUPS}",
            values,
        )
        groups = tuple(_group(row[0], row[1:]) for row in cursor.fetchall())
    by_part = {row[0]: _group("", row[1:]) for row in rows}
    parts = tuple(
        Part(question.since + n * length, by_part.get(n + 1, Group(""))) for n in range(PARTS)
    )
    return History(question, by_part[None], groups, parts)


def question_from(asked: Mapping[str, str], now: datetime, *, tenant: str = "") -> Question:
    """What an address asks: `days`, or `from` and `to` (ISO 8601, UTC); `by`, `class`, `path`,
    `pool` and, where none is given, `tenant`.

    Raises `Invalid` with the fields that make no sense.
    """
    wrong: dict[str, str] = {}
    days = asked.get("days", "") or "7"
    since, until = now - timedelta(days=7), now
    if asked.get("from") or asked.get("to"):
        since = _moment("from", asked, now - timedelta(days=7), wrong)
        until = _moment("to", asked, now, wrong)
        if not wrong and not since < until:
            wrong["to"] = "It must be later than the beginning."
        elif not wrong and until - since > KEPT + timedelta(days=1):
            wrong["from"] = f"At most {KEPT.days} days at once."
    elif days not in {str(one) for one in DAYS}:
        wrong["days"] = f"One of {', '.join(str(one) for one in DAYS)}."
    else:
        since = now - timedelta(days=int(days))
    by = asked.get("by", "") or By.CLASS
    allowed = [one for one in By if not (tenant and one is By.TENANT)]
    if by not in allowed:
        wrong["by"] = f"One of {', '.join(allowed)}."
    path = asked.get("path", "")
    if path and path not in list(Path):
        wrong["path"] = f"One of {', '.join(Path)}."
    if wrong:
        raise Invalid("That is no span of time, or no grouping.", fields=wrong)
    return Question(
        since,
        until,
        By(by),
        _plain(asked.get("class", "")),
        path,
        _plain(asked.get("pool", "")),
        tenant or _plain(asked.get("tenant", "")),
    )


def _plain(text: str) -> str:
    """Without NUL, which PostgreSQL refuses and nothing here has in its name."""
    return text.replace("\x00", "").strip()


def _moment(
    name: str, asked: Mapping[str, str], otherwise: datetime, wrong: dict[str, str]
) -> datetime:
    text = asked.get(name, "")
    if not text:
        return otherwise
    try:
        moment = datetime.fromisoformat(text.replace(" ", "+"))
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    except ValueError:
        wrong[name] = "A moment such as 2026-11-02T12:00."
        return otherwise


def _where(question: Question) -> tuple[str, list[Any]]:
    where = ["created_at >= %s", "created_at < %s"]
    values: list[Any] = [question.since, question.until]
    if question.device_class:
        where.append("classes @> ARRAY[%s]::varchar[]")
        values.append(question.device_class)
    if question.path:
        where.append("path = %s")
        values.append(question.path)
    if question.pool:
        where.append("node_pool = %s")
        values.append(question.pool)
    if question.tenant:
        where.append("tenant_id = (SELECT id FROM tenants_tenant WHERE slug = %s)")
        values.append(question.tenant)
    return " AND ".join(where), values


#: What a group is called, and what is joined for it.
_GROUPED: Final[Mapping[By, tuple[str, str]]] = {
    By.CLASS: ("class", ", unnest(classes) AS class"),
    By.PATH: ("path", ""),
    By.POOL: ("node_pool", ""),
    By.TENANT: ("(SELECT slug FROM tenants_tenant WHERE id = seen.tenant_id)", ""),
}


def _figures() -> str:
    """Counts and percentiles in SQL; a second of slack, for the cluster's stamps are whole ones."""
    counts = [
        "count(*)",
        "count(running_at)",
        "count(*) FILTER (WHERE running_at IS NULL AND (released_at IS NOT NULL OR ended <> ''))",
        "coalesce(sum(retries), 0)",
        "count(*) FILTER (WHERE ended = 'failed')",
    ]
    for expression in MEASURES.values():
        seconds = f"extract(epoch FROM {expression})"
        counts.append(f"count(*) FILTER (WHERE {seconds} >= -1)")
        counts.append(
            "percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP"
            f" (ORDER BY greatest({seconds}, 0)::float8) FILTER (WHERE {seconds} >= -1)"
        )
    return ", ".join(counts)


_FIGURES: Final = _figures()


def _group(key: str | None, row: Sequence[Any]) -> Group:
    pods, ran, never_ran, retries, failed = (int(one) for one in row[:5])
    figures = {}
    for index, word in enumerate(MEASURES):
        samples, both = row[5 + 2 * index : 7 + 2 * index]
        enough = samples >= ENOUGH and both is not None
        figures[word] = Figure(samples, *(map(float, both) if enough else (None, None)))
    return Group(key or "", pods, ran, never_ran, retries, failed, figures)

"""Reads the mirror back: objects for the rules, and the age that must stand beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from django.db import connection

from devices.cluster.decoding import loads
from devices.models import Observed, Sync


@dataclass(frozen=True, slots=True)
class Freshness:
    """How old the mirror of one kind is, by the database's clock.

    `age` in seconds since it was last known to show what the cluster has; None: never yet.
    """

    kind: str
    age: float | None
    served: bool
    error: str


def freshness() -> dict[str, Freshness]:
    """Every kind that was ever followed."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT kind, extract(epoch FROM clock_timestamp() - alive_at)::float8, served, error"
            " FROM devices_sync ORDER BY kind"
        )
        return {row[0]: Freshness(*row) for row in cursor.fetchall()}


def taken(*kinds: str) -> datetime | None:
    """The moment that these kinds show: the oldest of theirs; None where one was never listed.

    Kinds that the cluster does not serve have no objects, and no age.
    """
    moments = dict(Sync.objects.filter(kind__in=kinds, served=True).values_list("kind", "alive_at"))
    served = set(kinds) - set(
        Sync.objects.filter(kind__in=kinds, served=False).values_list("kind", flat=True)
    )
    if any(moments.get(kind) is None for kind in served):
        return None
    return min((moment for moment in moments.values() if moment), default=None)


def raw_objects(*kinds: str) -> dict[str, list[bytes]]:
    """Every object of these kinds as bytes, as `devices.dra.snapshot.read_json` takes them.

    One statement, so that all kinds show the same state of the mirror.
    """
    found: dict[str, list[bytes]] = {kind: [] for kind in kinds}
    # Django's own cursors bind on the client, and those cannot be told to answer in binary.
    with (
        connection.cursor() as cursor,
        connection.wrap_database_errors,
        psycopg.Cursor(cursor.connection) as quick,
    ):
        quick.execute(
            "SELECT kind, raw FROM devices_observed WHERE kind = ANY(%s) AND gone_at IS NULL",
            [list(kinds)],
            binary=True,
        )
        for kind, raw in quick:
            found[kind].append(raw)
    return found


def snapshot_objects(*kinds: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Pairs of kind and decoded object, as `devices.dra.snapshot.read_kinds` takes them."""
    for kind, raws in raw_objects(*kinds).items():
        for raw in raws:
            yield kind, loads(raw)


def find(kind: str, name: str, namespace: str = "") -> Observed | None:
    """One object as the mirror has it; the newest where an Event of that name was kept."""
    rows = Observed.objects.filter(kind=kind, namespace=namespace, name=name)
    return rows.order_by("gone_at", "-seen_at").first()

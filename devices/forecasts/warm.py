"""The cluster as the rules read it, kept warm in this process: whole once, then what changed.

A page asks for it and never waits long: small changes are read at once, a large cluster is read by
a thread while the page gets the picture before, which carries its age. What decides whether
anything changed is how far the mirror is (`Sync.version`), never a clock.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

import psycopg
from django.db import connection

from devices.cluster.capabilities import State, facts_of
from devices.dra.collector import look_seldom
from devices.dra.gates import NEWEST, ON_BY_DEFAULT, RELEASES, Gates, gates
from devices.dra.snapshot import KINDS, read_json
from devices.forecasts.picture import Key, Picture, devices_differ, merged, picture
from devices.models import AssumedGate, ClusterState

#: A row may be committed so long after the moment that is written in it.
OVERLAP: Final = timedelta(seconds=60)
#: A mirror with more rows than these is read by a thread, at first and after each change.
MANY_ROWS: Final = 20_000


def warm() -> Picture | None:
    """The newest picture that can be had without waiting long.

    None where the mirror was never filled, or while a large one is read for the first time.
    """
    return _keeper.look()


def fresh() -> Picture | None:
    """The picture of the mirror as it is now, read here if need be: for workers, which may wait.

    None where the mirror was never filled.
    """
    return _keeper.read_now()


def forget() -> None:
    """Drops what is held, for tests: each of them has a mirror of its own."""
    _keeper.forget()


@dataclass(slots=True)
class _Held:
    """What was read: the picture, how far the mirror was, and which object each row is."""

    picture: Picture
    version: Hashable
    rows: dict[str, tuple[Key, str]] = field(default_factory=dict)
    read_at: datetime | None = None
    capabilities: Hashable = None


class _Keeper:
    """One picture for all threads of a process; one of them at a time reads."""

    def __init__(self) -> None:
        self._reading = threading.Lock()
        self._held: _Held | None = None
        self._thread: threading.Thread | None = None

    def forget(self) -> None:
        with self._reading:
            self._held = None

    def look(self) -> Picture | None:
        version, as_of = _mirror()
        if version is None or as_of is None:
            return None
        held = self._held
        if held is not None and held.version == version:
            return replace(held.picture, as_of=max(as_of, held.picture.as_of))
        if (len(held.rows) if held is not None else _rows()) > MANY_ROWS:
            self._in_background()
            return None if held is None else held.picture
        with self._reading:
            self._read()
        return self._held.picture if self._held else None

    def read_now(self) -> Picture | None:
        with self._reading:
            version, as_of = _mirror()
            if version is None or as_of is None:
                return None
            self._read()
            held = self._held
            return None if held is None else replace(held.picture, as_of=as_of)

    def _in_background(self) -> None:
        if self._thread is not None and self._thread.is_alive():
            return

        def work() -> None:
            try:
                with self._reading:
                    self._read()
            finally:
                connection.close()

        self._thread = threading.Thread(target=work, name="warm snapshot", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        version, as_of = _mirror()
        held = self._held
        if as_of is None or (held is not None and held.version == version):
            return
        cluster: Mapping[str, Any] = (
            ClusterState.objects.values("release", "capabilities").first() or {}
        )
        said = assumptions()
        capabilities = (cluster.get("release"), repr(cluster.get("capabilities")), repr(said))
        if held is None or held.capabilities != capabilities:
            held = None
        fresh = _whole(cluster, said) if held is None else _changed(held)
        fresh.version, fresh.capabilities = version, capabilities
        fresh.picture = replace(fresh.picture, as_of=as_of)
        self._held = fresh
        if len(fresh.rows) > MANY_ROWS:
            look_seldom()


_keeper = _Keeper()


def _mirror() -> tuple[Hashable, datetime | None]:
    """How far the mirror is with all that the rules read, and the moment it shows; one query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT kind, version, listed_at, alive_at,"
            " (SELECT (count(*), max(said_at))::text FROM devices_assumedgate) FROM devices_sync"
            " WHERE kind = ANY(%s) AND served ORDER BY kind",
            [list(KINDS)],
        )
        rows = cursor.fetchall()
    if not rows or any(listed is None or alive is None for _, _, listed, alive, _ in rows):
        return None, None
    return (rows[0][4], *(row[:3] for row in rows)), min(row[3] for row in rows)


def _rows() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM devices_observed WHERE kind = ANY(%s)", [list(KINDS)])
        return int(cursor.fetchone()[0])


def _whole(cluster: Mapping[str, Any], said: Mapping[str, bool]) -> _Held:
    found = _fetch("", [])
    seen = read_json(_raws(found), gates=gates_of(cluster, said))
    rows = {uid: (key, version) for uid, key, version, _ in found.rows}
    return _Held(picture(seen, found.at), None, rows, found.at)


def _changed(held: _Held) -> _Held:
    """What the mirror wrote since, into what is held; rows that went are found by their number."""
    assert held.read_at is not None
    recent = _fetch("AND seen_at > %s", [held.read_at - OVERLAP])
    rows = dict(held.rows)
    news = [row for row in recent.rows if rows.get(row[0], (None, ""))[1] != row[2]]
    rows |= {uid: (key, version) for uid, key, version, _ in news}
    gone: set[Key] = set()
    if len(rows) != recent.total:
        present = _uids()
        gone = {key for uid, (key, _) in rows.items() if uid not in present}
        rows = {uid: row for uid, row in rows.items() if uid in present}
        gone -= {key for key, _ in rows.values()}
    if not news and not gone:
        return _Held(held.picture, None, rows, recent.at)
    before = held.picture
    part = read_json(_raws(_Found(recent.at, news, 0)), gates=before.now.gates)
    now = merged(before.now, part, {row[1] for row in news}, gone)
    if devices_differ(before.now, part, {row[1] for row in news} | gone):
        return _Held(picture(now, recent.at), None, rows, recent.at)
    return _Held(replace(before, now=now), None, rows, recent.at)


@dataclass(frozen=True, slots=True)
class _Found:
    """Rows as (uid, key, resourceVersion, raw), the moment, and how many there are in all."""

    at: datetime
    rows: list[tuple[str, Key, str, bytes]]
    total: int


def _fetch(where: str, values: list[Any]) -> _Found:
    """One statement, so that all rows show the same state of the mirror."""
    rows: list[tuple[str, Key, str, bytes]] = []
    at: datetime | None = None
    total = 0
    # Django's own cursors bind on the client, and those cannot be told to answer in binary.
    with (
        connection.cursor() as cursor,
        connection.wrap_database_errors,
        psycopg.Cursor(cursor.connection) as quick,
    ):
        quick.execute(
            "WITH held AS (SELECT count(*) AS total FROM devices_observed"
            " WHERE kind = ANY(%s) AND gone_at IS NULL)"
            " SELECT clock_timestamp(), total, uid, kind, namespace, name, resource_version, raw"
            " FROM held LEFT JOIN devices_observed"
            f" ON kind = ANY(%s) AND gone_at IS NULL {where}",
            [list(KINDS), list(KINDS), *values],
            binary=True,
        )
        for moment, count, uid, kind, namespace, name, version, raw in quick:
            at, total = at or moment, count
            if uid is not None:
                rows.append((uid, (kind, namespace, name), version, raw))
    assert at is not None, "the count is always one row"
    return _Found(at, rows, total)


def _uids() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT uid FROM devices_observed WHERE kind = ANY(%s) AND gone_at IS NULL",
            [list(KINDS)],
        )
        return {row[0] for row in cursor.fetchall()}


def _raws(found: _Found) -> dict[str, list[bytes]]:
    raws: dict[str, list[bytes]] = {kind: [] for kind in KINDS}
    for _, key, _, raw in found.rows:
        raws[key[0]].append(raw)
    return raws


def assumptions() -> dict[str, bool]:
    """How the platform says that the scheduler's gates are set."""
    scheduler = AssumedGate.objects.filter(component=AssumedGate.Component.SCHEDULER)
    return dict(scheduler.order_by("gate").values_list("gate", "on"))


def gates_of(cluster: Mapping[str, Any], said: Mapping[str, bool] | None = None) -> Gates:
    """The features of this cluster: its release's defaults, what its API server says of them, and
    what the platform has said of the scheduler's.

    The scheduler's own gates cannot be read, so all of them stay *assumed* (design: 10.9); what the
    API server has off, no scheduler has on. A release newer than the newest that is modelled is
    taken for that one.
    """
    release = ".".join(str(cluster.get("release") or NEWEST).removeprefix("v").split(".")[:2])
    if release not in RELEASES:
        release = NEWEST
    settings = {gate: on for gate, on in (said or {}).items() if gate in ON_BY_DEFAULT}
    for fact in facts_of(cluster.get("capabilities") or ()).values():
        if fact.name in ON_BY_DEFAULT and fact.state in (State.ON, State.OFF):
            on = fact.state is State.ON
            settings[fact.name] = on and settings.get(fact.name, True)
    possible = gates(release, every=True).on
    known = {name: on for name, on in settings.items() if name in possible}
    return replace(gates(release, known), scheduled=True)

"""Writes the mirror: pages of a list, batches of changes, and how far each kind is.

Every write is one transaction that first proves that its writer still leads, and that moves a
kind's resume version together with the rows it stands for. So whatever dies, a restart resumes
where the rows end: nothing is lost, nothing is doubled (rows are keyed by uid).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.db import DataError, connection, transaction
from django.db.backends.utils import CursorWrapper

from devices.cluster.decoding import dumps
from devices.cluster.gateway import Change
from devices.mirror import leadership
from devices.mirror.kinds import MIRRORED
from devices.mirror.reader import bare
from devices.mirror.rows import COLUMNS, Row

log = logging.getLogger(__name__)

_NAMES = ", ".join(COLUMNS)
_TYPES = {
    "raw": "bytea",
    "created_at": "timestamptz",
    "deleting": "bool",
    "classes": "varchar[]",
    "counts": "int8[]",
    "uses": "varchar[]",
}
_SET = ", ".join(f"{column} = excluded.{column}" for column in COLUMNS if column != "uid")
# Rows go through a temporary table: COPY is the fastest way in, and cannot update.
_INCOMING = """
    CREATE TEMPORARY TABLE observed_incoming
        (LIKE devices_observed INCLUDING STORAGE) ON COMMIT DELETE ROWS;
    ALTER TABLE observed_incoming ALTER seen_at DROP NOT NULL
"""
_UPSERT = f"""
    INSERT INTO devices_observed AS held ({_NAMES}, seen_at)
    SELECT {_NAMES}, clock_timestamp() FROM observed_incoming
    ON CONFLICT (uid) DO UPDATE SET {_SET}, seen_at = excluded.seen_at, gone_at = NULL
    WHERE held.resource_version <> excluded.resource_version OR held.gone_at IS NOT NULL
    RETURNING uid, xmax = 0
"""
NOW = object()
_TOLD = "uid, kind, namespace, name, claim, uses, tenant, node, owner_uid"


@dataclass(frozen=True, slots=True)
class Changed:
    """One object that is now otherwise in the mirror than before."""

    change: Change
    uid: str
    kind: str
    namespace: str
    name: str
    claim: str = ""
    uses: Sequence[str] = ()
    tenant: str = ""
    node: str = ""
    owner_uid: str = ""


@dataclass(slots=True)
class Batch:
    """Changes of one kind since the last write, the last one of each object; None: it is gone.

    `version` is where a watch may resume once they are stored.
    """

    kind: str
    version: str = ""
    rows: dict[str, Row | None] = field(default_factory=dict)


class Store:
    """The mirror's tables in the hand of one leader."""

    def __init__(self, holder: str):
        self._holder = holder

    def versions(self) -> dict[str, str]:
        """Kind → resourceVersion to resume from; kinds that must be listed are missing.

        What an earlier Berth mirrored and this one does not is taken away.
        """
        with self._write() as cursor:
            for table in ("devices_observed", "devices_sync"):
                cursor.execute(
                    f"DELETE FROM {table} WHERE kind <> ALL(%s::varchar[])", [list(MIRRORED)]
                )
            cursor.execute("SELECT kind, version FROM devices_sync WHERE version <> ''")
            return dict(cursor.fetchall())

    def put_page(self, rows: Sequence[Row]) -> list[Changed]:
        """Stores a page of a list; tells which of its objects are new or changed."""
        with self._write() as cursor:
            return _told(rows, _upsert(cursor, rows))

    def end_list(
        self, kind: str, seen: Iterable[str], *, version: str, api_version: str
    ) -> list[Changed]:
        """Takes away what a complete list did not have, and makes its version the one to resume."""
        act = (
            "UPDATE devices_observed SET gone_at = clock_timestamp()"
            if MIRRORED[kind].kept
            else "DELETE FROM devices_observed"
        )
        with self._write() as cursor:
            cursor.execute(
                f"{act} WHERE kind = %s AND gone_at IS NULL AND NOT EXISTS"
                f" (SELECT FROM unnest(%s::varchar[]) AS seen(uid)"
                f"  WHERE seen.uid = devices_observed.uid) RETURNING {_TOLD}",
                [kind, list(seen)],
            )
            gone = [Changed(Change.DELETED, *row) for row in cursor.fetchall()]
            _mark(
                cursor,
                kind,
                version=version,
                api_version=api_version,
                served=True,
                error="",
                listed_at=NOW,
                news_at=NOW,
                alive_at=NOW,
            )
        return gone

    def put_changes(self, batches: Iterable[Batch]) -> list[Changed]:
        """Stores changes of any kinds with their resume versions, all or nothing."""
        batches = list(batches)
        rows = [row for batch in batches for row in batch.rows.values() if row is not None]
        gone = {
            uid: batch.kind for batch in batches for uid, row in batch.rows.items() if row is None
        }
        with self._write() as cursor:
            changed = _told(rows, _upsert(cursor, rows)) if rows else []
            if gone:
                changed += _take_away(cursor, gone)
            for batch in batches:
                _mark(
                    cursor,
                    batch.kind,
                    version=batch.version,
                    served=True,
                    error="",
                    news_at=NOW,
                    alive_at=NOW,
                )
        return changed

    def alive(self, kinds: Sequence[str]) -> None:
        """Notes that the watches of these kinds are open and the API server answers."""
        with self._write() as cursor:
            cursor.execute(
                "UPDATE devices_sync SET alive_at = clock_timestamp()"
                " WHERE kind = ANY(%s::varchar[]) AND version <> ''",
                [list(kinds)],
            )

    def trouble(self, kind: str, error: str, *, served: bool = True) -> None:
        """Notes why a kind is not followed; what was mirrored of it stays, and ages."""
        with self._write() as cursor:
            _mark(cursor, kind, served=served, error=error)

    def forget(self, kind: str) -> None:
        """A kind that is no longer served has no objects; the next look lists it anew."""
        with self._write() as cursor:
            cursor.execute("DELETE FROM devices_observed WHERE kind = %s", [kind])
            cursor.execute("UPDATE devices_sync SET version = '' WHERE kind = %s", [kind])

    def is_another_cluster(self, identity: str) -> bool:
        """True where the mirror holds the objects of a cluster with another identity."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT identity FROM devices_clusterstate WHERE identity <> ''")
            known = cursor.fetchone()
        return known is not None and known[0] != identity

    def begin_anew(self) -> None:
        """Another cluster answers: its versions mean other things, so that every kind is listed."""
        with self._write() as cursor:
            cursor.execute("UPDATE devices_sync SET version = ''")

    def drop_old(self) -> int:
        """Deletes rows that were kept long enough after the cluster forgot them."""
        dropped = 0
        with self._write() as cursor:
            for entry in MIRRORED.values():
                if entry.kept:
                    cursor.execute(
                        "DELETE FROM devices_observed"
                        " WHERE kind = %s"
                        " AND gone_at < clock_timestamp() - %s * interval '1 second'",
                        [entry.kind, entry.kept.total_seconds()],
                    )
                    dropped += cursor.rowcount
        return dropped

    def cluster(self, **fields: Any) -> bool:
        """Writes ClusterState; True where `reachable` turned, which moves `since`.

        `contact_at` moves while the cluster is reachable.
        """
        with self._write() as cursor:
            cursor.execute(
                "INSERT INTO devices_clusterstate"
                " (name, reachable, message, release, identity, capabilities)"
                " VALUES ('cluster', false, '', '', '', '[]') ON CONFLICT DO NOTHING"
            )
            cursor.execute("SELECT reachable, since FROM devices_clusterstate")
            reachable, since = cursor.fetchone()
            sets, values = [], []
            for name, value in fields.items():
                sets.append(f"{name} = %s")
                values.append(dumps(value).decode() if isinstance(value, list) else value)
            if "reachable" in fields:
                sets.append(
                    "since = CASE WHEN since IS NULL OR reachable <> %s"
                    " THEN clock_timestamp() ELSE since END"
                )
                values.append(fields["reachable"])
                if fields["reachable"]:
                    sets.append("contact_at = clock_timestamp()")
            if "capabilities" in fields:
                sets.append("capabilities_at = clock_timestamp()")
            cursor.execute(f"UPDATE devices_clusterstate SET {', '.join(sets)}", values)
        return since is None or fields.get("reachable", reachable) != reachable

    @contextmanager
    def _write(self) -> Iterator[CursorWrapper]:
        with transaction.atomic(), connection.cursor() as cursor:
            leadership.prove(self._holder)
            yield cursor


def _upsert(cursor: CursorWrapper, rows: Sequence[Row]) -> dict[str, bool]:
    """Writes rows; uid → True where it is new, for those that were not there in this version.

    A row that PostgreSQL refuses must not keep the others out: it is written without its contents.
    """
    try:
        with transaction.atomic():
            return _copy(cursor, rows)
    except DataError as error:
        if len(rows) == 1:
            log.error("%s %s cannot be stored: %s", rows[0].kind, rows[0].name, error)
            return _copy(cursor, [bare(rows[0], str(error))])
    return {uid: new for row in rows for uid, new in _upsert(cursor, [row]).items()}


def _copy(cursor: CursorWrapper, rows: Sequence[Row]) -> dict[str, bool]:
    cursor.execute("SELECT to_regclass('pg_temp.observed_incoming') IS NULL")
    if cursor.fetchone()[0]:
        cursor.execute(_INCOMING)
    else:
        cursor.execute("DELETE FROM observed_incoming")
    # Django does not wrap what happens during a COPY.
    with (
        connection.wrap_database_errors,
        cursor.copy(f"COPY observed_incoming ({_NAMES}) FROM STDIN (FORMAT BINARY)") as copy,
    ):
        copy.set_types([_TYPES.get(column, "varchar") for column in COLUMNS])
        for row in rows:
            copy.write_row(row[:-1])
    cursor.execute(_UPSERT)
    return dict(cursor.fetchall())


def _take_away(cursor: CursorWrapper, gone: Mapping[str, str]) -> list[Changed]:
    kept = [uid for uid, kind in gone.items() if MIRRORED[kind].kept]
    rest = [uid for uid in gone if uid not in kept]
    found: list[tuple[str, ...]] = []
    if kept:
        cursor.execute(
            "UPDATE devices_observed SET gone_at = clock_timestamp()"
            f" WHERE uid = ANY(%s::varchar[]) RETURNING {_TOLD}",
            [kept],
        )
        found += cursor.fetchall()
    if rest:
        cursor.execute(
            f"DELETE FROM devices_observed WHERE uid = ANY(%s::varchar[]) RETURNING {_TOLD}",
            [rest],
        )
        found += cursor.fetchall()
    return [Changed(Change.DELETED, *row) for row in found if not MIRRORED[row[1]].quiet]


def _told(rows: Iterable[Row], written: Mapping[str, bool]) -> list[Changed]:
    return [
        Changed(
            Change.ADDED if written[row.uid] else Change.MODIFIED,
            row.uid,
            row.kind,
            row.namespace,
            row.name,
            row.claim,
            row.uses,
            row.tenant,
            row.node,
            row.owner_uid,
        )
        for row in rows
        if row.uid in written and not row.small and not MIRRORED[row.kind].quiet
    ]


def _mark(cursor: CursorWrapper, kind: str, **fields: Any) -> None:
    """Writes columns of a kind's Sync row; NOW is the database's time, `error_since` follows."""
    cursor.execute(
        "INSERT INTO devices_sync (kind, api_version, version, served, error)"
        " VALUES (%s, '', '', true, '') ON CONFLICT DO NOTHING",
        [kind],
    )
    sets, values = [], []
    for name, value in fields.items():
        if value is NOW:
            sets.append(f"{name} = clock_timestamp()")
        else:
            sets.append(f"{name} = %s")
            values.append(value)
    if "error" in fields:
        sets.append(
            "error_since = CASE WHEN %s = '' THEN NULL"
            " WHEN error = '' THEN clock_timestamp() ELSE error_since END"
        )
        values.append(fields["error"])
    cursor.execute(f"UPDATE devices_sync SET {', '.join(sets)} WHERE kind = %s", [*values, kind])

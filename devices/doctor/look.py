"""One look at everything that Berth stands on: database, broker, cluster, disks."""

from __future__ import annotations

import shutil
import socket
import ssl
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import redis
from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Count, Min

from devices.cluster.capabilities import AUDIT_LOG, GATES, State, facts_of
from devices.cluster.gateway import Gateway
from devices.doctor import asking, deployed
from devices.doctor.asking import ActAs
from devices.doctor.seen import (
    Broker,
    Certificate,
    Database,
    Disk,
    Gate,
    Queue,
    Seen,
    Unseen,
    Watch,
)
from devices.models import ClusterState, Leadership, Sync
from portal.outbox.models import OutboxLine

# Celery's list in the broker.
WAITING = "celery"
#: What an upgrade touches, by what stands in the objects' JSON: (kind, text, words of a change).
_SIGHTS = (
    ("DeviceClass", b'"extendedResourceName"', "classes with an extended resource"),
    ("ResourceSlice", b'"consumesCounters"', "slices with partitions"),
    ("ResourceSlice", b'"nodeAllocatableResourceMappings"', "slices in the older shape"),
    ("ResourceSlice", b"{", "slices"),
    ("DeviceTaintRule", b"{", "taint rules"),
)


def look(gateway: Gateway, *, act_as: ActAs, now: datetime) -> Seen:
    """Everything, once. Raises DatabaseError where PostgreSQL is away: nothing is left to tell."""
    state = ClusterState.objects.first()
    facts = facts_of(state.capabilities if state is not None else ())
    return Seen(
        now=now,
        database=_database(),
        broker=_broker(),
        cluster=asking.cluster(gateway),
        gates=tuple(Gate(name, facts[name].state.value) for name in GATES if name in facts)
        or Unseen("The watch process has not read them yet."),
        accounts=asking.accounts(gateway, deployed.accounts(), act_as),
        policies=asking.policies(gateway, deployed.objects("policies")),
        parameter=asking.parameter(gateway),
        watch=_watch(now),
        queue=_queue(now),
        server_clock=asking.clock(gateway),
        certificates={
            "API server": asking.certificate(gateway),
            **_own_certificate(settings.PUBLIC_URL),
        },
        audit=facts[AUDIT_LOG].state is State.ON
        if AUDIT_LOG in facts and facts[AUDIT_LOG].state in (State.ON, State.OFF)
        else Unseen("The watch process could not read the API server's metrics."),
        disks=_disks(),
        sights=_sights(),
    )


def _database() -> Database:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('server_version_num')::int,"
            " pg_database_size(current_database()), clock_timestamp()"
        )
        version, size, clock = cursor.fetchone()
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return Database(version, size, clock, tuple(f"{one.app_label}.{one.name}" for one, _ in plan))


def _broker() -> Broker | Unseen:
    try:
        with redis.Redis.from_url(
            settings.VALKEY_URL, socket_timeout=2, socket_connect_timeout=2, decode_responses=True
        ) as valkey:
            told = valkey.info()
            return Broker(
                str(told.get("valkey_version") or told.get("redis_version") or "unknown"),
                str(told.get("maxmemory_policy") or ""),
                int(valkey.llen(WAITING)),
            )
    except redis.RedisError as error:
        return Unseen(str(error))


def _watch(now: datetime) -> Watch:
    held = Leadership.objects.exclude(holder="").filter(expires__isnull=False)
    rows = list(Sync.objects.filter(served=True))
    return Watch(
        leading_until=held.order_by("-expires").values_list("expires", flat=True).first(),
        ages={
            row.kind: (now - row.alive_at).total_seconds() if row.alive_at is not None else None
            for row in rows
        },
        troubles={row.kind: row.error for row in rows if row.error},
        window=settings.MIRROR_STALE_AFTER.total_seconds(),
    )


def _queue(now: datetime) -> Queue:
    lines = OutboxLine.objects.values("task").annotate(n=Count("pk"), oldest=Min("created_at"))
    found = sorted(lines, key=lambda line: line["oldest"])
    if not found:
        return Queue(0, None)
    age = (now - found[0]["oldest"]).total_seconds()
    return Queue(sum(line["n"] for line in found), age, found[0]["task"])


def _own_certificate(url: str) -> dict[str, Certificate | Unseen]:
    """Of the address that people use; nothing where that is plain HTTP."""
    address = urlsplit(url)
    if address.scheme != "https" or not address.hostname:
        return {}
    name = address.netloc
    try:
        with (
            socket.create_connection((address.hostname, address.port or 443), timeout=3) as plain,
            ssl.create_default_context().wrap_socket(
                plain, server_hostname=address.hostname
            ) as told,
        ):
            shown = told.getpeercert() or {}
    except (OSError, ValueError) as error:
        return {name: Unseen(str(error))}
    ends = datetime.fromtimestamp(ssl.cert_time_to_seconds(str(shown["notAfter"])), tz=UTC)
    return {name: Certificate(name, ends)}


def _disks() -> tuple[Disk, ...]:
    """Of this process's own folders; two on one file system are told once."""
    found: dict[int, Disk] = {}
    for folder in (Path(settings.BASE_DIR), Path(tempfile.gettempdir())):
        usage = shutil.disk_usage(folder)
        found.setdefault(folder.stat().st_dev, Disk(str(folder), usage.free, usage.total))
    return tuple(found.values())


def _sights() -> dict[str, int]:
    """Counts of what stands in the mirror; empty where it was never filled. One query."""
    if not Sync.objects.exclude(listed_at=None).exists():
        return {}
    # Not jsonb: see Observed. A text inside bytes is looked for as it stands there.
    sums = ", ".join(
        "count(*) FILTER (WHERE kind = %s AND position(%s::bytea in raw) > 0)" for _ in _SIGHTS
    )
    values = [value for kind, text, _ in _SIGHTS for value in (kind, text)]
    kinds = sorted({kind for kind, _, _ in _SIGHTS})
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {sums} FROM devices_observed WHERE kind = ANY(%s)", [*values, kinds]
        )
        counts = cursor.fetchone()
    return {words: count for (_, _, words), count in zip(_SIGHTS, counts, strict=True)}

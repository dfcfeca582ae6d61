"""Who held which device when: written from the mirror's claims, read by a device's page.

A worker writes it after it has counted: only claims that changed since are read. What the cluster
stamps is taken as the beginning, else the moment at which Berth saw it; the end is always seen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import connection
from django.db.models import QuerySet

from devices.cluster.decoding import loads
from devices.dra.claims import Claim, DeviceKey, read_claim
from devices.dra.names import CLAIM_LABEL
from devices.dra.published import node_of, published
from devices.dra.reading import Unreadable
from devices.dra.snapshot import Snapshot
from devices.models import Holding, HoldingsRead, Observed, Sync
from tenants.models import TenantNamespace

#: How long ended ones are kept, as stage times are.
KEPT: Final = timedelta(days=90)
#: A row of the mirror may be committed so long after the moment that is written in it.
OVERLAP: Final = timedelta(seconds=60)
AT_ONCE: Final = 500

#: What tells one holding of a claim from another: the device, and the share of it.
_Place = tuple[DeviceKey, str]
_Raw = tuple[bytes | memoryview, datetime]


def record(snapshot: Snapshot, now: datetime) -> int:
    """Writes what changed since the last time; returns how many holdings began or ended.

    Twice is fine, and so is two workers at once. Does nothing until the claims were listed once.
    """
    if not Sync.objects.filter(kind="ResourceClaim", listed_at__isnull=False).exists():
        return 0
    mark = HoldingsRead.objects.filter(name="claims").values_list("at", flat=True).first()
    rows = Observed.objects.filter(kind="ResourceClaim")
    if mark is not None:
        rows = rows.filter(seen_at__gt=mark - OVERLAP)
    changed = 0
    for part in _parts(rows.values_list("raw", "seen_at").iterator(chunk_size=AT_ONCE)):
        changed += _compare(part, snapshot)
    changed += _end_of_gone(now)
    HoldingsRead.objects.update_or_create(name="claims", defaults={"at": now})
    return changed


def forget(now: datetime) -> int:
    """Drops what ended too long ago; returns how many."""
    return Holding.objects.filter(until__lt=now - KEPT).delete()[0]


@dataclass(frozen=True, slots=True)
class Line:
    """One holding as a viewer may know it. Of others' claims only that there was one, and when."""

    since: datetime
    until: datetime | None
    since_seen: bool
    own: bool
    claim: str = ""
    namespace: str = ""
    tenant: str = ""
    public_id: str = ""
    device_class: str = ""
    amount: Mapping[str, str] | None = None

    @property
    def lasted(self) -> timedelta | None:
        """None while it is held."""
        return None if self.until is None else max(self.until - self.since, timedelta(0))


def of_device(key: DeviceKey) -> QuerySet[Holding]:
    """All that is kept of one device, newest first."""
    driver, pool, device = key
    return Holding.objects.filter(driver=driver, pool=pool, device=device).order_by("-pk")


def lines(rows: Iterable[Holding], tenant: str | None) -> list[Line]:
    """``tenant`` is the viewer's own; None for whoever may know all."""
    return [
        Line(
            row.since,
            row.until,
            row.since_seen,
            True,
            row.claim,
            row.namespace,
            row.tenant,
            row.public_id,
            row.device_class,
            row.amount,
        )
        if tenant is None or (row.tenant and row.tenant == tenant)
        else Line(row.since, row.until, row.since_seen, False)
        for row in rows
    ]


def _parts(rows: Iterable[_Raw]) -> Iterator[list[_Raw]]:
    part: list[_Raw] = []
    for row in rows:
        part.append(row)
        if len(part) == AT_ONCE:
            yield part
            part = []
    if part:
        yield part


def _compare(part: Sequence[_Raw], snapshot: Snapshot) -> int:
    """Begins and ends holdings of these claims, as they are against what is written."""
    claims: list[tuple[Claim, datetime]] = []
    for raw, seen_at in part:
        try:
            claims.append((read_claim(loads(bytes(raw)))[0], seen_at))
        except Unreadable:
            continue
    known: dict[str, dict[_Place, int]] = {}
    uids = [claim.meta.uid for claim, _ in claims]
    for row in Holding.objects.filter(claim_uid__in=uids, until=None):
        place = ((row.driver, row.pool, row.device), row.share)
        known.setdefault(row.claim_uid, {})[place] = row.pk
    begun: list[Holding] = []
    ended = 0
    tenants = _tenants({claim.meta.namespace for claim, _ in claims})
    for claim, seen_at in claims:
        before = known.get(claim.meta.uid, {})
        fresh = {
            (row.driver, row.pool, row.device, row.share): row
            for row in _holdings(claim, seen_at, snapshot, tenants)
        }
        held = {(key[:3], key[3]) for key in fresh}
        begun += [row for key, row in fresh.items() if (key[:3], key[3]) not in before]
        gone = [pk for place, pk in before.items() if place not in held]
        if gone:
            ended += Holding.objects.filter(pk__in=gone, until=None).update(until=seen_at)
    Holding.objects.bulk_create(begun, ignore_conflicts=True)
    return len(begun) + ended


def _holdings(
    claim: Claim, seen_at: datetime, snapshot: Snapshot, tenants: Mapping[str, str]
) -> Iterator[Holding]:
    if claim.allocation is None:
        return
    stamped = claim.allocation.at
    for result in claim.allocation.results:
        if result.admin:  # it looks at the device and takes nothing of it
            continue
        found = published(snapshot, result.key)
        yield Holding(
            driver=result.driver,
            pool=result.pool,
            device=result.device,
            share=result.share_id,
            amount={name: str(amount) for name, amount in (result.consumed or {}).items()},
            node=(found.node_name if found else "") or node_of(claim, snapshot),
            device_class=claim.spec.class_of(result.request),
            namespace=claim.meta.namespace,
            claim=claim.meta.name,
            claim_uid=claim.meta.uid,
            tenant=tenants.get(claim.meta.namespace, ""),
            public_id=claim.meta.labels.get(CLAIM_LABEL, "")[:12],
            since=stamped or seen_at,
            since_seen=stamped is None,
        )


def _tenants(namespaces: Collection[str]) -> dict[str, str]:
    found = TenantNamespace.objects.filter(name__in=namespaces)
    return dict(found.values_list("name", "tenant__slug"))


def _end_of_gone(now: datetime) -> int:
    """Ends what claims held that are gone from the cluster."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE devices_holding SET until = %s WHERE until IS NULL AND NOT EXISTS"
            " (SELECT FROM devices_observed WHERE uid = claim_uid)",
            [now],
        )
        return cursor.rowcount

"""Asks that wait, in the order of asking: what keeps each back now, who goes first, who is next.

What is judged here needs no cluster: freezes, closings, and what the mirror shows of slice pools.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.conf import settings
from django.db.models import QuerySet

from devices.dra.doubt import STALE, UNSAFE, Doubt, doubts, keeps_back, unsafe_pools
from devices.dra.lifecycle import State
from devices.dra.pools import PoolKey
from devices.dra.snapshot import SLICE, Snapshot
from devices.forecasts.warm import fresh
from devices.models import Claim, ClusterState, Freeze, LedgerNode, NodePool, PoolMark, Sync
from tenants.models import Tenant

FROZEN: Final = "FROZEN"
CLOSING: Final = "TENANT_CLOSING"
AWAY: Final = "CLUSTER_UNREACHABLE"
#: Asks that are looked at; who is further back waits for those anyway.
LINE: Final = 500


@dataclass(frozen=True, slots=True)
class Hold:
    """Why an ask waits: a stable code and a sentence that says who, until when, and what next."""

    code: str
    why: str


@dataclass(frozen=True, slots=True)
class Ground:
    """What keeps asks back now, read once for all of them."""

    freezes: tuple[Freeze, ...]
    snapshot: Snapshot | None
    doubted: dict[PoolKey, Doubt]
    unheard: str
    reachable_since: datetime | None

    def hold(self, claim: Claim) -> Hold | None:
        """What keeps an ask back, whoever stands before it."""
        if claim.tenant.state != Tenant.State.ACTIVE:
            return Hold(
                CLOSING,
                f"{claim.tenant.name} is being closed, so nothing new is sent. It goes on by "
                "itself where the closing is cancelled; else it is released with the rest.",
            )
        classes = classes_of(claim)
        freeze = next((one for one in self.freezes if touches(one, claim, classes)), None)
        if freeze is not None:
            return Hold(FROZEN, sentence(freeze))
        if self.unheard:
            return Hold(STALE, self.unheard)
        if self.snapshot is None:
            return None
        found = keeps_back(self.snapshot, requests_of(claim), self.doubted)
        if found is None:
            return None
        return Hold(found.code, f"{found.why} It is sent by itself once that is over.")


def ground(now: datetime) -> Ground:
    """Everything that keeps asks back now; a few queries."""
    cluster = ClusterState.objects.first()
    seen = fresh()
    unheard = _unheard(now)
    snapshot = seen.now if seen is not None else None
    doubted: dict[PoolKey, Doubt] = {}
    if snapshot is not None and not unheard:
        back = PoolMark.objects.filter(back_at__isnull=False).values_list("driver", "pool")
        doubted = dict(doubts(snapshot, now, sets=driver_sets(), back=set(back)))
        unsafe = LedgerNode.objects.exclude(state="safe").values_list("node", "code")
        doubted = {**unsafe_pools(snapshot, dict(unsafe)), **doubted}
    return Ground(
        freezes=tuple(Freeze.objects.standing(now)),
        snapshot=snapshot,
        doubted=doubted,
        unheard=unheard,
        reachable_since=cluster.since if cluster is not None and cluster.reachable else None,
    )


def _unheard(now: datetime) -> str:
    """Why nothing that slices show can be believed; empty where it can, or was never followed."""
    alive = Sync.objects.filter(kind=SLICE, served=True).exclude(listed_at=None).first()
    if alive is None or alive.alive_at is None:
        return ""
    late = now - alive.alive_at
    if late <= settings.MIRROR_STALE_AFTER:
        return ""
    return (
        f"Berth has not heard for {int(late.total_seconds())} s which devices there are. "
        "It is sent by itself once they are heard of again."
    )


def driver_sets() -> dict[str, set[tuple[str, str]]]:
    """DaemonSets of each driver, as node pools name them."""
    found: dict[str, set[tuple[str, str]]] = {}
    for driver, sets in NodePool.objects.values_list("driver", "driver_sets"):
        for text in sets:
            namespace, _, name = text.partition("/")
            found.setdefault(driver, set()).add((namespace, name))
    return found


def requests_of(claim: Claim) -> list[list[str]]:
    """For each request of an ask, the classes of its alternatives."""
    return [
        [ask["device_class"] for ask in device.get("alternatives") or [device]]
        for device in claim.devices
    ]


def classes_of(claim: Claim) -> set[str]:
    """The device classes of an ask."""
    return {name for classes in requests_of(claim) for name in classes}


def touches(freeze: Freeze, claim: Claim, classes: set[str]) -> bool:
    """Whether a freeze keeps an ask back."""
    match freeze.scope:
        case Freeze.Scope.ALL:
            return True
        case Freeze.Scope.TENANT:
            return freeze.target == claim.tenant.slug
    return freeze.target in classes


def sentence(freeze: Freeze) -> str:
    """Who froze what, until when, and what that means for a request."""
    until = f"until {freeze.until:%-d %b %H:%M} UTC" if freeze.until else "until it is lifted"
    return (
        f"{freeze.words.capitalize()} is frozen {until}: {freeze.reason}. "
        "It is sent by itself then, in the order of asking."
    )


#: Codes whose end is one moment for many: whoever asked first goes first then.
TOGETHER: Final = frozenset(
    {FROZEN, AWAY, STALE, UNSAFE, "POOL_INCOMPLETE", "GENERATION_WENT_BACK"}
)


def earlier(claim: Claim, now: Ground) -> Claim | None:
    """An ask for one of the same classes that waits since before, and no longer has to: it goes
    first, whichever turn comes first.

    One that the cluster has been asked about since it answers again waits for a reason of its own,
    and stands in nobody's way.
    """
    wanted = classes_of(claim)
    line = held().filter(code__in=TOGETHER, pk__lt=claim.pk)
    for other in line[:LINE]:
        if not classes_of(other) & wanted or now.hold(other) is not None:
            continue
        if other.code == AWAY and not _unasked(other, now):
            continue
        return other
    return None


def _unasked(claim: Claim, now: Ground) -> bool:
    """Whether no turn has looked at it since the cluster answers again."""
    if now.reachable_since is None:
        return False
    return claim.looked_at is None or claim.looked_at < now.reachable_since


def held() -> QuerySet[Claim]:
    """Asks that wait, in the order of asking."""
    rows = Claim.objects.filter(state=State.HELD, released_at=None)
    return rows.select_related("tenant", "namespace").order_by("pk")


def due(now: datetime) -> list[str]:
    """Public ids of asks that wait for something which is over, in the order of asking."""
    rows = list(held().filter(code__in=TOGETHER)[:LINE])
    if not rows:
        return []
    here = ground(now)
    return [
        row.public_id
        for row in rows
        if here.hold(row) is None and (row.code != AWAY or here.reachable_since is not None)
    ]


def next_after(claim: Claim) -> str:
    """Public id of the next ask in line for one of the same classes; empty where none waits."""
    wanted = classes_of(claim)
    line = held().filter(code__in=TOGETHER, pk__gt=claim.pk)
    return next((row.public_id for row in line[:LINE] if classes_of(row) & wanted), "")


@dataclass(frozen=True, slots=True)
class Place:
    """An ask in the line: how many asks for one of the same classes were asked for before it."""

    claim: Claim
    before: int

    @property
    def position(self) -> int:
        """One for who is first."""
        return self.before + 1


def places(rows: Iterable[Claim] | None = None) -> list[Place]:
    """Everybody who waits with their place, in the order of asking; one query.

    The line is one for all tenants; ``rows`` are the held asks where they were read already.
    """
    found: list[Place] = []
    before: Sequence[Claim] = list(held()[:LINE]) if rows is None else list(rows)
    counted: list[set[str]] = []
    for claim in before:
        wanted = classes_of(claim)
        found.append(Place(claim, sum(bool(wanted & other) for other in counted)))
        counted.append(wanted)
    return found

"""What gates read: Pods that were prepared, lines of the book, a picture of the cluster."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from devices.dra.snapshot import read
from devices.forecasts.picture import Picture, picture
from devices.models import Claim, OwnershipLine, StageTimes
from migrationplan.gating import Subject
from migrationplan.gating.definitions import Wish, define
from migrationplan.gating.judging import read_now
from migrationplan.measures import Measure
from migrationplan.models import Gate, Reading
from tenants.access import PlatformAccess
from tests.factories import NOON
from tests.migrationplan.test_survey import GPU, a_class, a_node, a_slice

BEGAN = NOON - timedelta(hours=6)


def a_gate(operator: PlatformAccess, measure: Measure, slug: str = "gate", **asked: Any) -> Gate:
    wish = Wish(asked.pop("name", "A gate"), measure, **asked)
    return define(slug, wish, access=operator, request_id="request-g", now=NOON)


def ways(
    claim: Claim, number: int, node: str, *, path: str = "claim", prepare: float = 4, **more: Any
) -> None:
    """Pods on a node that were prepared within so many seconds; `hours` before noon."""
    created = NOON - timedelta(hours=more.pop("hours", 2))
    bound = created + timedelta(seconds=2)
    times: dict[str, Any] = {
        "created_at": created,
        "allocated_at": bound if path != "plugin" else None,
        "bound_at": bound,
        "prepared_at": bound + timedelta(seconds=prepare),
        "running_at": bound + timedelta(seconds=prepare + 3),
        "ready_at": bound + timedelta(seconds=prepare + 5),
    }
    start = StageTimes.objects.count()
    StageTimes.objects.bulk_create(
        StageTimes(
            claim=claim, tenant=claim.tenant, pod_uid=f"pod-{start + one}", pod=f"pod-{one}",
            classes=more.get("classes", ["h100"]), path=path, node=node,
            node_pool=more.get("node_pool", "rack" if node else ""),
            retries=more.get("retries", 0), **(times | more.get("times", {})),
        )
        for one in range(number)
    )  # fmt: skip


NOT_GIVEN: dict[str, Any] = dict.fromkeys(
    ("allocated_at", "bound_at", "prepared_at", "running_at", "ready_at")
)


def a_cluster(*more: Any, as_of: datetime = NOON) -> Picture:
    """Two moved nodes with slices, two of the plugin."""
    objects = [
        a_class(GPU),
        a_node("m1", 0), a_node("m2", 0), a_node("p1"), a_node("p2"),
        a_slice("m1"), a_slice("m2"), *more,
    ]  # fmt: skip
    return picture(read(objects), as_of)


def lines(*owned: tuple[str, str, int], since: datetime = BEGAN) -> None:
    """Open lines of the book: node, owner, devices that show."""
    OwnershipLine.objects.bulk_create(
        OwnershipLine(
            node=node, node_uid=node, type=GPU, owner=owner, published=number,
            plugin=0 if owner == "dra" else number, hardware=4, since=since,
        )
        for node, owner, number in owned
    )  # fmt: skip


BOOK = (("m1", "dra", 4), ("m2", "dra", 4), ("p1", "plugin", 4), ("p2", "plugin", 4))


def reading(
    subject: Subject, gate: Gate, now: datetime = NOON, seen: Picture | None = None
) -> Reading:
    return read_now(subject, [gate], now, picture=seen or a_cluster(as_of=now))[gate.slug]

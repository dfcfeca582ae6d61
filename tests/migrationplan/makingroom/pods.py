"""Pods that hold, one that waits, and a room that is asked for."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from devices.dra.snapshot import read
from devices.forecasts.picture import picture
from devices.forecasts.warm import forget
from devices.models import Claim, Observed
from migrationplan.makingroom import evicting, rooms
from migrationplan.makingroom.rooms import propose
from migrationplan.models import MakeRoom
from tenants.access import PlatformAccess
from tests.devices.demofleet import mirror
from tests.migrationplan.keeping import a_claim, a_class, a_node, a_pod, a_slice

Obj = dict[str, Any]
RETRYABLE = {"berth.dev/retryable": "true"}


def a_holder(
    name: str, device: str, *, priority: int = 0, retryable: bool = True, namespace: str = "team"
) -> list[Obj]:
    pod = a_pod(name, f"c-{name}", priority=priority, terminationGracePeriodSeconds=7)
    pod["metadata"] |= {"namespace": namespace, "labels": RETRYABLE if retryable else {}}
    return [a_claim(f"c-{name}", device, pod=name, namespace=namespace), pod]


def a_waiter(priority: int = 10) -> Obj:
    pod = a_pod("waits", "w", nodeName="", priority=priority)
    pod["status"] = {"phase": "Pending"}
    return pod


def world(*more: Obj) -> list[Obj]:
    return [a_node(), a_class(), a_slice(), *more, a_waiter()]


def see(*objects: Obj) -> Any:
    """The mirror has these."""
    forget()
    Observed.objects.all().delete()
    mirror(objects, version=str(timezone.now().timestamp()))
    return picture(read(list(objects)), timezone.now())


HIGH = a_holder("high", "gpu-1", priority=50)


def proposed(claim: Claim, by: PlatformAccess, *, theirs: bool = False) -> MakeRoom:
    low = a_holder("low", "gpu-0", namespace="other" if theirs else "team")
    seen = see(*world(*low, *HIGH))
    [way] = rooms.find(claim, seen, timezone.now()).choices
    return propose(
        claim, way.number, seen, reason="a deadline", access=by, request_id="request-r",
        now=timezone.now(),
    )  # fmt: skip


class Never:
    """A gateway of a turn that must not touch the cluster."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was asked of the cluster")


def turned(room: MakeRoom, gateway: Any = None) -> MakeRoom:
    evicting.turn(room.public_id, gateway=gateway or Never(), now=timezone.now())
    room.refresh_from_db()
    return room

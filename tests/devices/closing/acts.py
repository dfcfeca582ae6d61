"""What tests of closing do and look for: begin, take turns, put a Pod in the way."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from devices.asks import reconcile
from devices.cluster.gateway import Gateway, Ref
from devices.dra.lifecycle import State
from devices.models import Claim, Closure
from devices.models.standing import LEASE
from devices.tenancy import closures, turns
from tenants.access import Access, PlatformAccess
from tests.devices.cluster.objects import a_pod
from tests.factories import GPU_CONTENT, NOON, make_claim, make_version

SHARED = {**GPU_CONTENT, "shared": True}
Obj = dict[str, Any]


class Clock:
    """Moments a minute apart, so that the lease of a turn that died is over."""

    def __init__(self) -> None:
        self.now = NOON

    def tick(self) -> datetime:
        self.now += LEASE + timedelta(seconds=1)
        return self.now


def begin(access: Access, admin: PlatformAccess, **more: Any) -> Closure:
    return closures.begin(
        access=admin,
        tenant=access.tenant,
        reason="The project is over",
        typed="tidewater",
        deadline=more.get("deadline"),
        request_id="request-close",
        now=NOON,
    )


def turn(gateway: Gateway, now: datetime) -> Closure:
    """One turn of the tenant, one of each of its asks, and one more of the tenant."""
    turns.turn("tidewater", gateway=gateway, now=now)
    for public_id in Claim.objects.open().values_list("public_id", flat=True):
        reconcile.turn(public_id, gateway=gateway, now=now)
    turns.turn("tidewater", gateway=gateway, now=now)
    return Closure.objects.select_related("tenant").latest("pk")


def applied(access: Access, gateway: Gateway, content: Obj = SHARED, name: str = "train") -> Claim:
    """An ask that the cluster has."""
    claim = make_claim(access, make_version(slug=name, content=content), name=name)
    assert reconcile.turn(claim.public_id, gateway=gateway, now=NOON)
    claim.refresh_from_db()
    assert claim.state == State.APPLIED
    return claim


def codes(closure: Closure) -> list[str]:
    return [one["code"] for one in closure.blockers]


def waiting_pod(gateway: Gateway, claim: Claim, name: str = "worker-0") -> Ref:
    """A Pod that names the claim; no node takes it, so it stays until somebody deletes it."""
    pod = a_pod(name, claim.namespace.name, claim=claim.object_name)
    pod["spec"]["nodeSelector"] = {"example.com/no-such": "node"}
    pod["metadata"]["annotations"] = {"berth.dev/expected-end": "2026-11-02T18:00:00Z"}
    gateway.create(pod)
    return Ref("Pod", name, claim.namespace.name)


def berths_names(gateway: Gateway, place: str) -> list[str]:
    """What a namespace still carries of Berth's."""
    metadata = (gateway.get(Ref("Namespace", place)) or {"metadata": {}})["metadata"]
    names = [*(metadata.get("labels") or {}), *(metadata.get("annotations") or {})]
    return sorted(name for name in names if name.startswith("berth.dev/"))

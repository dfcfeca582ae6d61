"""One turn of one ask, and of one tenant's namespaces: load, look, decide, do, record.

A turn may run twice or die at any line; it holds a lease but no lock and no transaction while it
talks to the cluster. It looks at the cluster itself for what it writes, and at the mirror for what
it only shows (Pods and events).
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from devices import consumers
from devices.cluster.gateway import (
    ClusterError,
    Conflict,
    Forbidden,
    Gateway,
    Ref,
    Rejected,
    Unreachable,
)
from devices.dra.changes import Act, Make, Remove, changes
from devices.dra.lifecycle import ENDED, State
from devices.dra.names import CLAIM_LABEL, Manager
from devices.dra.objects import ClaimWish, Shape, claim_objects, namespace_object
from devices.dra.status import Status, status_of
from devices.models import Claim
from devices.models.claim import LEASE
from portal import news
from portal.outbox import lines as outbox
from tenants.models import Tenant

RECONCILE = "devices.tasks.reconcile_claim"
MINE = frozenset({"ResourceClaim", "ResourceClaimTemplate"})


@dataclass(frozen=True, slots=True)
class Found:
    """An ask's objects as the API server has them now."""

    objects: tuple[dict[str, Any], ...]

    @property
    def claims(self) -> list[dict[str, Any]]:
        return [obj for obj in self.objects if obj["kind"] == "ResourceClaim"]

    @property
    def template(self) -> dict[str, Any] | None:
        return next((obj for obj in self.objects if obj["kind"] == "ResourceClaimTemplate"), None)


def turn(public_id: str, *, gateway: Gateway, now: datetime) -> bool:
    """Brings the cluster to what one ask wants and records what is seen.

    Returns False where another turn is at work; that one calls for the next when it ends, and the
    outbox line stays, so nothing is forgotten.
    Raises `ClusterError` with `retry` where asking again can help; the reason stands on the row.
    """
    claim = Claim.objects.select_related("tenant", "namespace").get(public_id=public_id)
    if claim.state in ENDED and not outbox.newest(RECONCILE, public_id):
        return _sweep_leftovers(claim, gateway)
    holder = secrets.token_hex(8)
    if not claim.take_lease(holder, now):
        # Where that turn died, the next one comes as soon as its lease is over.
        outbox.not_later_than(RECONCILE, public_id, due=now + LEASE)
        return False
    try:
        # Read after the lease is held: what was wished before it must be seen by this turn.
        through = outbox.newest(RECONCILE, public_id)
        claim.refresh_from_db()
        try:
            _record(claim, now, holder, _agree(claim, gateway, now))
        except ClusterError as error:
            _record(claim, now, holder, _waiting(claim, error))
            raise
        outbox.settle(RECONCILE, public_id, through=through)
    finally:
        if claim.drop_lease(holder):
            outbox.hint(RECONCILE, public_id)
    return True


def _agree(claim: Claim, gateway: Gateway, now: datetime) -> dict[str, Any]:
    """Does what is to do and returns the fields to record; faults that may pass are raised on."""
    try:
        found = look(gateway, claim.wish())
        if _do(claim, gateway, found):
            found = look(gateway, claim.wish())
        return _seen(claim, found, now)
    except (Unreachable, Forbidden):
        raise
    except ClusterError as error:
        return _failed(claim, error)


def _record(claim: Claim, now: datetime, holder: str, seen: dict[str, Any]) -> None:
    """Stores what was seen, and tells open pages where it is news."""
    if claim.record(now, holder=holder, **seen):
        topics = ["claims", f"claim-{claim.public_id}"]
        news.publish(topics, tenant=claim.tenant.slug)


def look(gateway: Gateway, wish: ClaimWish) -> Found:
    """The claims and the template that carry this ask's label, read from the API server."""
    label = f"{CLAIM_LABEL}={wish.public_id}"
    kinds = ["ResourceClaim"]
    if wish.shape is Shape.TEMPLATE:
        kinds.append("ResourceClaimTemplate")
    objects: list[dict[str, Any]] = []
    for kind in kinds:
        for obj in gateway.list(kind, namespace=wish.namespace, labels=label).items:
            objects.append({**obj, "kind": kind})
    return Found(tuple(objects))


def _do(claim: Claim, gateway: Gateway, found: Found) -> bool:
    """Returns whether anything had to be done."""
    wish = claim.wish()
    wanted = claim_objects(wish) if claim.wanted and claim.state != State.FAILED else []
    acts = changes(wanted, found.objects, made_before=bool(claim.object_uid), mine=MINE)
    for act in acts:
        perform(gateway, act, wish)
    return bool(acts)


def perform(gateway: Gateway, act: Act, wish: ClaimWish) -> None:
    """One act on the cluster; doing it twice changes nothing."""
    match act:
        case Make(obj):
            ensure_namespace(gateway, wish)
            gateway.apply(dict(obj), manager=Manager.CLAIM)
        case Remove(kind, namespace, name, uid):
            gateway.delete(Ref(kind, name, namespace), uid=uid)


def ensure_namespace(gateway: Gateway, wish: ClaimWish) -> None:
    """The tenant's namespace is there and says whose it is. Another owner's label is not overruled.

    Raises `Rejected` where the namespace belongs to another tenant of this or another Berth.
    """
    obj = namespace_object(name=wish.namespace, tenant=wish.tenant)
    gateway.apply(obj, manager=Manager.TENANT)


def _seen(claim: Claim, found: Found, now: datetime) -> dict[str, Any]:
    """The row's fields after a look without failure."""
    own = [obj for obj in found.objects if obj["metadata"]["name"] == claim.object_name]
    uid = claim.object_uid or (own[0]["metadata"]["uid"] if own else "")
    if not claim.wanted:
        return _seen_releasing(claim, found, uid)
    if claim.state == State.FAILED:
        return {}
    if claim.object_uid and not own:
        return {
            "state": State.RELEASED,
            "code": "DELETED_OUTSIDE",
            "why": "Somebody deleted it in the cluster; ask again if you still need it.",
            "placed": [],
            "pods": [],
            "node": "",
        }
    pods = consumers.pods_of_claim(claim.namespace.name, claim.public_id, _names(found))
    status = status_of(
        claims=found.claims,
        template=found.template,
        pods=pods,
        events=consumers.events_of(pods),
        now=now,
    )
    return {**_fields(status), "object_uid": uid}


def _seen_releasing(claim: Claim, found: Found, uid: str) -> dict[str, Any]:
    left = [obj for obj in found.objects if obj["kind"] in MINE]
    if not left:
        return {
            "state": State.RELEASED,
            "code": "",
            "why": "Gone from the cluster.",
            "placed": [],
            "pods": [],
            "node": "",
        }
    pods = consumers.pods_of_claim(claim.namespace.name, claim.public_id, _names(found))
    status = status_of(claims=found.claims, template=found.template, pods=pods)
    users = [pod.name for pod in status.pods if pod.phase in {"Pending", "Running"}]
    why = (
        f"Pod {users[0]} still uses it; it goes when the Pod ends."
        if len(users) == 1
        else f"{len(users)} Pods still use it; it goes when they end."
        if users
        else "Kubernetes is taking it away."
    )
    return {
        **_fields(status),
        "state": State.RELEASING,
        "code": "IN_USE_UNTIL_PODS_END" if users else "RELEASING",
        "why": why,
        "object_uid": uid,
    }


def _fields(status: Status) -> dict[str, Any]:
    return {
        "state": status.state,
        "code": status.code,
        "why": status.why,
        "placed": [device.as_json() for device in status.placed],
        "pods": [pod.as_json() for pod in status.pods],
        "node": status.node,
    }


def _failed(claim: Claim, error: ClusterError) -> dict[str, Any]:
    """What the cluster refused stays refused until a person changes something."""
    code = "REFUSED_BY_CLUSTER"
    if isinstance(error, Conflict):
        code = "FIELD_OWNED_BY_OTHERS"
    elif isinstance(error, Rejected) and "exceeded quota" in error.message:
        code = "QUOTA_EXCEEDED"
    state = State.FAILED if claim.wanted else claim.state
    return {"state": state, "code": code, "why": error.message}


def _waiting(claim: Claim, error: ClusterError) -> dict[str, Any]:
    """What to record where nobody knows whether the cluster took it: it is sent again by itself.

    Missing rights are such a case: an API server that has just started refuses everybody until it
    has read its roles, and a right that was forgotten may be given without anybody asking anew.
    """
    if claim.state not in {State.REQUESTED, State.HELD}:
        return {}
    if isinstance(error, Forbidden):
        return {"state": State.HELD, "code": "RIGHTS_MISSING", "why": error.message}
    why = f"The cluster does not answer ({error.message}). It is sent as soon as it does."
    return {"state": State.HELD, "code": "CLUSTER_UNREACHABLE", "why": why}


def _sweep_leftovers(claim: Claim, gateway: Gateway) -> bool:
    """An ended ask has nothing in the cluster; a late turn of a dead worker may have left some."""
    for act in changes([], look(gateway, claim.wish()).objects, made_before=True, mine=MINE):
        perform(gateway, act, claim.wish())
    return True


def _names(found: Found) -> list[str]:
    return [obj["metadata"]["name"] for obj in found.objects]


def tenant_turn(tenant_id: int, *, gateway: Gateway) -> None:
    """Each namespace of a tenant exists and carries its label."""
    tenant = Tenant.objects.get(pk=tenant_id)
    for name in tenant.namespaces.values_list("name", flat=True):
        gateway.apply(namespace_object(name=name, tenant=tenant.slug), manager=Manager.TENANT)


def unseen(now: datetime, *, older_than: timedelta, at_most: int = 500) -> list[str]:
    """Public ids of open asks that no turn looked at for so long, oldest first."""
    rows = Claim.objects.open().filter(looked_at__lt=now - older_than)
    return list(rows.order_by("looked_at").values_list("public_id", flat=True)[:at_most])

"""One turn of one ask: load, look, decide, do, record.

A turn may run twice or die at any line; it holds a lease but no lock and no transaction while it
talks to the cluster. It looks at the cluster itself for what it writes, and at the mirror for what
it only shows (Pods and events).
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q

from devices.asks import alerting, consumers, history, holds, line, sent
from devices.cluster.gateway import (
    ClusterError,
    Conflict,
    Forbidden,
    Gateway,
    NotServed,
    Ref,
    Rejected,
)
from devices.dra.changes import Act, Make, Remove, changes, generated
from devices.dra.lifecycle import ENDED, State
from devices.dra.names import CLAIM_LABEL, Manager
from devices.dra.objects import Shape, claim_objects
from devices.dra.podside import scheduler_claims, status_by_pods
from devices.dra.status import Status, status_of
from devices.forecasts import forecast
from devices.models import Claim
from devices.models.claim import LEASE
from devices.routing import paths
from devices.routing.routes import Path, Route
from portal import news
from portal.outbox import lines as outbox
from tenants import budget
from tenants.allowance import promise_turn
from tenants.models import Tenant

RECONCILE = "devices.tasks.reconcile_claim"
UNSETTLED = {State.HELD, State.PENDING, State.ALLOCATED}
"""States that become somebody's concern by lasting."""


@dataclass(frozen=True, slots=True)
class Found:
    """An ask's objects as the API server has them: its own, and claims generated for its Pods."""

    own: dict[str, Any] | None
    generated: tuple[dict[str, Any], ...]

    @property
    def claims(self) -> list[dict[str, Any]]:
        named = [self.own] if self.own and self.own["kind"] == "ResourceClaim" else []
        return [*named, *self.generated]

    @property
    def template(self) -> dict[str, Any] | None:
        return self.own if self.own and self.own["kind"] == "ResourceClaimTemplate" else None

    @property
    def names(self) -> list[str]:
        """Names by which Pods may refer to them."""
        return [obj["metadata"]["name"] for obj in (self.own, *self.generated) if obj]


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
            elsewhere = paths.follow(claim, now)
            seen = _agree(claim, gateway, now, holder, elsewhere)
            _record(claim, now, holder, seen)
        except ClusterError as error:
            _record(claim, now, holder, _waiting(claim, error))
            raise
        # What is held by anything but a freeze, whose end calls the next turn, is tried again.
        if seen.get("state") != State.HELD or seen["code"] == holds.FROZEN:
            outbox.settle(RECONCILE, public_id, through=through)
    finally:
        if claim.drop_lease(holder):
            outbox.hint(RECONCILE, public_id)
    return True


def _agree(
    claim: Claim, gateway: Gateway, now: datetime, holder: str, elsewhere: Route | None = None
) -> dict[str, Any]:
    """Does what is to do and returns the fields to record.

    Only the answer to making it for the first time is final. Every other error (while looking,
    while deleting) says nothing about the ask, and is raised on to be tried again.
    Where Pods ask by extended resource there is nothing to make, and what was made before is taken
    away. ``elsewhere`` is the path that it would take now, were its Pods not there already.
    """
    found = look(gateway, claim)
    by_claim = claim.path == Path.CLAIM
    wanted = claim_objects(claim.wish()) if claim.wanted and by_claim else []
    settled = bool(claim.object_uid) or claim.state == State.FAILED
    acts = changes(wanted, found.own, made_before=settled)
    making = any(isinstance(act, Make) for act in acts)
    if making and (uid := sent.made(claim, gateway)):
        return _deleted_outside(claim, uid, now)
    first = claim.wanted and not by_claim and claim.state in {State.REQUESTED, State.HELD}
    if (first or making) and (kept := holds.hold(claim, gateway=gateway, now=now)):
        return {"state": State.HELD, "code": kept.code, "why": kept.why}
    if making and not sent.note(claim, gateway, holder):
        return {}
    for act in acts:
        try:
            perform(gateway, act)
        except (Forbidden, NotServed):
            raise
        except (Rejected, Conflict) as error:
            if isinstance(act, Remove):
                raise
            if over_quota(error):
                return {"state": State.HELD, "code": "QUOTA_EXCEEDED", "why": error.message}
            return _failed(claim, error)
    if not by_claim:
        return _seen_by_pods(claim, now)
    seen = _seen(claim, look(gateway, claim) if acts else found, now)
    if elsewhere is not None and seen.get("state") == State.PENDING:
        seen |= {"code": paths.ROUTE_CHANGED, "why": elsewhere.why}
    return seen


def _record(claim: Claim, now: datetime, holder: str, seen: dict[str, Any]) -> None:
    """Stores what was seen, and tells open pages where it is news.

    What the ask took of its tenant's budget is given back in the same transaction, and only here:
    once the cluster has nothing of it any more, or never took it.
    """
    was = claim.state
    with transaction.atomic():
        changed = claim.record(now, holder=holder, **seen)
        if changed and seen.get("state") in {State.RELEASED, State.FAILED}:
            budget.give_back(claim.public_id, request_id=claim.request_id, now=now)
            if claim.tenant.state == Tenant.State.CLOSING:
                promise_turn(claim.tenant, request_id=claim.request_id, now=now)
        if changed or was in UNSETTLED:
            # Of what stands now, whoever wrote it: this turn, or one that took its lease.
            claim.refresh_from_db(fields=["state", "code", "why", "since", "released_at"])
            alerting.ring(claim, now)
    went = was == State.HELD and seen.get("state", State.HELD) != State.HELD
    if changed and went and (following := line.next_after(claim)):
        outbox.hint(RECONCILE, following)  # whoever stands behind it may go now
    if changed:
        topics = ["claims", f"claim-{claim.public_id}"]
        news.publish(topics, tenant=claim.tenant.slug)


def look(gateway: Gateway, claim: Claim) -> Found:
    """The ask's object, and the claims that Kubernetes generated from it, as they are now.

    Its own object is found by its name and recognised by its label or its uid: whoever takes the
    label off has not taken the object away, and a copy under another name is not ours.
    """
    wish = claim.wish()
    obj = gateway.get(Ref(wish.shape.kind, wish.name, wish.namespace))
    own = {**obj, "kind": wish.shape.kind} if obj and _is_own(claim, obj) else None
    if wish.shape is Shape.CLAIM:
        return Found(own, ())
    label = f"{CLAIM_LABEL}={wish.public_id}"
    made = gateway.list("ResourceClaim", namespace=wish.namespace, labels=label).items
    claims = ({**each, "kind": "ResourceClaim"} for each in made)
    return Found(own, tuple(each for each in claims if generated(each)))


def _is_own(claim: Claim, obj: dict[str, Any]) -> bool:
    metadata = obj["metadata"]
    labelled = (metadata.get("labels") or {}).get(CLAIM_LABEL) == claim.public_id
    return labelled or metadata["uid"] == claim.object_uid


def perform(gateway: Gateway, act: Act) -> None:
    """One act on the cluster; doing it twice changes nothing."""
    match act:
        case Make(obj):
            gateway.apply(dict(obj), manager=Manager.CLAIM)
        case Remove(kind, namespace, name, uid):
            gateway.delete(Ref(kind, name, namespace), uid=uid)


def _seen(claim: Claim, found: Found, now: datetime) -> dict[str, Any]:
    """The row's fields after a look without failure."""
    uid = claim.object_uid or (found.own["metadata"]["uid"] if found.own else "")
    if not claim.wanted:
        return _seen_releasing(claim, found, uid, now)
    if claim.state == State.FAILED:
        return {}
    if claim.object_uid and not found.own:
        return _deleted_outside(claim, claim.object_uid, now)
    pods = consumers.pods_of_claim(claim.namespace.name, claim.public_id, found.names)
    events = consumers.events_of(pods)
    status = status_of(
        claims=found.claims, template=found.template, pods=pods, events=events, now=now
    )
    history.record(claim, claims=found.claims, pods=pods, events=events, now=now)
    code = forecast.refined(claim, status)
    return {**_fields(status), "code": code, "object_uid": uid}


def _deleted_outside(claim: Claim, uid: str, now: datetime) -> dict[str, Any]:
    history.record(claim, claims=(), pods=(), now=now)
    return {
        "state": State.RELEASED,
        "code": "DELETED_OUTSIDE",
        "why": "Somebody deleted it in the cluster; ask again if you still need it.",
        "placed": [],
        "pods": [],
        "node": "",
        "object_uid": uid,
    }


def _seen_by_pods(claim: Claim, now: datetime) -> dict[str, Any]:
    """The row's fields where Pods are all there is: found by label, and shown from the mirror."""
    namespace = claim.namespace.name
    pods = consumers.pods_of_claim(namespace, claim.public_id, [])
    claims = consumers.claims_named(namespace, scheduler_claims(pods))
    events = consumers.events_of(pods)
    history.record(claim, claims=claims, pods=pods, events=events, now=now)
    status = status_by_pods(
        resources=[(name, count) for name, count in claim.resources],
        claims=claims,
        pods=pods,
        events=events,
        now=now,
    )
    if claim.wanted:
        return {**_fields(status), "object_uid": ""}
    users = [pod.name for pod in status.pods if pod.phase in {"Pending", "Running"}]
    if not users:
        return _released(claim, "No Pod asks by it any more.")
    return {**_fields(status), **_releasing(users), "object_uid": ""}


def _seen_releasing(claim: Claim, found: Found, uid: str, now: datetime) -> dict[str, Any]:
    if not found.claims and not found.template:
        history.record(claim, claims=(), pods=(), now=now)
        return _released(claim, "Gone from the cluster.")
    pods = consumers.pods_of_claim(claim.namespace.name, claim.public_id, found.names)
    status = status_of(claims=found.claims, template=found.template, pods=pods)
    history.record(claim, claims=found.claims, pods=pods, now=now)
    users = [pod.name for pod in status.pods if pod.phase in {"Pending", "Running"}]
    return {**_fields(status), **_releasing(users), "object_uid": uid}


def _released(claim: Claim, why: str) -> dict[str, Any]:
    return {
        "state": State.RELEASED,
        "code": "EXPIRED" if claim.expired else "",
        "why": why,
        "placed": [],
        "pods": [],
        "node": "",
    }


def _releasing(users: Sequence[str]) -> dict[str, Any]:
    """What holds a release up: Pods that still use it, by name."""
    why = (
        f"Pod {users[0]} still uses it; it goes when the Pod ends."
        if len(users) == 1
        else f"{len(users)} Pods still use it; it goes when they end."
        if users
        else "Kubernetes is taking it away."
    )
    return {
        "state": State.RELEASING,
        "code": "IN_USE_UNTIL_PODS_END" if users else "RELEASING",
        "why": why,
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
    code = "FIELD_OWNED_BY_OTHERS" if isinstance(error, Conflict) else "REFUSED_BY_CLUSTER"
    return {"state": State.FAILED, "code": code, "why": error.message}


def over_quota(error: ClusterError) -> bool:
    """Whether a quota of the namespace refused it.

    It was counted against the tenant's budget, so the quota is older than that or others use it: it
    waits safely and is sent again by itself.
    """
    return isinstance(error, Rejected) and "exceeded quota" in error.message


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
    for act in changes([], look(gateway, claim).own, made_before=True):
        perform(gateway, act)
    return True


def unseen(now: datetime, *, older_than: timedelta, at_most: int = 500) -> list[str]:
    """Public ids of open asks that no turn looked at for so long, oldest first."""
    before = now - older_than
    never = Q(looked_at=None, requested_at__lt=before)
    rows = Claim.objects.open().filter(Q(looked_at__lt=before) | never)
    return list(rows.order_by("looked_at").values_list("public_id", flat=True)[:at_most])

"""A tenant's closing, carried on by its turns: look, decide (devices/dra/closing.py), do, record.

The caller holds the lease of the tenant's turn. Whatever is done here may be done twice and may
stop at any line: the phase is written down in its own transaction, and acts say how things should
be. What is decided on is what the API server says now, never the mirror.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from django.db import transaction
from django.db.models import F

from devices.asks.endings import let_go, locked
from devices.asks.reconcile import RECONCILE
from devices.cluster.gateway import ClusterError, Gateway
from devices.dra.closing import (
    Act,
    Ask,
    Blocker,
    Decision,
    EndBonds,
    Holder,
    Phase,
    Place,
    Release,
    Seen,
    TakeOff,
    Thing,
    decide,
)
from devices.dra.lifecycle import ENDED, State
from devices.dra.names import CLAIM_LABEL, CLASSES_ANNOTATION, FULL_CLAIMS_ANNOTATION
from devices.dra.namespaces import EVERY
from devices.dra.tenantpods import holder
from devices.models import Claim, Closure, NamespaceStanding
from devices.tenancy import receipts
from devices.tenancy.bonds import end_bonds
from devices.tenancy.places import said_by_cluster, take_off
from portal import news
from portal.alerts.raising import over
from portal.audit.record import record
from portal.outbox import lines as outbox
from tenants.budget import lock
from tenants.models import Tenant, TenantNamespace

Standing = NamespaceStanding.State
Obj = dict[str, Any]

#: The alert of a closing that has passed its deadline.
LATE: Final = "CLOSING_LATE"
#: More than the moves that one turn can make, so that two which undo each other cannot go round.
MOST_STEPS: Final = 8
#: Blockers that are kept to be shown; how many there are beside these is said.
MOST_BLOCKERS: Final = 100
#: Which moment a move is written down as.
STAMPS: Final = {
    Phase.WAITING: "shut_at",
    Phase.RECLAIMING: "empty_at",
    Phase.LETTING_GO: "reclaimed_at",
    Phase.CLOSED: "ended_at",
}


def advance(
    tenant: Tenant, explicit: Mapping[str, str], *, gateway: Gateway, now: datetime
) -> None:
    """Carries the tenant's closing on as far as it goes now; nothing where none is under way.

    `explicit` are classes and their extended-resource names. Raises `ClusterError`.
    """
    closure = Closure.objects.under_way().select_related("tenant").filter(tenant=tenant).first()
    if closure is None:
        return
    before: Decision | None = None
    for _ in range(MOST_STEPS):
        decision = decide(Phase(closure.phase), look(closure, set(explicit.values()), gateway))
        _note(closure, decision.blockers, now)
        if decision.move is not None:
            if not move(closure, decision.move, now):
                return  # somebody cancelled it meanwhile, or another turn moved it
            closure.refresh_from_db()
            if closure.over:
                return
        elif not decision.acts or decision == before:
            return
        for act in decision.acts:
            _perform(closure, act, gateway, now)
        before = decision


def note_error(tenant: Tenant, error: ClusterError, now: datetime) -> None:
    """Says on a closing that is under way why this turn could not look."""
    closure = Closure.objects.under_way().select_related("tenant").filter(tenant=tenant).first()
    if closure is not None:
        trouble = said_by_cluster(error)
        why = f"The cluster does not do what is asked ({trouble.why}). It is asked again."
        _note(closure, (Blocker(trouble.code, "The cluster", why),), now)


def look(closure: Closure, guarded: Collection[str], gateway: Gateway) -> Seen:
    """What the decision needs to see now; lists of the API server once per kind and namespace."""
    places = list(closure.tenant.namespaces.select_related("standing"))
    if closure.phase in {Phase.STOPPING, Phase.LETTING_GO}:
        return Seen(places=tuple(_place(place) for place in places))
    asks = {
        claim.public_id: claim
        for claim in Claim.objects.of(closure.tenant).open().select_related("namespace")
    }
    names = {(claim.namespace.name, claim.object_name): claim.public_id for claim in asks.values()}
    pods: list[Holder] = []
    things: list[Thing] = []
    for place in places:
        if _of_another(place):
            continue
        live = gateway.list("Pod", namespace=place.name).items
        pods += [found for pod in live if (found := holder(pod, guarded))]
        things += _things(gateway, place.name, asks, names)
    return Seen(
        pods=tuple(pods),
        things=tuple(things),
        asks=tuple(
            Ask(
                claim.public_id,
                claim.name,
                claim.namespace.name,
                sent=bool(claim.object_uid),
                let_go=not claim.wanted,
            )
            for claim in asks.values()
        ),
        bonds_ended=closure.bonds is not None,
    )


def _place(place: TenantNamespace) -> Place:
    """A namespace, by what the turn that is under way has just seen and written there."""
    standing: NamespaceStanding | None = getattr(place, "standing", None)
    if standing is None:
        return Place(place.name)
    applied = standing.applied.get("Namespace", {}).get("metadata", {}).get("annotations", {})
    closed = applied.get(CLASSES_ANNOTATION) == "" and applied.get(FULL_CLAIMS_ANNOTATION) == EVERY
    shut = (
        (standing.state == Standing.IN_FORCE and closed)
        or standing.state == Standing.MISSING
        or _of_another(place)
    )
    return Place(place.name, shut=shut, code=standing.code, why=standing.why)


def _of_another(place: TenantNamespace) -> bool:
    standing = getattr(place, "standing", None)
    return standing is not None and standing.code == "NAMESPACE_OF_ANOTHER"


def _things(
    gateway: Gateway,
    namespace: str,
    asks: Mapping[str, Claim],
    names: Mapping[tuple[str, str], str],
) -> Iterator[Thing]:
    """Objects of these asks in a namespace: known by their label, or by name where that is off."""
    for kind in ("ResourceClaim", "ResourceClaimTemplate"):
        for obj in gateway.list(kind, namespace=namespace).items:
            metadata = obj["metadata"]
            ask = (metadata.get("labels") or {}).get(CLAIM_LABEL, "")
            if ask not in asks:
                ask = names.get((namespace, metadata["name"]), "")
            if not ask:
                continue
            reserved = (obj.get("status") or {}).get("reservedFor") or ()
            yield Thing(
                kind,
                namespace,
                metadata["name"],
                ask,
                reserved=tuple(str(one.get("name") or "?") for one in reserved),
                deleting=bool(metadata.get("deletionTimestamp")),
                finalizers=tuple(metadata.get("finalizers") or ()),
            )


# --- what is done ---------------------------------------------------------------------------------


def _perform(closure: Closure, act: Act, gateway: Gateway, now: datetime) -> None:
    match act:
        case EndBonds():
            end_bonds(closure, now)
            closure.refresh_from_db()
        case Release(public_id, there):
            _release(closure, public_id, there=there, now=now)
        case TakeOff(name):
            _take_off(closure, name, gateway, now)


@transaction.atomic
def _release(closure: Closure, public_id: str, *, there: bool, now: datetime) -> None:
    """The ask's own turn takes its objects out of the cluster, or records that they are gone."""
    claim = locked(public_id, closure.tenant)
    if not there and claim.state != State.FAILED:
        outbox.promise(RECONCILE, public_id, request_id=closure.request_id, now=now)
    elif claim.wanted and claim.state not in ENDED:
        let_go(claim, access=None, closing=True, request_id=closure.request_id, now=now)


def _take_off(closure: Closure, name: str, gateway: Gateway, now: datetime) -> None:
    places = closure.tenant.namespaces.select_related("tenant")
    place = places.filter(name=name).first()
    if place is None:
        return
    if place.leaving_at is None:
        # From now on no turn states anything there, whoever comes after this one.
        TenantNamespace.objects.filter(pk=place.pk).update(leaving_at=now)
    take_off(place, gateway=gateway, now=now)


# --- what is written down -------------------------------------------------------------------------


@transaction.atomic
def move(closure: Closure, phase: Phase, now: datetime) -> bool:
    """Writes the next phase down, once; False where it does not stand where it was seen."""
    tenant = lock(closure.tenant)[closure.tenant_id]
    fields: dict[str, Any] = {"phase": phase, STAMPS[phase]: now, "blockers": []}
    if phase is Phase.CLOSED:
        fields["receipt"] = receipts.write(closure, now)
        fields["digest"] = fields["receipt"]["digest"]
    rows = Closure.objects.filter(pk=closure.pk, phase=closure.phase)
    if not rows.update(**fields, revision=F("revision") + 1):
        return False
    if phase is Phase.CLOSED:
        tenant.state = Tenant.State.CLOSED
        tenant.save(update_fields=["state"])
        over(LATE, f"tenant {tenant.slug}", now=now)
    record(
        action="tenant.closed" if phase is Phase.CLOSED else f"tenant.closing_{phase.name.lower()}",
        subject=f"tenant {tenant.slug}",
        request_id=closure.request_id,
        at=now,
        tenant=tenant.slug,
        facts={"closing": closure.public_id}
        | ({"receipt": fields["digest"]} if phase is Phase.CLOSED else {}),
    )
    tell(tenant)
    return True


def _note(closure: Closure, blockers: tuple[Blocker, ...], now: datetime) -> None:
    """Writes down what is waited for; open pages are told where it is news."""
    shown = [
        {
            "code": one.code,
            "subject": one.subject,
            "why": one.why,
            "ends_at": one.ends_at.isoformat() if one.ends_at else None,
        }
        for one in blockers[:MOST_BLOCKERS]
    ]
    if (more := len(blockers) - MOST_BLOCKERS) > 0:
        shown.append(
            {"code": "MORE", "subject": f"{more} more", "why": "Of the same kind.", "ends_at": None}
        )
    mine = Closure.objects.filter(pk=closure.pk, phase=closure.phase)
    if mine.exclude(blockers=shown).update(
        blockers=shown, looked_at=now, revision=F("revision") + 1
    ):
        closure.blockers = shown
        news.publish(["closing"], tenant=closure.tenant.slug)
    else:
        mine.update(looked_at=now)


def tell(tenant: Tenant) -> None:
    """News for open pages, once the transaction is through."""
    topics, slug = ["closing", "tenant"], tenant.slug
    transaction.on_commit(lambda: news.publish(topics, tenant=slug), robust=True)

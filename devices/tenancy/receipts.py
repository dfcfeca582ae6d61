"""The receipt of a tenant that is closed: written once from rows, proved again whenever asked.

It names people by their opaque id, so that erasing a person does not break it; pages put the names
beside. The audit line `tenant.closed` carries its digest, so the audit's chain holds the receipt.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from devices.dra.lifecycle import State
from devices.dra.namespaces import QUOTA_NAME
from devices.dra.objects import Shape
from devices.dra.receipt import Receipt, faults, sealed
from devices.models import Claim, Closure, NamespaceStanding, Observed
from portal.audit.models import AuditLine
from tenants.models import Grant, TenantNamespace
from tenants.sums import used_of

Item = dict[str, Any]


def write(closure: Closure, now: datetime) -> Receipt:
    """The receipt as of `now`; the caller stores it with the move to closed, in one transaction."""
    head = {
        "receipt": closure.public_id,
        "tenant": {"slug": closure.tenant.slug, "name": closure.tenant.name},
        "reason": closure.reason,
        "asked_by": str(closure.asked_by),
        "asked_at": _stamp(closure.asked_at),
        "began_by": str(closure.began_by) if closure.began_by else None,
        "began_at": _stamp(closure.began_at),
        "shut_at": _stamp(closure.shut_at),
        "empty_at": _stamp(closure.empty_at),
        "reclaimed_at": _stamp(closure.reclaimed_at),
        "closed_at": _stamp(now),
        "request_id": closure.request_id,
        "left": list(_left(closure)),
    }
    return sealed(head, [*_claims(closure), *_places(closure), *_bonds(closure)])


def proved(closure: Closure) -> list[str]:
    """What does not prove of a stored receipt, in sentences; empty where all does."""
    if closure.receipt is None:
        return ["there is no receipt: the tenant is not closed"]
    found = faults(closure.receipt)
    if closure.receipt.get("digest") != closure.digest:
        found.append("the digest beside it is another one")
    written = AuditLine.objects.filter(
        action="tenant.closed", subject=f"tenant {closure.tenant.slug}"
    ).values_list("facts", flat=True)
    if closure.receipt.get("digest") not in {facts.get("receipt") for facts in written}:
        found.append("no audit line of the tenant's end names this digest")
    return found


def _claims(closure: Closure) -> Iterator[Item]:
    """Every ask that ended since the closing began, with what it had in the cluster."""
    ended = Claim.objects.of(closure.tenant).filter(
        state=State.RELEASED, since__gte=closure.began_at
    )
    for claim in ended.select_related("namespace").order_by("since", "pk"):
        by_closing = closure.empty_at is not None and (
            claim.released_at is not None and claim.released_at >= closure.empty_at
        )
        yield {
            "kind": "ResourceClaim" if claim.shape == Shape.CLAIM else "ResourceClaimTemplate",
            "namespace": claim.namespace.name,
            "name": claim.object_name,
            "uid": claim.object_uid or None,
            "what": claim.words,
            "how": _how(claim, by_closing),
            "at": _stamp(claim.since),
        }


def _how(claim: Claim, by_closing: bool) -> str:
    if not claim.object_uid:
        return "never sent to the cluster"
    if by_closing:
        return "reclaimed"
    return "released by its tenant" if claim.released_at else "deleted outside"


def _places(closure: Closure) -> Iterator[Item]:
    """Each namespace that left since the closing began: its quota, then its labels."""
    places = TenantNamespace.ever.filter(tenant=closure.tenant, left_at__gte=closure.began_at)
    for place in places.select_related("standing").order_by("name"):
        standing: NamespaceStanding | None = getattr(place, "standing", None)
        taken = standing.taken_off if standing else {}
        if quota := taken.get("ResourceQuota"):
            yield {
                "kind": "ResourceQuota",
                "namespace": place.name,
                "name": QUOTA_NAME,
                "uid": quota["uid"],
                "what": _listed(quota.get("hard") or {}) or "no limits",
                "how": "deleted",
                "at": _stamp(place.left_at),
            }
        namespace = taken.get("Namespace")
        names = {**namespace["labels"], **namespace["annotations"]} if namespace else {}
        yield {
            "kind": "Namespace",
            "name": place.name,
            "uid": namespace["uid"] if namespace else None,
            "what": _listed(names) or "gone, or without anything of Berth's",
            "how": "labels taken off; the namespace stays" if names else "left as it was",
            "at": _stamp(place.left_at),
        }


def _bonds(closure: Closure) -> Iterator[Item]:
    """Grants on both sides with what stays of them; tokens, invitations, approvals."""
    bonds = closure.bonds or {}
    grants = Grant.objects.filter(public_id__in=bonds.get("grants", ()))
    rows = list(grants.select_related("giver", "taker").order_by("pk"))
    uses = used_of([grant.pk for grant in rows])
    for grant in rows:
        lent = grant.giver_id == closure.tenant_id
        stays = int(uses.get(grant.pk, 0)) if lent else 0
        yield {
            "kind": "Grant",
            "namespace": grant.namespace,
            "name": grant.public_id,
            "what": f"{grant.count} of {grant.device_class}, {'lent' if lent else 'borrowed'}",
            "how": f"ended; {stays} in use stay until they are released" if stays else "ended",
            "at": _stamp(grant.ended_at),
        }
    words = {
        "tokens": ("ApiToken", "revoked"),
        "invitations": ("Invitation", "taken back"),
        "approvals": ("Approval", "void"),
    }
    for key, (kind, how) in words.items():
        for name in bonds.get(key, ()):
            yield {"kind": kind, "name": name, "what": "", "how": how, "at": bonds["at"]}


def _left(closure: Closure) -> Iterator[dict[str, str]]:
    """Claims and templates that Berth did not make: they stay, as the mirror has them now."""
    places = TenantNamespace.ever.filter(tenant=closure.tenant, left_at__gte=closure.began_at)
    rows = Observed.objects.filter(
        kind__in=["ResourceClaim", "ResourceClaimTemplate"],
        namespace__in=list(places.values_list("name", flat=True)),
        claim="",
        deleting=False,
    )
    for row in rows.order_by("namespace", "kind", "name"):
        yield {"kind": row.kind, "namespace": row.namespace, "name": row.name}


def _listed(values: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(values.items()))


def _stamp(moment: datetime | None) -> str | None:
    return moment.isoformat(timespec="seconds") if moment else None

"""Which approvals somebody sees: what waits for them, what they asked, what was decided."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Exists, OuterRef, Q, QuerySet

from portal.approvals.models import Approval, Decision
from portal.approvals.rules import Decider, Rights, State

# Who looks at everything on the platform, without deciding.
WATCHERS = frozenset({"auditor", "admin"})


def _decided_with(rights: Iterable[Rights]) -> Q:
    wanted = Q(pk__in=[])
    for one in rights:
        if one.platform:
            wanted |= Q(platform_roles__overlap=sorted(one.platform))
        for slug, role in one.tenants.items():
            wanted |= Q(decided_by_tenant=slug, tenant_roles__contains=[role])
    return wanted


def visible_to(decider: Decider) -> QuerySet[Approval]:
    """One's own requests, those one may decide, those of tenants one owns; watchers see all."""
    rows = Approval.objects.all()
    if decider.rights.platform & WATCHERS:
        return rows
    owned = [slug for slug, role in decider.rights.tenants.items() if role == "owner"]
    return rows.filter(
        Q(author=decider.person)
        | Q(coauthors__contains=[decider.person])
        | Q(tenant__in=owned)
        | _decided_with([decider.rights, *decider.lent.values()])
    )


def waiting_for(decider: Decider) -> QuerySet[Approval]:
    """Open ones that this person could decide: a right, no author, not decided yet.

    A lent right that is used up already still lists here; the page then says so.
    """
    mine = decider.rights.tenants
    inside = [] if "admin" in decider.rights.platform else sorted(mine)
    said = Decision.objects.filter(approval=OuterRef("pk")).filter(
        Q(person=decider.person) | Q(holder=decider.person)
    )
    lent = [rights for person, rights in decider.lent.items()]
    return (
        Approval.objects.filter(_decided_with([decider.rights, *lent]), state=State.OPEN)
        .exclude(Q(author=decider.person) | Q(coauthors__contains=[decider.person]))
        .exclude(Q(tenant__in=inside) & ~_decided_with([Rights(tenants=mine)]))
        .filter(~Exists(said))
    )


def similar(approval: Approval, decider: Decider, most: int = 5) -> QuerySet[Approval]:
    """Ended ones of the same kind that the viewer may see, newest first."""
    return (
        visible_to(decider)
        .filter(kind=approval.kind, state__in=[State.APPROVED, State.DENIED, State.EXPIRED])
        .exclude(pk=approval.pk)
        .prefetch_related("decisions")[:most]
    )

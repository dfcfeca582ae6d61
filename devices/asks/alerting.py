"""Which asks ring the bell: those that wait in an unusual way, and those that failed."""

from __future__ import annotations

from datetime import datetime

from django.urls import reverse

from devices.asks.verdicts import Job, verdict
from devices.dra.codes import CODES, Class
from devices.models import Claim
from portal.alerts.models import Alert
from portal.alerts.raising import About, over, raise_alert
from portal.alerts.rules import Severity


def ring(claim: Claim, now: datetime) -> None:
    """Raises the alert that an ask's state calls for, and ends those that it calls for no longer:
    those to one person, such as a change of route, once the ask is on its way out.

    Only what `verdicts` calls wrong rings: a usual wait does not, however many there are. Call it
    in the transaction that records the state.
    """
    said = verdict(claim.code, claim.state, now - claim.since)
    subject = subject_of(claim)
    lasting = claim.code if said.wrong and claim.wanted else ""
    ended = Alert.objects.filter(tenant=claim.tenant.slug, subject=subject, over_at=None).exclude(
        code=lasting
    )
    if claim.wanted:
        ended = ended.filter(person=None)
    for code, person in list(ended.values_list("code", "person")):
        over(code, subject, tenant=claim.tenant.slug, person=person, now=now)
    if not lasting:
        return
    known = CODES.get(claim.code)
    raise_alert(
        About(
            code=claim.code,
            subject=subject,
            title=f"{claim.name}: {said.sentence}"[:200],
            severity=Severity.CRITICAL if said.job is Job.PLATFORM else Severity.WARNING,
            failure_class=known.class_.value if known else Class.UNKNOWN.value,
            tenant=claim.tenant.slug,
            words=f"{said.job.value}. {said.step}".strip(),
            path=reverse("claim", args=[claim.tenant.slug, claim.public_id]),
            evidence=(
                ("Namespace", claim.namespace.name),
                *((("The cluster's message", claim.why),) if claim.why else ()),
            ),
        ),
        now=now,
        request_id=claim.request_id,
    )


def subject_of(claim: Claim) -> str:
    """How alerts name an ask."""
    return f"claim {claim.public_id}"

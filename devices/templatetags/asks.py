"""Template tags about what tenants asked for: where it stands, why, and whose job it is.

The same words serve home, list and page of a claim: `{% load asks %}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from django import template
from django.template import Context

from devices import stages as rules
from devices import verdicts
from devices.attention import Attention
from devices.models import Claim, ClaimEvent
from portal.ui import words
from portal.ui.templatetags.berth import now_of

register = template.Library()


@register.filter
def told_by_cluster(state: str) -> bool:
    """Whether only the cluster can say that a claim is in this state; Berth itself says others."""
    return state in {"applied", "pending", "allocated", "in use"}


@register.simple_tag(takes_context=True)
def verdict(context: Context, claim: Claim) -> verdicts.Verdict:
    """`{% verdict claim as said %}`: what the page says first, and whose job it is."""
    return verdicts.verdict(claim.code, claim.state, now_of(context) - claim.since)


@register.filter
def answered(claim: Claim) -> list[tuple[str, str]]:
    """`{% for label, said in claim|answered %}`: the questions and the answers given."""
    return [
        (parameter.label, parameter.words(claim.values[parameter.name]))
        for parameter in claim.version.read().parameters
        if parameter.name in claim.values
    ]


@register.simple_tag(takes_context=True)
def stages(context: Context, claim: Claim, events: Iterable[ClaimEvent]) -> list[rules.Stage]:
    """`{% stages claim events as stages %}`: for `portal/_steps.html`; events have state and at."""
    reached: dict[str, datetime] = {}
    for event in events:
        reached[event.state] = min(event.at, reached.get(event.state, event.at))
    return rules.stages(claim.state, claim.since, reached, now_of(context))


@register.filter
def needs_you(rows: Sequence[Attention], why_not: str = "") -> str:
    """The heading over what needs a look: how many `rows` (each with a `claim`) are one's own job.

    `why_not` is why the reader may not act; somebody else of the tenant must then.
    """
    own = sum(
        verdicts.verdict(row.claim.code, row.claim.state).job is verdicts.Job.TENANT for row in rows
    )
    if own:
        who = "a member" if why_not else "you"
        return f"{words.one_or_many(own, 'claim')} need{'s' if own == 1 else ''} {who}"
    return f"{words.one_or_many(len(rows), 'claim')} wait{'s' if len(rows) == 1 else ''}"


@register.filter
def pod_state(phase: str) -> str:
    """A Pod's phase as the cluster writes it → the state it is shown as."""
    return {
        "Pending": "pending",
        "Running": "preparing",  # its containers run and it is not ready yet
        "Succeeded": "succeeded",
        "Failed": "failed",
    }.get(phase, "unknown")

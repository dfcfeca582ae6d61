"""Template tags about what tenants asked for: where it stands, why, and whose job it is.

The same words serve home, list and page of a claim: `{% load asks %}`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from django import template
from django.template import Context
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from devices.asks import stages as rules
from devices.asks import verdicts
from devices.asks.attention import Attention
from devices.asks.lifetimes import ends_soon
from devices.models import Claim
from devices.views.listing import Listing
from portal.ui import words
from portal.ui.templatetags.berth import none_kept, now_of, status

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
def stages(context: Context, claim: Claim, reached: Mapping[str, datetime]) -> list[rules.Stage]:
    """`{% stages claim reached as stages %}`: for `portal/_steps.html`; `reached` is by state."""
    return rules.stages(claim.state, claim.since, reached, now_of(context))


@register.filter
def needs_you(rows: Sequence[Attention], why_not: str = "") -> str:
    """The heading over what needs a look: how many `rows` (each with a `claim`) are one's own job.

    `why_not` is why the reader may not act; somebody else of the tenant must then.
    """
    own = sum(
        row.ends or verdicts.verdict(row.claim.code, row.claim.state).job is verdicts.Job.TENANT
        for row in rows
    )
    if own:
        who = "a member" if why_not else "you"
        return f"{words.one_or_many(own, 'claim')} need{'s' if own == 1 else ''} {who}"
    return f"{words.one_or_many(len(rows), 'claim')} wait{'s' if len(rows) == 1 else ''}"


@register.filter
def is_near_its_end(claim: Claim) -> bool:
    """Whether Berth releases it within days, and nobody has before."""
    return claim.wanted and ends_soon(claim.expires_at, timezone.now())


@register.filter
def users(claim: Claim) -> list[dict[str, str]]:
    """`{% for pod in claim|users %}`: the Pods that use a claim now, or wait for it."""
    return [pod for pod in claim.pods if pod["phase"] in {"Pending", "Running"}]


@register.filter
def pod_state(phase: str) -> str:
    """A Pod's phase as the cluster writes it → the state it is shown as."""
    return {
        "Pending": "pending",
        "Running": "preparing",  # its containers run and it is not ready yet
        "Succeeded": "succeeded",
        "Failed": "failed",
    }.get(phase, "unknown")


@register.simple_tag
def sort_head(listing: Listing | None, key: str, word: str, classes: str = "") -> SafeString:
    """`{% sort_head list "name" "Claim" %}`: a column's head, a link where the list can be sorted
    by it; again turns it round.
    """
    if not listing:
        return format_html('<th scope="col" class="{}">{}</th>', classes, word)
    sort = listing.search.sort
    said = {key: "ascending", f"-{key}": "descending"}.get(sort, "")
    return format_html(
        '<th scope="col" class="{}"{}><a href="?{}">{}</a></th>',
        classes,
        format_html(' aria-sort="{}"', said) if said else "",
        listing.sorted_by(f"-{key}" if sort == key else key),
        word,
    )


@register.simple_tag(takes_context=True)
def claim_end(context: Context, claim: Claim) -> SafeString:
    """`{% claim_end claim %}`: when Berth releases it by itself, with a shape of its own where that
    is near.
    """
    if claim.expires_at is None or not claim.wanted:
        return none_kept("it does not end by itself" if claim.wanted else "it has ended")
    now = now_of(context)
    left = words.in_words(words.span(claim.expires_at - now))
    said = format_html(
        '<time class="nowrap" datetime="{}" title="{}">{}</time>',
        claim.expires_at.isoformat(timespec="seconds"),
        f"{claim.expires_at:%-d %b %Y %H:%M} UTC",
        f"in {left}" if claim.expires_at > now else "now",
    )
    return status(context, "ends_soon", said) if ends_soon(claim.expires_at, now) else said

"""What holders of an older or retired version are told, beside their claims."""

from __future__ import annotations

from django import template
from django.template import Context
from django.utils import timezone

from devices.authoring.succession import Lineage, Succession
from devices.dra.lifecycle import ENDED
from devices.models import Claim

register = template.Library()
LINEAGE = "lineage"


@register.simple_tag(takes_context=True)
def succession(context: Context, claim: Claim) -> Succession | None:
    """`{% succession claim as went_on %}`: None where its version is what is offered now, where it
    is held no more, and on pages that are not one tenant's. However many rows ask, it is read once.
    """
    access = context.get("access")
    if access is None or claim.state in ENDED:
        return None
    lineage = context.get("lineage") or context.render_context.get(LINEAGE)
    if lineage is None:
        lineage = context.render_context[LINEAGE] = Lineage(access.tenant, timezone.now())
    found: Succession | None = lineage.of(claim.version)
    return found

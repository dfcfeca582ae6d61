"""What the database says after chaos, as JSON on standard output; run with the demo's settings.

python -m tests.chaos.counting token      a token of avocet's, to ask and to release
python -m tests.chaos.counting facts      claims, budget, outbox, events, audit
python -m tests.chaos.counting told       figures as Prometheus reads them, and what rings
"""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from typing import Any

import django


def token() -> dict[str, Any]:
    from django.utils import timezone

    from tenants.access import tenant_for
    from tenants.models import User
    from tenants.tokens import make_token

    now = timezone.now()
    access = tenant_for(User.objects.get(username="avocet"), "tidewater-vision")
    made = make_token(
        access=access,
        name=f"chaos {now:%H:%M:%S.%f}",
        scopes=["read", "request"],
        expires_at=now + timedelta(days=1),
        now=now,
        request_id="chaos",
    )
    return {"token": made.text}


def facts() -> dict[str, Any]:
    """By public id of each claim: state, uid, lease, events, budget, promises; and the audit."""
    from django.utils import timezone

    from devices.asks.reconcile import RECONCILE
    from devices.dra.lifecycle import State
    from devices.models import Claim
    from devices.tenancy.spending import cost_of
    from portal.audit.models import AuditLine
    from portal.audit.record import all_breaks
    from portal.outbox.models import OutboxLine
    from tenants.models import BudgetLine, Tenant
    from tenants.sums import limits_of

    claims = {}
    limits = {tenant.pk: limits_of(tenant) for tenant in Tenant.objects.all()}
    for row in Claim.objects.prefetch_related("events"):
        lines = BudgetLine.objects.filter(source=row.public_id)
        claims[row.public_id] = {
            "name": row.name,
            "state": row.state,
            "code": row.code,
            "wanted": row.wanted,
            "legal": row.state in set(State),
            "uid": row.object_uid,
            "kind": "ResourceClaim" if row.shape == "claim" else "ResourceClaimTemplate",
            # One whose time is over is none: whoever had it died, and the next one takes it.
            "leased": bool(row.lease and row.lease_until and row.lease_until > timezone.now()),
            "states": [event.state for event in row.events.order_by("pk")],
            "budget": [line.given_back_at is None for line in lines],
            "took": sorted((str(line.what), float(line.amount)) for line in lines),
            "costs": sorted(
                (str(what), float(amount))
                for what, amount in cost_of(row.wish(), row.at_once, limits[row.tenant_id]).items()
            )
            if row.name.startswith("chaos-")
            else [],
            "promised": OutboxLine.objects.filter(task=RECONCILE, key=row.public_id).count(),
        }
    asked = AuditLine.objects.filter(action="claim.asked")
    return {
        "claims": claims,
        "breaks": [f"{one.number}: {one.why}" for one in all_breaks()],
        "asked": sorted(asked.values_list("subject", flat=True)),
    }


def told() -> dict[str, Any]:
    """Lines of the metrics, and subject and code of every alert that is not over."""
    from portal import scraping
    from portal.alerts.models import Alert

    rung = Alert.objects.filter(over_at=None).values_list("subject", "code")
    lines = scraping.page().decode().splitlines()
    return {"metrics": lines, "alerts": [list(one) for one in rung]}


if __name__ == "__main__":
    django.setup()
    print(json.dumps({"token": token, "facts": facts, "told": told}[sys.argv[1]]()))

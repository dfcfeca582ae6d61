"""What the demo's tenants may have, and a grant between them; doing it twice changes nothing.

The numbers leave room beside what `playground/scenarios/demo.yaml` runs without Berth.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal

from tenants.allowance import promise_turn
from tenants.limits import CLAIMS, Measure, What, devices_of
from tenants.models import Grant, Limit, Membership, Tenant

CORES = What(Measure.CAPACITY, "cpu-numa", "cpu.numa.example/cores")

LIMITS: dict[str, dict[What, int | None]] = {
    "tidewater-vision": {
        devices_of("h100-80gb"): 40,
        devices_of("a100-80gb"): 8,
        devices_of("a100-mig-3g"): 8,
        devices_of("a100-mig-1g"): 40,
        devices_of("l40s-48gb"): 8,
        devices_of("nic-rdma"): 16,
        devices_of("fpga-vck5000"): 2,
        CLAIMS: 200,
    },
    "basalt-genomics": {
        devices_of("a100-mig-3g"): 6,
        devices_of("a100-mig-1g"): 8,
        devices_of("l40s-48gb"): 12,
        devices_of("cpu-numa"): None,
        devices_of("fpga-vck5000"): 2,
        devices_of("fabric-gpu"): 2,
        CORES: 256,
    },
}
GIVER, TAKER = "tidewater-vision", "basalt-genomics"
NAMESPACE, LENT = "basalt-pipelines", 2
GRANT_LASTS = timedelta(days=90)


def seed_limits(tenants: Mapping[str, Tenant], now: datetime) -> None:
    """Limits for both tenants, and two H100 that one lends the other."""
    for slug, limits in LIMITS.items():
        for what, amount in limits.items():
            Limit.objects.get_or_create(
                tenant=tenants[slug],
                measure=what.measure,
                device_class=what.device_class,
                capacity=what.capacity,
                defaults={
                    "amount": None if amount is None else Decimal(amount),
                    "changed_at": now,
                },
            )
    if not Grant.objects.filter(giver=tenants[GIVER]).exists():
        owner = Membership.Role.OWNER
        people = Membership.objects.filter(role=owner).select_related("user", "tenant")
        owners = {one.tenant.slug: one.user.person for one in people}
        Grant.objects.create(
            giver=tenants[GIVER],
            taker=tenants[TAKER],
            namespace=NAMESPACE,
            template="gpu",
            device_class="h100-80gb",
            count=LENT,
            ends_at=now + GRANT_LASTS,
            words="For folding large proteins, until our own arrive.",
            state=Grant.State.ACCEPTED,
            offered_by=owners[GIVER],
            offered_at=now,
            decided_by=owners[TAKER],
            decided_at=now,
        )
        for slug in LIMITS:
            promise_turn(tenants[slug], request_id="seeddemo", now=now)

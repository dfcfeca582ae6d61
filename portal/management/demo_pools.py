"""What the demo has for its first move: a node pool, a careful strategy, the usual gates."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from devices.fleet import nodepools
from devices.models import NodePool
from migrationplan.gating.definitions import take_standard
from migrationplan.models import Strategy
from migrationplan.plans import strategies
from migrationplan.plans.wishes import WaveWish
from tenants.access import PlatformAccess

L40S = nodepools.Wish(
    name="L40S nodes",
    words="Still on the device plugin; the next to move.",
    selector={"helios.example/pool": "l40s"},
    resource="helios.example/l40s",
    driver="gpu.helios.example",
    device_class="l40s-48gb",
    plugin_label="helios.example/gpu.plugin=true",
    driver_label="helios.example/gpu.driver=true",
    plugin_sets=("helios-drivers/gpu-plugin-helios-example-plugin",),
    driver_sets=("helios-drivers/gpu-helios-example-node",),
    devices_per_node=4,
)
CAREFUL = (
    WaveWish("Canary", percent=25, soak=timedelta(hours=24)),
    WaveWish("The rest", percent=100, concurrency=2, soak=timedelta(hours=4)),
)


def seed_pools(access: PlatformAccess, now: datetime) -> None:
    """Makes what is missing of it; what somebody changed stays."""
    told: Any = {"access": access, "request_id": "demo", "now": now}
    if not NodePool.objects.filter(slug="l40s").exists():
        nodepools.define("l40s", L40S, snapshot=None, **told)
    if not Strategy.objects.filter(slug="careful").exists():
        words = "A quarter first, a day's rest, then the others two at a time."
        strategies.define("careful", name="Careful", words=words, waves=CAREFUL, **told)
    take_standard(**told)

"""Asks wait while the only nodes that could serve them have a ledger that cannot be relied on."""

from __future__ import annotations

import pytest

from devices.asks import line
from devices.models import LedgerNode, Sync
from tests.devices.demofleet import mirror
from tests.factories import NOON, make_access, make_claim

pytestmark = pytest.mark.django_db


def test_an_ask_waits_for_a_safe_node_and_one_is_enough() -> None:
    cost = {"nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "2"}}}}
    slices = [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"s-{node}", "uid": f"s-{node}"},
            "spec": {
                "driver": "gpu.example",
                "nodeName": node,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "gpu-0", **cost}],
            },
        }
        for node in ("n1", "n2")
    ]
    gpu = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu", "uid": "class-gpu"},
        "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example"'}}]},
    }
    mirror([gpu, *slices])
    Sync.objects.update(alive_at=NOON, listed_at=NOON)
    claim = make_claim(make_access())
    first = LedgerNode.objects.create(
        node="n1", state="unsafe", code="LEDGER_OVERCOMMITTED", since=NOON
    )
    second = LedgerNode.objects.create(node="n2", state="safe", since=NOON)
    assert line.ground(NOON).hold(claim) is None
    second.state, second.code = "rebuilding", "LEDGER_REBUILDING"
    second.save()
    held = line.ground(NOON).hold(claim)
    assert held is not None and held.code == "LEDGER_UNSAFE"
    assert "cannot be relied on" in held.why and held.code in line.TOGETHER
    first.state = "safe"
    first.save()
    assert line.ground(NOON).hold(claim) is None

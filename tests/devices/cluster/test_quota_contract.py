"""What we count for a claim is what a real ResourceQuota charges for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from devices.cluster.gateway import Gateway, Ref, Rejected
from devices.dra.objects import ClaimWish, DeviceWish, Shape, claim_objects, devices_spec
from devices.dra.quota import rendered_devices
from tests.devices.cluster.objects import until

CLASSES = ("gpu.example.com", "nic.example.com")
CLAIMS = "count/resourceclaims.resource.k8s.io"
ADMIN = "resource.kubernetes.io/admin-access"


def exactly(device_class: str, **fields: Any) -> dict[str, Any]:
    return {"deviceClassName": device_class, "allocationMode": "ExactCount", **fields}


SPECS: list[Any] = [
    pytest.param(
        [{"name": "a", "exactly": exactly("gpu.example.com", count=3)}], id="a number of devices"
    ),
    pytest.param(
        [
            {"name": "a", "exactly": exactly("gpu.example.com", count=3)},
            {"name": "b", "exactly": exactly("nic.example.com", count=1)},
            {"name": "c", "exactly": exactly("gpu.example.com", count=2)},
        ],
        id="several requests of two classes",
    ),
    pytest.param(
        [{"name": "a", "exactly": {"deviceClassName": "gpu.example.com", "allocationMode": "All"}}],
        id="all there are",
    ),
    pytest.param(
        [
            {
                "name": "a",
                "firstAvailable": [
                    {"name": "x", **exactly("gpu.example.com", count=1)},
                    {"name": "y", **exactly("gpu.example.com", count=4)},
                    {"name": "z", **exactly("nic.example.com", count=2)},
                ],
            },
            {"name": "b", "exactly": exactly("gpu.example.com", count=1)},
        ],
        id="alternatives: of each class its own worst",
    ),
    pytest.param(
        [
            {
                "name": "a",
                "firstAvailable": [
                    {"name": "x", "deviceClassName": "gpu.example.com", "allocationMode": "All"},
                    {"name": "y", **exactly("gpu.example.com", count=8)},
                ],
            }
        ],
        id="all as an alternative",
    ),
]


@pytest.fixture
def charged(gateway: Gateway, namespace: str) -> Any:
    """Makes a claim in a namespace with quotas and returns what they have charged for it."""
    keys = {name: f"{name}.deviceclass.resource.k8s.io/devices" for name in CLASSES}
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "devices", "namespace": namespace},
        "spec": {"hard": {CLAIMS: "9", **dict.fromkeys(keys.values(), "99")}},
    }
    gateway.apply(quota, manager="test")
    ref = Ref("ResourceQuota", "devices", namespace)

    def used() -> Mapping[str, str]:
        return ((gateway.get(ref) or {}).get("status") or {}).get("used") or {}

    until(lambda: CLAIMS in used())

    def charge(devices: dict[str, Any]) -> dict[str, int]:
        before = used()
        gateway.create(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": "c", "namespace": namespace},
                "spec": {"devices": devices},
            }
        )
        after = used()
        assert int(after[CLAIMS]) == int(before[CLAIMS]) + 1
        changes = {name: int(after[key]) - int(before[key]) for name, key in keys.items()}
        return {name: change for name, change in changes.items() if change}

    return charge


@pytest.mark.parametrize("requests", SPECS)
def test_the_quota_charges_what_we_count(charged: Any, requests: list[dict[str, Any]]) -> None:
    devices = {"requests": requests}
    assert charged(devices) == rendered_devices(devices)


def test_the_quota_charges_administrative_access(
    charged: Any, gateway: Gateway, namespace: str
) -> None:
    obj = gateway.get(Ref("Namespace", namespace))
    assert obj is not None
    labels = {**obj["metadata"]["labels"], ADMIN: "true"}
    gateway.apply(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": namespace, "labels": labels},
        },
        manager="test",
        force=True,
    )
    admin = exactly("gpu.example.com", count=1, adminAccess=True)
    devices = {"requests": [{"name": "a", "exactly": admin}]}
    assert charged(devices) == rendered_devices(devices) == {"gpu.example.com": 1}


def test_the_quota_charges_what_berth_renders(charged: Any) -> None:
    wish = ClaimWish(
        public_id="c4k7",
        tenant="tidewater",
        namespace="any",
        name="train",
        request_id="request-0001",
        shape=Shape.CLAIM,
        devices=(DeviceWish("a", "gpu.example.com", 2), DeviceWish("b", "nic.example.com", 1)),
    )
    devices = devices_spec(wish)
    assert charged(devices) == rendered_devices(devices)
    assert rendered_devices(devices, times=3) == {"gpu.example.com": 6, "nic.example.com": 3}


def test_a_template_is_charged_nothing_and_a_claim_too_many_is_refused(
    charged: Any, gateway: Gateway, namespace: str
) -> None:
    """The portal counts a template for its Pods from the start; the cluster only when they come."""
    wish = ClaimWish(
        public_id="c4k7",
        tenant="tidewater",
        namespace=namespace,
        name="train",
        request_id="request-0001",
        shape=Shape.TEMPLATE,
        devices=(DeviceWish("a", "gpu.example.com", 30),),
    )
    (template,) = claim_objects(wish)
    gateway.create(template)
    assert charged(devices_spec(wish)) == {"gpu.example.com": 30}
    with pytest.raises(Rejected, match="exceeded quota"):
        gateway.create(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": "more", "namespace": namespace},
                "spec": {
                    "devices": {
                        "requests": [
                            {"name": "a", "exactly": exactly("gpu.example.com", count=32)},
                            {"name": "b", "exactly": exactly("gpu.example.com", count=32)},
                            {"name": "c", "exactly": exactly("gpu.example.com", count=32)},
                        ]
                    }
                },
            }
        )

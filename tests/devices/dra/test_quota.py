"""What a device quota charges: requests, never allocations."""

from __future__ import annotations

from devices.dra.quota import devices_asked, extended_devices, namespace_devices
from tests.devices.dra.cases import by_number, snapshot


def test_claims_are_charged_by_what_they_ask() -> None:
    claims = snapshot(by_number("40")).claims
    assert {key[1]: devices_asked(claim.spec) for key, claim in claims.items()} == {
        "two": {"gpu.example.com": 2},
        "all-mode": {"gpu.example.com": 32},
        "alternatives": {"gpu.example.com": 4},
        "zombie": {"gpu.example.com": 1},
        "watch": {"gpu.example.com": 1},
    }
    assert namespace_devices(claims.values()) == {"gpu.example.com": 40}


def test_each_class_of_an_alternative_is_charged_its_own_worst() -> None:
    [template] = snapshot(by_number("21")).templates.values()
    assert devices_asked(template.spec) == {"t4": 4, "l4": 2, "h100": 1}


def test_a_claim_of_the_scheduler_is_charged_once() -> None:
    cluster = snapshot(by_number("32"))
    assert namespace_devices(cluster.claims.values()) == {"gpu.nvidia.com": 2}
    assert extended_devices(cluster, "team-a") == {"nvidia.com/gpu": 2}


def test_a_tenants_own_annotation_exempts_nothing() -> None:
    assert namespace_devices(snapshot(by_number("33")).claims.values()) == {"gpu.nvidia.com": 16}

"""What a device quota charges: requests, never allocations."""

from __future__ import annotations

import pytest

from devices.dra.claims import Ask, ClaimSpec, Request
from devices.dra.quantity import parse
from devices.dra.quota import (
    capacity_asked,
    devices_asked,
    extended_devices,
    namespace_devices,
    rendered_devices,
)
from tests.devices.dra.cases import by_number, objects, snapshot


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


def test_rendered_specs_are_charged_like_claims() -> None:
    claims = [obj for obj in objects(by_number("40")) if obj["kind"] == "ResourceClaim"]
    charged = [rendered_devices(obj["spec"]["devices"]) for obj in claims]
    assert sum(one["gpu.example.com"] for one in charged) == 40
    assert rendered_devices(claims[0]["spec"]["devices"], times=3) == {"gpu.example.com": 6}


def _memory(*asks: tuple[int, str | None]) -> ClaimSpec:
    return ClaimSpec(
        (
            Request(
                "r",
                alternatives=tuple(
                    Ask(
                        f"a{number}",
                        "gpu",
                        count=count,
                        capacity=None if amount is None else {"memory": parse(amount)},
                    )
                    for number, (count, amount) in enumerate(asks)
                ),
            ),
        )
    )


@pytest.mark.parametrize(
    ("spec", "amount"),
    [
        pytest.param(_memory((1, "10Gi")), "10Gi", id="of one device"),
        pytest.param(_memory((3, "10Gi")), "30Gi", id="of each device"),
        pytest.param(_memory((1, "40Gi"), (2, "30Gi")), "60Gi", id="of the worst alternative"),
        pytest.param(_memory((1, "40Gi"), (2, None)), None, id="an ask that does not say"),
        pytest.param(ClaimSpec(), "0", id="an ask for none of the class"),
    ],
)
def test_how_much_of_a_capacity_is_asked_for(spec: ClaimSpec, amount: str | None) -> None:
    found = capacity_asked(spec, "gpu", "memory")
    assert found == (None if amount is None else parse(amount))

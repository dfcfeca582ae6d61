"""What Berth did not make counts too: as the mirror shows it, by its kind."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from devices.cluster.decoding import dumps
from devices.dra.claims import read_claim_spec
from devices.dra.names import CLAIM_LABEL
from devices.dra.quota import devices_asked
from devices.mirror.kinds import MIRRORED
from devices.models import Claim
from devices.tenancy.outside import MIRROR_MAY_LAG, outside_lines, outside_sums
from devices.tenancy.spending import budget_of, lines_behind
from tenants import budget
from tenants.access import Access
from tenants.budget import OverLimit
from tenants.limits import CLAIMS, Kind, Line, devices_of
from tests.devices.demofleet import mirror
from tests.factories import make_access, make_claim, make_version

pytestmark = pytest.mark.django_db
GPU = devices_of("gpu")
an_ask = st.fixed_dictionaries(
    {"deviceClassName": st.sampled_from(["gpu", "nic", "fpga"])},
    optional={
        "count": st.integers(1, 40),
        "allocationMode": st.sampled_from(["ExactCount", "All", "Unheard"]),
        "adminAccess": st.booleans(),
    },
)


@pytest.fixture
def access() -> Access:
    return make_access(limits={"gpu": 8})


def a_claim(
    name: str, count: int = 1, *, label: str = "", namespace: str = "tidewater-train"
) -> dict[str, Any]:
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": count}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"{namespace}-{name}",
            "labels": {CLAIM_LABEL: label} if label else {},
        },
        "spec": {"devices": {"requests": requests}},
    }


def a_template(name: str, count: int) -> dict[str, Any]:
    claim = a_claim(name, count)
    return {**claim, "kind": "ResourceClaimTemplate", "spec": {"spec": claim["spec"]}}


def devices(lines: tuple[Line, ...]) -> list[tuple[int, str, str]]:
    return [(int(line.amount), line.namespace, line.source) for line in lines if line.what == GPU]


def test_claims_and_templates_without_a_label(access: Access) -> None:
    mirror(
        [
            a_claim("by-hand", 3),
            a_template("their-own", 4),
            a_claim("somebody-else", 2, namespace="kube-system"),
        ]
    )
    lines = outside_lines(access.tenant, timezone.now())
    assert devices(lines) == [
        (3, "tidewater-train", "ResourceClaim by-hand"),
        (0, "tidewater-train", "ResourceClaimTemplate their-own"),
    ]
    assert sum(line.amount for line in lines if line.what == CLAIMS) == 1
    assert {line.kind for line in lines} == {Kind.OUTSIDE}


def test_what_berth_made_is_counted_once(access: Access) -> None:
    claim = make_claim(access, make_version(), values={"count": 2}, at_once=2)
    mirror([a_claim(f"pod-{number}", 2, label=claim.public_id) for number in (1, 2)])
    assert outside_lines(access.tenant, timezone.now()) == ()
    found = lines_behind(access.tenant, GPU, timezone.now())
    assert [(line.kind, line.amount) for line in found] == [(Kind.HOLD, 4)]


def test_more_pods_than_an_ask_is_for_are_outside(access: Access) -> None:
    claim = make_claim(access, make_version(), values={"count": 2}, at_once=2)
    mirror([a_claim(f"pod-{number}", 2, label=claim.public_id) for number in (1, 2, 3)])
    lines = outside_lines(access.tenant, timezone.now())
    source = f"more Pods than {claim.public_id} is for"
    assert devices(lines) == [(2, "tidewater-train", source)]


def test_a_label_of_an_ask_that_is_over_exempts_nothing(access: Access) -> None:
    claim = make_claim(access, make_version(), values={"count": 2})
    now = timezone.now()
    budget.give_back(claim.public_id, request_id="request-2", now=now)
    mirror([a_claim("left-over", 2, label=claim.public_id), a_claim("forged", 3, label="never")])
    soon = outside_lines(access.tenant, now + MIRROR_MAY_LAG / 2)
    assert devices(soon) == [(3, "tidewater-train", "ResourceClaim forged")]
    later = outside_lines(access.tenant, now + MIRROR_MAY_LAG + timedelta(seconds=1))
    assert sorted(amount for amount, _, _ in devices(later)) == [2, 3]


def test_it_leaves_less_for_asks(access: Access) -> None:
    mirror([a_claim("by-hand", 7)])
    with pytest.raises(OverLimit) as refused:
        make_claim(access, make_version(), values={"count": 2})
    assert refused.value.facts["limits"][0]["left"] == "1"
    assert not Claim.objects.exists()


def test_it_costs_the_same_queries_for_any_number(
    access: Access, django_assert_num_queries: Any
) -> None:
    mirror([a_claim("by-hand", 1)])
    with django_assert_num_queries(4):
        outside_lines(access.tenant, timezone.now())
    mirror([a_claim(f"by-hand-{number}", 1) for number in range(20)])
    with django_assert_num_queries(4):
        outside_lines(access.tenant, timezone.now())


def test_a_budget_has_as_few_lines_for_twenty_claims_as_for_two(access: Access) -> None:
    """A page must not become slower with every claim that somebody makes by hand."""
    mirror([a_claim(f"by-hand-{number}", 1) for number in range(2)])
    few = outside_sums(access.tenant, timezone.now())
    mirror([a_claim(f"by-hand-{number}", 1) for number in range(20)])
    many = outside_sums(access.tenant, timezone.now())
    assert len(few) == len(many) == 2
    assert devices(many) == [(20, "tidewater-train", "ResourceClaim")]


def test_sums_are_those_of_the_lines(access: Access) -> None:
    version = make_version()
    claim = make_claim(access, version, values={"count": 2}, at_once=2)
    over = make_claim(access, version, values={"count": 1})
    now = timezone.now()
    budget.give_back(over.public_id, request_id="request-2", now=now - 2 * MIRROR_MAY_LAG)
    mirror(
        [
            *(a_claim(f"pod-{number}", 2, label=claim.public_id) for number in range(4)),
            a_claim("left-over", 2, label=over.public_id),
            *(a_claim(f"by-hand-{number}", 3) for number in range(3)),
            a_template("their-own", 4),
        ]
    )
    everything = budget_of(access.tenant, now)
    for what in (GPU, CLAIMS):
        by_kind: dict[Kind, Decimal] = {}
        for line in lines_behind(access.tenant, what, now):
            by_kind[line.kind] = by_kind.get(line.kind, Decimal(0)) + line.amount
        summed: dict[Kind, Decimal] = {}
        for line in everything.lines:
            if line.what == what:
                summed[line.kind] = summed.get(line.kind, Decimal(0)) + line.amount
        assert summed == by_kind
    assert by_kind == {Kind.HOLD: 2, Kind.OUTSIDE: 2 + 1 + 3}


@given(
    st.lists(
        st.one_of(
            st.fixed_dictionaries({"exactly": an_ask}),
            st.fixed_dictionaries({"firstAvailable": st.lists(an_ask, min_size=1, max_size=3)}),
        ),
        max_size=4,
    )
)
def test_the_mirror_charges_a_claim_as_the_rules_do(requests: list[dict[str, Any]]) -> None:
    spec = {"devices": {"requests": [{"name": f"r{n}", **one} for n, one in enumerate(requests)]}}
    claim = {**a_claim("one"), "spec": spec}
    _, _, row = MIRRORED["ResourceClaim"].reader.read(dumps(claim), "resource.k8s.io/v1")
    assert row is not None
    assert dict(zip(row.classes, row.counts, strict=True)) == devices_asked(
        read_claim_spec(spec, "spec", [])
    )

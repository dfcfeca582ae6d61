"""What a tenant sees of the ledger: its claim's and its Pods' own lines, and nothing else."""

from __future__ import annotations

import pytest

from devices.models import Claim, LedgerLine
from tenants.access import Access, tenant_for
from tests.devices.ledger.clusters import Cluster
from tests.devices.ledger.test_book import looked, made, minute
from tests.devices.pages import client_of, text
from tests.factories import make_claim, make_person, make_tenant

__all__ = ["made"]

pytestmark = pytest.mark.django_db


@pytest.fixture
def access() -> Access:
    return tenant_for(make_person("avocet", make_tenant()), "tidewater")


@pytest.fixture
def ours(access: Access) -> Claim:
    """A claim of ours, asked for before the first look."""
    row = make_claim(access, now=minute(-5))
    row.placed = [{"claim": row.object_name, "device": "d0"}]
    row.pods = [{"name": "ours"}]
    row.save()
    return row


@pytest.fixture
def cluster(ours: Claim) -> Cluster:
    """Our Pod uses one device of n1; somebody else's Pod is on the node, too."""
    space = ours.namespace.name
    found = Cluster()
    found.node("n1", cpu="16", memory="64Gi")
    found.slices("n1", mapping="2", overhead=("500m", "250m"))
    for name, user, device in ((ours.object_name, "ours", 0), ("theirs", "secret", 1)):
        found.claim(name, "n1", device)
        found.pod(user, "n1", cpu="1", claims=[name])
    found.schedule()
    for kind, name in (("ResourceClaim", ours.object_name), ("Pod", "ours")):
        found._found[kind, name]["metadata"]["namespace"] = space
    return found


def page_of(ours: Claim) -> str:
    return f"/t/tidewater/claims/{ours.public_id}/node/"


def test_a_claims_page_has_its_own_sums_and_lines_with_who_wrote_them(
    access, ours, cluster
) -> None:
    looked(cluster, 0)
    said = text(client_of(access.user).get(page_of(ours)))
    assert "mapping, once" in said and "overhead, container m0" in said and "Pod request" in said
    uid = LedgerLine.objects.filter(claim__endswith=ours.object_name).first()
    assert uid is not None and uid.claim_uid in said
    for secret in ("secret", "theirs", "/platform/", "Allocatable"):
        assert secret not in said.replace("/platform/events", "")


def test_the_operation_answers_with_the_same_lines(access, ours, cluster) -> None:
    looked(cluster, 0)
    client = client_of(access.user)
    path = f"/api/v1/tenants/tidewater/claims/{ours.public_id}/ledger"
    lines = client.get(path).json()["results"]
    assert sorted((one["rule"], one["amount"]) for one in lines) == [
        ("mapping", "2"), ("overhead", "250m"), ("overhead", "500m"), ("request", "1"),
    ]  # fmt: skip
    cluster.remove("Pod", "ours")
    looked(cluster, 5)
    assert client.get(path).json()["results"] == []
    assert len(client.get(path, {"at": minute(1).isoformat()}).json()["results"]) == 4
    assert len(client.get(path, {"all": "true"}).json()["results"]) == 8
    assert "no Pod with it is placed" in text(client.get(page_of(ours)))
    assert "mapping, once" in text(client.get(page_of(ours), {"at": minute(1).isoformat()}))


def test_what_had_the_name_before_is_not_ours(access, ours, cluster) -> None:
    looked(cluster, 0)
    Claim.objects.update(requested_at=minute(10))
    assert "mapping, once" not in text(client_of(access.user).get(page_of(ours)))


def test_another_tenant_and_the_platform_get_nothing(ours, cluster) -> None:
    looked(cluster, 0)
    other = make_person("basil")
    for path in (page_of(ours), f"/api/v1/tenants/tidewater/claims/{ours.public_id}/ledger"):
        assert client_of(other).get(path).status_code == 404


@pytest.mark.parametrize(
    "asked, status, says",
    [
        pytest.param("minutes=-90", 200, 'value="-90"', id="an hour and a half"),
        pytest.param("minutes=0", 200, "As of now", id="now"),
        pytest.param("minutes=-2000", 422, "older moments by date", id="too far"),
        pytest.param("minutes=x", 422, "whole minutes", id="no number"),
        pytest.param("at=2026-01-01T00:00", 200, "more than a day ago", id="a date"),
    ],
)
def test_the_slider_goes_back_a_day(asked, status, says, access, ours, cluster) -> None:
    looked(cluster, 0)
    answer = client_of(access.user).get(f"{page_of(ours)}?{asked}")
    assert (answer.status_code, says in text(answer)) == (status, True)

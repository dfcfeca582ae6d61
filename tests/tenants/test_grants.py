"""Grants: both sides say yes, outsiders see nothing, what runs stays."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import ProgrammingError, transaction
from django.http import Http404

from portal.audit.models import AuditLine
from portal.errors import Invalid, NotPermitted, Refused
from portal.outbox.models import OutboxLine
from tenants import budget, grants
from tenants.access import Access, tenant_for
from tenants.allowance import TURN_TENANT, allowance
from tenants.budget import Asked, OverLimit
from tenants.limits import CLAIMS, Kind, devices_of, strip
from tenants.models import BudgetLine, Grant, Tenant
from tenants.sums import lines_of, sums_of
from tests.factories import NOON, make_person, make_tenant

pytestmark = pytest.mark.django_db
GPU = devices_of("gpu")
LATER = NOON + timedelta(days=30)


@pytest.fixture
def giver() -> Access:
    tenant = make_tenant("tidewater", ("tidewater-train",), {"gpu": 8})
    return tenant_for(make_person("rosa", tenant, "owner"), "tidewater")


@pytest.fixture
def taker() -> Access:
    tenant = make_tenant("basalt", ("basalt-pipelines", "basalt-eval"), {"nic": None})
    return tenant_for(make_person("basil", tenant, "owner"), "basalt")


@pytest.fixture
def outsider() -> Access:
    tenant = make_tenant("chalk", ("chalk-x",))
    return tenant_for(make_person("sorrel", tenant, "owner"), "chalk")


def offer(giver: Access, **terms: Any) -> Grant:
    given: dict[str, Any] = {
        "namespace": "basalt-pipelines",
        "template": "gpu",
        "device_class": "gpu",
        "count": 3,
        "pays": "giver",
        "ends_at": LATER,
        "words": "for the review",
        **terms,
    }
    return grants.offer(access=giver, request_id="request-0001", now=NOON, **given)


def accepted(giver: Access, taker: Access, **terms: Any) -> Grant:
    made = offer(giver, **terms)
    return grants.accept(
        access=taker, public_id=made.public_id, request_id="request-0002", now=NOON
    )


def use(taker: Access, grant: Grant, count: int, source: str = "c4k7", **other: Any) -> None:
    namespace = other.get("namespace", "basalt-pipelines")
    asked = Asked({GPU: Decimal(count), CLAIMS: Decimal(1)}, namespace, source)
    with transaction.atomic():
        budget.lock(taker.tenant)
        rest, lender = grants.use(
            asked,
            public_id=grant.public_id,
            access=taker,
            template=other.get("template", "gpu"),
            now=other.get("now", NOON),
        )
        budget.take(
            rest,
            tenant=taker.tenant,
            outside=(),
            request_id="request-0003",
            now=NOON,
            grant=lender,
        )
        grants.record_use(lender, access=taker, source=source, request_id="request-0003", now=NOON)


def parts(tenant: Tenant) -> tuple[int, int, int | None]:
    found = strip(GPU, Decimal(8), lines_of(tenant))
    return int(found.used), int(found.granted), None if found.free is None else int(found.free)


def test_an_accepted_grant_is_kept_free_whether_it_is_used_or_not(
    giver: Access, taker: Access
) -> None:
    grant = accepted(giver, taker)
    assert parts(giver.tenant) == (0, 3, 5)
    use(taker, grant, 2)
    assert parts(giver.tenant) == (0, 3, 5), "two in use and one kept are still three"
    assert strip(GPU, Decimal(8), sums_of(giver.tenant)).granted == 3
    assert parts(taker.tenant)[:2] == (0, 0), "the giver pays"
    assert BudgetLine.objects.get(measure="claims").tenant == taker.tenant


def test_what_the_cluster_is_to_allow_moves_from_one_to_the_other(
    giver: Access, taker: Access
) -> None:
    accepted(giver, taker)
    [own] = allowance(giver.tenant).namespaces
    other, lent = allowance(taker.tenant).namespaces
    assert own.devices == {"gpu": 5}
    assert (lent.name, lent.device_classes, lent.devices) == (
        "basalt-pipelines",
        ("gpu", "nic"),
        {"gpu": 3},
    )
    assert (other.device_classes, other.devices) == (("nic",), {})
    keys = OutboxLine.objects.filter(task=TURN_TENANT).values_list("key", flat=True)
    assert set(keys) == {"tidewater", "basalt"}


def test_each_act_stands_in_the_audit_of_both_sides(giver: Access, taker: Access) -> None:
    use(taker, accepted(giver, taker), 1)
    said = AuditLine.objects.values_list("action", "tenant", "person")
    assert list(said) == [
        ("grant.offered", "tidewater", giver.user.person),
        ("grant.accepted", "tidewater", None),
        ("grant.accepted", "basalt", taker.user.person),
        ("grant.used", "tidewater", None),
        ("grant.used", "basalt", taker.user.person),
    ]


def test_more_than_was_granted_is_refused_with_numbers(giver: Access, taker: Access) -> None:
    grant = accepted(giver, taker)
    use(taker, grant, 2)
    with pytest.raises(grants.GrantUsedUp) as refused:
        use(taker, grant, 2, "other")
    assert refused.value.facts["left"] == "1"


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"namespace": "basalt-eval"}, id="another namespace"),
        pytest.param({"template": "pair"}, id="another template"),
        pytest.param({"now": LATER}, id="after its end"),
    ],
)
def test_a_grant_is_for_what_it_says(giver: Access, taker: Access, how: dict[str, Any]) -> None:
    grant = accepted(giver, taker)
    with pytest.raises(Invalid) as refused:
        use(taker, grant, 1, **how)
    assert set(refused.value.fields) == {"grant"}
    assert not BudgetLine.objects.exists()


def test_a_giver_that_is_closing_lends_nothing_new(giver: Access, taker: Access) -> None:
    grant = accepted(giver, taker)
    Tenant.objects.filter(pk=giver.tenant.pk).update(state=Tenant.State.CLOSING)
    with pytest.raises(Invalid) as refused:
        use(taker, grant, 1)
    assert set(refused.value.fields) == {"grant"}


def test_a_taker_who_pays_uses_its_own_limit_and_counts_against_the_grant(
    giver: Access, taker: Access
) -> None:
    taker.tenant.limits.create(measure="devices", device_class="gpu", amount=9, changed_at=NOON)
    grant = accepted(giver, taker, pays="taker")
    use(taker, grant, 2)
    assert parts(giver.tenant) == (0, 0, 8)
    assert parts(taker.tenant)[0] == 2
    with pytest.raises(grants.GrantUsedUp):
        use(taker, grant, 2, "other")


def test_an_offer_that_no_longer_fits_is_not_accepted(giver: Access, taker: Access) -> None:
    made = offer(giver, count=8)
    accepted(giver, taker, count=1)
    with pytest.raises(Refused) as refused:
        grants.accept(access=taker, public_id=made.public_id, request_id="request-2", now=NOON)
    assert refused.value.code == "GIVER_LIMIT_REACHED"
    assert "8" not in refused.value.message and not refused.value.facts, "not the taker's business"


def test_revoking_leaves_what_runs_until_it_is_given_back(giver: Access, taker: Access) -> None:
    grant = accepted(giver, taker)
    use(taker, grant, 2)
    grants.revoke(access=giver, public_id=grant.public_id, request_id="request-4", now=NOON)
    assert parts(giver.tenant) == (0, 2, 6), "what was not used is free at once"
    with pytest.raises(Invalid):
        use(taker, grant, 1, "other")
    lent = allowance(taker.tenant).namespaces[1]
    assert (lent.device_classes, lent.devices) == (("gpu", "nic"), {"gpu": 2})
    assert AuditLine.objects.last().facts["devices_that_stay"] == "2"  # type: ignore[union-attr]
    budget.give_back("c4k7", request_id="request-5", now=NOON)
    assert parts(giver.tenant) == (0, 0, 8)
    assert allowance(taker.tenant).namespaces[1].devices == {}


def test_time_ends_offers_and_grants(giver: Access, taker: Access) -> None:
    offer(giver)
    grant = accepted(giver, taker)
    assert grants.expire_due(LATER - timedelta(seconds=1)) == 0
    assert grants.expire_due(LATER) == 2
    assert grants.expire_due(LATER) == 0
    grant.refresh_from_db()
    assert (grant.state, grant.ended_by) == (Grant.State.EXPIRED, None)


@pytest.mark.parametrize("verb", [grants.accept, grants.decline, grants.revoke])
def test_an_outsider_cannot_tell_a_grant_from_nothing(
    giver: Access, taker: Access, outsider: Access, verb: Any
) -> None:
    for public_id in (offer(giver).public_id, accepted(giver, taker).public_id, "nothing-here"):
        with pytest.raises(Http404):
            verb(access=outsider, public_id=public_id, request_id="request-5", now=NOON)


def test_an_offer_to_nobody_looks_like_any_other(giver: Access) -> None:
    there = offer(giver)
    nowhere = offer(giver, namespace="nobody-has-this")
    assert (there.state, there.taker) == (nowhere.state, nowhere.taker)


def test_a_giver_does_not_accept_for_the_taker(giver: Access) -> None:
    with pytest.raises(Http404):
        grants.accept(
            access=giver, public_id=offer(giver).public_id, request_id="request-5", now=NOON
        )


def test_a_member_neither_offers_nor_accepts(giver: Access, taker: Access) -> None:
    member = tenant_for(make_person("plover", giver.tenant, "member"), "tidewater")
    with pytest.raises(NotPermitted):
        offer(member)
    other = tenant_for(make_person("tansy", taker.tenant, "member"), "basalt")
    made = offer(giver)
    with pytest.raises(NotPermitted):
        grants.accept(access=other, public_id=made.public_id, request_id="request-5", now=NOON)


def test_the_terms_never_change_and_no_state_comes_back(giver: Access, taker: Access) -> None:
    grant = accepted(giver, taker)
    with pytest.raises(ProgrammingError), transaction.atomic():
        Grant.objects.filter(pk=grant.pk).update(count=99)
    with pytest.raises(ProgrammingError), transaction.atomic():
        Grant.objects.filter(pk=grant.pk).update(state="offered")


@pytest.mark.parametrize(
    ("terms", "field"),
    [
        ({"namespace": "Not A Name"}, "namespace"),
        ({"namespace": "tidewater-train"}, "namespace"),
        ({"count": 0}, "count"),
        ({"pays": "nobody"}, "pays"),
        ({"ends_at": NOON}, "ends_at"),
        ({"words": "x" * 241}, "words"),
    ],
)
def test_an_offer_that_makes_no_sense(giver: Access, terms: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        offer(giver, **terms)
    assert set(refused.value.fields) == {field}


def test_the_taker_s_own_limit_still_counts_what_the_giver_does_not_pay(
    giver: Access, taker: Access
) -> None:
    taker.tenant.limits.create(measure="claims", amount=1, changed_at=NOON)
    grant = accepted(giver, taker)
    use(taker, grant, 1)
    with pytest.raises(OverLimit):
        use(taker, grant, 1, "other")
    assert not BudgetLine.objects.filter(source="other").exists(), "all of it or nothing"
    assert [line.kind for line in lines_of(giver.tenant)] == [Kind.GRANT, Kind.GRANT]


def test_nobody_accepts_for_a_tenant_that_began_to_close_meanwhile(
    giver: Access, taker: Access
) -> None:
    """The page was open, so what it knows of the tenant is old."""
    made = offer(giver)
    Tenant.objects.filter(slug="basalt").update(state="closing")
    with pytest.raises(grants.GrantEnded):
        grants.accept(access=taker, public_id=made.public_id, request_id="r", now=NOON)
    assert Grant.objects.get().state == "offered"


def test_nobody_accepts_for_a_namespace_that_leaves(giver: Access, taker: Access) -> None:
    made = offer(giver)
    taker.tenant.namespaces.filter(name="basalt-pipelines").update(leaving_at=NOON)
    with pytest.raises(grants.GrantEnded, match="leaves"):
        grants.accept(access=taker, public_id=made.public_id, request_id="r", now=NOON)

"""Taking, giving back, setting and sharing out: what the database keeps of it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.db import ProgrammingError, transaction

from portal.audit.models import AuditLine
from portal.errors import Invalid, NotPermitted
from portal.outbox.models import OutboxLine
from tenants import budget, limit_setting
from tenants.access import Access, PlatformAccess, tenant_for
from tenants.allowance import TURN_TENANT, NamespaceAllowance, allowance
from tenants.budget import Asked, OverLimit
from tenants.limits import ANY, CLAIMS, Kind, Line, devices_of
from tenants.models import BudgetLine, Limit, Membership
from tenants.sums import limits_of, lines_of, sums_of
from tests.factories import NOON, make_access, make_limit, make_person, make_tenant

pytestmark = pytest.mark.django_db
GPU = devices_of("gpu")


def take(access: Access, amount: int, source: str = "c4k7", **options: Any) -> None:
    asked = Asked({GPU: Decimal(amount), CLAIMS: Decimal(1)}, "tidewater-train", source)
    with transaction.atomic():
        budget.lock(access.tenant)
        budget.take(
            asked,
            tenant=access.tenant,
            outside=options.get("outside", ()),
            request_id="request-0001",
            now=NOON,
        )


def platform(*roles: str) -> PlatformAccess:
    return PlatformAccess(make_person("asp"), frozenset(roles))


def test_what_is_taken_counts_until_it_is_given_back() -> None:
    access = make_access(limits={"gpu": 8})
    take(access, 5)
    with pytest.raises(OverLimit) as refused:
        take(access, 4, "other")
    assert (refused.value.code, refused.value.facts["limits"][0]["over"]) == ("LIMIT_REACHED", "1")
    assert budget.give_back("c4k7", request_id="request-0002", now=NOON) == 2
    assert budget.give_back("c4k7", request_id="request-0002", now=NOON) == 0
    take(access, 8, "other")


def test_a_refusal_names_the_numbers_and_who_can_ask_for_more() -> None:
    access = make_access(limits={"gpu": 8})
    make_person("rosa", access.tenant, "owner")
    take(access, 5)
    with pytest.raises(OverLimit) as refused:
        take(access, 4, "other", outside=[Line(Kind.OUTSIDE, GPU, Decimal(1), "x", "y")])
    assert "4 devices of gpu asked for; 2 of 8 left: 2 too many." in refused.value.message
    assert "rosa" in refused.value.message


def test_the_sums_are_the_lines_added_up() -> None:
    access = make_access(limits={"gpu": 8})
    take(access, 2, "one")
    take(access, 3, "two")
    assert sum(line.amount for line in sums_of(access.tenant) if line.what == GPU) == 5
    assert [line.amount for line in lines_of(access.tenant) if line.what == GPU] == [3, 2]


def test_the_database_keeps_lines_as_they_were_written() -> None:
    take(make_access(), 2)
    for change in ({"amount": 1}, {"namespace": "elsewhere"}):
        with pytest.raises(ProgrammingError), transaction.atomic():
            BudgetLine.objects.update(**change)
    with pytest.raises(ProgrammingError), transaction.atomic():
        BudgetLine.objects.all().delete()
    BudgetLine.objects.update(given_back_at=NOON)
    with pytest.raises(ProgrammingError), transaction.atomic():
        BudgetLine.objects.update(given_back_at=None)


def test_an_ask_is_counted_once_whatever_repeats() -> None:
    from django.db import IntegrityError

    access = make_access()
    take(access, 2)
    with pytest.raises(IntegrityError), transaction.atomic():
        take(access, 2)


# --- limits ---------------------------------------------------------------------------------------


def test_the_platform_sets_a_limit_and_the_cluster_is_told() -> None:
    tenant = make_tenant(limits={})
    limit_setting.set_limit(
        platform=platform("admin"),
        tenant=tenant,
        what=GPU,
        amount=Decimal(8),
        request_id="request-0001",
        now=NOON,
    )
    assert limits_of(tenant)[GPU].amount == 8
    assert AuditLine.objects.get().facts == {"before": "none", "after": "8", "approval": ""}
    line = OutboxLine.objects.get()
    assert (line.task, line.key) == (TURN_TENANT, "tidewater")


def test_lowering_a_limit_below_use_takes_nothing_away() -> None:
    access = make_access(limits={"gpu": 8})
    take(access, 5)
    limit_setting.set_limit(
        platform=platform("admin"),
        tenant=access.tenant,
        what=GPU,
        amount=Decimal(2),
        request_id="request-0001",
        now=NOON,
    )
    assert BudgetLine.objects.filter(given_back_at=None).count() == 2
    with pytest.raises(OverLimit, match="overdrawn by 3"):
        take(access, 1, "other")
    [only] = allowance(access.tenant).namespaces
    assert only.devices == {"gpu": 5}, "what runs can still be replaced"


@pytest.mark.parametrize(
    ("role", "amount", "code"),
    [
        pytest.param("approver", Decimal(9), "OWN_TENANT", id="an approver raises their own"),
        pytest.param("approver", None, "OWN_TENANT", id="an approver takes its number away"),
        pytest.param("approver", Decimal(7), "", id="an approver lowers their own"),
        pytest.param("admin", Decimal(9), "", id="an admin, for there may be nobody else"),
    ],
)
def test_nobody_who_decides_raises_the_limits_of_their_own_tenant(
    role: str, amount: Decimal | None, code: str
) -> None:
    tenant, decider = make_tenant(limits={"gpu": 8}), platform(role)
    Membership.objects.create(tenant=tenant, user=decider.user, role="viewer")
    terms: Any = {"platform": decider, "tenant": tenant, "request_id": "request-0001", "now": NOON}
    if not code:
        limit_setting.set_limit(what=GPU, amount=amount, **terms)
        assert limits_of(tenant)[GPU].amount == amount
        return
    with pytest.raises(NotPermitted) as refused:
        limit_setting.set_limit(what=GPU, amount=amount, **terms)
    assert refused.value.code == code
    Limit.objects.create(tenant=tenant, measure="claims", amount=9, changed_at=NOON)
    with pytest.raises(NotPermitted):
        limit_setting.remove_limit(what=CLAIMS, **terms)
    every = Limit.objects.create(
        tenant=tenant, measure="devices", device_class=ANY.device_class, changed_at=NOON
    )
    with pytest.raises(NotPermitted):
        limit_setting.remove_limit(what=GPU, **terms)  # any class would have no limit
    every.delete()
    limit_setting.remove_limit(what=GPU, **terms)


def test_an_auditor_sets_no_limit() -> None:
    with pytest.raises(NotPermitted):
        limit_setting.set_limit(
            platform=platform("auditor"),
            tenant=make_tenant(),
            what=GPU,
            amount=Decimal(8),
            request_id="request-0001",
            now=NOON,
        )
    assert not Limit.objects.filter(device_class="gpu").exists()


@pytest.mark.parametrize(
    ("what", "amount", "field"),
    [
        pytest.param(ANY, Decimal(3), "amount", id="any class has no number"),
        pytest.param(GPU, Decimal("1.5"), "amount", id="half a device"),
        pytest.param(GPU, Decimal(-1), "amount", id="less than nothing"),
        pytest.param(devices_of(""), None, "device_class", id="no class"),
    ],
)
def test_a_limit_that_makes_no_sense(what: Any, amount: Decimal | None, field: str) -> None:
    with pytest.raises(Invalid) as refused:
        limit_setting.set_limit(
            platform=platform("admin"),
            tenant=make_tenant(),
            what=what,
            amount=amount,
            request_id="request-0001",
            now=NOON,
        )
    assert set(refused.value.fields) == {field}


def owner(**tenant: Any) -> Access:
    return make_access("rosa", "owner", **tenant)


TWO = ("tidewater-eval", "tidewater-train")


def test_an_owner_shares_a_limit_out() -> None:
    access = owner(namespaces=TWO, limits={"gpu": 8})
    shares = {"tidewater-train": Decimal(6), "tidewater-eval": Decimal(2)}
    limit_setting.share_out(
        access=access, what=GPU, shares=shares, request_id="request-0001", now=NOON
    )
    take(access, 5)
    with pytest.raises(OverLimit) as refused:
        take(access, 2, "other")
    assert refused.value.facts["limits"][0]["namespace"] == "tidewater-train"
    assert [place.devices for place in allowance(access.tenant).namespaces] == [
        {"gpu": 2},
        {"gpu": 6},
    ]


@pytest.mark.parametrize(
    ("shares", "field"),
    [
        pytest.param({"tidewater-train": 9}, "shares", id="more than there is"),
        pytest.param({"kube-system": 1}, "shares.kube-system", id="not the tenant's namespace"),
    ],
)
def test_shares_that_do_not_add_up(shares: dict[str, int], field: str) -> None:
    access = owner(limits={"gpu": 8})
    with pytest.raises(Invalid) as refused:
        limit_setting.share_out(
            access=access,
            what=GPU,
            shares={name: Decimal(amount) for name, amount in shares.items()},
            request_id="request-0001",
            now=NOON,
        )
    assert field in refused.value.fields


# --- what the cluster is to allow -----------------------------------------------------------------


def test_what_the_cluster_is_to_allow() -> None:
    access = owner(namespaces=TWO, limits={"gpu": 8, "nic": None})
    take(access, 5)
    assert allowance(access.tenant).namespaces == (
        NamespaceAllowance("tidewater-eval", ("gpu", "nic"), {"gpu": 3}, None),
        NamespaceAllowance("tidewater-train", ("gpu", "nic"), {"gpu": 8}, None),
    )


def test_any_class_is_a_star_and_named_classes_keep_their_limit() -> None:
    tenant = make_tenant()
    make_limit(tenant, "gpu", 4)
    [only] = allowance(tenant).namespaces
    assert (only.device_classes, only.devices) == (("*",), {"gpu": 4})


def test_a_closing_tenant_may_use_no_class() -> None:
    tenant = make_tenant(limits={"gpu": 4})
    tenant.state = "closing"
    tenant.save()
    [only] = allowance(tenant).namespaces
    assert (only.device_classes, only.devices) == ((), {"gpu": 4})


def test_it_costs_the_same_queries_for_any_tenant(django_assert_num_queries: Any) -> None:
    access = owner(namespaces=TWO, limits={"gpu": 50, "nic": None})
    with django_assert_num_queries(7):
        allowance(access.tenant)
    for number in range(9):
        take(access, 1, f"ask-{number}")
    with django_assert_num_queries(7):
        allowance(access.tenant)


def test_a_turn_is_promised_where_quotas_follow_what_is_taken() -> None:
    access = owner(namespaces=TWO, limits={"gpu": 8})
    take(access, 1)
    assert OutboxLine.objects.filter(task=TURN_TENANT).count() == 1
    one = tenant_for(make_person("basil", make_tenant("basalt", ("b",), {"gpu": 8})), "basalt")
    with transaction.atomic():
        budget.take(
            Asked({GPU: Decimal(1)}, "b", "x"),
            tenant=one.tenant,
            outside=(),
            request_id="request-0001",
            now=NOON,
        )
    assert not OutboxLine.objects.filter(key="basalt").exists()

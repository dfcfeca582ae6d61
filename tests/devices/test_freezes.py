"""Freezes: who may, what they keep back, and that everything goes on by itself afterwards."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import ProgrammingError, transaction

from devices.asks import reconcile
from devices.cluster.gateway import Gateway
from devices.dra.lifecycle import State
from devices.models import Claim, Freeze
from devices.tenancy import freezes
from devices.tenancy.freezes import AlreadyFrozen, expire, freeze, lift
from portal.audit.models import AuditLine
from portal.errors import Invalid, NotPermitted
from portal.outbox.models import OutboxLine
from tenants.access import PlatformAccess, platform_of, tenant_for
from tenants.allowance import TURN_TENANT
from tenants.models import PlatformRole
from tests.factories import (
    GPU_CONTENT,
    NOON,
    make_access,
    make_claim,
    make_person,
    make_tenant,
    make_version,
)

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)
NIC_CONTENT = {"requests": [{"name": "nic", "device_class": "nic", "words": "NIC"}]}


def somebody(*roles: str) -> PlatformAccess:
    person = make_person("-".join(["with", *roles]))
    for role in roles:
        PlatformRole.objects.create(user=person, role=role)
    return platform_of(person)


def freeze_it(access: PlatformAccess | None = None, **asked: Any) -> Freeze:
    given: dict[str, Any] = {
        "scope": "class",
        "target": "gpu",
        "strict": False,
        "reason": "A recall of the maker",
        "until": None,
        "request_id": "request-f",
        "now": NOON,
    }
    return freeze(access=access or somebody("operator"), **{**given, **asked})


def turns() -> list[str]:
    return sorted(OutboxLine.objects.filter(task=TURN_TENANT).values_list("key", flat=True))


def actions() -> list[str]:
    return list(
        AuditLine.objects.filter(action__startswith="freeze").values_list("action", flat=True)
    )


@pytest.mark.parametrize("role", ["operator", "admin"])
def test_operators_and_admins_freeze_and_lift(role: str) -> None:
    make_tenant("tide")
    access = somebody(role)
    made = freeze_it(access)
    assert turns() == ["tide"], "the cluster is to follow"
    lift(access=access, public_id=made.public_id, request_id="request-l", now=NOON + HOUR)
    lift(access=access, public_id=made.public_id, request_id="request-l", now=NOON + 2 * HOUR)
    made.refresh_from_db()
    assert (made.end, made.ended_at, made.ended_by) == ("lifted", NOON + HOUR, access.user.person)
    assert actions() == ["freeze.made", "freeze.lifted"]


@pytest.mark.parametrize("role", ["auditor", "approver", ""])
def test_nobody_else_does(role: str) -> None:
    with pytest.raises(NotPermitted):
        freeze_it(somebody(role) if role else somebody())
    made = freeze_it()
    with pytest.raises(NotPermitted):
        lift(access=somebody("auditor", "approver"), public_id=made.public_id,
             request_id="r", now=NOON)  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        pytest.param({"scope": "node"}, "scope", id="a scope that is none"),
        pytest.param({"target": " "}, "target", id="a class without a name"),
        pytest.param({"scope": "tenant", "target": "nobody"}, "target", id="an unknown tenant"),
        pytest.param({"reason": "  "}, "reason", id="no reason"),
        pytest.param({"until": NOON}, "until", id="an end that has passed"),
    ],
)
def test_senseless_freezes_are_refused(asked: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        freeze_it(**asked)
    assert set(refused.value.fields) == {field}
    assert not Freeze.objects.exists()


def test_a_second_freeze_of_the_same_is_refused_and_names_the_first() -> None:
    access = somebody("operator")
    first = freeze_it(access)
    with pytest.raises(AlreadyFrozen) as refused:
        freeze_it(access)
    assert refused.value.facts == {"freeze": first.public_id}
    freeze_it(access, scope="all")


def test_a_freeze_ends_by_its_time() -> None:
    make_tenant("tide")
    access = somebody("operator")
    made = freeze_it(access, until=NOON + HOUR)
    assert expire(NOON + HOUR - timedelta(seconds=1)) == 0
    OutboxLine.objects.all().delete()
    assert expire(NOON + HOUR) == 1
    assert expire(NOON + HOUR) == 0
    made.refresh_from_db()
    assert (made.end, made.ended_by) == ("expired", None)
    assert turns() == ["tide"]
    assert actions() == ["freeze.made", "freeze.expired"]
    freeze_it(access, now=NOON + HOUR)


def test_one_whose_time_is_over_stands_in_nobodys_way_before_the_sweep() -> None:
    access = somebody("operator")
    freeze_it(access, until=NOON + HOUR)
    freeze_it(access, now=NOON + 2 * HOUR)
    assert [one.end for one in Freeze.objects.order_by("pk")] == ["expired", ""]


@pytest.mark.parametrize(
    "change",
    [{"reason": "another"}, {"until": NOON}, {"target": "nic"}, {"strict": True}],
    ids=lambda change: next(iter(change)),
)
def test_what_was_frozen_and_why_never_changes(change: dict[str, Any]) -> None:
    made = freeze_it()
    with pytest.raises(ProgrammingError), transaction.atomic():
        Freeze.objects.filter(pk=made.pk).update(**change)
    with pytest.raises(ProgrammingError), transaction.atomic():
        made.delete()


def test_a_freeze_that_has_ended_has_ended() -> None:
    access = somebody("operator")
    made = freeze_it(access)
    lift(access=access, public_id=made.public_id, request_id="r", now=NOON)
    with pytest.raises(ProgrammingError), transaction.atomic():
        Freeze.objects.filter(pk=made.pk).update(ended_at=None)


def test_a_tenant_is_shown_what_concerns_it_the_widest_first() -> None:
    tide, reef = make_tenant("tide"), make_tenant("reef", namespaces=("reef-train",))
    access = somebody("operator")
    freeze_it(access)
    freeze_it(access, scope="all")
    freeze_it(access, scope="tenant", target="tide")
    assert [one.scope for one in freezes.frozen_for(tide, NOON)] == ["all", "tenant", "class"]
    assert [one.scope for one in freezes.frozen_for(reef, NOON)] == ["all", "class"]


# What is asked for meanwhile.


def turn(gateway: Gateway, *claims: Claim) -> list[tuple[str, str]]:
    """A turn of each; how they stand then."""
    for claim in claims:
        reconcile.turn(claim.public_id, gateway=gateway, now=NOON)
        claim.refresh_from_db()
    return [(claim.state, claim.code) for claim in claims]


HELD = (State.HELD, "FROZEN")
SENT = (State.APPLIED, "WAITING_FOR_POD")


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("frozen", "held"),
    [
        pytest.param({}, True, id="of its class"),
        pytest.param({"target": "nic"}, False, id="of another class"),
        pytest.param({"scope": "all", "target": ""}, True, id="of everything"),
        pytest.param({"scope": "tenant", "target": "tidewater"}, True, id="of its tenant"),
        pytest.param({"scope": "tenant", "target": "reef"}, False, id="of another tenant"),
    ],
)
def test_a_request_waits_for_the_end_of_a_freeze(
    gateway: Gateway, place: str, frozen: dict[str, Any], held: bool
) -> None:
    make_tenant("reef", namespaces=("reef-train",))
    claim = make_claim(make_access(namespaces=(place,)))
    access = somebody("operator")
    made = freeze_it(access, **frozen)
    assert turn(gateway, claim) == [HELD if held else SENT]
    if held:
        assert "A recall of the maker" in claim.why
        assert not OutboxLine.objects.filter(key=claim.public_id).exists(), "the end calls for it"
    lift(access=access, public_id=made.public_id, request_id="request-l", now=NOON)
    if held:
        assert OutboxLine.objects.filter(key=claim.public_id).exists()
    assert turn(gateway, claim) == [SENT]


@pytest.mark.cluster
def test_what_was_sent_before_goes_on(gateway: Gateway, place: str) -> None:
    claim = make_claim(make_access(namespaces=(place,)))
    turn(gateway, claim)
    freeze_it(scope="all", target="")
    assert turn(gateway, claim) == [SENT]


@pytest.mark.cluster
def test_what_waited_is_sent_in_the_order_of_asking_whichever_turn_comes_first(
    gateway: Gateway, place: str
) -> None:
    access = make_access(namespaces=(place,))
    version, other = make_version(), make_version(slug="nic", content=NIC_CONTENT)
    first, second = (make_claim(access, version, name=name) for name in ("first", "second"))
    aside = make_claim(access, other, name="aside")
    operator = somebody("operator")
    made = freeze_it(operator)
    assert turn(gateway, first, second, aside) == [HELD, HELD, SENT]
    lift(access=operator, public_id=made.public_id, request_id="request-l", now=NOON)
    assert list(freezes.held_by_freezes()) == [first.public_id, second.public_id]
    assert turn(gateway, second) == [HELD], "first was asked for before"
    assert "first" in second.why
    assert turn(gateway, first, second) == [SENT, SENT]


@pytest.mark.cluster
def test_one_that_may_go_does_not_wait_for_one_that_may_not(gateway: Gateway, place: str) -> None:
    tide = make_access(namespaces=(place,))
    reef_tenant = make_tenant("reef", namespaces=("reef-train",))
    reef = tenant_for(make_person("coral", reef_tenant), "reef")
    version = make_version(content=GPU_CONTENT)
    operator = somebody("operator")
    everything = freeze_it(operator, scope="all")
    freeze_it(operator, scope="tenant", target="reef")
    earlier, later = make_claim(reef, version), make_claim(tide, version)
    assert turn(gateway, earlier, later) == [HELD, HELD]
    lift(access=operator, public_id=everything.public_id, request_id="r", now=NOON)
    assert turn(gateway, later, earlier) == [SENT, HELD]

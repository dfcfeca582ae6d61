"""A worker dies at every step of a turn, one after the other: one set of objects, no orphan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from devices.asks import reconcile
from devices.asks.claims import release_claim, request_claim
from devices.cluster.gateway import Gateway, Ref
from devices.dra.lifecycle import State
from devices.dra.names import CLAIM_LABEL
from devices.models import Claim, ClaimEvent
from devices.models.claim import LEASE
from portal.audit.models import AuditLine
from portal.outbox.models import OutboxLine
from tenants.access import Access
from tenants.models import BudgetLine
from tests.devices.dying import Died, Life, MortalGateway
from tests.factories import GPU_CONTENT, NOON, make_access, make_version

pytestmark = [pytest.mark.cluster, pytest.mark.django_db(transaction=True)]

KINDS = ("ResourceClaim", "ResourceClaimTemplate")
AFTER = NOON + LEASE + timedelta(seconds=1)
#: No turn has more steps; a loop that never ends would say nothing.
MOST = 200


@pytest.fixture
def access(place: str) -> Access:
    """A tenant whose namespace is this test's alone."""
    return make_access(namespaces=(place,))


def ask(access: Access, name: str) -> Claim:
    return request_claim(
        access=access,
        version=make_version(name, {**GPU_CONTENT, "shared": True}),
        namespace=access.tenant.namespaces.all()[0].name,
        name=name,
        values={},
        request_id="request-0001",
        now=NOON,
    )


def objects(gateway: Gateway, claim: Claim) -> int:
    label = f"{CLAIM_LABEL}={claim.public_id}"
    return sum(len(gateway.list(kind, labels=label).items) for kind in KINDS)


def die_at_every_step(
    gateway: Gateway, begin: Callable[[int], Claim], check: Callable[[Claim, str], None]
) -> list[str]:
    """For n = 0, 1, 2, …: a turn that dies at step n, then the turn of another worker once the
    lease is over, then `check`. Returns the steps of a whole turn.
    """
    for number in range(MOST):
        claim, life = begin(number), Life(number)
        died = False
        try:
            with life.on():
                reconcile.turn(claim.public_id, gateway=_mortal(gateway, life), now=NOON)
        except Died:
            died = True
        connection.close()  # as the death of its process does
        for _ in range(2):
            reconcile.turn(claim.public_id, gateway=gateway, now=AFTER)
        check(claim, f"died at step {number}, after {life.taken[-3:]}")
        if not died:
            return life.taken
    raise AssertionError(f"a turn has more than {MOST} steps")


def _mortal(gateway: Gateway, life: Life) -> Any:
    return MortalGateway(gateway, life)


def test_a_worker_that_dies_at_any_step_of_making_leaves_one_object(
    gateway: Gateway, access: Access
) -> None:
    def check(claim: Claim, when: str) -> None:
        claim.refresh_from_db()
        assert (claim.state, objects(gateway, claim)) == (State.APPLIED, 1), when
        assert (claim.lease, claim.woken) == ("", False), when
        assert not OutboxLine.objects.filter(key=claim.public_id).exists(), when
        told = Counter(claim.events.values_list("state", flat=True))
        assert told == {State.REQUESTED: 1, State.APPLIED: 1}, when
        held = BudgetLine.objects.filter(source=claim.public_id)
        assert [line.given_back_at for line in held] == [None] * len(held) and held, when

    steps = die_at_every_step(gateway, lambda n: ask(access, f"make-{n}"), check)
    assert "the answer to apply" in steps and "UPDATE" in steps and len(steps) > 15


@pytest.mark.long
def test_what_others_delete_before_a_dead_worker_could_record_it_is_not_made_again(
    gateway: Gateway, access: Access
) -> None:
    was_made: list[bool] = []
    for number in range(MOST):
        claim, life = ask(access, f"gone-{number}"), Life(number)
        try:
            with life.on():
                reconcile.turn(claim.public_id, gateway=_mortal(gateway, life), now=NOON)
        except Died:
            connection.close()
        ref = Ref("ResourceClaim", claim.object_name, claim.namespace.name)
        made = gateway.get(ref) is not None
        gateway.delete(ref)
        for _ in range(2):
            reconcile.turn(claim.public_id, gateway=gateway, now=AFTER)
        claim.refresh_from_db()
        when = f"died at step {number}, after {life.taken[-3:]}"
        if made:
            assert (claim.state, claim.code) == (State.RELEASED, "DELETED_OUTSIDE"), when
            assert objects(gateway, claim) == 0, when
            held = BudgetLine.objects.filter(source=claim.public_id)
            assert held and all(line.given_back_at for line in held), when
        else:
            assert (claim.state, objects(gateway, claim)) == (State.APPLIED, 1), when
        was_made.append(made)
        if life.steps < number:
            break
    assert was_made == sorted(was_made) and len(set(was_made)) == 2, "made once, at one step"


def test_a_worker_that_dies_at_any_step_of_taking_away_leaves_nothing(
    gateway: Gateway, access: Access
) -> None:
    def begin(number: int) -> Claim:
        claim = ask(access, f"release-{number}")
        reconcile.turn(claim.public_id, gateway=gateway, now=NOON)
        release_claim(access=access, public_id=claim.public_id, request_id="r-2", now=NOON)
        return claim

    def check(claim: Claim, when: str) -> None:
        claim.refresh_from_db()
        assert (claim.state, objects(gateway, claim)) == (State.RELEASED, 0), when
        assert not OutboxLine.objects.filter(key=claim.public_id).exists(), when
        released = ClaimEvent.objects.filter(claim=claim, state=State.RELEASED)
        assert released.count() == 1, when
        held = BudgetLine.objects.filter(source=claim.public_id)
        assert held and all(line.given_back_at for line in held), when

    steps = die_at_every_step(gateway, begin, check)
    assert "the answer to delete" in steps


def _whole(before: tuple[int, ...], now: tuple[int, ...]) -> bool:
    """One claim more, and with it all that belongs to it."""
    return now[0] == before[0] + 1 and all(b > a for a, b in zip(before, now, strict=True))


def test_asking_is_whole_or_was_never_asked(access: Access) -> None:
    def rows() -> tuple[int, ...]:
        tables = (Claim, ClaimEvent, OutboxLine, BudgetLine, AuditLine)
        return tuple(table.objects.count() for table in tables)

    before = rows()
    for number in range(MOST):
        life = Life(number)
        version = make_version(f"ask-{number}")
        try:
            with life.on():
                request_claim(
                    access=access,
                    version=version,
                    namespace=access.tenant.namespaces.all()[0].name,
                    name=f"ask-{number}",
                    values={},
                    request_id="request-0001",
                    now=NOON,
                )
        except Died:
            connection.close()
            now = rows()
            when = f"died at step {number}, after {life.taken[-3:]}"
            assert now == before or _whole(before, now), when
            before = now
        else:
            assert _whole(before, rows()) and number > 5
            return
    raise AssertionError("asking never ended")

"""Proving a translation: the API server is asked what it would say, and nothing is kept there.

It is asked as `berth-probe`, which can write nothing, so that the policies and quotas of the
namespace answer as they would answer anybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from devices.authoring import serveranswers
from devices.cluster.gateway import ClusterError, Gateway, Obj
from devices.models import Proof
from devices.translation.proof import namespaces, questions
from devices.translation.translate import Pair
from portal import news
from portal.errors import Invalid
from portal.outbox import lines as outbox
from tenants.models import Tenant

ANSWER: Final = "devices.tasks.answer_proof"
KEPT_FOR: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server says to one object; `accepted` is None where it said nothing."""

    about: str
    before: bool
    accepted: bool | None
    code: str
    words: str

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def ask(
    pairs: Sequence[Pair],
    *,
    tenant: Tenant,
    namespace: str,
    person: UUID,
    request_id: str,
    now: datetime,
) -> Proof:
    """Asks about translated workloads; returns the row to look at.

    `namespace` is where those that name none would go. Raises `Invalid` with the field `namespace`
    where one is not the tenant's: nobody learns here what others' namespaces would say.
    """
    own = set(tenant.namespaces.values_list("name", flat=True))
    if strange := sorted((namespaces(pairs) | {namespace}) - own - {""}):
        said = f"{strange[0]} is no namespace of this tenant, so nothing is asked there."
        raise Invalid("Not asked.", fields={"namespace": said})
    if not namespace:
        raise Invalid("Not asked.", fields={"namespace": "This tenant has no namespace yet."})
    row = Proof(
        tenant=tenant,
        asked_by=person,
        asked_at=now,
        request_id=request_id,
    )
    row.questions = [
        {"about": one.about, "before": one.before, "obj": one.obj}
        for one in questions(pairs, namespace, f"try-{row.public_id}")
    ]
    row.save()
    transaction.on_commit(lambda: outbox.hint(ANSWER, row.public_id), robust=True)
    return row


def answer(public_id: str, *, gateway: Gateway, now: datetime) -> bool:
    """Puts the objects to the API server and keeps what it says; returns whether it did so now."""
    row = Proof.objects.select_related("tenant").filter(public_id=public_id, answered_at=None)
    found = row.first()
    if found is None:
        return False
    said = [
        _put(one["about"], bool(one["before"]), one["obj"], gateway).as_json()
        for one in found.questions
    ]
    written = Proof.objects.filter(pk=found.pk, answered_at=None).update(
        answers=said, questions=[], answered_at=now
    )
    if written:
        news.publish([found.topic], tenant=found.tenant.slug)
    return bool(written)


def find(tenant: Tenant, public_id: str, person: UUID) -> Proof | None:
    """A person's own proof in a tenant; others' do not exist for them."""
    return Proof.objects.filter(tenant=tenant, public_id=public_id, asked_by=person).first()


def answers_of(row: Proof) -> list[Answer]:
    """What the server said, object by object."""
    return [Answer(**one) for one in row.answers]


def forget(now: datetime) -> int:
    """Drops what was asked more than an hour ago; returns how many."""
    return Proof.objects.filter(asked_at__lt=now - KEPT_FOR).delete()[0]


def _put(about: str, before: bool, obj: Obj, gateway: Gateway) -> Answer:
    try:
        gateway.create(obj, dry_run=True)
    except ClusterError as error:
        accepted, code = serveranswers.refusal(error)
        return Answer(about, before, accepted, code, error.message)
    return Answer(about, before, True, "ACCEPTED", "")

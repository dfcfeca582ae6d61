"""Asking the API server what it would say to objects, without keeping any of them.

Whoever asks writes a row; a worker puts the objects to the server with Berth's own account and
writes down the answer. Pages hear of it by their event stream, programs wait a moment or come back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from devices.authoring import serveranswers
from devices.cluster.dropped import dropped_fields
from devices.cluster.gateway import ClusterError, Gateway, Obj
from devices.dra.names import Manager
from devices.models import DryRun
from portal import news
from portal.outbox import lines as outbox

ANSWER: Final = "devices.tasks.answer_dry_run"
KEPT_FOR: Final = timedelta(hours=24)
MOST_OBJECTS: Final = 50


@dataclass(frozen=True, slots=True)
class Said:
    """The server's answer; `accepted` is None where there was none, and `code` says why."""

    accepted: bool | None
    code: str
    words: str
    refused: str = ""


def ask(
    objects: Sequence[Obj],
    *,
    about: str,
    person: UUID,
    request_id: str,
    now: datetime,
    tenant: str = "",
) -> DryRun:
    """Asks for a dry run of whole objects, in their order; returns the row to look at.

    `tenant` is whose open pages hear `row.topic` once there is an answer (`news.PLATFORM` for those
    of the platform).
    """
    row = DryRun.objects.create(
        about=about,
        objects_json=list(objects[:MOST_OBJECTS]),
        asked_by=person,
        asked_at=now,
        request_id=request_id,
        tenant=tenant,
    )
    transaction.on_commit(lambda: outbox.hint(ANSWER, row.public_id), robust=True)
    return row


def answer(public_id: str, *, gateway: Gateway, now: datetime) -> bool:
    """Puts the objects to the API server and keeps what it says; returns whether it did so now.

    The first answer stays: a task that comes twice asks in vain.
    """
    row = DryRun.objects.filter(public_id=public_id, answered_at=None).first()
    if row is None:
        return False
    said = put(row.objects_json, gateway)
    written = DryRun.objects.filter(pk=row.pk, answered_at=None).update(
        answered_at=now,
        accepted=said.accepted,
        code=said.code,
        said=said.words,
        refused=said.refused,
    )
    if written:
        news.publish([row.topic], tenant=row.tenant)
    return bool(written)


def put(objects: Sequence[Obj], gateway: Gateway) -> Said:
    """What the server says to these objects, up to the first that it refuses."""
    dropped: list[str] = []
    for obj in objects:
        try:
            stored = gateway.apply(obj, manager=Manager.CLAIM, dry_run=True)
        except ClusterError as error:
            return _no(error, name_of(obj))
        dropped += [f"{name_of(obj)}: {path}" for path in dropped_fields(obj, stored)]
    if dropped:
        words = "The API server would leave out, since a feature is off: " + ", ".join(dropped)
        return Said(True, "FIELD_DROPPED", words)
    return Said(True, "ACCEPTED", "The API server takes it.")


def find(public_id: str, person: UUID) -> DryRun | None:
    """A person's own dry run; others' do not exist for them."""
    return DryRun.objects.filter(public_id=public_id, asked_by=person).first()


def forget(now: datetime) -> int:
    """Drops what was asked more than a day ago; returns how many."""
    return DryRun.objects.filter(asked_at__lt=now - KEPT_FOR).delete()[0]


def name_of(obj: Any) -> str:
    """ "ResourceClaim team-a/train"."""
    metadata = obj.get("metadata", {})
    place = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{obj.get('kind', '?')} {place}{metadata.get('name', '?')}"


def _no(error: ClusterError, name: str) -> Said:
    """A refusal in the server's words; a fault is no answer at all."""
    accepted, code = serveranswers.refusal(error)
    return Said(accepted, code, error.message, name)

"""Second factors of local accounts: taken away by others, and what people do with their own.

allauth keeps them and has the pages; here is what the audit gets to know.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from allauth.mfa.models import Authenticator
from allauth.mfa.signals import authenticator_added, authenticator_removed, authenticator_reset
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone

from portal.audit.record import record
from portal.request_ids import request_id_of
from tenants.models import User

ACTIONS = {
    authenticator_added: "second_factor.set_up",
    authenticator_removed: "second_factor.removed",
    authenticator_reset: "second_factor.renewed",
}


@transaction.atomic
def remove_second_factor(user: User, *, by: User | None, now: datetime, request_id: str) -> int:
    """Removes app and recovery codes of a person who lost both; returns how many there were.

    `by` is None where a command on the server does it.
    """
    removed, _ = Authenticator.objects.filter(user=user).delete()
    if removed:
        record(
            action="second_factor.removed",
            subject=f"person {user.person}",
            request_id=request_id,
            at=now,
            person=by.person if by else None,
        )
    return int(removed)


def listen() -> None:
    """From now on each change that people make to their own second factor is an audit line."""
    for signal in ACTIONS:
        signal.connect(_changed, dispatch_uid=f"audit {ACTIONS[signal]}")


def _changed(
    sender: Any,
    signal: Any,
    request: HttpRequest,
    user: User,
    authenticator: Authenticator,
    **rest: Any,
) -> None:
    with transaction.atomic():
        record(
            action=ACTIONS[signal],
            subject=f"person {user.person}",
            request_id=request_id_of(request),
            at=timezone.now(),
            person=user.person,
            facts={"kind": str(authenticator.type)},
        )

"""Names for person ids: the one place where audit lines and approvals get names of people."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from tenants.models import User

GONE = "somebody who is gone"
BERTH = "Berth"


def names_of(people: Iterable[UUID | None]) -> dict[UUID | None, str]:
    """A name for every id asked for, in one query; None is Berth itself."""
    wanted = {person for person in people if person is not None}
    found: dict[UUID | None, str] = {None: BERTH, **dict.fromkeys(wanted, GONE)}
    found.update({user.person: user.words for user in User.objects.filter(person__in=wanted)})
    return found

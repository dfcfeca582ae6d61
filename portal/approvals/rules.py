"""Who may decide an approval, and what decisions make of it. Pure; knows no database.

Five rules hold whatever happens: the author never decides, nobody decides twice, a right counts
once even when it was lent to somebody else, nobody decides about their own tenant by a role on the
platform (admins may, for there may be nobody else), and one denial ends it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID


class State(StrEnum):
    """An approval is open until one of the four ends; no end is ever left again."""

    OPEN = "open"
    APPROVED = "approved"
    DENIED = "denied"
    VOID = "void"
    EXPIRED = "expired"


class Verdict(StrEnum):
    """What one person says. A denial needs a comment, so that the author can act on it."""

    APPROVE = "approve"
    DENY = "deny"


class Refusal(StrEnum):
    """Why somebody cannot decide; the same code in page, API and audit."""

    NOT_OPEN = "APPROVAL_NOT_OPEN"
    OWN_REQUEST = "OWN_REQUEST"
    OWN_TENANT = "OWN_TENANT"
    DECIDED_BEFORE = "ALREADY_DECIDED"
    RIGHT_USED = "RIGHT_ALREADY_USED"
    NO_RIGHT = "NOT_A_DECIDER"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of what is asked for: its value before and after.

    None is absence: `before=None` is a new line, `after=None` one that goes; equal values are
    unchanged and shown for orientation. `group` is the heading that the line stands under.
    """

    label: str
    before: str | None
    after: str | None
    group: str = ""

    @property
    def changed(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class Effect:
    """What it would do, for the one who decides; computed by the asker, not part of the digest.

    `part` says of what: budget, capacity, or check (then `state` is a word of the status table,
    such as done, fail or unknown).
    """

    part: str
    label: str
    value: str
    note: str = ""
    state: str = ""


@dataclass(frozen=True, slots=True)
class Rights:
    """What a person is: roles on the platform, and the role in each of their tenants by slug."""

    platform: frozenset[str] = frozenset()
    tenants: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DecidedBy:
    """Who may decide: holders of any of these platform roles, or of these roles in one tenant."""

    platform: frozenset[str] = frozenset()
    tenant: str = ""
    roles: frozenset[str] = frozenset()

    @property
    def words(self) -> str:
        """ "approver or admin", "owner of tidewater"."""
        parts = sorted(self.platform)
        if self.tenant:
            parts += [f"{role} of {self.tenant}" for role in sorted(self.roles)]
        return " or ".join(parts) or "nobody"


@dataclass(frozen=True, slots=True)
class Decider:
    """Somebody at the door: their own rights, and those that others lent them for now."""

    person: UUID
    rights: Rights
    lent: Mapping[UUID, Rights] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision that was taken: by whom, and whose right it used (mostly their own)."""

    person: UUID
    holder: UUID
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Case:
    """An approval as the rules see it. `coauthors` had a hand in what the author asks for, and
    `tenant` is the slug of the tenant that it is about, if it is about one.
    """

    author: UUID
    by: DecidedBy
    needed: int
    state: State
    expires_at: datetime
    decided: tuple[Decided, ...] = ()
    coauthors: frozenset[UUID] = frozenset()
    tenant: str = ""

    @property
    def own(self) -> frozenset[UUID]:
        """Whose work it is: none of them decides, and no right of theirs does."""
        return self.coauthors | {self.author}


@dataclass(frozen=True, slots=True)
class Seat:
    """Yes, they may decide, with the right of `holder`."""

    holder: UUID


@dataclass(frozen=True, slots=True)
class NoSeat:
    """No, and why, in words that name who may."""

    code: Refusal
    words: str


def holds(rights: Rights, by: DecidedBy) -> bool:
    """Whether these rights are among those that decide."""
    return bool(rights.platform & by.platform) or (
        bool(by.tenant) and rights.tenants.get(by.tenant) in by.roles
    )


def about_their_own(rights: Rights, case: Case) -> bool:
    """Whether it is about a tenant of theirs, so that a role on the platform decides nothing."""
    return (
        case.tenant in rights.tenants
        and "admin" not in rights.platform
        and not (case.by.tenant == case.tenant and rights.tenants[case.tenant] in case.by.roles)
    )


def seat(case: Case, decider: Decider, now: datetime) -> Seat | NoSeat:
    """Whether `decider` may decide now, and with whose right: their own before a lent one.

    A right that an author lent does not count, nor one of whoever belongs to the tenant that it is
    about: nobody decides their own request by proxy.
    """
    if case.state != State.OPEN:
        return NoSeat(Refusal.NOT_OPEN, f"It is {case.state} already; nothing is left to decide.")
    if now >= case.expires_at:
        return NoSeat(Refusal.NOT_OPEN, "Its time is over; its author can ask again.")
    if decider.person == case.author:
        return NoSeat(Refusal.OWN_REQUEST, f"You asked for it; {case.by.words} decides, not you.")
    if decider.person in case.coauthors:
        return NoSeat(Refusal.OWN_REQUEST, "You had a hand in it; somebody else decides.")
    if decider.person in {one.person for one in case.decided}:
        return NoSeat(Refusal.DECIDED_BEFORE, "You decided it already; each person counts once.")
    usable = [decider.person] if holds(decider.rights, case.by) else []
    usable += sorted(
        person
        for person, rights in decider.lent.items()
        if person not in {*case.own, decider.person}
        and holds(rights, case.by)
        and not about_their_own(rights, case)
    )
    if not usable:
        return NoSeat(Refusal.NO_RIGHT, f"To decide this one must be {case.by.words}.")
    if about_their_own(decider.rights, case):
        return NoSeat(Refusal.OWN_TENANT, "It is about a tenant of yours; somebody else decides.")
    used = {one.holder for one in case.decided}
    free = [person for person in usable if person not in used]
    if not free:
        return NoSeat(
            Refusal.RIGHT_USED, "Your right was used by the person you lent it to, or by its owner."
        )
    return Seat(free[0])


def outcome(case: Case) -> State:
    """What the decisions so far make of it; ended cases stay as they are."""
    if case.state != State.OPEN:
        return case.state
    verdicts = [one.verdict for one in case.decided]
    if Verdict.DENY in verdicts:
        return State.DENIED
    return State.APPROVED if verdicts.count(Verdict.APPROVE) >= case.needed else State.OPEN


def digest(kind: str, subject: str, lines: Iterable[Line]) -> str:
    """The hex SHA-256 over what is asked for; one changed character is another request."""
    content = [kind, subject, [asdict(line) for line in lines]]
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()

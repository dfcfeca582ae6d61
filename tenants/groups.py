"""What groups give: the difference between what somebody holds and what their groups say. Pure.

Three maps from a place to a role are compared; a place is a tenant's slug, or for the platform the
role itself, for one can have several of those.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

RANK = ("viewer", "member", "owner")


@dataclass(frozen=True, slots=True)
class Change:
    """At `place`, the role becomes `after`; None is no role."""

    place: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Turn:
    """What to change, and what is held by groups once it is changed."""

    changes: tuple[Change, ...]
    held: Mapping[str, str]


def highest(roles: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Of several roles that groups give in one tenant the greatest: (slug, role) pairs → map."""
    best: dict[str, str] = {}
    for place, role in roles:
        if place not in best or RANK.index(role) > RANK.index(best[place]):
            best[place] = role
    return best


def turn(*, wanted: Mapping[str, str], held: Mapping[str, str], has: Mapping[str, str]) -> Turn:
    """`wanted` by the groups of now, `held` by the groups of last time, `has` altogether.

    A role that a person gave stays whatever groups say, greater or lesser; so does one that groups
    gave and a person has changed since. What only groups gave goes when no group gives it.
    """
    changes, keeps = [], {}
    for place in sorted({*wanted, *held, *has}):
        want, by_groups, role = wanted.get(place), held.get(place), has.get(place)
        if role is not None and role != by_groups:
            continue
        if want != role:
            changes.append(Change(place, role, want))
        if want is not None:
            keeps[place] = want
    return Turn(tuple(changes), keeps)

"""What to do so that the cluster agrees with a wish: wanted objects, found objects → acts. Pure.

Specs of claims and templates are immutable in Kubernetes, so there is no "update": an object is
there, or it is made once, or it is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Obj = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Make:
    """Apply this object; it is not there and never was."""

    obj: Obj


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete this object, and only the one with this uid."""

    kind: str
    namespace: str
    name: str
    uid: str


Act = Make | Remove


def changes(
    wanted: Sequence[Obj], found: Sequence[Obj], *, made_before: bool, mine: frozenset[str]
) -> list[Act]:
    """Acts that bring `found` to `wanted`; an empty list means they agree.

    `found` are the ask's objects, claims that Kubernetes generated among them. Only kinds in `mine`
    are ever deleted: a generated claim belongs to its Pod. An object that was made before and is
    gone was deleted by somebody else and is not made again.
    """
    acts: list[Act] = []
    present = {_key(obj) for obj in found}
    for obj in wanted:
        if _key(obj) not in present and not made_before:
            acts.append(Make(obj))
    keep = {_key(obj) for obj in wanted}
    for obj in found:
        metadata = obj["metadata"]
        removable = obj["kind"] in mine and not generated(obj) and _key(obj) not in keep
        if removable and not metadata.get("deletionTimestamp"):
            acts.append(
                Remove(obj["kind"], metadata["namespace"], metadata["name"], metadata["uid"])
            )
    return acts


def generated(obj: Obj) -> bool:
    """Whether the claim controller made this claim for a Pod (it owns it as controller)."""
    owners = obj.get("metadata", {}).get("ownerReferences") or []
    return obj.get("kind") == "ResourceClaim" and any(owner.get("controller") for owner in owners)


def _key(obj: Obj) -> tuple[str, str, str]:
    metadata = obj["metadata"]
    return obj["kind"], metadata["namespace"], metadata["name"]

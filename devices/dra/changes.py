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


def changes(wanted: Sequence[Obj], found: Obj | None, *, made_before: bool) -> list[Act]:
    """Acts that bring `found`, the ask's own object, to `wanted`; an empty list means they agree.

    An object that was made before and is gone was deleted by somebody else and is not made again.
    """
    if wanted:
        return [] if found or made_before else [Make(obj) for obj in wanted]
    if found is None or found["metadata"].get("deletionTimestamp"):
        return []
    metadata = found["metadata"]
    return [Remove(found["kind"], metadata["namespace"], metadata["name"], metadata["uid"])]


def generated(obj: Obj) -> bool:
    """Whether the claim controller made this claim for a Pod (it owns it as controller)."""
    owners = obj.get("metadata", {}).get("ownerReferences") or []
    return obj.get("kind") == "ResourceClaim" and any(owner.get("controller") for owner in owners)

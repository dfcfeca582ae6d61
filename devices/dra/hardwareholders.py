"""Who holds devices, as far as somebody may know: own claims by name, others counted. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from devices.dra.claims import Claim
from devices.dra.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ClassHolders:
    """Who holds devices of a class: the viewer's own claims with how many each, and how many
    devices and claims are others'.
    """

    own: tuple[tuple[Claim, int], ...] = ()
    other_claims: int = 0
    other_devices: int = 0


def claims_of_class(
    snapshot: Snapshot, name: str, namespaces: Collection[str] | None, most: int = 200
) -> ClassHolders:
    """Claims that hold devices which they asked for by this class, the largest first; of one's own
    at most ``most``. ``namespaces`` are the viewer's own; None for whoever may see them all.
    """
    own: list[tuple[Claim, int]] = []
    claims = devices = 0
    for claim in snapshot.claims.values():
        results = claim.allocation.results if claim.allocation else ()
        amount = sum(
            not result.admin and claim.spec.class_of(result.request) == name for result in results
        )
        if not amount:
            continue
        if namespaces is None or claim.meta.namespace in namespaces:
            own.append((claim, amount))
        else:
            claims, devices = claims + 1, devices + amount
    own.sort(key=lambda pair: (-pair[1], str(pair[0])))
    return ClassHolders(tuple(own[:most]), claims, devices)


@dataclass(frozen=True, slots=True)
class Held:
    """Who holds something, as far as a viewer may know: their own claims, and how many others."""

    own: tuple[Claim, ...]
    others: int


def held(claims: Iterable[Claim], namespaces: Collection[str] | None) -> Held:
    """``namespaces`` are the viewer's own; None for whoever may see them all."""
    every = tuple(claims)
    if namespaces is None:
        return Held(every, 0)
    own = tuple(claim for claim in every if claim.meta.namespace in namespaces)
    return Held(own, len(every) - len(own))

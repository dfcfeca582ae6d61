"""Which path new work takes to a class, and why: claims, or extended resources. Pure.

Three ways lead to devices: a claim (DRA), an extended resource that a device plugin serves, and an
extended resource that the scheduler turns into a claim (KEP-5004). Whoever moves node pools decides
the first two; where nobody does, what the cluster has decides. Only what an extended resource can
say may go that way: a number of devices of one class, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from devices.dra.objects import ClaimWish

#: Every class is an extended resource of its own under this name (KEP-5004).
IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"


class Path(StrEnum):
    """A way to devices."""

    CLAIM = "claim"
    PLUGIN = "plugin"
    EXTENDED = "extended"

    @property
    def words(self) -> str:
        return _WORDS[self]


_WORDS: Final = {
    Path.CLAIM: "a claim (DRA)",
    Path.PLUGIN: "the device plugin",
    Path.EXTENDED: "an extended resource that DRA serves",
}


@dataclass(frozen=True, slots=True)
class Serving:
    """How a class can be had in the cluster now: devices by DRA, and by a plugin under a name.

    ``resource`` is the class's extended resource, empty where it names none. ``extended`` says
    whether the cluster turns extended resources into claims, None where nobody knows. ``wanted`` is
    what whoever moves the node pools has set, None where nobody has.
    """

    device_class: str
    by_dra: int
    by_plugin: int
    resource: str = ""
    extended: bool | None = None
    wanted: Path | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """The path for new work, why, and what a Pod asks for where it is not a claim.

    ``also`` names the extended resource by which the same devices can be had without a claim of
    one's own, empty where they cannot.
    """

    path: Path
    why: str
    resources: tuple[tuple[str, int], ...] = ()
    also: tuple[tuple[str, int], ...] = ()


def route(asked: ClaimWish, serving: Sequence[Serving]) -> Route:
    """The path that an ask takes now. ``serving`` has one entry for each class that it names."""
    plain = expressible(asked)
    wanted = {each.wanted for each in serving} - {None}
    resources = tuple(
        (each.resource or f"{IMPLICIT}{each.device_class}", device.count)
        for device in asked.devices
        for each in serving
        if each.device_class == device.device_class
    )
    backed = plain and all(each.extended for each in serving) and bool(serving)
    also = resources if backed else ()
    if wanted == {Path.PLUGIN} and plain and all(each.resource for each in serving):
        why = "The platform team sends new work for this class to the device plugin for now."
        return Route(Path.PLUGIN, why, resources)
    if wanted == {Path.EXTENDED} and backed:
        why = "The platform team sends new work by extended resource, which DRA serves."
        return Route(Path.EXTENDED, why, resources)
    if serving and all(not each.by_dra and each.by_plugin for each in serving):
        if plain and all(each.resource for each in serving):
            why = "Only the device plugin has devices of this class; a claim would wait for ever."
            return Route(Path.PLUGIN, why, resources)
        why = (
            "Only the device plugin has devices of this class, and what you ask for cannot be said "
            "to it; the claim waits until DRA has some."
        )
        return Route(Path.CLAIM, why)
    return Route(Path.CLAIM, _why_claim(plain, serving), (), also)


def expressible(asked: ClaimWish) -> bool:
    """Whether an extended resource can say it: numbers of devices, without any condition."""
    bare = all(not device.selectors and not device.capacity for device in asked.devices)
    classes = [device.device_class for device in asked.devices]
    return bare and not asked.matches and len(classes) == len(set(classes))


def _why_claim(plain: bool, serving: Sequence[Serving]) -> str:
    if any(each.by_plugin for each in serving):
        return "Some nodes serve this class by DRA, others by the plugin; a claim gets DRA's."
    if not plain:
        return "Only a claim can say what you ask for beyond a number of devices."
    return "DRA serves this class, and a claim can be watched and shared."

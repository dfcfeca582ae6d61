"""Which path new work takes to a class, and why: claims, or extended resources. Pure.

Three ways lead to devices: a claim (DRA), an extended resource that a device plugin serves, and an
extended resource that the scheduler turns into a claim (KEP-5004). Whoever moves node pools decides
the first two; where nobody does, what the cluster has decides. Only what an extended resource can
say may go that way: a number of devices of one class, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from devices.dra.objects import ClaimWish, Shape

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
class Ruling:
    """What the platform has set for a class: the path of new work, why, and for whom.

    ``tenant`` and ``template`` are slugs, empty for all; ``id`` names it, ``set_at`` is when it was
    set, ``until`` when it ends by itself (None: never).
    """

    id: str
    path: Path
    device_class: str
    reason: str
    set_at: datetime
    tenant: str = ""
    template: str = ""
    until: datetime | None = None

    def concerns(self, device_class: str, tenant: str, template: str) -> bool:
        """Whether it is about such an ask."""
        return (
            self.device_class == device_class
            and self.tenant in ("", tenant)
            and self.template in ("", template)
        )


def ruling(
    rulings: Iterable[Ruling], device_class: str, tenant: str, template: str
) -> Ruling | None:
    """What counts for an ask: what is about its tenant before what is about all, then what is about
    its template before what is about every one, and of equals the newest.
    """
    concerned = [one for one in rulings if one.concerns(device_class, tenant, template)]
    return max(
        concerned,
        key=lambda one: (bool(one.tenant), bool(one.template), one.set_at, one.id),
        default=None,
    )


@dataclass(frozen=True, slots=True)
class Serving:
    """How a class can be had in the cluster now: devices by DRA, and by a plugin under a name.

    ``resource`` is the class's extended resource, empty where it names none. ``extended`` says
    whether the cluster turns extended resources into claims, None where nobody knows. ``ruling`` is
    what whoever moves the node pools has set, None where nobody has.
    """

    device_class: str
    by_dra: int
    by_plugin: int
    resource: str = ""
    extended: bool | None = None
    ruling: Ruling | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """The path for new work, why, and what a Pod asks for where it is not a claim.

    ``also`` names the extended resource by which the same devices can be had without a claim of
    one's own, empty where they cannot. ``rulings`` are the ids of what the platform has set for the
    ask, whether it could be followed or not.
    """

    path: Path
    why: str
    resources: tuple[tuple[str, int], ...] = ()
    also: tuple[tuple[str, int], ...] = ()
    rulings: tuple[str, ...] = ()


def route(asked: ClaimWish, serving: Sequence[Serving]) -> Route:
    """The path that an ask takes now. ``serving`` has one entry for each class that it names."""
    plain = expressible(asked)
    set_ = [each.ruling for each in serving if each.ruling is not None]
    rulings = tuple(sorted(one.id for one in set_))
    resources = tuple(
        (each.resource or f"{IMPLICIT}{each.device_class}", device.count)
        for device in asked.devices
        for each in serving
        if each.device_class == device.device_class
    )
    named = bool(serving) and all(each.resource for each in serving)
    backed = plain and bool(serving) and all(each.extended for each in serving)
    also = resources if backed else ()
    wanted = {one.path for one in set_}
    if len(wanted) == 1 and len(set_) == len(serving):
        path, why = wanted.pop(), _ruled(set_)
        if path is Path.CLAIM:
            return Route(Path.CLAIM, why, (), also, rulings)
        if (path is Path.PLUGIN and plain and named) or (path is Path.EXTENDED and backed):
            return Route(path, why, resources, (), rulings)
        return Route(Path.CLAIM, f"{why} {_cannot(asked, path, named)}", (), also, rulings)
    if serving and all(not each.by_dra and each.by_plugin for each in serving):
        if plain and named:
            why = "Only the device plugin has devices of this class; a claim would wait for ever."
            return Route(Path.PLUGIN, why, resources, (), rulings)
        why = (
            "Only the device plugin has devices of this class, and what you ask for cannot be said "
            "to it; the claim waits until DRA has some."
        )
        return Route(Path.CLAIM, why, (), (), rulings)
    return Route(Path.CLAIM, _why_claim(asked, plain, serving), (), also, rulings)


def _ruled(rulings: Sequence[Ruling]) -> str:
    """Who sends new work where, why, and until when."""
    path, reasons = rulings[0].path, dict.fromkeys(one.reason for one in rulings)
    ends = [one.until for one in rulings if one.until is not None]
    until = f" until {min(ends):%-d %b %H:%M} UTC" if ends else ""
    return (
        f"The platform team sends new work for this by {path.words}{until}: "
        f"{' '.join(reasons).rstrip('.')}."
    )


def _cannot(asked: ClaimWish, path: Path, named: bool) -> str:
    """Why an ask does not go where new work is sent."""
    if asked.shape is Shape.CLAIM:
        return "Pods share this one, and only a claim can be shared."
    if not expressible(asked):
        return "Only a claim can say what you ask for, so it goes by claim."
    if path is Path.PLUGIN and not named:
        return "The class names no extended resource, so it goes by claim."
    return "The cluster does not turn extended resources into claims, so it goes by claim."


def expressible(asked: ClaimWish) -> bool:
    """Whether an extended resource can say it: numbers of devices, without any condition, and for
    each Pod its own.
    """
    bare = all(
        not (device.selectors or device.capacity or device.tolerations or device.alternatives)
        for device in asked.devices
    )
    alone = len(asked.device_classes) == len(asked.devices)
    own = asked.shape is Shape.TEMPLATE
    return own and bare and alone and not asked.matches and not asked.configs


def _why_claim(asked: ClaimWish, plain: bool, serving: Sequence[Serving]) -> str:
    if any(each.by_plugin for each in serving):
        return "Some nodes serve this class by DRA, others by the plugin; a claim gets DRA's."
    if asked.shape is Shape.CLAIM:
        return "Only a claim can be shared by Pods."
    if not plain:
        return "Only a claim can say what you ask for beyond a number of devices."
    return "DRA serves this class, and a claim can be watched and shared."

"""Which Kubernetes releases are unfit, and what the next one changes without anybody's edit. Pure.

Sources: the release notes and issues of kubernetes/kubernetes that each row names; ``v1.34.1``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

Version = tuple[int, int, int]
OLDEST: Final[Version] = (1, 34, 2)
NEWEST_TRIED: Final = (1, 37)


@dataclass(frozen=True, slots=True)
class Unfit:
    """Releases from ``first`` up to, and without, ``fixed``."""

    first: Version
    fixed: Version
    harm: str
    issue: str


UNFIT: Final = (
    Unfit(
        (1, 34, 0),
        (1, 34, 2),
        "A kubelet does not notice that a driver registered anew: after each restart of a driver "
        "Pods fail with “driver is not registered”.",
        "kubernetes/kubernetes#133920",
    ),
    Unfit(
        (1, 34, 0),
        (1, 34, 4),
        "The scheduler can give one device to two claims that are scheduled at the same time.",
        "kubernetes/kubernetes#136269",
    ),
    Unfit(
        (1, 35, 0),
        (1, 35, 1),
        "The scheduler can give one device to two claims that are scheduled at the same time.",
        "kubernetes/kubernetes#136269",
    ),
)


@dataclass(frozen=True, slots=True)
class Change:
    """What a minor release changes by itself. ``sight`` names what of it can be counted here."""

    minor: int
    key: str
    what: str
    check: str
    sight: str = ""


CHANGES: Final = (
    Change(
        35,
        "counters",
        "Counters and devices must stand in separate slices, and counters have new limits.",
        "Is the driver of partitionable devices of a version that says so?",
        "slices with partitions",
    ),
    Change(
        35,
        "taint-rules",
        "DeviceTaintRules lose their class and CEL selectors: a rule that had nothing else "
        "matches every device.",
        "Rewrite such rules before.",
        "taint rules",
    ),
    Change(
        36,
        "status",
        "Whoever writes device status or binds claims needs rights of their own "
        "(resourceclaims/driver, resourceclaims/binding).",
        "Look at the roles of each driver and of each further scheduler.",
    ),
    Change(
        36,
        "extended",
        "A class's extendedResourceName goes live: Pods that ask by that name may get devices by "
        "DRA, and quota for it counts.",
        "Is that meant, on nodes whose device plugin is gone?",
        "classes with an extended resource",
    ),
    Change(
        36,
        "beta",
        "Device taints, partitions, shares and binding conditions are on.",
        "Stored slices may have such fields from before, which count from now on.",
        "slices",
    ),
    Change(
        37,
        "node-allocatable",
        "The fields for node resources of devices have another shape; those of 1.36 vanish.",
        "Does the driver publish the new shape? It must take its slices back and write them anew.",
        "slices in the older shape",
    ),
    Change(
        37,
        "rules",
        "DeviceTaintRule is served as v1 and on by default.",
        "Rules that were written and had no effect have one.",
        "taint rules",
    ),
    Change(
        38,
        "v1beta1",
        "resource.k8s.io/v1beta1 is no longer served.",
        "Look for charts, policies and webhooks that name only that version.",
    ),
)


def version_of(release: str) -> Version | None:
    """(1, 37, 2) of "v1.37.2" or "v1.36.3-eks-1"; None where it says nothing of the kind."""
    found = re.match(r"v?(\d+)\.(\d+)\.(\d+)", release)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def unfit(version: Version) -> tuple[Unfit, ...]:
    """What is known against this very release."""
    return tuple(one for one in UNFIT if one.first <= version < one.fixed)


def changes_after(version: Version) -> tuple[Change, ...]:
    """What the next minor release changes."""
    return tuple(one for one in CHANGES if one.minor == version[1] + 1)

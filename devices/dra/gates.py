"""Which features a cluster has on: by release, by what was read of it, or by assumption, named.

Sources: ``pkg/features/kube_features.go`` of the releases. A gate is a process flag per
component; the ones here decide what the scheduler's allocator does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

#: Releases whose scheduler is modelled, oldest first.
RELEASES: Final = ("1.34", "1.35", "1.36", "1.37")
NEWEST: Final = RELEASES[-1]

_OFF: Final = frozenset[str]()
#: For each gate that matters here, the releases in which it is on by default.
ON_BY_DEFAULT: Final[Mapping[str, frozenset[str]]] = {
    "DRAAdminAccess": frozenset(RELEASES),
    "DRAPrioritizedList": frozenset(RELEASES),
    "DRAResourceClaimDeviceStatus": frozenset(RELEASES),
    "DRASchedulerFilterTimeout": frozenset(RELEASES),
    "DRAExtendedResource": frozenset({"1.36", "1.37"}),
    "DRADeviceTaints": frozenset({"1.36", "1.37"}),
    "DRADeviceTaintRules": frozenset({"1.37"}),
    "DRAPartitionableDevices": frozenset({"1.36", "1.37"}),
    "DRAConsumableCapacity": frozenset({"1.36", "1.37"}),
    "DRADeviceBindingConditions": frozenset({"1.36", "1.37"}),
    "DRAFractionalCapacityRange": frozenset({"1.37"}),
    "DRANodeAllocatableResources": _OFF,
    "DRAListTypeAttributes": _OFF,
    "DRAResourcePoolStatus": _OFF,
    "DRAWorkloadResourceClaims": _OFF,
    "DRAPartitionableDevicesType": _OFF,
    "DRAOptionalNodeOperations": _OFF,
    "DRADerivedAttributes": _OFF,
    "DRADeviceCompatibilityGroups": _OFF,
}
#: The release that brought a gate; an older cluster cannot have it on.
SINCE: Final[Mapping[str, str]] = {
    "DRADeviceTaintRules": "1.35",
    "DRANodeAllocatableResources": "1.36",
    "DRAListTypeAttributes": "1.36",
    "DRAResourcePoolStatus": "1.36",
    "DRAWorkloadResourceClaims": "1.36",
    "DRAFractionalCapacityRange": "1.37",
    "DRAPartitionableDevicesType": "1.37",
    "DRAOptionalNodeOperations": "1.37",
    "DRADerivedAttributes": "1.37",
    "DRADeviceCompatibilityGroups": "1.37",
}


class GateError(ValueError):
    """A gate setting that cannot be; the message says why."""


@dataclass(frozen=True, slots=True)
class Gates:
    """The features of one cluster. ``read`` names the gates whose state was read from it; all
    others are assumed to be what the release has by default, and pages say so. ``scheduled`` says
    that kube-scheduler itself is meant, not the allocator alone that is a part of it.
    """

    release: str = NEWEST
    on: frozenset[str] = field(default_factory=lambda: _defaults(NEWEST))
    read: frozenset[str] = _OFF
    scheduled: bool = False

    def __contains__(self, gate: object) -> bool:
        return gate in self.on

    @property
    def assumed(self) -> tuple[str, ...]:
        """Gates whose state nobody has read."""
        return tuple(sorted(ON_BY_DEFAULT.keys() - self.read))

    @property
    def binding(self) -> bool:
        """Binding conditions need two gates."""
        return "DRADeviceBindingConditions" in self.on and "DRAResourceClaimDeviceStatus" in self.on

    @property
    def lists(self) -> bool:
        """Whether attributes may be lists."""
        return "DRAListTypeAttributes" in self.on

    @property
    def compared_lists(self) -> bool:
        """Whether constraints compare lists: 1.36's scheduler never tells its allocator to."""
        return self.lists and (not self.scheduled or self.at_least("1.37"))

    def at_least(self, release: str) -> bool:
        """Whether the cluster's release is this one or a later one."""
        return RELEASES.index(self.release) >= RELEASES.index(release)


def gates(
    release: str = NEWEST,
    settings: Mapping[str, bool] | None = None,
    *,
    every: bool = False,
    read: bool = False,
) -> Gates:
    """The gates of a release by default (or all of them, with ``every``), then ``settings``.

    ``read`` says that the settings were read from the cluster rather than assumed. Raises
    GateError for a release or a gate that nobody knows, or a gate that is younger than the release.
    """
    release = ".".join(release.removeprefix("v").split(".")[:2])
    if release not in RELEASES:
        raise GateError(f"release {release} is not one of {', '.join(RELEASES)}")
    on = set(_all(release) if every else _defaults(release))
    for gate, state in (settings or {}).items():
        if gate not in ON_BY_DEFAULT:
            raise GateError(f"no gate is called {gate}")
        if state and gate not in _all(release):
            raise GateError(f"{gate} does not exist before {SINCE[gate]}")
        (on.add if state else on.discard)(gate)
    return Gates(release, frozenset(on), frozenset(settings or ()) if read else _OFF)


def parse(text: str, release: str = NEWEST) -> Gates:
    """Reads ``default``, ``all``, or either followed by ``Name=true,Name=false``."""
    base, _, rest = (
        text.partition(",") if "=" not in text.partition(",")[0] else ("default", "", text)
    )
    if base not in ("default", "all", ""):
        raise GateError(f"gates start with default or all, not {base!r}")
    settings: dict[str, bool] = {}
    for item in filter(None, rest.split(",")):
        name, _, state = item.strip().partition("=")
        if state.lower() not in ("true", "false"):
            raise GateError(f"{item!r} is not Name=true or Name=false")
        settings[name] = state.lower() == "true"
    return gates(release, settings, every=base == "all")


def _defaults(release: str) -> frozenset[str]:
    return frozenset(gate for gate, releases in ON_BY_DEFAULT.items() if release in releases)


def _all(release: str) -> frozenset[str]:
    index = RELEASES.index(release)
    return frozenset(
        gate for gate in ON_BY_DEFAULT if RELEASES.index(SINCE.get(gate, RELEASES[0])) <= index
    )

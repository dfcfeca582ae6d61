"""Who uses the devices of one sort on one node, by the two books that know nothing of each other.

While both have entries nobody in Kubernetes can say whether two Pods sit on one device: the plugin
counts, the driver names, and their names need not mean the same hardware.
"""

from __future__ import annotations

from dataclasses import dataclass

from devices.dra.claims import Claim
from devices.dra.conversion.driver import driver_claims
from devices.dra.conversion.place import Place
from devices.dra.conversion.plugin import PluginHolder, plugin_holders
from devices.dra.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Uses:
    """Holders by the plugin's book, and claims by the driver's."""

    holders: tuple[PluginHolder, ...]
    claims: tuple[Claim, ...]

    @property
    def mixed(self) -> bool:
        """Whether both paths have given devices out, so that one may be given twice."""
        return bool(self.holders and self.claims)


def uses(place: Place, snapshot: Snapshot) -> Uses:
    """What the API shows; a Pod that was deleted by force shows in neither book."""
    here, _ = driver_claims(place, snapshot)
    return Uses(plugin_holders(place, snapshot), here)

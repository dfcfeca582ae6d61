"""What a look at the cluster proves of the steps by which a node changes from a device plugin to a
DRA driver, and back.

Every proof takes what was seen and the time, and returns a `Proof`; nothing here acts, waits or
remembers. Each was asked of real kubelets (tests/playground/conversion).
"""

from devices.dra.conversion.driver import (
    claims_are_free,
    driver_claims,
    driver_is_off,
    slices_are_complete,
    slices_are_gone,
)
from devices.dra.conversion.kubelet import (
    kubelet_trap,
    memory_is_clean,
    settling_is_over,
)
from devices.dra.conversion.nodereport import NodeReport, read_report
from devices.dra.conversion.place import DaemonSet, Look, Place, Times
from devices.dra.conversion.plugin import (
    PluginHolder,
    no_plugin_holders,
    plugin_holders,
    plugin_is_off,
    plugin_is_on,
)
from devices.dra.conversion.proof import Proof, Verdict
from devices.dra.conversion.trials import canary_proves, canary_started, taint_holds
from devices.dra.conversion.uses import Uses, uses

__all__ = [
    "DaemonSet",
    "Look",
    "NodeReport",
    "Place",
    "PluginHolder",
    "Proof",
    "Times",
    "Uses",
    "Verdict",
    "canary_proves",
    "canary_started",
    "claims_are_free",
    "driver_claims",
    "driver_is_off",
    "kubelet_trap",
    "memory_is_clean",
    "no_plugin_holders",
    "plugin_holders",
    "plugin_is_off",
    "plugin_is_on",
    "read_report",
    "settling_is_over",
    "slices_are_complete",
    "slices_are_gone",
    "taint_holds",
    "uses",
]

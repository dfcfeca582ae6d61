"""The features that Berth knows of: what they are for, what they need, what is done without. Data.

One row a feature: its gates (the first is the one it is known by), the kinds and fields by which it
shows in the API, the components beside the API server that must have it too. Sources: the gate
tables of Kubernetes 1.34 to 1.37 and the KEP that each row names.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Component(StrEnum):
    """A process whose gates no API tells."""

    SCHEDULER = "scheduler"
    CONTROLLERS = "controllers"
    KUBELET = "kubelet"

    @property
    def words(self) -> str:
        return {
            Component.SCHEDULER: "kube-scheduler",
            Component.CONTROLLERS: "kube-controller-manager",
            Component.KUBELET: "the kubelets",
        }[self]


@dataclass(frozen=True, slots=True)
class Feature:
    """``words`` names it, ``means`` says what it is good for, ``without`` what Berth does where the
    cluster does not serve it. ``tenant`` says whether it matters to whoever asks for devices.
    """

    key: str
    words: str
    means: str
    without: str
    gates: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    needs: tuple[Component, ...] = ()
    kep: int = 0
    tenant: bool = True


_S, _C, _K = Component.SCHEDULER, Component.CONTROLLERS, Component.KUBELET

#: Releases in which a gate is locked to on: no component of that release can have it off.
LOCKED: Final = {
    "DynamicResourceAllocation": frozenset({"1.35", "1.36", "1.37"}),
    "DRAAdminAccess": frozenset({"1.36", "1.37"}),
    "DRAPrioritizedList": frozenset({"1.37"}),
    "DRAResourceClaimDeviceStatus": frozenset({"1.37"}),
    "DRAExtendedResource": frozenset({"1.37"}),
}

FEATURES: Final = (
    Feature(
        "core",
        "Claims for devices",
        "A Pod gets devices by a claim; the scheduler picks them, a driver prepares them.",
        "Devices can be had by the device plugin only; Berth shows what there is, and no form.",
        gates=("DynamicResourceAllocation",),
        kinds=("ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "ResourceSlice"),
        needs=(_S, _C, _K),
        kep=4381,
    ),
    Feature(
        "alternatives",
        "Alternatives in order",
        "One ask may name several devices, and takes the first that can be had.",
        "Templates with alternatives cannot be asked for; what-if still shows the nearest fit.",
        gates=("DRAPrioritizedList",),
        needs=(_S,),
        kep=4816,
    ),
    Feature(
        "partitions",
        "Partitions",
        "A card is handed out in parts that exclude each other.",
        "The scheduler passes over such devices; they are counted as unavailable.",
        gates=("DRAPartitionableDevices",),
        fields=("Device.consumesCounters", "ResourceSliceSpec.sharedCounters"),
        needs=(_S,),
        kep=4815,
    ),
    Feature(
        "shares",
        "Shares of a device",
        "Several claims take so much of one device each: cores, bandwidth, memory.",
        "A device that could be shared is given out whole, to one claim.",
        gates=("DRAConsumableCapacity",),
        fields=("Device.allowMultipleAllocations",),
        needs=(_S, _K),
        kep=5075,
    ),
    Feature(
        "fractions",
        "Fractions of a unit",
        "A share may be a fraction of a unit, within bounds that the device sets.",
        "Shares are whole steps.",
        gates=("DRAFractionalCapacityRange",),
        needs=(_S,),
    ),
    Feature(
        "extended",
        "Extended resources served by DRA",
        "A Pod that asks for a number of an extended resource gets devices without a claim.",
        "Such Pods are served by device plugins only; forms give claims instead.",
        gates=("DRAExtendedResource",),
        fields=("DeviceClassSpec.extendedResourceName",),
        needs=(_S, _C, _K),
        kep=5004,
    ),
    Feature(
        "device status",
        "What drivers say of a device in use",
        "Addresses and conditions of a device stand in the claim that holds it.",
        "A claim's page names its devices and says nothing more of them.",
        gates=("DRAResourceClaimDeviceStatus",),
        kep=4817,
    ),
    Feature(
        "health",
        "Health of devices in use",
        "The kubelet says in the Pod's status whether its devices are well.",
        "Health is shown as not known, never as good.",
        gates=("ResourceHealthStatus",),
        needs=(_K,),
        kep=4680,
    ),
    Feature(
        "binding",
        "Devices attached on demand",
        "A Pod is bound once its device says that it is attached to the node.",
        "Such devices are counted as unavailable: a Pod could start before its device is there.",
        gates=("DRADeviceBindingConditions",),
        fields=("Device.bindingConditions",),
        needs=(_S,),
        kep=5007,
    ),
    Feature(
        "node amounts",
        "CPU and memory by devices",
        "What a device takes of its node's CPU and memory counts into the node's account.",
        "The node ledger counts Pods' own requests only, and says so.",
        gates=("DRANodeAllocatableResources",),
        fields=("Device.nodeAllocatableResources", "Device.nodeAllocatableResourceMappings"),
        needs=(_S, _K),
        kep=5517,
    ),
    Feature(
        "taints",
        "Closing devices by a taint",
        "A driver closes a device to new work, or ends what runs on it.",
        "Taints that drivers publish have no effect; pages show them as information.",
        gates=("DRADeviceTaints",),
        fields=("Device.taints",),
        needs=(_S, _C),
        kep=5055,
    ),
    Feature(
        "taint rules",
        "Closing a pool or a driver",
        "The platform closes devices with a rule, and what runs keeps running.",
        "A freeze of a pool taints its nodes instead, which closes them to every Pod; what a rule "
        "would touch is computed from the mirror.",
        gates=("DRADeviceTaintRules",),
        kinds=("DeviceTaintRule",),
        needs=(_S, _C),
        kep=5055,
        tenant=False,
    ),
    Feature(
        "admin access",
        "Access for operators",
        "An operator's Pod looks at devices that others hold, in namespaces that allow it.",
        "Operators have no such Pods; Berth never uses one.",
        gates=("DRAAdminAccess",),
        needs=(_S, _C),
        kep=5018,
        tenant=False,
    ),
    Feature(
        "lists",
        "Attributes with several values",
        "A device may belong to several domains at once, such as two NUMA zones.",
        "Devices that publish lists are refused by the scheduler, and named as such.",
        gates=("DRAListTypeAttributes",),
        fields=("DeviceAttribute.ints",),
        needs=(_S,),
        kep=5491,
    ),
    Feature(
        "derived",
        "Computed attributes",
        "A request compares what it computes of devices.",
        "Templates cannot ask that way.",
        gates=("DRADerivedAttributes",),
        needs=(_S,),
        kep=6080,
    ),
    Feature(
        "groups of parts",
        "Parts that may stand together",
        "Drivers say which partitions of a card may be in use at the same time.",
        "Slices that say so are left out by the scheduler, and their devices are not counted.",
        gates=("DRADeviceCompatibilityGroups",),
        needs=(_S,),
        kep=5963,
        tenant=False,
    ),
    Feature(
        "partition types",
        "Kinds of partitions",
        "Drivers say by which attribute partitions are told apart.",
        "Berth tells them apart by their profile and size.",
        gates=("DRAPartitionableDevicesType",),
        tenant=False,
    ),
    Feature(
        "no node work",
        "Devices that need no preparation",
        "Drivers may let the kubelet skip preparing a device.",
        "Every device is prepared; the stage “prepared” is always there.",
        gates=("DRAOptionalNodeOperations",),
        fields=("ResourceSliceSpec.skipNodeOperations",),
        needs=(_K,),
        kep=5945,
        tenant=False,
    ),
    Feature(
        "groups of Pods",
        "Claims of a group of Pods",
        "A claim is reserved for a whole group of Pods at once.",
        "Claims are shared by naming them in each Pod, for up to 256 Pods.",
        gates=("DRAWorkloadResourceClaims",),
        needs=(_S, _C),
        kep=5729,
    ),
    Feature(
        "pool status",
        "The cluster's own count of pools",
        "The controller manager counts a pool's devices on request.",
        "Nothing is missed: Berth counts by itself, from slices and claims.",
        gates=("DRAResourcePoolStatus",),
        kinds=("ResourcePoolStatusRequest",),
        needs=(_C,),
        kep=5677,
        tenant=False,
    ),
    Feature(
        "fine rights",
        "Rights on a claim's status by part",
        "Drivers and schedulers may write only their own part of a claim's status.",
        "Whoever may write a claim's status may write all of it; the rights page says who can.",
        gates=("DRAResourceClaimGranularStatusAuthorization",),
        kep=4817,
        tenant=False,
    ),
    Feature(
        "search limit",
        "A limit on the scheduler's search",
        "A search that takes too long ends with a reason.",
        "A very large request may keep the scheduler busy; forms bound what can be asked for.",
        gates=("DRASchedulerFilterTimeout",),
        needs=(_S,),
        tenant=False,
    ),
    Feature(
        "node features",
        "What nodes say they can do",
        "A Pod goes only where the kubelet knows the features that it needs.",
        "A Pod may land on an older kubelet; its events say so then.",
        gates=("NodeDeclaredFeatures",),
        needs=(_S, _K),
        tenant=False,
    ),
)

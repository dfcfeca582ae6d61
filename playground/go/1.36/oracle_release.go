package main

import (
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
)

// A DeviceTaintRule without deviceSelector taints every device for this release's scheduler.
const ruleWithoutSelectorTaintsAll = true

func allocatorFeatures(on sets.Set[string]) structured.Features {
	return structured.Features{
		AdminAccess:            on.Has("DRAAdminAccess"),
		ConsumableCapacity:     on.Has("DRAConsumableCapacity"),
		DeviceBindingAndStatus: on.HasAll("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"),
		DeviceTaints:           on.Has("DRADeviceTaints"),
		ListTypeAttributes:     on.Has("DRAListTypeAttributes"),
		PartitionableDevices:   on.Has("DRAPartitionableDevices"),
		PrioritizedList:        on.Has("DRAPrioritizedList"),
	}
}

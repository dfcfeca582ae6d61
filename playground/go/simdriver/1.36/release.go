package main

import (
	"fmt"
	"time"

	metadatav1alpha1 "k8s.io/dynamic-resource-allocation/api/metadata/v1alpha1"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	health "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
)

// What differs from release to release in the helper and in the API: this is 1.36.

const release = "1.36"

// releaseParts are what a driver of this release has besides: without it the helper takes the driver
// for one that tells no health, and says nothing.
type releaseParts struct {
	health.UnimplementedDRAResourceHealthServer
}

var _ health.DRAResourceHealthServer = &driver{}

// otherSpelling is the field of a device that took the place of nodeAllocatableResourceMappings.
const otherSpelling = "nodeAllocatableResources"

func releaseOptions() []kubeletplugin.Option {
	return []kubeletplugin.Option{
		kubeletplugin.EnableDeviceMetadata(true),
		kubeletplugin.MetadataVersions(metadatav1alpha1.SchemeGroupVersion),
	}
}

var states = map[string]health.HealthStatus{
	"Healthy":   health.HealthStatus_HEALTHY,
	"Unhealthy": health.HealthStatus_UNHEALTHY,
}

// NodeWatchResources tells the kubelet the devices' health, until it hangs up. In this release the
// driver itself serves the gRPC call.
func (d *driver) NodeWatchResources(
	_ *health.NodeWatchResourcesRequest, stream health.DRAResourceHealth_NodeWatchResourcesServer,
) error {
	return d.tellHealth(stream.Context(), func(devices []deviceHealth) error {
		report := &health.NodeWatchResourcesResponse{}
		for _, one := range devices {
			report.Devices = append(report.Devices, &health.DeviceHealth{
				Device:          &health.DeviceIdentifier{PoolName: one.pool, DeviceName: one.device},
				Health:          states[one.state],
				Message:         one.message,
				LastUpdatedTime: time.Now().Unix(),
			})
		}
		if err := stream.Send(report); err != nil {
			return fmt.Errorf("tell the kubelet the devices' health: %w", err)
		}
		return nil
	})
}

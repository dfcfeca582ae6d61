package main

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	metadatav1beta1 "k8s.io/dynamic-resource-allocation/api/metadata/v1beta1"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
)

// What differs from release to release in the helper and in the API: this is 1.37.

const release = "1.37"

// releaseParts are what a driver of this release has besides.
type releaseParts struct{}

// otherSpelling is the field of a device that this release replaced by nodeAllocatableResources.
const otherSpelling = "nodeAllocatableResourceMappings"

func releaseOptions() []kubeletplugin.Option {
	versions := []schema.GroupVersion{metadatav1beta1.SchemeGroupVersion}
	return []kubeletplugin.Option{kubeletplugin.EnableDeviceMetadata(true, versions)}
}

// WatchHealthStatus tells the kubelet the devices' health, until the context ends.
func (d *driver) WatchHealthStatus(
	ctx context.Context, reports chan<- kubeletplugin.DeviceHealthReport,
) error {
	return d.tellHealth(ctx, func(devices []deviceHealth) error {
		report := kubeletplugin.DeviceHealthReport{}
		for _, one := range devices {
			report.Devices = append(report.Devices, kubeletplugin.DeviceHealth{
				PoolName:    one.pool,
				DeviceName:  one.device,
				Health:      kubeletplugin.HealthStatus(one.state),
				Message:     one.message,
				LastUpdated: time.Now(),
			})
		}
		select {
		case <-ctx.Done():
		case reports <- report:
		}
		return nil
	})
}

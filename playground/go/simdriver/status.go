package main

import (
	"context"
	"fmt"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	apply "k8s.io/client-go/applyconfigurations/resource/v1"
	"k8s.io/client-go/kubernetes"
)

// statusWriter tells in a claim's status that its devices are ready (KEP-4817). Server-side apply
// under the driver's name leaves other drivers' entries alone.
type statusWriter struct {
	client kubernetes.Interface
	driver string
}

func (s *statusWriter) write(ctx context.Context, claim *resourceapi.ResourceClaim) error {
	status := apply.ResourceClaimStatus()
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != s.driver {
			continue
		}
		ready := metaapply.Condition().
			WithType("Ready").WithStatus(metav1.ConditionTrue).WithReason("Prepared").WithMessage("").
			WithLastTransitionTime(metav1.NewTime(time.Now()))
		device := apply.AllocatedDeviceStatus().
			WithDriver(result.Driver).WithPool(result.Pool).WithDevice(result.Device).
			WithConditions(ready)
		if result.ShareID != nil {
			device.WithShareID(string(*result.ShareID))
		}
		status.WithDevices(device)
	}
	wanted := apply.ResourceClaim(claim.Name, claim.Namespace).WithUID(claim.UID).WithStatus(status)
	options := metav1.ApplyOptions{FieldManager: s.driver, Force: true}
	_, err := s.client.ResourceV1().ResourceClaims(claim.Namespace).ApplyStatus(ctx, wanted, options)
	if err != nil {
		return fmt.Errorf("write the devices' status: %w", err)
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"berth.dev/playground/node/devicefile"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
)

// driver answers the kubelet's calls; the helper has fetched the claims and checked them.
type driver struct {
	releaseParts
	name     string
	pools    []pool
	switches *devicefile.Switches
	cdi      cdiFolder
	status   *statusWriter // nil: this driver writes none
	fail     context.CancelCauseFunc
}

// PrepareResourceClaims makes the claims' devices ready for containers. Doing it twice is fine.
func (d *driver) PrepareResourceClaims(
	ctx context.Context, claims []*resourceapi.ResourceClaim,
) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		began := time.Now()
		devices, err := d.prepare(ctx, claim)
		logCall("prepare", claim.Namespace+"/"+claim.Name, claim.UID, began, err)
		if broken := (devicefile.CallFailed{}); errors.As(err, &broken) {
			return nil, err
		}
		results[claim.UID] = kubeletplugin.PrepareResult{Devices: devices, Err: err}
	}
	return results, nil
}

func (d *driver) prepare(
	ctx context.Context, claim *resourceapi.ResourceClaim,
) ([]kubeletplugin.Device, error) {
	prepares := func(faults devicefile.Faults) []devicefile.Rule { return faults.Prepare }
	if err := d.switches.Obstruct(ctx, prepares, claim.Namespace+"/"+claim.Name); err != nil {
		return nil, err
	}
	var devices []kubeletplugin.Device
	var names []string
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != d.name {
			continue
		}
		names = append(names, result.Device)
		request, _, _ := strings.Cut(result.Request, "/")
		devices = append(devices, kubeletplugin.Device{
			Requests:     []string{request},
			PoolName:     result.Pool,
			DeviceName:   result.Device,
			ShareID:      result.ShareID,
			CDIDeviceIDs: []string{d.cdi.id(claim.UID, result.Device)},
			Metadata:     d.metadata(result.Pool, result.Device),
		})
	}
	if err := d.cdi.write(claim.UID, names); err != nil {
		return nil, err
	}
	if d.status != nil {
		if err := d.status.write(ctx, claim); err != nil {
			return nil, err
		}
	}
	return devices, nil
}

// metadata is what a container may read of its device: what was published of it.
func (d *driver) metadata(poolName, device string) *kubeletplugin.DeviceMetadata {
	for _, one := range d.pools {
		if one.name != poolName {
			continue
		}
		for _, found := range one.devices {
			if found.Name == device {
				attributes := map[string]resourceapi.DeviceAttribute{}
				for name, value := range found.Attributes {
					attributes[string(name)] = value
				}
				return &kubeletplugin.DeviceMetadata{Attributes: attributes}
			}
		}
	}
	return nil
}

// UnprepareResourceClaims takes back what was prepared. What is not prepared is no error.
func (d *driver) UnprepareResourceClaims(
	ctx context.Context, claims []kubeletplugin.NamespacedObject,
) (map[types.UID]error, error) {
	unprepares := func(faults devicefile.Faults) []devicefile.Rule { return faults.Unprepare }
	results := map[types.UID]error{}
	for _, claim := range claims {
		began := time.Now()
		err := d.switches.Obstruct(ctx, unprepares, claim.Namespace+"/"+claim.Name)
		if err == nil {
			err = d.cdi.remove(claim.UID)
		}
		logCall("unprepare", claim.Namespace+"/"+claim.Name, claim.UID, began, err)
		if broken := (devicefile.CallFailed{}); errors.As(err, &broken) {
			return nil, err
		}
		results[claim.UID] = err
	}
	return results, nil
}

// HandleError hears of trouble in the background. What retrying cannot mend ends the program.
func (d *driver) HandleError(_ context.Context, err error, msg string) {
	slog.Error(msg, "error", err)
	if !errors.Is(err, kubeletplugin.ErrRecoverable) {
		d.fail(fmt.Errorf("%s: %w", msg, err))
	}
}

func logCall(call, claim string, uid types.UID, began time.Time, err error) {
	took := time.Since(began).Milliseconds()
	if err != nil {
		slog.Error(call, "claim", claim, "uid", uid, "milliseconds", took, "error", err)
		return
	}
	slog.Info(call, "claim", claim, "uid", uid, "milliseconds", took)
}

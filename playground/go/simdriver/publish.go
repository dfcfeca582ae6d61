package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"berth.dev/playground/node/devicefile"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

// The API's limits (ResourceSliceMaxDevices and its kin): a slice holds fewer devices when one of
// them has taints or consumes counters, and since 1.35 either devices or counter sets.
const (
	mostDevices           = resourceapi.ResourceSliceMaxDevices
	mostDevicesWithExtras = 64
	mostCounterSets       = resourceapi.ResourceSliceMaxCounterSets
)

// pool is a slice pool in the types of the release this program was built for.
type pool struct {
	name     string
	perSlice int
	devices  []resourceapi.Device
	counters []resourceapi.CounterSet
}

func readPools(described devicefile.Driver) ([]pool, error) {
	var pools []pool
	for _, one := range described.Pools {
		read := pool{name: one.Name, perSlice: one.DevicesPerSlice}
		for _, raw := range one.Devices {
			var device resourceapi.Device
			if err := decodeDevice(raw, &device); err != nil {
				return nil, fmt.Errorf("read a device of pool %s: %w", one.Name, err)
			}
			read.devices = append(read.devices, device)
		}
		for _, raw := range one.SharedCounters {
			var set resourceapi.CounterSet
			if err := strictly(raw, &set); err != nil {
				return nil, fmt.Errorf("read a counter set of pool %s: %w", one.Name, err)
			}
			read.counters = append(read.counters, set)
		}
		pools = append(pools, read)
	}
	return pools, nil
}

// decodeDevice takes the node-allocatable amounts in the spelling of this release and leaves the
// other release's spelling out: one description serves both.
func decodeDevice(raw json.RawMessage, into *resourceapi.Device) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return err
	}
	delete(fields, otherSpelling)
	known, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return strictly(known, into)
}

func strictly(raw []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// resources is what is to be published while these faults are switched on.
func resources(pools []pool, faults devicefile.Faults) (resourceslice.DriverResources, error) {
	wanted := resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{}}
	for _, one := range pools {
		devices, err := present(one.devices, faults)
		if err != nil {
			return wanted, err
		}
		var slices []resourceslice.Slice
		for _, part := range parts(one.counters, mostCounterSets) {
			slices = append(slices, resourceslice.Slice{SharedCounters: part})
		}
		for _, part := range parts(devices, most(devices, one.perSlice)) {
			slices = append(slices, resourceslice.Slice{Devices: part})
		}
		if slices == nil {
			// An empty pool says that the driver is up and has nothing.
			slices = []resourceslice.Slice{{}}
		}
		wanted.Pools[one.name] = resourceslice.Pool{Slices: slices}
	}
	return wanted, nil
}

// present are the devices that are not gone, with the taints of the faults.
func present(devices []resourceapi.Device, faults devicefile.Faults) ([]resourceapi.Device, error) {
	var found []resourceapi.Device
	for _, one := range devices {
		if faults.IsGone(one.Name) {
			continue
		}
		device := *one.DeepCopy()
		for _, raw := range faults.Taints[one.Name] {
			var taint resourceapi.DeviceTaint
			if err := strictly(raw, &taint); err != nil {
				return nil, fmt.Errorf("read a taint of %s: %w", one.Name, err)
			}
			device.Taints = append(device.Taints, taint)
		}
		found = append(found, device)
	}
	return found, nil
}

func most(devices []resourceapi.Device, perSlice int) int {
	limit := mostDevices
	for _, one := range devices {
		if len(one.Taints) > 0 || len(one.ConsumesCounters) > 0 {
			limit = mostDevicesWithExtras
		}
	}
	if perSlice > 0 && perSlice < limit {
		return perSlice
	}
	return limit
}

func parts[T any](items []T, size int) [][]T {
	var found [][]T
	for len(items) > size {
		found, items = append(found, items[:size:size]), items[size:]
	}
	if len(items) > 0 {
		found = append(found, items)
	}
	return found
}

// publishAll publishes now and after every change of the faults, until the context ends.
func publishAll(
	ctx context.Context, helper *kubeletplugin.Helper, pools []pool, switches *devicefile.Switches,
) error {
	for {
		faults, changed := switches.Now()
		if !faults.Silent && len(pools) > 0 { // a driver may run where it has nothing to publish
			wanted, err := resources(pools, faults)
			if err != nil {
				// A fault that cannot be read is no reason to end: the pool stays as it was.
				slog.Error("nothing new is published", "error", err)
			} else if err := helper.PublishResources(ctx, wanted); err != nil {
				return fmt.Errorf("publish the devices: %w", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

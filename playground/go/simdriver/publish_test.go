package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"berth.dev/playground/node/devicefile"
)

const both = `{"name": "numa0", "allowMultipleAllocations": true,
	"attributes": {"resource.kubernetes.io/numaNode": {"int": 1}},
	"capacity": {"cores": {"value": "62"}},
	"nodeAllocatableResources": {"cpu": {"mapping": {"capacityKey": "cores", "capacityMultiplier": "1"}}},
	"nodeAllocatableResourceMappings": {"cpu": {"capacityKey": "cores", "allocationMultiplier": "1"}}}`

func TestADeviceIsReadInThisReleasesSpelling(t *testing.T) {
	read, err := readPools(described(both))
	if err != nil {
		t.Fatal(err)
	}
	written, err := json.Marshal(read[0].devices[0])
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(written, &fields); err != nil {
		t.Fatal(err)
	}
	own := map[string]string{
		"nodeAllocatableResources":        "nodeAllocatableResourceMappings",
		"nodeAllocatableResourceMappings": "nodeAllocatableResources",
	}[otherSpelling]
	if _, has := fields[own]; !has {
		t.Errorf("%s is not published: %s", own, written)
	}
	if _, has := fields[otherSpelling]; has {
		t.Errorf("%s is published: %s", otherSpelling, written)
	}
	for _, name := range []string{"attributes", "capacity", "allowMultipleAllocations"} {
		if _, has := fields[name]; !has {
			t.Errorf("%s is lost: %s", name, written)
		}
	}
}

func TestAWordThatTheAPIDoesNotKnowIsRefused(t *testing.T) {
	if _, err := readPools(described(`{"name": "gpu-0", "colour": "red"}`)); err == nil {
		t.Error("it was read")
	}
}

func TestSlices(t *testing.T) {
	tests := map[string]struct {
		devices  []string
		counters int
		perSlice int
		faults   devicefile.Faults
		sizes    string // devices, or c and counter sets, by slice
	}{
		"a pool without devices has an empty slice": {sizes: "0"},
		"128 plain devices in a slice":              {devices: plain(130), sizes: "128 2"},
		"64 where one of them has a taint": {
			devices: plain(130),
			faults:  devicefile.Faults{Taints: map[string][]json.RawMessage{"d3": {[]byte(`{"key": "a/b", "effect": "NoSchedule"}`)}}},
			sizes:   "64 64 2",
		},
		"fewer where the fleet says so": {devices: plain(5), perSlice: 2, sizes: "2 2 1"},
		"counter sets come first, in slices of their own": {
			devices:  []string{`{"name": "m", "consumesCounters": [{"counterSet": "s0", "counters": {"memory": {"value": "1"}}}]}`},
			counters: 9, sizes: "c8 c1 1",
		},
		"who is gone is not published": {
			devices: plain(3), faults: devicefile.Faults{Gone: []string{"d0", "d2"}}, sizes: "1",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pool := described(test.devices...)
			pool.Pools[0].DevicesPerSlice = test.perSlice
			for i := range test.counters {
				set := fmt.Sprintf(`{"name": "s%d", "counters": {"memory": {"value": "1"}}}`, i)
				pool.Pools[0].SharedCounters = append(pool.Pools[0].SharedCounters, []byte(set))
			}
			pools, err := readPools(pool)
			if err != nil {
				t.Fatal(err)
			}
			wanted, err := resources(pools, test.faults)
			if err != nil {
				t.Fatal(err)
			}
			var sizes []string
			for _, one := range wanted.Pools["pool"].Slices {
				if len(one.SharedCounters) > 0 {
					sizes = append(sizes, fmt.Sprintf("c%d", len(one.SharedCounters)))
				} else {
					sizes = append(sizes, fmt.Sprint(len(one.Devices)))
				}
			}
			if found := strings.Join(sizes, " "); found != test.sizes {
				t.Errorf("the slices are %s", found)
			}
		})
	}
}

func TestHealth(t *testing.T) {
	pools, err := readPools(described(plain(3)...))
	if err != nil {
		t.Fatal(err)
	}
	found := healthOf(pools, devicefile.Faults{
		Gone:   []string{"d2"},
		Health: map[string]devicefile.Health{"d1": {State: "Unhealthy", Message: "ECC error"}},
	})
	wanted := []deviceHealth{{"pool", "d0", "Healthy", ""}, {"pool", "d1", "Unhealthy", "ECC error"}}
	if fmt.Sprint(found) != fmt.Sprint(wanted) {
		t.Errorf("told %v", found)
	}
}

func described(devices ...string) devicefile.Driver {
	pool := devicefile.Pool{Name: "pool"}
	for _, one := range devices {
		pool.Devices = append(pool.Devices, []byte(one))
	}
	return devicefile.Driver{Name: "gpu.example.com", Pools: []devicefile.Pool{pool}}
}

func plain(count int) []string {
	var devices []string
	for i := range count {
		devices = append(devices, fmt.Sprintf(`{"name": "d%d"}`, i))
	}
	return devices
}

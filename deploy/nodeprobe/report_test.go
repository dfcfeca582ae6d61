package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

const metrics = `# HELP dra_resource_claims_in_use [ALPHA] The number of ResourceClaims that are currently in use on the node, by driver name (driver_name label value) and across all drivers (special value <any> for driver_name).
# TYPE dra_resource_claims_in_use gauge
dra_resource_claims_in_use{driver_name="<any>"} 3
dra_resource_claims_in_use{driver_name="gpu.example.com"} 2
dra_resource_claims_in_use{driver_name="nic.example.com"} 1
dra_resource_claims_in_use{driver_name="gone.example.com"} 0
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1.76446785025e+09
go_goroutines 12
`

func TestReadMetrics(t *testing.T) {
	seen, err := readMetrics([]byte(metrics))
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(seen.claims) != "map[gpu.example.com:2 nic.example.com:1]" {
		t.Errorf("claims %v", seen.claims)
	}
	if seen.started.Format(moment) != "2025-11-30T01:57:30.250000Z" {
		t.Errorf("started %v", seen.started)
	}
	if _, err := readMetrics([]byte("go_goroutines 12\n")); err == nil {
		t.Error("a kubelet without a start time is believed")
	}
}

func TestDevicesOf(t *testing.T) {
	answer := &podresources.ListPodResourcesResponse{PodResources: []*podresources.PodResources{{
		Containers: []*podresources.ContainerResources{{Devices: []*podresources.ContainerDevices{
			{ResourceName: "example.com/gpu", DeviceIds: []string{"gpu-1", "gpu-0"}},
			{ResourceName: "example.com/gpu", DeviceIds: []string{"gpu-1"}}, // its second zone
			{ResourceName: "example.com/nic", DeviceIds: []string{"port-0"}},
		}}},
	}}}
	if found := devicesOf(answer, "example.com/gpu"); fmt.Sprint(found) != "[gpu-0 gpu-1]" {
		t.Errorf("found %v", found)
	}
	if found := devicesOf(answer, "example.com/fpga"); found == nil || len(found) != 0 {
		t.Errorf("nothing is not an empty list: %v", found)
	}
}

func TestTheReport(t *testing.T) {
	seen := found{map[string]int{"gpu.example.com": 1}, time.Unix(1, 5000).UTC()}
	wanted := `{"devices":{"example.com/gpu":["gpu-0"]},"claimsInUse":{"gpu.example.com":1},` +
		`"kubeletStarted":"1970-01-01T00:00:01.000005Z"}`
	if message := string(report("example.com/gpu", []string{"gpu-0"}, seen)); message != wanted {
		t.Errorf("reported %s", message)
	}
}

func TestTheReportFitsAMessage(t *testing.T) {
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf("GPU-%036d", i))
	}
	message := report("example.com/gpu", many, found{started: time.Unix(1, 0)})
	var read answer
	if err := json.Unmarshal(message, &read); err != nil {
		t.Fatal(err)
	}
	if len(message) > mostMessage || len(read.Devices["example.com/gpu"])+read.DevicesOmitted != 1000 {
		t.Errorf("%d bytes, %d omitted", len(message), read.DevicesOmitted)
	}
	drivers := map[string]int{}
	for i := range 200 {
		drivers[fmt.Sprintf("driver-%d.example.com", i)] = 1
	}
	if message := string(report("r", nil, found{drivers, time.Unix(1, 0)})); !strings.Contains(message, "error") {
		t.Errorf("reported %.80s", message)
	}
}

func TestSettings(t *testing.T) {
	tests := map[string]struct {
		resource, port string
		fine           bool
	}{
		"both":           {"example.com/gpu", "10250", true},
		"no resource":    {"", "10250", false},
		"no port":        {"example.com/gpu", "", false},
		"no port at all": {"example.com/gpu", "99999", false},
		"a host as port": {"example.com/gpu", "evil.example:443", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{"BERTH_RESOURCE": test.resource, "BERTH_KUBELET_PORT": test.port}
			if _, err := readSettings(func(name string) string { return env[name] }); (err == nil) != test.fine {
				t.Errorf("error %v", err)
			}
		})
	}
}

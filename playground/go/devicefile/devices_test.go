package devicefile

import (
	"path/filepath"
	"testing"
)

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "devices.json")
	write(t, path, `{"drivers": [{"name": "gpu.example.com", "deviceStatus": true, "pools": [{"name": "n",
		"devices": [{"name": "gpu-0"}], "sharedCounters": [], "devicesPerSlice": 64}]}],
		"plugins": [{"resource": "example.com/gpu", "devices": ["gpu-0"]}]}`)
	node, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	driver, err := node.Driver("gpu.example.com")
	if err != nil || len(driver.Pools) != 1 || len(driver.Pools[0].Devices) != 1 {
		t.Errorf("the driver is %+v, %v", driver, err)
	}
	if plugin, err := node.Plugin("example.com/gpu"); err != nil || plugin.Devices[0] != "gpu-0" {
		t.Errorf("the plugin is %+v, %v", plugin, err)
	}
	if _, err := node.Driver("other.example.com"); err == nil {
		t.Error("there is a driver that nobody described")
	}
	write(t, path, `{"driver": []}`)
	if _, err := Load(path); err == nil {
		t.Error("a word that nobody knows is taken")
	}
}

func TestADeviceInAContainer(t *testing.T) {
	tests := map[string]string{
		"gpu-0":     "BERTH_DEVICE_GPU_0",
		"port1-vf0": "BERTH_DEVICE_PORT1_VF0",
		"é":         "BERTH_DEVICE__",
	}
	for device, name := range tests {
		if found := EnvironmentName(device); found != name {
			t.Errorf("%s has variable %s", device, found)
		}
	}
	if path := ContainerPath("gpu-0"); path != "/dev/berth/gpu-0" {
		t.Errorf("gpu-0 is at %s", path)
	}
}

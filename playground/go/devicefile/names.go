package devicefile

import "strings"

// The same device looks alike in a container, whoever gave it away: a workload that moves from the
// plugin to the driver must not notice, and a test sees at once which device it got.

// EnvironmentName is the variable that names a device: BERTH_DEVICE_GPU_0 for gpu-0.
func EnvironmentName(device string) string {
	upper := strings.ToUpper(device)
	return "BERTH_DEVICE_" + strings.Map(func(r rune) rune {
		if (r >= 'A' && r <= 'Z') || (r >= '0' && r <= '9') {
			return r
		}
		return '_'
	}, upper)
}

// ContainerPath is where a container finds the device's node.
func ContainerPath(device string) string {
	return "/dev/berth/" + device
}

// What stands behind every pretended device: the numbers of /dev/null, which is on every machine
// and does no harm.
const (
	HostPath = "/dev/null"
	Major    = 1
	Minor    = 3
)

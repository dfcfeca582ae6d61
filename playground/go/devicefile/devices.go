// Package devicefile reads the two files that steer the programs of a real node: the devices it
// pretends to have (written from a fleet file, which describes simulated nodes too), and the faults
// that are switched on.
package devicefile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

// Node is everything one node pretends to have.
type Node struct {
	Drivers []Driver `json:"drivers"`
	Plugins []Plugin `json:"plugins"`
}

// Driver is a DRA driver with the pools it publishes for this node.
type Driver struct {
	Name string `json:"name"`
	// DeviceStatus: the driver writes status.devices of the claims it prepares (KEP-4817).
	DeviceStatus bool   `json:"deviceStatus"`
	Pools        []Pool `json:"pools"`
}

// Pool is a slice pool. Devices and counter sets stay as they came, in the words of
// resource.k8s.io/v1: their Go types differ between Kubernetes releases, and so does what a driver
// that was built for a release can publish.
type Pool struct {
	Name            string            `json:"name"`
	Devices         []json.RawMessage `json:"devices"`
	SharedCounters  []json.RawMessage `json:"sharedCounters"`
	DevicesPerSlice int               `json:"devicesPerSlice"`
}

// Plugin is a device plugin: the extended resource it offers and the names of its devices.
type Plugin struct {
	Resource string   `json:"resource"`
	Devices  []string `json:"devices"`
}

// Load reads a node's devices. A field that nobody knows is an error: it would be a wish unheard.
func Load(path string) (Node, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return Node{}, fmt.Errorf("read the devices of the node: %w", err)
	}
	var node Node
	if err := decode(content, &node); err != nil {
		return Node{}, fmt.Errorf("read the devices of the node from %s: %w", path, err)
	}
	return node, nil
}

// Driver finds a driver by its name.
func (n Node) Driver(name string) (Driver, error) {
	for _, one := range n.Drivers {
		if one.Name == name {
			return one, nil
		}
	}
	return Driver{}, fmt.Errorf("this node has no driver %q", name)
}

// Plugin finds a device plugin by the resource it offers.
func (n Node) Plugin(resource string) (Plugin, error) {
	for _, one := range n.Plugins {
		if one.Resource == resource {
			return one, nil
		}
	}
	return Plugin{}, fmt.Errorf("this node has no plugin for %q", resource)
}

func decode(content []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

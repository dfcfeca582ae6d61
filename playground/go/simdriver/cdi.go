package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"berth.dev/playground/node/devicefile"
	"k8s.io/apimachinery/pkg/types"
)

// cdiFolder holds one CDI file per prepared claim. The files are all the driver remembers, so it
// may be started anew at any moment, and a container that restarts finds its devices without it.
type cdiFolder struct {
	path   string
	driver string
}

// The parts of a CDI specification that are used here (container-device-interface SPEC.md, 0.5.0:
// the first version whose device names may begin with a digit, as claims' uids do).
type cdiSpec struct {
	Version string      `json:"cdiVersion"`
	Kind    string      `json:"kind"`
	Devices []cdiDevice `json:"devices"`
}

type cdiDevice struct {
	Name  string   `json:"name"`
	Edits cdiEdits `json:"containerEdits"`
}

type cdiEdits struct {
	Env   []string  `json:"env"`
	Nodes []cdiNode `json:"deviceNodes"`
}

type cdiNode struct {
	Path  string `json:"path"`
	Type  string `json:"type"`
	Major int64  `json:"major"`
	Minor int64  `json:"minor"`
}

// id names a device of a claim to the container runtime. The claim's uid is in it because runtimes
// remember what an id meant.
func (c cdiFolder) id(claim types.UID, device string) string {
	return fmt.Sprintf("%s=%s", c.kind(), c.name(claim, device))
}

func (c cdiFolder) kind() string { return c.driver + "/device" }

func (c cdiFolder) name(claim types.UID, device string) string {
	return fmt.Sprintf("%s-%s", claim, device)
}

func (c cdiFolder) file(claim types.UID) string {
	return filepath.Join(c.path, fmt.Sprintf("%s_%s.json", c.driver, claim))
}

func (c cdiFolder) write(claim types.UID, devices []string) error {
	content, err := json.MarshalIndent(c.spec(claim, devices), "", "  ")
	if err != nil {
		return fmt.Errorf("write down the CDI devices: %w", err)
	}
	// A runtime that looks meanwhile must see the whole file or none; it reads only *.json.
	fresh := c.file(claim) + ".new"
	if err := os.WriteFile(fresh, content, 0o644); err != nil {
		return fmt.Errorf("write the CDI file: %w", err)
	}
	if err := os.Rename(fresh, c.file(claim)); err != nil {
		return fmt.Errorf("put the CDI file in place: %w", err)
	}
	return nil
}

func (c cdiFolder) spec(claim types.UID, devices []string) cdiSpec {
	spec := cdiSpec{Version: "0.5.0", Kind: c.kind()}
	written := map[string]bool{}
	for _, device := range devices {
		if written[device] { // shares of one device
			continue
		}
		written[device] = true
		spec.Devices = append(spec.Devices, cdiDevice{
			Name: c.name(claim, device),
			Edits: cdiEdits{
				Env: []string{devicefile.EnvironmentName(device) + "=" + device},
				Nodes: []cdiNode{{
					Path: devicefile.ContainerPath(device), Type: "c",
					Major: devicefile.Major, Minor: devicefile.Minor,
				}},
			},
		})
	}
	return spec
}

func (c cdiFolder) remove(claim types.UID) error {
	if err := os.Remove(c.file(claim)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the CDI file: %w", err)
	}
	return nil
}

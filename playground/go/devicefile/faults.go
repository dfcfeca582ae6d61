package devicefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
)

// FaultsFile is what is wrong on one node now, by driver name and by the plugin's resource.
type FaultsFile struct {
	Drivers map[string]Faults `json:"drivers"`
	Plugins map[string]Faults `json:"plugins"`
}

// Faults is what is wrong with one program. The zero value: nothing.
type Faults struct {
	// Prepare and Unprepare concern a driver's claims, Allocate a plugin's call. The first rule
	// that matches counts.
	Prepare   []Rule `json:"prepare,omitempty"`
	Unprepare []Rule `json:"unprepare,omitempty"`
	Allocate  []Rule `json:"allocate,omitempty"`
	// Gone devices are not published and not listed, used or not.
	Gone []string `json:"gone,omitempty"`
	// Health by device; who is not named is healthy.
	Health map[string]Health `json:"health,omitempty"`
	// Taints by device, in the words of the API.
	Taints map[string][]json.RawMessage `json:"taints,omitempty"`
	// Silent: the program goes on serving, but publishes no change any more.
	Silent bool `json:"silent,omitempty"`
	// Down: the program dies at once, without a farewell, and does nothing when it is started anew,
	// until this is taken back. So the kubelet's back-off does not delay the mending.
	Down bool `json:"down,omitempty"`
	// Crash: a number higher than the one the program found at its start makes it die once.
	Crash int `json:"crash,omitempty"`
	// IgnoreKubelet: a plugin does not register again when the kubelet was restarted.
	IgnoreKubelet bool `json:"ignoreKubelet,omitempty"`
}

// Rule is how a call goes wrong.
type Rule struct {
	// Claims are "namespace/name" with wildcards; empty means every claim.
	Claims string `json:"claims,omitempty"`
	// Fail is the driver's text. With WholeCall the call itself fails, not just this claim in it.
	Fail      string `json:"fail,omitempty"`
	WholeCall bool   `json:"wholeCall,omitempty"`
	// Hang: no answer until the caller gives up, or the rule is taken back.
	Hang bool `json:"hang,omitempty"`
	// SlowMilliseconds pass before anything else happens.
	SlowMilliseconds int `json:"slowMilliseconds,omitempty"`
	// Times the rule takes effect, then it is spent; 0 means always. Counted since the rule was
	// written, by this process.
	Times int `json:"times,omitempty"`
}

// Health is what a program tells the kubelet of a device.
type Health struct {
	State   string `json:"state"` // Healthy, Unhealthy or Unknown
	Message string `json:"message,omitempty"`
}

// Matches tells whether the rule is about the claim "namespace/name".
func (r Rule) Matches(claim string) bool {
	if r.Claims == "" || r.Claims == "*" {
		return true
	}
	matched, err := path.Match(r.Claims, claim)
	return err == nil && matched
}

// IsGone tells whether a device is not there any more.
func (f Faults) IsGone(device string) bool {
	for _, one := range f.Gone {
		if one == device {
			return true
		}
	}
	return false
}

// HealthOf a device.
func (f Faults) HealthOf(device string) Health {
	if found, ok := f.Health[device]; ok {
		return found
	}
	return Health{State: "Healthy"}
}

// LoadFaults reads the file; where there is none, nothing is wrong.
func LoadFaults(path string) (FaultsFile, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return FaultsFile{}, nil
	}
	if err != nil {
		return FaultsFile{}, fmt.Errorf("read the faults: %w", err)
	}
	var faults FaultsFile
	if err := decode(content, &faults); err != nil {
		return FaultsFile{}, fmt.Errorf("read the faults from %s: %w", path, err)
	}
	for _, one := range faults.all() {
		for _, rule := range append(append(one.Prepare, one.Unprepare...), one.Allocate...) {
			if _, err := matchable(rule.Claims); err != nil {
				return FaultsFile{}, fmt.Errorf("read the faults from %s: claims %q: %w", path, rule.Claims, err)
			}
		}
	}
	return faults, nil
}

func matchable(pattern string) (bool, error) {
	return path.Match(pattern, "")
}

func (f FaultsFile) all() []Faults {
	var found []Faults
	for _, one := range f.Drivers {
		found = append(found, one)
	}
	for _, one := range f.Plugins {
		found = append(found, one)
	}
	return found
}

package main

import (
	"context"
	"time"

	"berth.dev/playground/node/devicefile"
)

// The kubelet calls a device's health unknown when it did not hear of it for 30 s.
const healthRepeat = 10 * time.Second

// deviceHealth is what is told of one device, in no release's types.
type deviceHealth struct {
	pool, device, state, message string
}

// healthOf is the health of all devices that are there.
func healthOf(pools []pool, faults devicefile.Faults) []deviceHealth {
	var found []deviceHealth
	for _, one := range pools {
		for _, device := range one.devices {
			if faults.IsGone(device.Name) {
				continue
			}
			is := faults.HealthOf(device.Name)
			found = append(found, deviceHealth{one.name, device.Name, is.State, is.Message})
		}
	}
	return found
}

// tellHealth says how all devices are: at once, at every change, and again and again. It ends with
// the context (then nil), or with the error of `tell`.
func (d *driver) tellHealth(ctx context.Context, tell func([]deviceHealth) error) error {
	repeat := time.NewTicker(healthRepeat)
	defer repeat.Stop()
	for {
		faults, changed := d.switches.Now()
		if err := tell(healthOf(d.pools, faults)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-repeat.C:
		}
	}
}

package main

import (
	"encoding/json"
	"errors"
)

// The kubelet keeps no more of a termination message (MaxContainerTerminationMessageLength in
// pkg/kubelet/container/runtime.go).
const mostMessage = 4096

// answer is what Berth reads. Omitted counts the devices that found no place in the message: what
// matters is whether there are any, and how many.
type answer struct {
	Devices        map[string][]string `json:"devices"`
	DevicesOmitted int                 `json:"devicesOmitted,omitempty"`
	ClaimsInUse    map[string]int      `json:"claimsInUse"`
	KubeletStarted string              `json:"kubeletStarted"`
}

// report is the termination message of a probe that saw what it came for.
func report(resource string, devices []string, seen found) []byte {
	for kept := len(devices); ; kept-- {
		message := encode(answer{
			Devices:        map[string][]string{resource: devices[:kept]},
			DevicesOmitted: len(devices) - kept,
			ClaimsInUse:    seen.claims,
			KubeletStarted: seen.started.Format(moment),
		})
		if len(message) <= mostMessage {
			return message
		}
		if kept == 0 {
			return failure(errTooMany)
		}
	}
}

// moment is RFC 3339 with microseconds, as Kubernetes writes a MicroTime.
const moment = "2006-01-02T15:04:05.000000Z07:00"

var errTooMany = errors.New("more drivers hold claims on this node than a message has room for")

// failure is the termination message of a probe that could not see.
func failure(err error) []byte {
	words := err.Error()
	if len(words) > mostMessage/2 { // quoting may double it
		words = words[:mostMessage/2]
	}
	return encode(map[string]string{"error": words})
}

func encode(value any) []byte {
	message, err := json.Marshal(value)
	if err != nil {
		panic(err) // plain strings and numbers: cannot be
	}
	return message
}

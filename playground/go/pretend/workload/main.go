// A workload that uses no device but shows which it was given: it prints its environment and the
// device nodes it finds as one line of JSON, and then does nothing until it is told to end.
//
// BERTH_EXIT_CODE makes it end by itself with that code, after BERTH_EXIT_SECONDS (0).
// BERTH_TERM_SECONDS is how long it takes to end once it is told to (0).
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const devices = "/dev/berth"

// metadata is where a DRA driver may tell a container about its devices (KEP-5304): in a file by
// kind of reference, claim and request.
const metadata = "/var/run/kubernetes.io/dra-device-attributes/*/*/*/*.json"

// deviceNode is what a container sees of a device: "c" for a character device, and its numbers.
type deviceNode struct {
	Path  string `json:"path"`
	Kind  string `json:"kind"`
	Major uint64 `json:"major"`
	Minor uint64 `json:"minor"`
}

type seen struct {
	Environment map[string]string `json:"environment"`
	Devices     []deviceNode      `json:"devices"`
	Metadata    []string          `json:"metadata"`
}

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	if err := json.NewEncoder(os.Stdout).Encode(look()); err != nil {
		fmt.Fprintln(os.Stderr, "print what is seen:", err)
		os.Exit(1)
	}
	var own <-chan time.Time
	code, err := strconv.Atoi(os.Getenv("BERTH_EXIT_CODE"))
	if err == nil {
		own = time.After(seconds("BERTH_EXIT_SECONDS"))
	}
	select {
	case <-own:
		os.Exit(code)
	case <-end:
		time.Sleep(seconds("BERTH_TERM_SECONDS"))
	}
}

func look() seen {
	found := seen{Environment: map[string]string{}, Devices: []deviceNode{}, Metadata: []string{}}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		found.Environment[name] = value
	}
	paths, _ := filepath.Glob(devices + "/*") // the pattern is well-formed: no other error exists
	for _, path := range paths {
		if node, ok := nodeAt(path); ok {
			found.Devices = append(found.Devices, node)
		}
	}
	if files, _ := filepath.Glob(metadata); files != nil {
		found.Metadata = files
	}
	return found
}

func nodeAt(path string) (deviceNode, bool) {
	var stat syscall.Stat_t
	if err := syscall.Stat(path, &stat); err != nil {
		return deviceNode{}, false
	}
	kind := "-"
	switch stat.Mode & syscall.S_IFMT {
	case syscall.S_IFCHR:
		kind = "c"
	case syscall.S_IFBLK:
		kind = "b"
	}
	// The layout of a device number on Linux (makedev(3)).
	major := (stat.Rdev >> 8 & 0xfff) | (stat.Rdev >> 32 &^ 0xfff)
	minor := (stat.Rdev & 0xff) | (stat.Rdev >> 12 & 0xffffff00)
	return deviceNode{path, kind, major, minor}, true
}

func seconds(name string) time.Duration {
	value, err := strconv.ParseFloat(os.Getenv(name), 64)
	if err != nil {
		return 0
	}
	return time.Duration(value * float64(time.Second))
}

// The node probe: it reads on a node what only the node knows, and says it in its Pod's
// termination message.
//
// Which devices of one extended resource the kubelet has given away by device plugin (podresources
// List), how many claims each DRA driver still has prepared there, and when the kubelet was started.
// It asks once, and writes nothing anywhere else.
//
// Settings are environment variables:
//
//	BERTH_RESOURCE       the extended resource, for example example.com/gpu
//	BERTH_KUBELET_PORT   the kubelet's port, from status.daemonEndpoints of the Node
//
// and, where a node is not laid out as usual, BERTH_PODRESOURCES_SOCKET, BERTH_TOKEN_FILE and
// BERTH_TERMINATION_FILE.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// The kubelet answers in milliseconds, or something is wrong with it.
const patience = 10 * time.Second

type settings struct {
	resource                   string
	port                       int
	socket, token, termination string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	s, err := readSettings(os.Getenv)
	message, code := []byte(nil), 0
	if err == nil {
		message, err = probe(ctx, s)
	}
	if err != nil {
		message, code = failure(err), 1
	}
	fmt.Println(string(message))
	if err := os.WriteFile(s.termination, message, 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "write the termination message:", err)
		code = 1
	}
	os.Exit(code)
}

func readSettings(env func(string) string) (settings, error) {
	s := settings{
		resource:    env("BERTH_RESOURCE"),
		socket:      or(env("BERTH_PODRESOURCES_SOCKET"), "/var/lib/kubelet/pod-resources/kubelet.sock"),
		token:       or(env("BERTH_TOKEN_FILE"), "/var/run/secrets/kubernetes.io/serviceaccount/token"),
		termination: or(env("BERTH_TERMINATION_FILE"), "/dev/termination-log"),
	}
	if s.resource == "" {
		return s, fmt.Errorf("BERTH_RESOURCE names no resource")
	}
	port, err := strconv.Atoi(env("BERTH_KUBELET_PORT"))
	if err != nil || port < 1 || port > 65535 {
		return s, fmt.Errorf("BERTH_KUBELET_PORT is no port: %q", env("BERTH_KUBELET_PORT"))
	}
	s.port = port
	return s, nil
}

func or(value, usual string) string {
	if value == "" {
		return usual
	}
	return value
}

func probe(ctx context.Context, s settings) ([]byte, error) {
	devices, err := heldDevices(ctx, s.socket, s.resource)
	if err != nil {
		return nil, err
	}
	token, err := os.ReadFile(s.token)
	if err != nil {
		return nil, fmt.Errorf("read the probe's own token: %w", err)
	}
	metrics, err := kubeletMetrics(ctx, s.port, string(token))
	if err != nil {
		return nil, err
	}
	found, err := readMetrics(metrics)
	if err != nil {
		return nil, err
	}
	return report(s.resource, devices, found), nil
}

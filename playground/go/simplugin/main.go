// A device plugin for devices that do not exist: the same ones that simdriver publishes, offered
// the way that came before DRA.
//
// It registers with the kubelet, and again whenever the kubelet was started anew; lists its devices
// and their health; gives a container the same variable and device node that the driver would; and
// goes wrong in the ways a file of faults names.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"berth.dev/playground/node/devicefile"
)

func main() {
	var resource, devices, faults, folder string
	flag.StringVar(&resource, "resource", "", "extended resource that is offered")
	flag.StringVar(&devices, "devices", "", "file of the node's devices")
	flag.StringVar(&faults, "faults", "", "file of what is wrong now; need not exist")
	flag.StringVar(&folder, "plugin-folder", "/var/lib/kubelet/device-plugins", "the kubelet's folder of device plugins")
	flag.Parse()

	devicefile.LogLines()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, resource, devices, faults, folder); err != nil {
		slog.Error("the plugin ends", "error", err)
		os.Exit(1)
	}
	slog.Info("the plugin ends as it was told")
}

// run serves until the context ends; then it returns nil.
func run(ctx context.Context, resource, devices, faults, folder string) error {
	switches, err := devicefile.OpenSwitches(ctx, faults, func(file devicefile.FaultsFile) devicefile.Faults {
		return file.Plugins[resource]
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	node, err := devicefile.Load(devices)
	if err != nil {
		return err
	}
	described, err := node.Plugin(resource)
	if err != nil {
		return err
	}
	go switches.Follow(ctx)
	p := &plugin{resource: resource, devices: described.Devices, switches: switches}
	return p.serveKubelets(ctx, place{
		kubelet: filepath.Join(folder, "kubelet.sock"),
		own:     filepath.Join(folder, socketName(resource)),
	})
}

// socketName is one for each resource: example.com/gpu has example.com_gpu.sock.
func socketName(resource string) string {
	return fmt.Sprintf("%s.sock", strings.ReplaceAll(resource, "/", "_"))
}

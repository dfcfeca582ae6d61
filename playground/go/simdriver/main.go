// A DRA driver for devices that do not exist, on the helper that real drivers use.
//
// It publishes what a fleet file says of its node, prepares claims with CDI (a variable and a
// device node in the container), tells the devices' health and metadata, and goes wrong in the
// ways a file of faults names. It runs as a DaemonSet's Pod, or as a plain process.
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
	"syscall"

	"berth.dev/playground/node/devicefile"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/klog/v2"
)

// settings are where things are on this node. Paths must be the same for the kubelet and for us.
type settings struct {
	driver, node, kubeconfig string
	devices, faults          string
	kubelet, cdi             string
}

func main() {
	var s settings
	flag.StringVar(&s.driver, "driver", "", "name of the driver")
	flag.StringVar(&s.node, "node", os.Getenv("NODE_NAME"), "name of the node")
	flag.StringVar(&s.kubeconfig, "kubeconfig", "", "where the API server is; empty in a Pod")
	flag.StringVar(&s.devices, "devices", "", "file of the node's devices")
	flag.StringVar(&s.faults, "faults", "", "file of what is wrong now; need not exist")
	flag.StringVar(&s.kubelet, "kubelet-folder", "/var/lib/kubelet", "the kubelet's root folder")
	flag.StringVar(&s.cdi, "cdi-folder", "/var/run/cdi", "where the container runtime reads CDI files")
	flag.Parse()

	logger := devicefile.LogLines()
	klog.SetSlogLogger(logger)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, s); err != nil {
		slog.Error("the driver ends", "error", err)
		os.Exit(1)
	}
	slog.Info("the driver ends as it was told")
}

// run serves until the context ends; then it returns nil.
func run(ctx context.Context, s settings) error {
	switches, err := devicefile.OpenSwitches(ctx, s.faults, func(file devicefile.FaultsFile) devicefile.Faults {
		return file.Drivers[s.driver]
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	node, err := devicefile.Load(s.devices)
	if err != nil {
		return err
	}
	described, err := node.Driver(s.driver)
	if err != nil {
		return err
	}
	pools, err := readPools(described)
	if err != nil {
		return err
	}
	client, err := connect(s.kubeconfig)
	if err != nil {
		return err
	}
	data := filepath.Join(s.kubelet, "plugins", s.driver)
	if err := os.MkdirAll(data, 0o750); err != nil {
		return fmt.Errorf("make the driver's own folder: %w", err)
	}
	if err := os.MkdirAll(s.cdi, 0o755); err != nil {
		return fmt.Errorf("make the folder of CDI files: %w", err)
	}

	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	d := &driver{
		name: s.driver, pools: pools, switches: switches, cdi: cdiFolder{s.cdi, s.driver}, fail: fail,
	}
	if described.DeviceStatus {
		d.status = &statusWriter{client, s.driver}
	}
	options := append(
		releaseOptions(),
		kubeletplugin.DriverName(s.driver),
		kubeletplugin.NodeName(s.node),
		kubeletplugin.KubeClient(client),
		kubeletplugin.PluginDataDirectoryPath(data),
		kubeletplugin.RegistrarDirectoryPath(filepath.Join(s.kubelet, "plugins_registry")),
		kubeletplugin.CDIDirectory(s.cdi),
		kubeletplugin.GRPCVerbosity(-1),
	)
	helper, err := kubeletplugin.Start(ctx, d, options...)
	if err != nil {
		return fmt.Errorf("start the kubelet plugin: %w", err)
	}
	defer helper.Stop()
	go switches.Follow(ctx)
	slog.Info("serving", "driver", s.driver, "node", s.node, "release", release)
	err = publishAll(ctx, helper, pools, switches)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

func connect(kubeconfig string) (kubernetes.Interface, error) {
	config, err := rest.InClusterConfig()
	if kubeconfig != "" {
		config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("find out where the API server is: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server: %w", err)
	}
	return client, nil
}

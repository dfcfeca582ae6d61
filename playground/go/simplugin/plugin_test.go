package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"berth.dev/playground/node/devicefile"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

func TestTheListOfDevices(t *testing.T) {
	found := listed([]string{"a", "b", "c", "d"}, devicefile.Faults{
		Gone: []string{"b"},
		Health: map[string]devicefile.Health{
			"c": {State: "Unhealthy", Message: "ECC error"}, "d": {State: "Unknown"},
		},
	})
	told := ""
	for _, one := range found {
		told += fmt.Sprintf("%s %s, ", one.ID, one.Health)
	}
	if told != "a Healthy, c Unhealthy, d Unhealthy, " {
		t.Errorf("told %s", told)
	}
}

func TestWhatAContainerGets(t *testing.T) {
	response := given([]string{"gpu-0", "gpu-1"})
	if response.Envs["BERTH_DEVICE_GPU_1"] != "gpu-1" || len(response.Envs) != 2 {
		t.Errorf("variables %v", response.Envs)
	}
	if node := response.Devices[0]; node.ContainerPath != "/dev/berth/gpu-0" || node.HostPath != "/dev/null" {
		t.Errorf("device node %v", node)
	}
}

// registry is the part of a kubelet that plugins register with.
type registry struct {
	api.UnimplementedRegistrationServer
	registered chan *api.RegisterRequest
}

func (r *registry) Register(_ context.Context, request *api.RegisterRequest) (*api.Empty, error) {
	r.registered <- request
	return &api.Empty{}, nil
}

func TestThePluginRegistersWithEveryKubelet(t *testing.T) {
	folder := shortFolder(t)
	switches, err := devicefile.OpenSwitches(context.Background(), filepath.Join(folder, "faults.json"),
		func(devicefile.FaultsFile) devicefile.Faults { return devicefile.Faults{} })
	if err != nil {
		t.Fatal(err)
	}
	at := place{filepath.Join(folder, "kubelet.sock"), filepath.Join(folder, socketName("example.com/gpu"))}
	plugin := &plugin{resource: "example.com/gpu", devices: []string{"gpu-0"}, switches: switches}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- plugin.serveKubelets(ctx, at) }()

	for start := range 2 {
		kubelet := &registry{registered: make(chan *api.RegisterRequest, 1)}
		listener, err := net.Listen("unix", at.kubelet)
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		api.RegisterRegistrationServer(server, kubelet)
		go server.Serve(listener)
		select {
		case request := <-kubelet.registered:
			if request.ResourceName != "example.com/gpu" || request.Endpoint != "example.com_gpu.sock" {
				t.Errorf("start %d: registered %v", start, request)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("start %d: not registered", start)
		}
		if devices := firstList(t, at.own); len(devices) != 1 || devices[0].ID != "gpu-0" {
			t.Errorf("start %d: listed %v", start, devices)
		}
		server.Stop()
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it ends with %v", err)
	}
}

// shortFolder is one whose sockets have paths of less than 108 characters, as the kernel wants.
func shortFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "plugin")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	return folder
}

func firstList(t *testing.T, socket string) []*api.Device {
	t.Helper()
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	stream, err := api.NewDevicePluginClient(connection).ListAndWatch(t.Context(), &api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	response, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return response.Devices
}

package main

import (
	"context"
	"log/slog"
	"time"

	"berth.dev/playground/node/devicefile"
	"google.golang.org/grpc"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// plugin answers the kubelet's calls.
type plugin struct {
	api.UnimplementedDevicePluginServer
	resource string
	devices  []string
	switches *devicefile.Switches
}

// GetDevicePluginOptions: neither a preference among devices nor a step before containers start.
func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

// ListAndWatch tells the devices at once and after every change, until the kubelet hangs up.
func (p *plugin) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	for {
		faults, changed := p.switches.Now()
		if !faults.Silent {
			if err := stream.Send(&api.ListAndWatchResponse{Devices: listed(p.devices, faults)}); err != nil {
				return err
			}
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-changed:
		}
	}
}

// listed are the devices that are not gone. The kubelet knows two states only: what is not known to
// be healthy is not.
func listed(devices []string, faults devicefile.Faults) []*api.Device {
	var found []*api.Device
	for _, device := range devices {
		if faults.IsGone(device) {
			continue
		}
		health := api.Unhealthy
		if faults.HealthOf(device).State == api.Healthy {
			health = api.Healthy
		}
		found = append(found, &api.Device{ID: device, Health: health})
	}
	return found
}

// Allocate gives each container a variable and a device node for each of its devices.
func (p *plugin) Allocate(ctx context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	began := time.Now()
	allocates := func(faults devicefile.Faults) []devicefile.Rule { return faults.Allocate }
	// The kubelet does not say for which Pod it asks: only rules for every claim make sense.
	if err := p.switches.Obstruct(ctx, allocates, ""); err != nil {
		slog.Error("allocate", "resource", p.resource, "error", err)
		return nil, err
	}
	response := &api.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		response.ContainerResponses = append(response.ContainerResponses, given(container.DevicesIds))
		slog.Info("allocate", "resource", p.resource, "devices", container.DevicesIds,
			"milliseconds", time.Since(began).Milliseconds())
	}
	return response, nil
}

func given(devices []string) *api.ContainerAllocateResponse {
	response := &api.ContainerAllocateResponse{Envs: map[string]string{}}
	for _, device := range devices {
		response.Envs[devicefile.EnvironmentName(device)] = device
		response.Devices = append(response.Devices, &api.DeviceSpec{
			ContainerPath: devicefile.ContainerPath(device),
			HostPath:      devicefile.HostPath,
			Permissions:   "rw",
		})
	}
	return response
}

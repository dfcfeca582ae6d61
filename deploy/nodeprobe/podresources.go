package main

import (
	"context"
	"fmt"
	"sort"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// A node with thousands of Pods and devices stays below this.
const mostBytes = 16 << 20

// heldDevices are the ids of the resource's devices that the kubelet holds for Pods by device
// plugin. Being asked also makes the kubelet forget what Pods held that are gone.
func heldDevices(ctx context.Context, socket, resource string) ([]string, error) {
	connection, err := grpc.NewClient(
		"unix://"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(mostBytes)),
	)
	if err != nil {
		return nil, fmt.Errorf("dial the kubelet's podresources socket: %w", err)
	}
	defer connection.Close()
	client := podresources.NewPodResourcesListerClient(connection)
	answer, err := client.List(ctx, &podresources.ListPodResourcesRequest{})
	if err != nil {
		return nil, fmt.Errorf("list the Pods' resources: %w", err)
	}
	return devicesOf(answer, resource), nil
}

// devicesOf picks one resource's device ids out of the kubelet's answer, sorted, each once: with
// NUMA the kubelet lists a device once per zone.
func devicesOf(answer *podresources.ListPodResourcesResponse, resource string) []string {
	seen := map[string]bool{}
	for _, pod := range answer.GetPodResources() {
		for _, container := range pod.GetContainers() {
			for _, devices := range container.GetDevices() {
				if devices.GetResourceName() != resource {
					continue
				}
				for _, id := range devices.GetDeviceIds() {
					seen[id] = true
				}
			}
		}
	}
	found := make([]string, 0, len(seen))
	for id := range seen {
		found = append(found, id)
	}
	sort.Strings(found)
	return found
}

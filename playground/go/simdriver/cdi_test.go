package main

import (
	"encoding/json"
	"os"
	"testing"
)

func TestTheCDIFileOfAClaim(t *testing.T) {
	folder := cdiFolder{t.TempDir(), "gpu.example.com"}
	for range 2 { // preparing twice is fine
		if err := folder.write("uid-1", []string{"gpu-0", "gpu-1", "gpu-0"}); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(folder.path)
	if err != nil || len(entries) != 1 {
		t.Fatalf("the folder has %v, %v", entries, err)
	}
	content, err := os.ReadFile(folder.file("uid-1"))
	if err != nil {
		t.Fatal(err)
	}
	var spec cdiSpec
	if err := json.Unmarshal(content, &spec); err != nil {
		t.Fatal(err)
	}
	if len(spec.Devices) != 2 {
		t.Fatalf("a shared device is there twice: %s", content)
	}
	device := spec.Devices[1]
	if id := spec.Kind + "=" + device.Name; id != folder.id("uid-1", "gpu-1") {
		t.Errorf("the kubelet says %s, the file %s", folder.id("uid-1", "gpu-1"), id)
	}
	if device.Edits.Env[0] != "BERTH_DEVICE_GPU_1=gpu-1" || device.Edits.Nodes[0].Path != "/dev/berth/gpu-1" {
		t.Errorf("the container gets %+v", device.Edits)
	}
	for range 2 { // so is unpreparing
		if err := folder.remove("uid-1"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(folder.file("uid-1")); err == nil {
		t.Error("the file stays")
	}
}

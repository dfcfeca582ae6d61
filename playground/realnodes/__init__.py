"""Real nodes beside the simulated ones: kubelet, containerd and runc on this machine."""

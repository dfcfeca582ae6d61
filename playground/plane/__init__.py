"""A real Kubernetes control plane on loopback: its programs, who is who in it, the way to it."""

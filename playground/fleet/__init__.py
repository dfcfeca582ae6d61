"""The fleet: simulated kubelets, DRA drivers and device plugins at work on a real API server."""

"""`make demo`: the whole portal on one machine, over a control plane with simulated hardware."""

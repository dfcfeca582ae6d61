"""The fleet: simulated kubelets, DRA drivers and device plugins at work on a real API server.

A fleet file (`spec.py`, `scenarios/*.yaml`) says which machines there are. Everything else is as in
a real cluster: DaemonSets place drivers and plugins, the scheduler allocates and binds, each part
writes with an identity and rights of its own. What Pods may ask of their simulated machine, by
annotations under `playground.berth.dev/`:

| annotation | what it does |
|---|---|
| `run-for` | seconds after which the containers end by themselves (so does `sleep SECONDS`) |
| `exit-code` | with which they do (0) |
| `start-after` | seconds from prepared to started, as a big image takes |
| `stop-after` | seconds from SIGTERM to the end, at most the grace period |
| `last` | on a workload of a fleet file: made when all others have their nodes |
"""

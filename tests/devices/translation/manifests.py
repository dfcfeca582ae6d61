"""The manifests that are translated in tests, and the classes that stand for what they ask."""

from __future__ import annotations

from pathlib import Path

from devices.translation.asks import Target

FOLDER = Path(__file__).parent / "manifests"
#: Where the translated ones are pinned.
GOLDEN = "tests/golden/translation"
FILES = sorted(FOLDER.iterdir())

MIG = "device.attributes['gpu.example.com'].profile == '1g.10gb'"
TARGETS = (
    Target("nvidia.com/gpu", "gpu.example.com", by_dra=16, by_plugin=8, served=True),
    Target("nvidia.com/gpu.shared", "gpu.example.com"),
    Target("nvidia.com/mig-1g.10gb", "slice.example.com", selectors=(MIG,)),
    Target("rdma.example.com/port", "port.example.com", by_dra=4, by_plugin=0),
    Target("deviceclass.resource.kubernetes.io/gpu.example.com", "gpu.example.com", served=True),
)

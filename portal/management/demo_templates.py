"""What the demo's tenants may ask for, and the words for its device classes; data, no code.

The classes are those of `playground/scenarios/demo.yaml`. A real platform writes its own.
"""

from __future__ import annotations

from typing import Any

# device class: display name, words, icon
CLASS_WORDS: dict[str, tuple[str, str, str]] = {
    "h100-80gb": ("H100, 80 GB", "Eight on one NVLink fabric; for training.", "gpu"),
    "a100-80gb": ("A100, 80 GB", "Whole cards on PCIe.", "gpu"),
    "a100-mig-3g": ("A100 half, 40 GB", "Half a card, walled off in hardware.", "mig"),
    "a100-mig-1g": ("A100 slice, 10 GB", "A seventh of a card; for tests and notebooks.", "mig"),
    "l40s-48gb": ("L40S, 48 GB", "For inference and rendering.", "gpu"),
    "nic-rdma": ("RDMA port", "A virtual function of a fast network card.", "nic"),
    "fpga-vck5000": ("VCK5000 FPGA", "A card with 16 GB, reprogrammed by its holder.", "fpga"),
    "cpu-numa": ("NUMA cores", "Whole cores of one NUMA zone.", "cpu"),
    "fabric-gpu": ("H100 over fabric, 80 GB", "In a drawer, attached to a node on demand.", "gpu"),
}

PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
NUMA_NODE = "resource.kubernetes.io/numaNode"

# slug: name, words, icon, content
TEMPLATES: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "gpu": (
        "GPU",
        "One or more GPUs for each Pod, by memory.",
        "gpu",
        {
            "requests": [{"name": "gpu", "device_class": "h100-80gb", "words": "GPU"}],
            "parameters": [
                {
                    "kind": "choice",
                    "name": "memory",
                    "label": "Memory per GPU",
                    "default": "80-nvlink",
                    "options": [
                        {
                            "value": "10",
                            "label": "10 GB",
                            "words": "A100 slice; tests and notebooks",
                            "device_class": {"gpu": "a100-mig-1g"},
                        },
                        {
                            "value": "40",
                            "label": "40 GB",
                            "words": "A100 half; inference, small training",
                            "device_class": {"gpu": "a100-mig-3g"},
                        },
                        {
                            "value": "80",
                            "label": "80 GB",
                            "words": "A100 on PCIe",
                            "device_class": {"gpu": "a100-80gb"},
                        },
                        {
                            "value": "80-nvlink",
                            "label": "80 GB, NVLink",
                            "words": "H100; training on several GPUs",
                            "device_class": {"gpu": "h100-80gb"},
                        },
                    ],
                },
                {
                    "kind": "count",
                    "name": "gpus",
                    "label": "GPUs per Pod",
                    "request": "gpu",
                    "maximum": 8,
                },
                {
                    "kind": "switch",
                    "name": "near",
                    "label": "All in one NUMA zone",
                    "help": "Faster access to host memory; fewer places can serve it.",
                    "match_attribute": NUMA_NODE,
                    "match_requests": ["gpu"],
                },
            ],
        },
    ),
    "training-pair": (
        "GPU with a fast port",
        "H100s and an RDMA port below the same PCIe root, for training over several nodes.",
        "nic",
        {
            "requests": [
                {"name": "gpu", "device_class": "h100-80gb", "words": "H100"},
                {"name": "port", "device_class": "nic-rdma", "words": "RDMA port"},
            ],
            "parameters": [
                {
                    "kind": "count",
                    "name": "gpus",
                    "label": "GPUs per Pod",
                    "request": "gpu",
                    "maximum": 2,
                    "help": "Two GPUs share a PCIe root in these machines, so two is the most.",
                },
                {
                    "kind": "switch",
                    "name": "near",
                    "label": "Same PCIe root",
                    "default": True,
                    "help": "Traffic between GPU and network skips the processor.",
                    "match_attribute": PCIE_ROOT,
                    "match_requests": ["gpu", "port"],
                },
            ],
        },
    ),
    "notebook-gpu": (
        "GPU for a notebook",
        "One A100 slice that several Pods of yours may share.",
        "mig",
        {
            "shared": True,
            "requests": [{"name": "gpu", "device_class": "a100-mig-1g", "words": "A100 slice"}],
        },
    ),
    "fpga-card": (
        "FPGA card",
        "A whole VCK5000, yours alone while the Pod runs.",
        "fpga",
        {
            "requests": [
                {"name": "card", "device_class": "fpga-vck5000", "words": "VCK5000"},
            ],
            "parameters": [
                {
                    "kind": "count",
                    "name": "cards",
                    "label": "Cards per Pod",
                    "request": "card",
                    "maximum": 2,
                },
            ],
        },
    ),
}

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
CARD = "gpu.helios.example/parentIndex"
CARD_SHELL = {
    "driver": "fpga.lattice.example",
    "requests": ["card"],
    "parameters": {
        "apiVersion": "fpga.lattice.example/v1",
        "kind": "CardConfig",
        "shell": "base-3",
    },
}

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
                    "kind": "switch",
                    "name": "near",
                    "label": "All in one NUMA zone",
                    "help": "Faster access to host memory; fewer places can serve it.",
                    "constraints": [{"match_attribute": NUMA_NODE, "requests": ["gpu"]}],
                },
                {
                    "kind": "count",
                    "name": "gpus",
                    "label": "GPUs per Pod",
                    "request": "gpu",
                    "maximum": 8,
                    "bounds": [
                        {"when": {"memory": ["80"], "near": [True]}, "maximum": 2},
                        {"when": {"memory": ["80"]}, "maximum": 4},
                        {"when": {"memory": ["40", "80-nvlink"], "near": [True]}, "maximum": 4},
                    ],
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
                    "constraints": [{"match_attribute": PCIE_ROOT, "requests": ["gpu", "port"]}],
                },
            ],
        },
    ),
    "half-gpu": (
        "Half a GPU",
        "A part of an A100, walled off in hardware from whoever has the rest.",
        "mig",
        {
            "requests": [
                {
                    "name": "part",
                    "device_class": "a100-mig-3g",
                    "words": "A100 part",
                    "sharing": "partition",
                }
            ],
            "parameters": [
                {
                    "kind": "choice",
                    "name": "size",
                    "label": "How much",
                    "default": "half",
                    "options": [
                        {
                            "value": "half",
                            "label": "Half, 40 GB",
                            "words": "Three of seven compute slices",
                            "device_class": {"part": "a100-mig-3g"},
                        },
                        {
                            "value": "seventh",
                            "label": "A seventh, 10 GB",
                            "words": "One of seven compute slices",
                            "device_class": {"part": "a100-mig-1g"},
                        },
                    ],
                },
                {
                    "kind": "count",
                    "name": "parts",
                    "label": "Parts per Pod",
                    "request": "part",
                    "maximum": 2,
                },
                {
                    "kind": "switch",
                    "name": "apart",
                    "label": "On different cards",
                    "help": "A card that fails takes only one part with it.",
                    "when": {"parts": [2]},
                    "constraints": [{"distinct_attribute": CARD, "requests": ["part"]}],
                },
            ],
        },
    ),
    "any-gpu": (
        "Any large GPU",
        "80 GB of GPU memory at least: whatever of these is free first.",
        "gpu",
        {
            "requests": [
                {
                    "name": "gpu",
                    "words": "large GPU",
                    "alternatives": [
                        {"name": "h100", "device_class": "h100-80gb", "words": "H100"},
                        {
                            "name": "a100",
                            "device_class": "a100-80gb",
                            "words": "A100",
                            "count": 2,
                        },
                    ],
                }
            ],
            "constraints": [{"match_attribute": NUMA_NODE, "requests": ["gpu/a100"]}],
            "parameters": [
                {
                    "kind": "choice",
                    "name": "order",
                    "label": "Which first",
                    "default": "fast",
                    "options": [
                        {
                            "value": "fast",
                            "label": "1 × H100, else 2 × A100",
                            "words": "The fastest that is free",
                        },
                        {
                            "value": "roomy",
                            "label": "2 × A100, else 1 × H100",
                            "words": "Twice the memory first",
                            "alternatives": {"gpu": ["a100", "h100"]},
                        },
                        {
                            "value": "only",
                            "label": "1 × H100 or nothing",
                            "words": "Waits until one is free",
                            "alternatives": {"gpu": ["h100"]},
                        },
                    ],
                }
            ],
        },
    ),
    "cores": (
        "NUMA cores",
        "Whole cores of one NUMA zone, beside others who have cores of the same zone.",
        "cpu",
        {
            "requests": [
                {
                    "name": "zone",
                    "device_class": "cpu-numa",
                    "words": "NUMA zone",
                    "sharing": "capacity",
                }
            ],
            "parameters": [
                {
                    "kind": "quantity",
                    "name": "cores",
                    "label": "Cores",
                    "request": "zone",
                    "capacity": "cpu.numa.example/cores",
                    "unit_words": "cores",
                    "minimum": "1",
                    "maximum": "62",
                    "step": "1",
                    "default": "8",
                },
                {
                    "kind": "switch",
                    "name": "two",
                    "label": "The same number in a second zone",
                    "help": "Both zones are of the same machine, since a Pod runs on one.",
                    "count": {"zone": 2},
                },
            ],
            "tenant_defaults": {"basalt-genomics": {"cores": "24"}},
        },
    ),
    "notebook-gpu": (
        "GPU for a notebook",
        "One A100 slice that several Pods of yours may share.",
        "mig",
        {
            "shared": True,
            "pods": 4,
            "requests": [
                {
                    "name": "gpu",
                    "device_class": "a100-mig-1g",
                    "words": "A100 slice",
                    "sharing": "partition",
                }
            ],
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
                {
                    "kind": "choice",
                    "name": "shell",
                    "label": "Loaded with",
                    "default": "as-is",
                    "options": [
                        {
                            "value": "as-is",
                            "label": "As it is",
                            "words": "Whatever the card holds",
                        },
                        {
                            "value": "base-3",
                            "label": "Base shell 3",
                            "words": "Loaded anew before the Pod starts",
                            "config": [CARD_SHELL],
                        },
                    ],
                },
                {
                    "kind": "switch",
                    "name": "worn",
                    "label": "Also a card that is due for maintenance",
                    "help": "More places; the card may be taken out of service at short notice.",
                    "tolerations": {
                        "card": [
                            {
                                "key": "lattice.example/maintenance-due",
                                "operator": "Exists",
                                "effect": "NoSchedule",
                            }
                        ]
                    },
                },
            ],
        },
    ),
}

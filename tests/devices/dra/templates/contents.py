"""Contents of templates for tests: one with every kind of part, and small ones."""

from __future__ import annotations

from typing import Any

EVERYTHING: dict[str, Any] = {
    "requests": [
        {
            "name": "gpu",
            "words": "GPU",
            "alternatives": [
                {"name": "big", "device_class": "h100", "words": "H100"},
                {
                    "name": "small",
                    "device_class": "a100",
                    "words": "A100",
                    "count": 2,
                    "selectors": ["small-base"],
                },
            ],
        },
        {
            "name": "nic",
            "device_class": "nic",
            "words": "port",
            "when": {"network": ["rdma", "tcp"]},
        },
        {
            "name": "cores",
            "device_class": "cpu",
            "words": "cores",
            "capacity": {"cpu.example.com/cores": "4"},
            "sharing": "capacity",
        },
    ],
    "constraints": [
        {"match_attribute": "example.com/root", "requests": ["gpu", "nic"]},
        {
            "distinct_attribute": "example.com/card",
            "requests": ["gpu"],
            "when": {"network": ["rdma"]},
        },
    ],
    "config": [
        {
            "driver": "gpu.example.com",
            "requests": ["gpu"],
            "parameters": {"kind": "Config", "sharing": {"clients": 1, "memory": "1Gi"}},
            "values": {"/sharing/clients": "clients", "/sharing/memory": "memory"},
        }
    ],
    "parameters": [
        {
            "kind": "choice",
            "name": "network",
            "label": "Network",
            "default": "none",
            "options": [
                {"value": "none", "label": "None"},
                {"value": "tcp", "label": "TCP"},
                {
                    "value": "rdma",
                    "label": "RDMA",
                    "selectors": {"nic": ["rdma-expression"]},
                    "count": {"nic": 2},
                },
                {"value": "old", "label": "Old", "instead": "tcp"},
                {"value": "gone", "label": "Gone", "hidden": True, "because": "It broke."},
            ],
        },
        {
            "kind": "choice",
            "name": "speed",
            "label": "Speed",
            "default": "400",
            "when": {"network": ["rdma", "tcp"]},
            "options": [
                {"value": "100", "label": "100 Gb/s", "selectors": {"nic": ["slow-expression"]}},
                {"value": "400", "label": "400 Gb/s", "when": {"network": ["rdma"]}},
            ],
        },
        {
            "kind": "count",
            "name": "clients",
            "label": "Clients",
            "minimum": 1,
            "maximum": 8,
            "default": 2,
            "bounds": [{"when": {"network": ["rdma"]}, "maximum": 4}],
        },
        {
            "kind": "quantity",
            "name": "memory",
            "label": "Memory",
            "request": "cores",
            "capacity": "cpu.example.com/memory",
            "unit": "Gi",
            "unit_words": "GiB",
            "minimum": "1Gi",
            "maximum": "64Gi",
            "step": "512Mi",
            "optional": True,
            "required_when": {"clients": {"minimum": 3}},
        },
        {
            "kind": "switch",
            "name": "patient",
            "label": "Also worn cards",
            "tolerations": {
                "gpu": [{"key": "worn", "operator": "Exists"}],
                "gpu/small": [{"key": "old", "operator": "Equal", "value": "yes"}],
            },
            "alternatives": {"gpu": ["small", "big"]},
            "config": [{"driver": "nic.example.com", "parameters": {"a": 1}, "requests": ["nic"]}],
        },
    ],
    "tenant_defaults": {"basalt": {"network": "rdma", "memory": "8Gi", "clients": 8}},
    "longest_days": 30,
}


def one_question(parameter: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A template with one request and one parameter."""
    request = {"name": "gpu", "device_class": "gpu", "words": "GPU"}
    return {"requests": [request], "parameters": [parameter], **more}

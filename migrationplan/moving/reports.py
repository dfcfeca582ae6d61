"""Reports of the node probe as rows keep them: values to JSON and back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from devices.dra.conversion import NodeReport


def as_json(report: NodeReport) -> dict[str, Any]:
    """For a JSON column."""
    return {
        "node": report.node,
        "devices": {resource: list(ids) for resource, ids in report.devices.items()},
        "omitted": report.omitted,
        "claims_in_use": dict(report.claims_in_use),
        "kubelet_started": report.kubelet_started.isoformat(),
        "began": report.began.isoformat(),
        "ended": report.ended.isoformat(),
    }


def from_json(stored: Mapping[str, Any]) -> NodeReport:
    """What `as_json` wrote."""
    return NodeReport(
        node=stored["node"],
        devices={resource: tuple(ids) for resource, ids in stored["devices"].items()},
        omitted=stored["omitted"],
        claims_in_use=dict(stored["claims_in_use"]),
        kubelet_started=datetime.fromisoformat(stored["kubelet_started"]),
        began=datetime.fromisoformat(stored["began"]),
        ended=datetime.fromisoformat(stored["ended"]),
    )

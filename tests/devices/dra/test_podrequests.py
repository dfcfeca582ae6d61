"""What a Pod asks of its node: init containers, sidecars, a budget, a resize under way."""

from __future__ import annotations

from typing import Any

import pytest

from devices.dra.podrequests import pod_requests
from devices.dra.pods import read_pod


def a_container(name: str, cpu: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": {"cpu": cpu}}, **more}


@pytest.mark.parametrize(
    "spec, status, cpu",
    [
        pytest.param(
            {"containers": [a_container("a", "1"), a_container("b", "500m")]}, {}, "1500m", id="sum"
        ),
        pytest.param(
            {"containers": [a_container("a", "1")], "initContainers": [a_container("i", "3")]},
            {},
            "3",
            id="a greedy init container sets the floor",
        ),
        pytest.param(
            {
                "containers": [a_container("a", "1")],
                "initContainers": [
                    a_container("s", "2", restartPolicy="Always"),
                    a_container("i", "3"),
                ],
            },
            {},
            "5",
            id="an init container runs beside the sidecars before it",
        ),
        pytest.param(
            {
                "containers": [a_container("a", "4")],
                "initContainers": [
                    a_container("i", "3"),
                    a_container("s", "2", restartPolicy="Always"),
                ],
            },
            {},
            "6",
            id="a sidecar keeps running beside the containers",
        ),
        pytest.param(
            {"containers": [a_container("a", "1")], "overhead": {"cpu": "250m"}},
            {},
            "1250m",
            id="running it costs something",
        ),
        pytest.param(
            {
                "containers": [a_container("a", "1")],
                "resources": {"requests": {"cpu": "6"}},
                "overhead": {"cpu": "250m"},
            },
            {},
            "6250m",
            id="a budget takes the place of the sum, not of the overhead",
        ),
        pytest.param(
            {"containers": [a_container("a", "1")]},
            {"containerStatuses": [{"name": "a", "allocatedResources": {"cpu": "2"}}]},
            "2",
            id="shrinking: what it still has counts",
        ),
        pytest.param(
            {"containers": [a_container("a", "9")]},
            {
                "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}],
                "containerStatuses": [
                    {
                        "name": "a",
                        "allocatedResources": {"cpu": "2"},
                        "resources": {"requests": {"cpu": "1"}},
                    }
                ],
            },
            "2",
            id="a size that can never be given does not count",
        ),
        pytest.param(
            {"containers": [a_container("a", "9")]},
            {"containerStatuses": [{"name": "a", "allocatedResources": {"cpu": "mud"}}]},
            "9",
            id="a status that cannot be read leaves the spec",
        ),
    ],
)
def test_a_pod_asks_for(spec, status, cpu) -> None:
    pod = read_pod({"metadata": {"name": "p"}, "spec": spec, "status": status})
    assert str(pod_requests(pod)["cpu"]) == cpu

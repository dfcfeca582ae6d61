"""Fixtures of tests that act in the run's control plane of the newest release."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devices import cluster
from devices.cluster.gateway import Gateway, Ref
from playground.plane.controlplane import ControlPlane


@pytest.fixture
def gateway(plane_137: ControlPlane) -> Gateway:
    return cluster.connect(plane_137.admin_kubeconfig)


@pytest.fixture
def place(gateway: Gateway, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a namespace that is this test's alone, gone afterwards."""
    name = f"test-{abs(hash(request.node.nodeid)) % 10**10}"
    yield name
    gateway.delete(Ref("Namespace", name))

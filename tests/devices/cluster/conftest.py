"""A gateway to the run's control planes, with a namespace of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from devices.cluster import connect
from devices.cluster.gateway import Gateway, Ref
from playground.plane.controlplane import ControlPlane
from tests.devices.cluster.objects import until


@pytest.fixture
def gateway(plane: ControlPlane) -> Gateway:
    return connect(plane.admin_kubeconfig)


@pytest.fixture
def namespace(gateway: Gateway) -> Iterator[str]:
    """A namespace in which the control plane has made what it makes in every new one."""
    name = f"door-{uuid4().hex[:8]}"
    gateway.create({"kind": "Namespace", "metadata": {"name": name}})
    for ref in (Ref("ConfigMap", "kube-root-ca.crt", name), Ref("ServiceAccount", "default", name)):
        until(lambda ref=ref: gateway.get(ref))
    yield name
    gateway.delete(Ref("Namespace", name))

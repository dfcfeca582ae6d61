"""`manage.py checkrights` against a real API server: it reads roles, and names who lacks what."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from devices import cluster
from devices.cluster.gateway import Gateway, Ref
from devices.models import DriverRights
from playground.plane.controlplane import ControlPlane

pytestmark = [pytest.mark.django_db, pytest.mark.cluster]
Obj = dict[str, Any]
DRIVER = "rights.example.com"
NAME = "ledger-rights"
GROUP = "rbac.authorization.k8s.io"


def role(*extra: Obj) -> Obj:
    group = ["resource.k8s.io"]
    slices = ["get", "list", "watch", "create", "update", "delete"]
    return {
        "kind": "ClusterRole",
        "metadata": {"name": NAME},
        "rules": [
            {"apiGroups": group, "resources": ["resourceslices"], "verbs": slices},
            {"apiGroups": group, "resources": ["resourceclaims"], "verbs": ["get"]},
            {"apiGroups": group, "resources": ["resourceclaims/status"], "verbs": ["patch"]},
            {
                "apiGroups": group,
                "resources": ["resourceclaims/driver"],
                "resourceNames": [DRIVER],
                "verbs": ["arbitrary-node:patch"],
            },
            *extra,
        ],
    }


@pytest.fixture
def gateway(plane_137: ControlPlane) -> Iterator[Gateway]:
    found = cluster.connect(plane_137.admin_kubeconfig)
    objects: list[Obj] = [
        role(),
        {
            "kind": "ClusterRoleBinding",
            "metadata": {"name": NAME},
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": NAME},
            "subjects": [{"kind": "ServiceAccount", "name": "node", "namespace": "kube-public"}],
        },
        {
            "kind": "ResourceSlice",
            "metadata": {"name": NAME},
            "spec": {
                "driver": DRIVER,
                "nodeName": "no-such-node",
                "pool": {"name": NAME, "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "d0"}],
            },
        },
    ]
    for obj in objects:
        found.create(obj)
    yield found
    for obj in objects:
        found.delete(Ref(obj["kind"], NAME))


def said(plane: ControlPlane) -> tuple[int, list[str]]:
    """The exit code, and the lines about our driver."""
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("checkrights", kubeconfig=str(plane.admin_kubeconfig), stdout=out)
    lines = [line for line in out.getvalue().splitlines() if line.startswith(DRIVER)]
    return int(ended.value.code or 0), lines


def test_a_driver_that_may_write_status_on_any_node_is_named_and_kept(gateway, plane_137) -> None:
    code, lines = said(plane_137)
    assert code == 1
    assert lines == [
        f"{DRIVER} (kube-public/node) has beyond its need: "
        f"arbitrary-node:patch resourceclaims/driver.resource.k8s.io {DRIVER}"
    ]
    kept = DriverRights.objects.get()
    assert DRIVER in kept.drivers
    assert "associated-node:patch" in next(
        one["remedy"] for one in kept.findings if one["driver"] == DRIVER
    )


def test_a_cluster_that_does_not_answer_is_said(tmp_path) -> None:
    with pytest.raises(CommandError, match="did not say"):
        call_command("checkrights", kubeconfig=str(tmp_path / "none"), stdout=io.StringIO())

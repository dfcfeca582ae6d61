"""Object sets become live objects: statuses included, references kept, refusals told."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from devices.cluster import connect
from devices.cluster.gateway import Gateway, Ref
from playground.errors import PlaygroundError
from playground.plane.controlplane import ControlPlane
from playground.plane.load import load, read_set, ref_of, unload
from tests.playground.planes import NEWEST, OLDER, RELEASES, built

CASES = sorted((Path(__file__).parents[2] / "cases").glob("[0-9]*.yaml"))
# Cases in the shape of one release only, by the release that does not know their fields.
FOREIGN = {NEWEST: {"12", "16"}, OLDER: {"10", "11", "13", "14", "15", "17", "50"}}
UNKNOWN_FIELD = re.compile(r"field not declared in schema|unknown field", re.IGNORECASE)
Obj = dict[str, Any]


@pytest.fixture(scope="module", params=RELEASES)
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Gateway]]:
    """A control plane of its own: the sets bring Nodes and classes with everyday names."""
    folder = tmp_path_factory.mktemp("load")
    with ControlPlane(folder, built(request.param)) as plane:
        yield request.param, connect(plane.admin_kubeconfig)


def write(folder: Path, *objects: Obj) -> Path:
    path = folder / "set.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    return path


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_every_case_becomes_live_on_its_release(cluster: tuple[str, Gateway], case: Path) -> None:
    release, gateway = cluster
    result = load(gateway, [case], declare_features=True)
    try:
        names = {(ref.kind, ref.name, ref.namespace) for ref in result.live}
        refused = {(r.ref.kind, r.ref.name, r.ref.namespace) for r in result.refused}
        for obj in read_set(case):
            ref = ref_of(obj)
            assert (ref.kind, ref.name, ref.namespace) in names | refused
        if case.name[:2] in FOREIGN[release]:
            assert result.refused
            assert all(UNKNOWN_FIELD.search(entry.why) for entry in result.refused)
        else:
            assert [str(entry) for entry in result.refused] == []
    finally:
        unload(gateway, result)


OLD_POD, OLD_NODE = "aaaaaaaa-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000002"
WORK = Ref("Pod", "work", "loaded")
SPEC = {
    "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}
}
ALLOCATED = {
    "allocation": {
        "devices": {
            "results": [
                {"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "dev-0"}
            ]
        }
    },
    "reservedFor": [{"resource": "pods", "name": "work", "uid": OLD_POD}],
}


def a_set(*, owned: bool = False, **pod_meta: Any) -> list[Obj]:
    """A Pod on a node that holds a device by a claim: its own, or one made from a template."""
    claim_meta: Obj = {"name": "work-gpu-x7k2p", "namespace": "loaded"}
    reference = {"name": "gpu", "resourceClaimName": "work-gpu-x7k2p"}
    pod_status: Obj = {"phase": "Running"}
    more: list[Obj] = []
    if owned:
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "work", "uid": OLD_POD}
        claim_meta["ownerReferences"] = [{**owner, "controller": True}]
        claim_meta["annotations"] = {"resource.kubernetes.io/pod-claim-name": "gpu"}
        reference = {"name": "gpu", "resourceClaimTemplateName": "gpu"}
        pod_status["resourceClaimStatuses"] = [
            {"name": "gpu", "resourceClaimName": "work-gpu-x7k2p"}
        ]
        template_meta = {"name": "gpu", "namespace": "loaded"}
        more = [
            {"kind": "ResourceClaimTemplate", "metadata": template_meta, "spec": {"spec": SPEC}}
        ]
    container = {
        "name": "main",
        "image": "example.com/none",
        "resources": {"claims": [{"name": "gpu"}]},
    }
    head = {"apiVersion": "resource.k8s.io/v1"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "work", "namespace": "loaded", "uid": OLD_POD, **pod_meta},
            "spec": {"nodeName": "n1", "containers": [container], "resourceClaims": [reference]},
            "status": pod_status,
        },
        {
            **head,
            "kind": "ResourceClaim",
            "metadata": claim_meta,
            "spec": SPEC,
            "status": ALLOCATED,
        },
        *({**head, **entry} for entry in more),
        {**head, "kind": "DeviceClass", "metadata": {"name": "gpu.example.com"}, "spec": {}},
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "uid": OLD_NODE}},
    ]


@pytest.mark.parametrize(
    "owned",
    [
        pytest.param(False, id="a claim of its own"),
        pytest.param(True, id="a claim made from a template"),
    ],
)
def test_an_allocation_stays_with_its_pod(
    cluster: tuple[str, Gateway], tmp_path: Path, owned: bool
) -> None:
    """The claim controller gives back what is reserved for a uid that does not exist."""
    _, gateway = cluster
    result = load(gateway, [write(tmp_path, *a_set(owned=owned))])
    try:
        assert result.refused == []
        time.sleep(2)  # so long the controllers had to disagree
        pod = gateway.get(WORK)
        assert pod and pod["metadata"]["uid"] != OLD_POD
        (claim,) = gateway.list("ResourceClaim", namespace="loaded").items
        assert claim["metadata"]["name"] == "work-gpu-x7k2p"
        assert claim["status"]["allocation"]["devices"] == ALLOCATED["allocation"]["devices"]
        (consumer,) = claim["status"]["reservedFor"]
        assert consumer["uid"] == pod["metadata"]["uid"]
        assert pod["status"]["phase"] == "Running"
    finally:
        unload(gateway, result)
    assert gateway.list("ResourceClaim", namespace="loaded").items == ()


def test_loading_twice_changes_nothing(cluster: tuple[str, Gateway], tmp_path: Path) -> None:
    _, gateway = cluster
    path = write(tmp_path, *a_set())
    first = load(gateway, [path])
    before = gateway.get(WORK)
    second = load(gateway, [path])
    try:
        assert (first.refused, second.refused) == ([], [])
        after = gateway.get(WORK)
        assert before and after and before["metadata"]["uid"] == after["metadata"]["uid"]
    finally:
        unload(gateway, second)


def test_a_refused_object_does_not_keep_the_others_out(
    cluster: tuple[str, Gateway], tmp_path: Path
) -> None:
    _, gateway = cluster
    wrong = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "wrong.example.com"},
        "spec": {"selectors": [{"cel": {"expression": "device.nothing =="}}]},
    }
    unknown = {"apiVersion": "example.com/v1", "kind": "Spaceship", "metadata": {"name": "x"}}
    result = load(gateway, [write(tmp_path, wrong, unknown, *a_set())])
    try:
        told = {entry.ref.kind: entry for entry in result.refused}
        assert set(told) == {"DeviceClass", "Spaceship"}
        assert "spec.selectors[0].cel.expression" in str(told["DeviceClass"])
        assert "not served" in str(told["Spaceship"])
        assert gateway.get(WORK)
    finally:
        unload(gateway, result)


def test_what_the_set_shows_being_deleted_is_being_deleted(
    cluster: tuple[str, Gateway], tmp_path: Path
) -> None:
    _, gateway = cluster
    objects = a_set(deletionTimestamp="2026-01-01T00:00:00Z", deletionGracePeriodSeconds=30)
    result = load(gateway, [write(tmp_path, *objects)])
    try:
        assert result.refused == []
        pod = gateway.get(WORK)
        assert pod and pod["metadata"]["deletionTimestamp"]
    finally:
        unload(gateway, result)


def test_an_owner_outside_the_set_is_left_out_and_told(
    cluster: tuple[str, Gateway], tmp_path: Path
) -> None:
    _, gateway = cluster
    objects = a_set(
        ownerReferences=[
            {"apiVersion": "apps/v1", "kind": "Job", "name": "j", "uid": OLD_NODE + "x"}
        ]
    )
    result = load(gateway, [write(tmp_path, *objects)])
    try:
        assert [note for note in result.notes if "owner Job j is not in the set" in note]
        pod = gateway.get(WORK)
        assert pod and "ownerReferences" not in pod["metadata"]
    finally:
        unload(gateway, result)


def test_a_list_as_kubectl_prints_it_is_taken_apart(tmp_path: Path) -> None:
    inner = [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]
    typed = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClassList", "items": inner}
    mixed = {"apiVersion": "v1", "kind": "List", "items": a_set()}
    found = read_set(write(tmp_path, typed, mixed))
    kinds = [(obj["apiVersion"], obj["kind"]) for obj in found]
    assert kinds[:2] == [("resource.k8s.io/v1", "DeviceClass")] * 2
    assert ("v1", "Pod") in kinds and len(found) == 2 + len(a_set())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("a: [", "cannot be read as YAML", id="no YAML"),
        pytest.param("- just\n- words", "no Kubernetes object", id="no object"),
        pytest.param("metadata: {name: x}", "no Kubernetes object", id="no kind"),
    ],
)
def test_a_file_that_is_no_set_is_told(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    with pytest.raises(PlaygroundError, match=says):
        read_set(path)
    with pytest.raises(PlaygroundError, match="cannot be read"):
        read_set(tmp_path / "missing.yaml")

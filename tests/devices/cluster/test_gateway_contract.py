"""The gateway against the real API servers: reading, writing, refusals."""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from devices.cluster import connect
from devices.cluster.apiserver import ApiServer
from devices.cluster.dropped import dropped_fields
from devices.cluster.gateway import (
    Conflict,
    Forbidden,
    Missing,
    NotServed,
    Ref,
    Rejected,
    Unreachable,
)
from devices.cluster.live import Transport
from tests.devices.cluster.objects import a_claim, a_class, a_config_map, a_node, a_slice, until


def test_what_is_not_there_is_none_and_deleting_it_is_fine(gateway, namespace):
    ref = Ref("ResourceClaim", "none", namespace)
    assert gateway.get(ref) is None
    gateway.delete(ref)


def test_what_was_made_is_read_back_with_its_kind(gateway, namespace):
    made = gateway.apply(a_claim("a", namespace), manager="berth-claim")
    found = gateway.get(Ref("ResourceClaim", "a", namespace))
    assert found == made
    listed = gateway.list("ResourceClaim", namespace=namespace)
    assert [(obj["kind"], obj["apiVersion"]) for obj in listed.items] == [
        ("ResourceClaim", "resource.k8s.io/v1")
    ]


def test_a_list_is_narrowed_by_labels_and_by_fields(gateway, namespace):
    for name in ("a", "b"):
        claim = a_claim(name, namespace)
        claim["metadata"]["labels"] = {"berth.dev/claim": name}
        gateway.create(claim)
    by_label = gateway.list("ResourceClaim", namespace=namespace, labels="berth.dev/claim=b")
    by_field = gateway.list("ResourceClaim", namespace=namespace, fields="metadata.name=a")
    assert [obj["metadata"]["name"] for obj in by_label.items] == ["b"]
    assert [obj["metadata"]["name"] for obj in by_field.items] == ["a"]


def test_a_list_of_many_pages_shows_one_moment(gateway, namespace):
    for number in range(25):
        gateway.create(a_config_map(f"m{number:02}", namespace))
    pages = gateway.pages("ConfigMap", namespace=namespace, size=10)
    first = next(pages)
    gateway.create(a_config_map("m99", namespace))
    gateway.delete(Ref("ConfigMap", "m24", namespace))
    rest = list(pages)
    names = [str(bytes(item)) for page in (first, *rest) for item in page.items]
    assert sum('"m24"' in name for name in names) == 1
    assert not any('"m99"' in name for name in names)
    assert {page.version for page in (first, *rest)} == {first.version}
    assert [page.last for page in (first, *rest)] == [False, False, True]


def test_creating_twice_is_a_conflict(gateway, namespace):
    gateway.create(a_config_map("a", namespace))
    with pytest.raises(Conflict) as caught:
        gateway.create(a_config_map("a", namespace))
    assert caught.value.reason == "AlreadyExists"


def test_an_apply_shows_whose_field_it_is_and_overrules_only_by_force(gateway, namespace):
    gateway.apply(a_config_map("a", namespace, x="1"), manager="vendor")
    with pytest.raises(Conflict) as caught:
        gateway.apply(a_config_map("a", namespace, x="2"), manager="berth-node")
    assert caught.value.owners == (("vendor", ".data.x"),)
    gateway.apply(a_config_map("a", namespace, x="2"), manager="berth-node", force=True)
    assert gateway.get(Ref("ConfigMap", "a", namespace))["data"] == {"x": "2"}


def test_an_apply_drops_what_its_manager_no_longer_sends(gateway, namespace):
    gateway.apply(a_config_map("a", namespace, x="1", y="2"), manager="berth-share")
    gateway.apply(a_config_map("a", namespace, z="3"), manager="berth-claim")
    gateway.apply(a_config_map("a", namespace, x="1"), manager="berth-share")
    assert gateway.get(Ref("ConfigMap", "a", namespace))["data"] == {"x": "1", "z": "3"}


def test_a_dry_run_says_what_would_be_and_changes_nothing(gateway, namespace):
    dry = gateway.apply(a_claim("a", namespace), manager="berth-claim", dry_run=True)
    assert dry["spec"]["devices"]["requests"][0]["exactly"]["allocationMode"] == "ExactCount"
    assert gateway.get(Ref("ResourceClaim", "a", namespace)) is None
    gateway.create(a_config_map("m", namespace, x="1"))
    ref = Ref("ConfigMap", "m", namespace)
    gateway.merge(ref, {"data": {"x": "2"}}, dry_run=True)
    gateway.delete(ref, dry_run=True)
    assert gateway.get(ref)["data"] == {"x": "1"}


def test_a_json_patch_whose_test_fails_is_a_conflict(gateway):
    name = f"patched-{time.monotonic_ns()}"
    gateway.create(a_node(name))
    ref = Ref("Node", name)
    taint = {"key": "berth.dev/quiescing", "value": "w1", "effect": "NoSchedule"}
    found = gateway.get(ref)["spec"].get("taints", [])
    gateway.patch(
        ref,
        [
            {"op": "test", "path": "/metadata/name", "value": name},
            {"op": "add", "path": "/spec/taints", "value": [*found, taint]},
        ],
    )
    with pytest.raises(Conflict):
        gateway.patch(
            ref,
            [
                {"op": "test", "path": "/spec/taints", "value": found},
                {"op": "replace", "path": "/spec/taints", "value": []},
            ],
        )
    assert taint in gateway.get(ref)["spec"]["taints"]
    gateway.delete(ref)


def test_status_is_written_by_its_subresource_alone(gateway):
    name = f"status-{time.monotonic_ns()}"
    node = gateway.create({**a_node(name), "status": {"phase": "Pending"}})
    ref = Ref("Node", name)
    capacity = {"example.com/gpu": "8"}
    gateway.merge(ref, {"status": {"capacity": capacity}})
    assert "capacity" not in gateway.get(ref)["status"]
    gateway.merge(ref, {"status": {"capacity": capacity}}, subresource="status")
    assert gateway.get(ref)["status"]["capacity"] == capacity
    with pytest.raises(Conflict):
        gateway.replace({**node, "status": {}}, subresource="status")
    gateway.delete(ref)


def test_deleting_another_uid_is_a_conflict(gateway, namespace):
    made = gateway.create(a_config_map("a", namespace))
    ref = Ref("ConfigMap", "a", namespace)
    with pytest.raises(Conflict):
        gateway.delete(ref, uid="00000000-0000-0000-0000-000000000000")
    gateway.delete(ref, uid=made["metadata"]["uid"])
    assert gateway.get(ref) is None


def test_changing_what_is_not_there_says_so(gateway, namespace):
    with pytest.raises(Missing):
        gateway.merge(Ref("ConfigMap", "none", namespace), {"data": {}})
    with pytest.raises(Missing, match="nowhere"):
        gateway.create(a_config_map("a", "nowhere"))


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda gateway, obj: gateway.create(obj), id="by create"),
        pytest.param(lambda gateway, obj: gateway.apply(obj, manager="m"), id="by apply"),
    ],
)
def test_a_misspelt_field_is_refused(gateway, namespace, write):
    claim = a_claim("a", namespace)
    claim["spec"]["device"] = claim["spec"]["devices"]
    with pytest.raises(Rejected, match="device"):
        write(gateway, claim)


def test_a_changed_spec_is_refused_with_the_servers_words(gateway, namespace):
    gateway.create(a_claim("a", namespace))
    change = {"spec": {"devices": {"requests": []}}}
    with pytest.raises(Rejected, match="field is immutable") as caught:
        gateway.merge(Ref("ResourceClaim", "a", namespace), change)
    assert caught.value.status == 422


def test_quota_is_a_refusal_and_no_missing_right(gateway, namespace):
    gateway.create(
        {
            "kind": "ResourceQuota",
            "metadata": {"name": "devices", "namespace": namespace},
            "spec": {"hard": {"gpu.deviceclass.resource.k8s.io/devices": "1"}},
        }
    )
    until(lambda: gateway.get(Ref("ResourceQuota", "devices", namespace))["status"].get("hard"))
    gateway.create(a_claim("a", namespace))
    with pytest.raises(Rejected, match="exceeded quota: devices") as caught:
        gateway.create(a_claim("b", namespace))
    assert not isinstance(caught.value, Forbidden)


def test_a_policy_is_a_refusal_with_its_message(gateway, namespace):
    name = f"no-big-{namespace}"
    gateway.create(
        {
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {
                    "resourceRules": [
                        {
                            "apiGroups": ["resource.k8s.io"],
                            "apiVersions": ["v1"],
                            "operations": ["CREATE"],
                            "resources": ["resourceclaims"],
                        }
                    ]
                },
                "validations": [
                    {
                        "expression": "object.spec.devices.requests.all(r, r.exactly.count < 4)",
                        "message": "too big for this tenant",
                    }
                ],
            },
        }
    )
    gateway.create(
        {
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {
                "policyName": name,
                "validationActions": ["Deny"],
                "matchResources": {
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
                },
            },
        }
    )

    def denied():
        try:
            gateway.create(a_claim("big", namespace, count=8), dry_run=True)
        except Rejected as error:
            assert not isinstance(error, Forbidden)
            return str(error)
        return ""

    assert "too big for this tenant" in until(denied)
    gateway.delete(Ref("ValidatingAdmissionPolicyBinding", name))
    gateway.delete(Ref("ValidatingAdmissionPolicy", name))


def test_a_missing_right_names_kind_and_verb(plane):
    nobody = connect(plane.kubeconfig("jane", ["nobody"]))
    with pytest.raises(Forbidden, match=r'list Pod: .*User "jane" cannot list resource "pods"'):
        nobody.list("Pod")
    with pytest.raises(Forbidden, match='cannot get path "/metrics"'):
        nobody.text("/metrics")


def test_credentials_that_are_not_known_are_a_missing_right(plane, tmp_path):
    path = tmp_path / "kubeconfig"
    _kubeconfig(plane, path, {"token": "not-a-token"})
    with pytest.raises(Forbidden):
        connect(path).list("Namespace")


def test_a_replaced_kubeconfig_is_read_anew(plane, tmp_path):
    path = tmp_path / "kubeconfig"
    shutil.copy(plane.kubeconfig("jane", ["nobody"]), path)
    gateway = connect(path)
    with pytest.raises(Forbidden):
        gateway.list("Namespace")
    shutil.copy(plane.admin_kubeconfig, tmp_path / "new")
    (tmp_path / "new").replace(path)
    assert gateway.list("Namespace").items


def test_a_refused_token_is_read_anew_from_its_file_and_the_request_sent_once_more(plane, tmp_path):
    path, token = tmp_path / "kubeconfig", tmp_path / "token"
    token.write_text("expired")
    _kubeconfig(plane, path, {"tokenFile": str(token)})
    gateway = connect(path)
    with pytest.raises(Forbidden):
        gateway.list("Namespace")
    token.write_text(plane.bound_token("kube-system", "namespace-controller"))
    assert gateway.list("Namespace").items


def test_a_pods_own_account_whose_token_is_rotated(plane, tmp_path, monkeypatch):
    """The kubelet replaces the token file; one that ran out is read again and asked once more."""
    host, port = plane.url.removeprefix("https://").split(":")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    token = tmp_path / "token"
    token.write_text("ran out")
    place = "kubernetes.config.incluster_config.SERVICE"
    monkeypatch.setattr(f"{place}_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(f"{place}_CERT_FILENAME", str(plane.ca_file))
    gateway = ApiServer(Transport())
    with pytest.raises(Forbidden):
        gateway.list("Namespace")
    token.write_text(plane.bound_token("kube-system", "namespace-controller"))
    assert gateway.list("Namespace").items


def test_a_token_from_an_exec_plugin(plane, tmp_path):
    token = plane.bound_token("kube-system", "namespace-controller")
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": token},
    }
    (tmp_path / "credential.json").write_text(json.dumps(credential))
    path = tmp_path / "kubeconfig"
    _kubeconfig(
        plane,
        path,
        {
            "exec": {
                "apiVersion": "client.authentication.k8s.io/v1",
                "command": "cat",
                "args": [str(tmp_path / "credential.json")],
                "interactiveMode": "Never",
            }
        },
    )
    assert connect(path).list("Namespace").items


def test_a_kubeconfig_that_is_not_there_yet_is_waited_for(plane, tmp_path):
    path = tmp_path / "kubeconfig"
    gateway = connect(path)
    with pytest.raises(Unreachable, match="cannot be read"):
        gateway.list("Namespace")
    path.write_text("half a")
    with pytest.raises(Unreachable, match="cannot be read"):
        gateway.list("Namespace")
    shutil.copy(plane.admin_kubeconfig, path)
    assert gateway.list("Namespace").items


def test_a_certificate_of_another_authority_is_not_trusted(plane, tmp_path):
    config = plane.admin_kubeconfig.read_text()
    other = tmp_path / "other.pem"
    other.write_text(_another_authority())
    lines = [
        f"    certificate-authority: {other}" if "certificate-authority" in line else line
        for line in config.splitlines()
    ]
    path = tmp_path / "kubeconfig"
    path.write_text("\n".join(lines))
    with pytest.raises(Unreachable, match="certificate"):
        connect(path).list("Namespace")


def test_a_kind_that_nobody_serves_is_named(gateway):
    with pytest.raises(NotServed, match="Berthing"):
        gateway.list("Berthing")


def test_kinds_outside_the_table_are_found_by_discovery(gateway):
    found = gateway.get(Ref("PriorityClass", "system-node-critical"))
    assert found is not None
    assert found["value"] == 2000001000


def test_an_object_without_api_version_gets_the_best_served_one(gateway):
    name = f"rule-{time.monotonic_ns()}"
    rule = {
        "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": {
            "deviceSelector": {"driver": "none.example.com"},
            "taint": {"key": "berth.dev/frozen", "effect": "NoSchedule"},
        },
    }
    best = gateway.served().versions("resource.k8s.io", "DeviceTaintRule")[0]
    made = gateway.apply(rule, manager="berth-freeze")
    assert made["apiVersion"] == f"resource.k8s.io/{best}"
    gateway.delete(Ref("DeviceTaintRule", name))


def test_a_field_of_another_release_is_dropped_or_refused_and_never_silently_lost(plane, gateway):
    name = f"dropped-{time.monotonic_ns()}"
    gateway.create(a_class(name))
    piece = a_slice(name, node="nowhere")
    device = piece["spec"]["devices"][0]
    device["nodeAllocatableResourceMappings"] = {"cpu": {"allocationMultiplier": "2"}}
    with contextlib.ExitStack() as after:
        after.callback(gateway.delete, Ref("ResourceSlice", name))
        after.callback(gateway.delete, Ref("DeviceClass", name))
        if plane.release.startswith("1.36"):
            assert dropped_fields(piece, {"apiVersion": "", **gateway.create(piece)}) == ()
        else:
            with pytest.raises(Rejected, match="nodeAllocatableResourceMappings"):
                gateway.create(piece)


@pytest.mark.cluster
def test_what_a_feature_that_is_off_drops_is_named(plane_137):
    gateway = connect(plane_137.admin_kubeconfig)
    claim = a_claim("derived", "default")
    exactly = claim["spec"]["devices"]["requests"][0]["exactly"]
    exactly["derivedAttributes"] = [{"name": "example.com/fast", "expression": "true"}]
    stored = gateway.create(claim, dry_run=True)
    assert dropped_fields(claim, stored) == ("spec.devices.requests[0].exactly.derivedAttributes",)


def _kubeconfig(plane, path, user):
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "clusters": [
            {
                "name": "it",
                "cluster": {"server": plane.url, "certificate-authority": str(plane.ca_file)},
            }
        ],
        "users": [{"name": "it", "user": user}],
    }
    path.write_text(yaml.safe_dump(config))


def _another_authority() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "somebody else")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM).decode()

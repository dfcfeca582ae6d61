"""The control plane is what was asked for, and everybody is who they say."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import time
from pathlib import Path

import pytest
import yaml

from playground.errors import PlaygroundError
from playground.plane.certificates import Authority, Pair
from playground.plane.components import API_SERVER, CONTROLLER_MANAGER, ETCD, SCHEDULER
from playground.plane.controlplane import ControlPlane
from playground.plane.https import Answer, ask
from tests.playground.planes import RELEASES, StartPlane

REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


def who_am_i(kubeconfig: Path, ca_file: Path, folder: Path) -> dict[str, object]:
    """What the API server calls the owner of a kubeconfig."""
    content = yaml.safe_load(kubeconfig.read_text())
    user = content["users"][0]["user"]
    client = None
    if "client-key-data" in user:
        client = Pair(folder / "who.crt", folder / "who.key")
        client.certificate.write_bytes(base64.b64decode(user["client-certificate-data"]))
        client.key.write_bytes(base64.b64decode(user["client-key-data"]))
    answer = ask(
        content["clusters"][0]["cluster"]["server"]
        + "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        ca_file=ca_file,
        client=client,
        token=user.get("token", ""),
        method="POST",
        body=REVIEW,
    )
    assert answer.status == 201, answer
    return dict(answer.json()["status"]["userInfo"])


def make(plane: ControlPlane, path: str, kind: str, name: str) -> Answer:
    return plane.ask(
        path, method="POST", body={"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}
    )


@pytest.mark.parametrize("release", RELEASES)
def test_it_is_the_release_that_was_asked_for(start_plane: StartPlane, release: str) -> None:
    version = start_plane(release).ask("/version").json()
    assert version["gitVersion"] == f"v{release}"
    assert (version["major"], version["minor"]) == tuple(release.split(".")[:2])


def test_what_pods_need_is_there_when_start_returns(plane: ControlPlane) -> None:
    for path in (
        "/api/v1/namespaces/default/serviceaccounts/default",
        "/api/v1/namespaces/kube-system/serviceaccounts/resource-claim-controller",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node",
    ):
        assert plane.ask(path).status == 200, path


def test_every_server_shows_a_certificate_of_the_playground(plane: ControlPlane) -> None:
    state = json.loads((plane.folder / "plane.json").read_text())
    for name in (API_SERVER, SCHEDULER, CONTROLLER_MANAGER):
        context = ssl.create_default_context(cafile=str(plane.ca_file))
        for host in ("127.0.0.1", "localhost"):
            with (
                socket.create_connection(("127.0.0.1", state["ports"][name]), timeout=5) as plain,
                context.wrap_socket(plain, server_hostname=host) as tls,
            ):
                assert tls.version() == "TLSv1.3", name


def test_a_client_that_trusts_somebody_else_is_turned_away(
    plane: ControlPlane, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path, "somebody-else")
    answer = ask(plane.url + "/version", ca_file=stranger.certificate)
    assert answer.status == 0
    assert b"CERTIFICATE_VERIFY_FAILED" in answer.body
    forged = stranger.client("forged", "playground-admin", ["system:masters"])
    answer = ask(plane.url + "/api/v1/namespaces", ca_file=plane.ca_file, client=forged)
    assert answer.status in (0, 401)


def test_a_persons_certificate_does_not_open_etcd(plane: ControlPlane) -> None:
    port = json.loads((plane.folder / "plane.json").read_text())["ports"][ETCD]
    person = plane.authority.client("person", "ann", ["system:masters"])
    answer = ask(
        f"https://127.0.0.1:{port}/version",
        ca_file=plane.folder / "certs/etcd/ca.crt",
        client=person,
    )
    assert answer.status == 0


@pytest.mark.parametrize(
    ("user", "groups"),
    [
        pytest.param("ann", ("team-a", "berth-operators"), id="a person in two groups"),
        pytest.param("system:node:n1", ("system:nodes",), id="a node"),
        pytest.param("zoë@example.com", (), id="a name beyond ASCII, in no group"),
    ],
)
def test_a_kubeconfig_has_the_identity_it_was_made_for(
    plane: ControlPlane, tmp_path: Path, user: str, groups: tuple[str, ...]
) -> None:
    path = plane.kubeconfig(user, groups)
    assert path.stat().st_mode & 0o077 == 0
    found = who_am_i(path, plane.ca_file, tmp_path)
    assert found["username"] == user
    assert found["groups"] == [*groups, "system:authenticated"]


def test_a_service_accounts_kubeconfig_has_its_identity(
    plane: ControlPlane, tmp_path: Path
) -> None:
    found = who_am_i(
        plane.service_account_kubeconfig("default", "default"), plane.ca_file, tmp_path
    )
    assert found["username"] == "system:serviceaccount:default:default"
    with pytest.raises(PlaygroundError, match='serviceaccounts "nobody" not found'):
        plane.service_account_kubeconfig("default", "nobody")


def test_a_token_bound_to_a_node_tells_the_node_and_dies_with_it(
    plane: ControlPlane, tmp_path: Path
) -> None:
    node = make(plane, "/api/v1/nodes", "Node", "token-node").json()
    bound_to = {"kind": "Node", "name": "token-node", "uid": node["metadata"]["uid"]}
    kubeconfig = plane.service_account_kubeconfig("default", "default", bound_to=bound_to)
    extra = who_am_i(kubeconfig, plane.ca_file, tmp_path)["extra"]
    assert isinstance(extra, dict)
    assert extra["authentication.kubernetes.io/node-name"] == ["token-node"]
    plane.ask("/api/v1/nodes/token-node", method="DELETE")
    token = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"]
    until = time.monotonic() + 30  # the API server keeps a verdict on a token for 10 s
    status = 0
    while status != 401 and time.monotonic() < until:
        status = ask(plane.url + "/api", ca_file=plane.ca_file, token=token).status
        time.sleep(0.5)
    assert status == 401


def test_a_person_without_a_role_may_read_nothing(plane: ControlPlane) -> None:
    person = plane.authority.client("nobody", "nobody-special")
    answer = ask(plane.url + "/api/v1/pods", ca_file=plane.ca_file, client=person)
    assert answer.status == 403
    assert b"nobody-special" in answer.body


def test_secrets_and_tokens_never_reach_the_audit_log(plane: ControlPlane) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "audited"},
        "stringData": {"password": "correct-horse"},
    }
    path = "/api/v1/namespaces/default/secrets"
    assert plane.ask(path, method="POST", body=secret).status in (201, 409)
    token = plane.bound_token("default", "default")
    make(plane, "/api/v1/namespaces", "Namespace", "audited")
    lines: list[str] = []
    until = time.monotonic() + 10
    while not any('"/api/v1/namespaces"' in line for line in lines) and time.monotonic() < until:
        lines = (plane.folder / "logs/audit.log").read_text().splitlines()
        time.sleep(0.1)
    assert any(f'"requestURI":"{path}"' in line for line in lines)
    assert any('"requestObject"' in line and '"audited"' in line for line in lines)
    text = "\n".join(lines)
    assert "correct-horse" not in text and "Y29ycmVjdC1ob3JzZ" not in text
    assert token not in text

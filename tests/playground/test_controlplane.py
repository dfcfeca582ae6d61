"""The control plane starts, stops, survives and cleans up; everybody is who they say."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from playground.build import PlaygroundError
from playground.certificates import Authority, Pair
from playground.components import API_SERVER, COMPONENTS, CONTROLLER_MANAGER, ETCD, SCHEDULER
from playground.controlplane import ControlPlane
from playground.https import Answer, ask
from playground.processes import look_up
from tests.playground.plane import NEWEST, RELEASES, StartPlane, built

ROOT = Path(__file__).resolve().parents[2]
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


@pytest.fixture
def own_plane(tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane that the test may break; its folder's name holds a space."""
    plane = ControlPlane(tmp_path / "a plane", built(NEWEST))
    yield plane
    plane.stop()


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


def alive(pids: dict[str, int]) -> list[str]:
    return [name for name, pid in pids.items() if look_up(pid)]


def gone_within(pids: dict[str, int], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while alive(pids) and time.monotonic() < until:
        time.sleep(0.05)
    return not alive(pids)


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


@pytest.mark.cluster
def test_two_stand_side_by_side(start_plane: StartPlane, own_plane: ControlPlane) -> None:
    first, second = start_plane(NEWEST), own_plane.start(tied=True)
    assert first.url != second.url
    make(second, "/api/v1/namespaces", "Namespace", "only-in-the-second")
    assert second.ask("/api/v1/namespaces/only-in-the-second").status == 200
    assert first.ask("/api/v1/namespaces/only-in-the-second").status == 404
    assert first.ask("/version").status == 200
    answer = ask(second.url + "/version", ca_file=first.ca_file)
    assert answer.status == 0, "each has an authority of its own"


@pytest.mark.cluster
def test_data_and_addresses_are_kept_over_a_restart(own_plane: ControlPlane) -> None:
    own_plane.start(tied=True)
    url, admin = own_plane.url, own_plane.admin_kubeconfig.read_bytes()
    make(own_plane, "/api/v1/namespaces", "Namespace", "kept")
    pids = own_plane.pids()
    own_plane.start(tied=True)
    assert own_plane.pids() == pids, "starting a running one changes nothing"
    begun = time.monotonic()
    own_plane.stop()
    assert time.monotonic() - begun < 10
    assert alive(pids) == []
    again = ControlPlane.open(own_plane.folder).start(tied=True)
    assert (again.url, again.admin_kubeconfig.read_bytes()) == (url, admin)
    assert again.ask("/api/v1/namespaces/kept").status == 200


@pytest.mark.cluster
def test_kubeconfigs_move_when_somebody_took_the_port(own_plane: ControlPlane) -> None:
    own_plane.start(tied=True)
    before, person = own_plane.url, own_plane.kubeconfig("ann")
    own_plane.stop()
    with socket.create_server(("127.0.0.1", int(before.rpartition(":")[2]))):
        own_plane.start(tied=True)
        assert own_plane.url != before
        assert own_plane.url in person.read_text()
        assert own_plane.ask("/version").status == 200


@pytest.mark.cluster
def test_another_release_on_the_same_data_is_refused(own_plane: ControlPlane) -> None:
    own_plane.start(tied=True)
    with pytest.raises(PlaygroundError, match=f"holds data of release {NEWEST}"):
        ControlPlane(own_plane.folder, "1.36")
    own_plane.wipe()
    assert not own_plane.folder.exists()
    ControlPlane(own_plane.folder, "1.36")


@pytest.mark.cluster
def test_a_killed_parent_leaves_nothing_behind(tmp_path: Path) -> None:
    """Tied is by a pipe, not by the thread that started them; so the thread here has ended."""
    folder = tmp_path / "plane"
    script = (
        "import sys, threading, time; from pathlib import Path\n"
        "from playground.controlplane import ControlPlane\n"
        "plane = ControlPlane(Path(sys.argv[1]), sys.argv[2])\n"
        "thread = threading.Thread(target=plane.start, kwargs={'tied': True})\n"
        "thread.start(); thread.join(); time.sleep(0.5)\n"
        "print('up', flush=True); time.sleep(600)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(folder), built(NEWEST)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
    )
    with parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"up\n"
        pids = ControlPlane.open(folder).pids()
        assert set(pids) == set(COMPONENTS)
        assert sorted(alive(pids)) == sorted(COMPONENTS)
        parent.kill()
    assert gone_within(pids, 5), alive(pids)


@pytest.mark.cluster
def test_what_a_killed_run_left_is_taken_over_or_cleaned_up(own_plane: ControlPlane) -> None:
    script = (
        "import os, sys; from pathlib import Path\n"
        "from playground.controlplane import ControlPlane\n"
        "ControlPlane(Path(sys.argv[1]), sys.argv[2]).start()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(own_plane.folder), NEWEST], cwd=ROOT)
    left = own_plane.pids()
    assert sorted(alive(left)) == sorted(COMPONENTS)
    os.kill(left[SCHEDULER], signal.SIGKILL)
    own_plane.start()
    now = own_plane.pids()
    assert {n for n in COMPONENTS if now[n] == left[n]} == set(COMPONENTS) - {SCHEDULER}
    os.kill(left[API_SERVER], signal.SIGSTOP)
    own_plane.start(tied=True)
    assert gone_within(left, 5), "a tied run takes nothing over"
    assert own_plane.states() == dict.fromkeys(COMPONENTS, "running")


@pytest.mark.cluster
def test_a_process_that_got_our_pid_is_not_touched(own_plane: ControlPlane) -> None:
    """After a restart of the machine the notes name pids that belong to others."""
    with subprocess.Popen(["sleep", "600"]) as stranger:
        note = own_plane.folder / "run" / f"{SCHEDULER}.json"
        note.parent.mkdir(parents=True)
        note.write_text(
            json.dumps({"pid": stranger.pid, "started": "another time", "command": ["x"]})
        )
        own_plane.start(tied=True)
        own_plane.stop()
        assert stranger.poll() is None
        stranger.kill()


@pytest.mark.cluster
def test_a_part_can_be_stopped_crashed_paused_and_brought_back(own_plane: ControlPlane) -> None:
    own_plane.start(tied=True)
    make(own_plane, "/api/v1/namespaces", "Namespace", "before")
    own_plane.pause(API_SERVER)
    assert own_plane.states()[API_SERVER] == "paused"
    assert own_plane.ask("/version", timeout=1).status == 0
    own_plane.resume(API_SERVER)
    assert own_plane.ask("/version").status == 200
    for kill in (False, True):
        own_plane.stop_component(ETCD, kill=kill)
        assert own_plane.states()[ETCD] == "stopped"
        own_plane.start_component(ETCD)
        own_plane.stop_component(API_SERVER, kill=kill)
        assert own_plane.ask("/version").status == 0
        own_plane.start_component(API_SERVER)
        assert own_plane.ask("/api/v1/namespaces/before").status == 200
    own_plane.pause(SCHEDULER)
    begun = time.monotonic()
    own_plane.stop()
    assert time.monotonic() - begun < 10
    assert own_plane.states() == dict.fromkeys(COMPONENTS, "stopped")


@pytest.mark.cluster
def test_forgotten_history_is_410_for_watch_and_list(own_plane: ControlPlane) -> None:
    own_plane.start(tied=True)
    for number in range(3):
        make(own_plane, "/api/v1/namespaces", "Namespace", f"n{number}")
    page = own_plane.ask("/api/v1/namespaces?limit=1").json()["metadata"]
    old, token = page["resourceVersion"], page["continue"]
    watch = "/api/v1/namespaces?watch=true&timeoutSeconds=1&resourceVersion="
    assert b'"code":410' not in own_plane.ask(watch + old).body
    oldest = own_plane.compact()
    assert oldest > int(old)
    answer = own_plane.ask(watch + old)
    said = answer.json() if answer.status == 410 else json.loads(answer.body.splitlines()[0])
    said = said.get("object", said)
    assert (said["code"], said["reason"]) in ((410, "Expired"), (410, "Gone"))
    assert own_plane.ask(f"/api/v1/namespaces?limit=1&continue={token}").status == 410
    fresh = own_plane.ask("/api/v1/namespaces").json()["metadata"]["resourceVersion"]
    assert own_plane.ask(watch + fresh).status == 200


@pytest.mark.cluster
def test_an_older_minor_is_served_by_emulation(tmp_path: Path) -> None:
    with ControlPlane(tmp_path, built(NEWEST), emulated_version="1.35") as plane:
        assert plane.ask("/version").json()["emulationMinor"] == "35"
        groups = {
            version: plane.ask(f"/apis/resource.k8s.io/{version}")
            for version in ("v1", "v1beta2", "v1alpha3")
        }
        serving = {
            version
            for version, answer in groups.items()
            if answer.status == 200
            and any(r["name"] == "devicetaintrules" for r in answer.json()["resources"])
        }
        assert serving == {"v1alpha3"}


@pytest.mark.cluster
def test_single_gates_and_parts_can_be_chosen(tmp_path: Path) -> None:
    parts = (ETCD, API_SERVER)
    gates = {"DRADeviceTaintRules": False}
    with ControlPlane(tmp_path, built(NEWEST), gates=gates, components=parts) as plane:
        assert tuple(plane.states()) == parts
        metrics = plane.ask("/metrics").body.decode()
        wanted = {"DRADeviceTaintRules": "0", "DRANodeAllocatableResources": "1"}
        for gate, value in wanted.items():
            line = next(
                line
                for line in metrics.splitlines()
                if line.startswith("kubernetes_feature_enabled{") and f'name="{gate}"' in line
            )
            assert line.endswith(f" {value}"), line


@pytest.mark.cluster
def test_a_wrong_gate_is_told_and_leaves_nothing_running(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path, built(NEWEST), gates={"NoSuchGate": True})
    with pytest.raises(PlaygroundError, match="unrecognized feature gate: NoSuchGate"):
        plane.start(tied=True)
    assert plane.pids() == {}

"""The watch process over a real API server: syncing, resuming, faults, spares."""

from __future__ import annotations

import contextlib
import os
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from django.db import connection

from devices import mirror
from devices.cluster import connect
from devices.cluster.gateway import Change, Ref
from devices.mirror.kinds import MIRRORED
from devices.models import ClusterState, Leadership, Observed, Sync
from playground.plane.components import API_SERVER, ETCD
from playground.plane.controlplane import ControlPlane
from playground.plane.proxy import Fault, Proxy
from tests.devices.cluster.objects import a_claim, a_class, a_node, a_pod, a_slice
from tests.devices.following import following, listed, same, until
from tests.playground.planes import NEWEST, built

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.cluster]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def own_plane(tmp_path_factory):
    """A control plane whose API server these tests may stop; nothing in it moves by itself."""
    folder = tmp_path_factory.mktemp("follow")
    with ControlPlane(folder, built(NEWEST), components=(ETCD, API_SERVER)) as plane:
        yield plane


@pytest.fixture
def gateway(own_plane):
    return connect(own_plane.admin_kubeconfig)


@pytest.fixture
def namespace(gateway):
    name = f"follow-{uuid4().hex[:8]}"
    gateway.create({"kind": "Namespace", "metadata": {"name": name}})
    return name


@pytest.fixture
def proxy(own_plane):
    port = int(own_plane.url.rpartition(":")[2])
    with Proxy(port, own_plane.authority.server("proxy")) as proxy:
        yield proxy


@pytest.fixture
def through(own_plane, proxy):
    return connect(own_plane.kubeconfig("p-admin", ["system:masters"], server=proxy.url))


def test_a_first_sync_and_then_every_change(gateway, namespace):
    gateway.create(a_node(f"n-{namespace}"))
    gateway.create(a_slice(f"s-{namespace}", node=f"n-{namespace}", devices=4))
    for number in range(30):
        gateway.create(a_claim(f"a{number:02}", namespace))
    with following(gateway) as told:
        until(listed)
        same(gateway)
        assert told.turns >= 1
        told.changes.clear()
        ref = Ref("ResourceClaim", "a00", namespace)
        gateway.merge(ref, {"metadata": {"labels": {"berth.dev/claim": "c-1"}}})
        gateway.delete(Ref("ResourceClaim", "a01", namespace))
        made = gateway.create(a_claim("b", namespace))
        same(gateway)
        until(lambda: len(told.changes) >= 3)
        changed = {(c.change, c.name): c.claim for c in told.changes}
        assert changed == {
            (Change.MODIFIED, "a00"): "c-1",
            (Change.DELETED, "a01"): "",
            (Change.ADDED, "b"): "",
        }
        row = mirror.find("ResourceClaim", "b", namespace)
        assert row is not None
        assert {**row.obj, "metadata": {**row.obj["metadata"], "managedFields": None}} == {
            **made,
            "metadata": {**made["metadata"], "managedFields": None},
        }
        ages = mirror.freshness()
        assert set(ages) == set(MIRRORED)
        assert all(fresh.age is not None and fresh.age < 30 for fresh in ages.values())
        state = ClusterState.objects.get()
        assert state.reachable
        assert state.release == f"v{NEWEST}"


def test_a_restart_resumes_without_a_new_list_and_misses_nothing(gateway, namespace):
    gateway.create(a_claim("a", namespace))
    with following(gateway):
        until(listed)
        same(gateway)
    before = dict(Sync.objects.values_list("kind", "listed_at"))
    gateway.create(a_claim("b", namespace))
    gateway.delete(Ref("ResourceClaim", "a", namespace))
    with following(gateway) as told:
        same(gateway)
        until(lambda: len(told.changes) >= 2)
        seen = sorted((c.change, c.name) for c in told.changes)
    assert seen == [(Change.ADDED, "b"), (Change.DELETED, "a")]
    assert dict(Sync.objects.values_list("kind", "listed_at")) == before


def test_forgotten_history_means_a_new_list_and_objects_gone_meanwhile_go(
    own_plane, gateway, namespace
):
    gateway.create(a_claim("a", namespace))
    gateway.create(a_claim("b", namespace))
    with following(gateway):
        until(listed)
        same(gateway)
    before = Sync.objects.get(kind="ResourceClaim").listed_at
    gateway.delete(Ref("ResourceClaim", "a", namespace))
    gateway.create(a_claim("c", namespace))
    own_plane.compact()
    with following(gateway) as told:
        until(lambda: Sync.objects.get(kind="ResourceClaim").listed_at > before)
        same(gateway)
        until(lambda: len(told.changes) >= 2)
        seen = sorted((c.change, c.name) for c in told.changes if c.kind == "ResourceClaim")
    assert seen == [(Change.ADDED, "c"), (Change.DELETED, "a")]


def test_history_forgotten_under_a_running_watch(own_plane, gateway, namespace):
    with following(gateway):
        until(listed)
        gateway.create(a_claim("a", namespace))
        same(gateway)
        own_plane.compact()
        gateway.create(a_claim("b", namespace))
        same(gateway, seconds=60)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Fault(cut_after=0), id="cut"),
        pytest.param(Fault(cut_after=30_000), id="cut in mid-line, again and again"),
        pytest.param(Fault(refuse=True), id="nobody listens"),
        pytest.param(Fault(answer="429"), id="too many requests"),
        pytest.param(Fault(answer="500"), id="internal errors"),
        pytest.param(Fault(answer="html"), id="a page of a proxy"),
        pytest.param(Fault(answer="html-404"), id="a proxy that finds nothing"),
    ],
)
def test_whatever_happens_on_the_way_the_mirror_is_equal_in_the_end(
    gateway, through, proxy, namespace, fault
):
    claim = a_claim("big", namespace)
    claim["metadata"]["annotations"] = {"note": "x" * 50_000}
    with following(through):
        until(listed)
        proxy.set(fault)
        for number in range(5):
            gateway.create(a_claim(f"a{number}", namespace))
            gateway.create({**claim, "metadata": {**claim["metadata"], "name": f"big{number}"}})
            time.sleep(0.1)
        time.sleep(1)
        gateway.delete(Ref("ResourceClaim", "a0", namespace))
        proxy.mend()
        same(gateway, seconds=60)
    names = Observed.objects.filter(kind="ResourceClaim", namespace=namespace)
    assert names.count() == 9


def test_a_cluster_that_is_away_is_said_to_be_and_the_mirror_ages(
    gateway, through, proxy, namespace
):
    with following(through) as told:
        until(listed)
        until(lambda: ClusterState.objects.get().reachable)
        turns = told.turns
        proxy.set(Fault(refuse=True))
        proxy.cut()
        until(lambda: not ClusterState.objects.get().reachable)
        assert "refused" in ClusterState.objects.get().message
        until(lambda: told.turns > turns)
        until(lambda: Sync.objects.get(kind="Pod").error)
        age = mirror.freshness()["Pod"].age
        time.sleep(1.5)
        assert mirror.freshness()["Pod"].age > age + 1
        proxy.mend()
        until(lambda: ClusterState.objects.get().reachable)
        until(lambda: not Sync.objects.get(kind="Pod").error)
        until(lambda: mirror.freshness()["Pod"].age < 2)


def test_a_cluster_that_comes_later_is_waited_for(own_plane, namespace, tmp_path):
    path = tmp_path / "kubeconfig"
    gateway = connect(path)
    with following(gateway):
        until(lambda: ClusterState.objects.filter(message__contains="cannot be read").exists())
        assert not ClusterState.objects.get().reachable
        path.write_text(own_plane.admin_kubeconfig.read_text())
        until(listed)
        same(gateway)


def test_another_cluster_behind_the_same_kubeconfig_is_listed_anew(gateway, namespace, start_plane):
    """Its versions mean other things: resuming would miss what was made before them."""
    with following(gateway):
        until(listed)
        same(gateway)
    other = connect(start_plane(NEWEST).admin_kubeconfig)
    with following(other):
        same(other)
    assert mirror.find("Namespace", namespace) is None


def test_a_restored_cluster_is_behind_what_was_seen_and_is_listed_anew(gateway, namespace):
    with following(gateway):
        until(listed)
        same(gateway)
    Sync.objects.filter(kind="ResourceClaim").update(version="999999999")
    gateway.create(a_claim("a", namespace))
    with following(gateway):
        same(gateway)


def test_poisoned_objects_are_stored_and_stop_nobody(gateway, namespace):
    poisoned = a_class(f"poison-{namespace}")
    deep: dict[str, object] = {}
    inner = deep
    for _ in range(300):
        inner["a"] = {}
        inner = inner["a"]  # type: ignore[assignment]
    poisoned["spec"]["config"] = [
        {"opaque": {"driver": "gpu.example.com", "parameters": deep}},
        {"opaque": {"driver": "gpu.example.com", "parameters": {"text": "\x00\u202e<script>"}}},
    ]
    noted = a_claim("noted", namespace)
    noted["metadata"]["annotations"] = {"note": "a\x00b \U0001f600", "x": "y" * 200_000}
    pod = a_pod("big", namespace, claim="noted")
    pod["spec"]["containers"][0]["env"] = [{"name": "X", "value": "z" * 1_000_000}]
    with following(gateway):
        until(listed)
        gateway.create(poisoned)
        gateway.create(noted)
        gateway.create(
            {"kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}}
        )
        gateway.create(pod)
        gateway.create(a_claim("after", namespace))
        same(gateway)
        row = mirror.find("ResourceClaim", "noted", namespace)
        assert row is not None
        assert row.obj["metadata"]["annotations"]["note"] == "a\x00b \U0001f600"
        assert mirror.find("ResourceClaim", "after", namespace) is not None
        whole = mirror.find("Pod", "big", namespace)
        assert whole is not None
        assert len(bytes(whole.raw)) > 1_000_000
        found = mirror.find("DeviceClass", f"poison-{namespace}")
        assert found is not None
        assert (
            found.obj["spec"]["config"][1]["opaque"]["parameters"]["text"] == "\x00\u202e<script>"
        )
    gateway.delete(Ref("DeviceClass", f"poison-{namespace}"))


def test_half_a_surrogate_pair_in_parameters(own_plane, gateway, namespace):
    """What no JSON library would send, but curl does; the API server stores it as it came."""
    body = (
        '{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":"half"},'
        '"spec":{"config":[{"opaque":{"driver":"gpu.example.com",'
        '"parameters":{"half":"\\ud800"}}}]}}'
    )
    with following(gateway):
        until(listed)
        _post_raw(own_plane, "/apis/resource.k8s.io/v1/deviceclasses", body)
        same(gateway)
        row = mirror.find("DeviceClass", "half")
        assert row is not None
        assert row.obj["spec"]["config"][0]["opaque"]["parameters"] == {"half": "\ufffd"}
    gateway.delete(Ref("DeviceClass", "half"))


def test_a_right_that_is_missing_is_noted_at_its_kind_and_the_others_go_on(own_plane, gateway):
    """All rights but to list Jobs and to watch Pods."""
    gateway.apply(
        {
            "kind": "ClusterRole",
            "metadata": {"name": "lame-watch"},
            "rules": [
                {"nonResourceURLs": ["*"], "verbs": ["get"]},
                {
                    "apiGroups": ["", "resource.k8s.io", "apps", "policy", "coordination.k8s.io"],
                    "resources": [
                        *("deviceclasses", "resourceslices", "resourceclaims", "events"),
                        *("resourceclaimtemplates", "devicetaintrules", "nodes", "leases"),
                        *("namespaces", "resourcequotas", "daemonsets", "poddisruptionbudgets"),
                    ],
                    "verbs": ["get", "list", "watch"],
                },
                {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
            ],
        },
        manager="test",
    )
    gateway.apply(
        {
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "lame-watch"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "lame-watch",
            },
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "lame"}],
        },
        manager="test",
    )
    with following(connect(own_plane.kubeconfig("lame"))):
        until(lambda: Sync.objects.filter(kind="Job").exclude(error="").exists())
        until(lambda: Sync.objects.filter(kind="Pod").exclude(error="").exists())
        until(
            lambda: (
                Sync.objects.exclude(kind__in=["Job", "Pod"]).exclude(listed_at=None).count() == 12
            )
        )
        errors = dict(Sync.objects.exclude(error="").values_list("kind", "error"))
    assert set(errors) == {"Job", "Pod"}
    assert 'cannot list resource "jobs"' in errors["Job"]
    assert 'cannot watch resource "pods"' in errors["Pod"]


def test_events_stay_when_the_cluster_forgets_them(gateway, namespace):
    account = {"kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}}
    gateway.create(account)
    pod = gateway.create(a_pod("p", namespace))
    event = {
        "kind": "Event",
        "metadata": {"name": "p.1", "namespace": namespace},
        "involvedObject": {
            "kind": "Pod",
            "name": "p",
            "namespace": namespace,
            "uid": pod["metadata"]["uid"],
        },
        "reason": "FailedScheduling",
        "message": "0/3 nodes are available",
        "type": "Warning",
    }
    with following(gateway):
        until(listed)
        gateway.create(event)
        until(lambda: mirror.find("Event", "p.1", namespace))
        gateway.delete(Ref("Event", "p.1", namespace))
        until(
            lambda: Observed.objects.filter(kind="Event", name="p.1").exclude(gone_at=None).exists()
        )
    row = mirror.find("Event", "p.1", namespace)
    assert row is not None
    assert (row.owner_uid, row.phase) == (pod["metadata"]["uid"], "FailedScheduling")
    assert row.obj["message"] == "0/3 nodes are available"


# --- processes ------------------------------------------------------------------------------------


@contextlib.contextmanager
def process(kubeconfig, **more):
    """A real watch process on the test's database."""
    name = connection.settings_dict["NAME"]
    url = os.environ["DATABASE_URL"].replace("/berth?", f"/{name}?")
    env = {**os.environ, "DATABASE_URL": url, "BERTH_KUBECONFIG": str(kubeconfig), **more}
    with subprocess.Popen(
        [sys.executable, "manage.py", "watchcluster"], cwd=ROOT, env=env
    ) as child:
        try:
            yield child
        finally:
            child.kill()


def holder():
    return Leadership.objects.filter(holder__gt="").values_list("holder", flat=True).first()


def test_a_spare_takes_over_within_ten_seconds_of_a_leaders_death(own_plane, gateway, namespace):
    with process(own_plane.admin_kubeconfig) as leader:
        until(listed, seconds=60)
        first = holder()
        assert f":{leader.pid}:" in first
        with following(gateway):
            time.sleep(2)
            assert holder() == first
            leader.send_signal(signal.SIGKILL)
            died = time.monotonic()
            gateway.create(a_claim("a", namespace))
            until(lambda: mirror.find("ResourceClaim", "a", namespace))
            assert time.monotonic() - died < 10
            assert holder() != first
            same(gateway)


def test_a_leader_that_was_asleep_writes_nothing_after_its_successor(own_plane, gateway, namespace):
    with process(own_plane.admin_kubeconfig) as sleeper:
        until(listed, seconds=60)
        first = holder()
        sleeper.send_signal(signal.SIGSTOP)
        with following(gateway):
            until(lambda: holder() not in (None, first))
            gateway.create(a_claim("a", namespace))
            same(gateway)
            sleeper.send_signal(signal.SIGCONT)
            gateway.delete(Ref("ResourceClaim", "a", namespace))
            same(gateway)
            time.sleep(3)
            assert holder() != first
            same(gateway)


def test_a_broker_that_is_away_delays_nothing(own_plane, gateway, namespace):
    with process(own_plane.admin_kubeconfig, VALKEY_URL="redis://127.0.0.1:1/0") as child:
        until(listed, seconds=60)
        claim = a_claim("a", namespace)
        claim["metadata"]["labels"] = {"berth.dev/claim": "c-1"}
        for number in range(20):
            gateway.create({**claim, "metadata": {**claim["metadata"], "name": f"a{number}"}})
        began = time.monotonic()
        same(gateway)
        assert time.monotonic() - began < 5
        assert child.poll() is None


def test_a_process_that_is_told_to_end_does_within_three_seconds_and_frees_the_lease(
    own_plane, gateway
):
    with process(own_plane.admin_kubeconfig) as child:
        until(listed, seconds=60)
        began = time.monotonic()
        child.send_signal(signal.SIGTERM)
        until(lambda: holder() is None)
        assert time.monotonic() - began < 3
        assert child.wait(5) == 0  # Python itself takes a moment on a busy machine


def test_a_machine_whose_clock_is_behind_neither_loses_the_lease_nor_fakes_ages(
    gateway, namespace, monkeypatch
):
    """Ages and leases are the database's time; the process's own clock is an hour slow here."""
    true = time.time
    monkeypatch.setattr(time, "time", lambda: true() - 3600)
    with following(gateway):
        until(listed)
        gateway.create(a_claim("a", namespace))
        same(gateway)
        time.sleep(3)
        assert Leadership.objects.get().holder
        ages = [fresh.age for fresh in mirror.freshness().values()]
    assert all(age is not None and -1 < age < 60 for age in ages)
    with connection.cursor() as cursor:
        cursor.execute("SELECT min(clock_timestamp() - seen_at) FROM devices_observed")
        assert cursor.fetchone()[0] < timedelta(minutes=1)


def _post_raw(plane, path, body):
    context = ssl.create_default_context(cafile=str(plane.ca_file))
    pair = plane.authority.client("raw", "raw", ["system:masters"])
    context.load_cert_chain(pair.certificate, pair.key)
    request = urllib.request.Request(
        plane.url + path, data=body.encode(), headers={"Content-Type": "application/json"}
    )
    urllib.request.urlopen(request, context=context).close()

"""Watches against the real API servers, through a proxy that cuts, stalls and lies."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from devices.cluster import connect
from devices.cluster.apiserver import ApiServer
from devices.cluster.decoding import loads
from devices.cluster.gateway import Change, Expired, Ref, Unreachable
from devices.cluster.live import Transport
from playground.plane.controlplane import ControlPlane
from playground.plane.proxy import Fault, Proxy
from tests.devices.cluster.objects import a_config_map
from tests.playground.planes import NEWEST, built


@pytest.fixture
def proxy(plane):
    port = int(plane.url.rpartition(":")[2])
    with Proxy(port, plane.authority.server("proxy")) as proxy:
        yield proxy


@pytest.fixture
def through(plane, proxy):
    return connect(plane.kubeconfig("playground-admin", ["system:masters"], server=proxy.url))


def test_a_watch_starts_where_the_list_ended(gateway, namespace):
    gateway.create(a_config_map("a", namespace))
    since = gateway.list("ConfigMap", namespace=namespace).version
    gateway.create(a_config_map("b", namespace))
    event = next(gateway.watch("ConfigMap", since, namespace=namespace))
    assert (event.change, event.obj["metadata"]["name"]) == (Change.ADDED, "b")


def test_a_watch_tells_of_every_change_and_then_ends_in_order(gateway, namespace):
    since = gateway.list("ConfigMap", namespace=namespace).version
    ref = Ref("ConfigMap", "a", namespace)
    gateway.create(a_config_map("a", namespace, x="1"))
    gateway.merge(ref, {"data": {"x": "2"}})
    gateway.delete(ref)
    events = list(gateway.watch("ConfigMap", since, namespace=namespace, timeout_seconds=2))
    changes = [e.change for e in events if e.change is not Change.BOOKMARK]
    assert changes == [Change.ADDED, Change.MODIFIED, Change.DELETED]
    assert [int(e.version) for e in events] == sorted(int(e.version) for e in events)


def test_a_watch_by_label_tells_who_left_the_selection(gateway, namespace):
    since = gateway.list("ConfigMap", namespace=namespace).version
    labelled = a_config_map("a", namespace)
    labelled["metadata"]["labels"] = {"berth.dev/tenant": "apollo"}
    gateway.create(labelled)
    gateway.merge(
        Ref("ConfigMap", "a", namespace), {"metadata": {"labels": {"berth.dev/tenant": None}}}
    )
    events = gateway.watch(
        "ConfigMap", since, namespace=namespace, labels="berth.dev/tenant", timeout_seconds=2
    )
    changes = [e.change for e in events if e.change is not Change.BOOKMARK]
    assert changes == [Change.ADDED, Change.DELETED]


def test_bookmarks_move_a_silent_watch_on(gateway, namespace):
    """One comes 2 s before the server ends a watch, so that the next can resume from it; none where
    nothing of the kind happened anywhere since the watch was opened."""
    elsewhere = f"elsewhere-{namespace}"
    since = gateway.list("ConfigMap", namespace=namespace).version
    events = gateway.watch("ConfigMap", since, namespace=namespace, timeout_seconds=6)
    threading.Timer(1, gateway.create, [a_config_map(elsewhere, "default")]).start()
    bookmarks = [event.version for event in events if event.change is Change.BOOKMARK]
    gateway.delete(Ref("ConfigMap", elsewhere, "default"))
    assert bookmarks
    assert int(bookmarks[-1]) > int(since)


def test_a_watch_that_stays_silent_ends_in_order(plane):
    """Nothing happens, no bookmark comes: that is no trouble, the reader opens the next watch."""
    quick = ApiServer(Transport(str(plane.admin_kubeconfig), silence_seconds=1.0))
    since = quick.list("PodDisruptionBudget").version
    began = time.monotonic()
    events = [event.change for event in quick.watch("PodDisruptionBudget", since)]
    assert set(events) <= {Change.BOOKMARK}
    assert time.monotonic() - began < 20


def test_a_watch_is_ended_from_another_thread_at_once(gateway, namespace):
    since = gateway.list("ConfigMap", namespace=namespace).version
    watch = gateway.stream("ConfigMap", since, namespace=namespace)
    threading.Timer(0.3, watch.close).start()
    began = time.monotonic()
    assert list(watch) == []
    assert time.monotonic() - began < 2


@pytest.mark.cluster
@pytest.mark.parametrize(
    "count",
    [
        pytest.param(2_000, id="2,000 objects"),
        pytest.param(100_000, marks=pytest.mark.long, id="100,000 objects"),
    ],
)
def test_objects_made_while_pages_are_read_are_neither_missed_nor_doubled(tmp_path, count):
    """A list in pages while objects come, change and go, then the watch from the list's version."""
    with ControlPlane(tmp_path, built(NEWEST), components=("etcd", "kube-apiserver")) as plane:
        _list_and_watch_under_change(connect(plane.admin_kubeconfig), "default", count)


def _list_and_watch_under_change(gateway, namespace, count):
    with ThreadPoolExecutor(8) as pool:
        made = (a_config_map(f"m{number:06}", namespace) for number in range(count))
        list(pool.map(gateway.create, made))
    seen: list[str] = []
    version = ""
    for turn, page in enumerate(gateway.pages("ConfigMap", namespace=namespace)):
        version = page.version
        seen += [loads(item)["metadata"]["name"] for item in page.items]
        gateway.create(a_config_map(f"n{turn:04}", namespace))
        gateway.delete(Ref("ConfigMap", f"m{turn * 300:06}", namespace))
        gateway.merge(Ref("ConfigMap", f"m{turn * 300 + 1:06}", namespace), {"data": {"x": "1"}})
    assert len(seen) == len(set(seen)) == count
    assert turn + 1 == count // 500
    have = set(seen)
    changes = []
    for event in gateway.watch("ConfigMap", version, namespace=namespace, timeout_seconds=2):
        if event.change is Change.BOOKMARK:
            continue
        name = event.obj["metadata"]["name"]
        assert (name in have) is (event.change is not Change.ADDED), (event.change, name)
        (have.discard if event.change is Change.DELETED else have.add)(name)
        changes.append(event.change)
    now = {obj["metadata"]["name"] for obj in gateway.list("ConfigMap", namespace=namespace).items}
    assert have == now
    assert len(changes) == 3 * (turn + 1)


def test_a_watch_cut_in_mid_line_counts_whole_lines_only(gateway, namespace, through, proxy):
    since = gateway.list("ConfigMap", namespace=namespace).version
    big = "x" * 20_000
    for number in range(20):
        gateway.create(a_config_map(f"m{number:02}", namespace, big=big))
    proxy.set(Fault(cut_after=150_000))
    seen: list[str] = []
    with pytest.raises(Unreachable):
        for event in through.watch("ConfigMap", since, namespace=namespace):
            seen.append(event.obj["metadata"]["name"])
            since = event.version
    assert 0 < len(seen) < 20
    proxy.mend()
    for event in through.watch("ConfigMap", since, namespace=namespace, timeout_seconds=2):
        if event.change is not Change.BOOKMARK:
            seen.append(event.obj["metadata"]["name"])
    assert seen == [f"m{number:02}" for number in range(20)]


@pytest.mark.parametrize(
    "fault, says",
    [
        pytest.param(Fault(refuse=True), "refused", id="nobody listens"),
        pytest.param(Fault(answer="500"), "etcdserver: request timed out", id="500"),
        pytest.param(Fault(answer="html"), "no .* in the answer", id="a page of a proxy"),
        pytest.param(Fault(answer="html-502"), "Sign in", id="a page with 502"),
        pytest.param(Fault(answer="html-404"), "Sign in", id="a page with 404"),
        pytest.param(Fault(cut_after=0), None, id="cut at once"),
        pytest.param(Fault(cut_after=40_000), None, id="cut in the middle of the answer"),
    ],
)
def test_a_broken_way_is_unreachable(gateway, namespace, through, proxy, fault, says):
    since = gateway.list("ConfigMap", namespace=namespace).version
    for number in range(4):
        gateway.create(a_config_map(f"m{number}", namespace, big="x" * 30_000))
    proxy.set(fault)
    with pytest.raises(Unreachable, match=says):
        through.list("ConfigMap", namespace=namespace)
    with pytest.raises(Unreachable):
        list(through.watch("ConfigMap", since, namespace=namespace))
    proxy.mend()
    assert len(through.list("ConfigMap", namespace=namespace).items) >= 4


def test_a_busy_server_says_when_to_come_back(through, proxy):
    proxy.set(Fault(answer="429"))
    with pytest.raises(Unreachable) as caught:
        through.list("Namespace")
    assert (caught.value.status, caught.value.retry_after) == (429, 1.0)


def test_a_server_that_says_nothing_is_given_up_after_the_timeout(plane, proxy):
    kubeconfig = plane.kubeconfig("playground-admin", ["system:masters"], server=proxy.url)
    impatient = ApiServer(Transport(str(kubeconfig), connect_seconds=1.0, read_seconds=1.0))
    impatient.list("Namespace")
    proxy.set(Fault(stall=True))
    began = time.monotonic()
    with pytest.raises(Unreachable):
        impatient.list("Namespace")
    assert time.monotonic() - began < 5


@pytest.mark.cluster
def test_forgotten_history_is_expired_at_the_start_and_a_new_list_mends_it(tmp_path):
    with ControlPlane(tmp_path, built(NEWEST), components=("etcd", "kube-apiserver")) as plane:
        gateway = connect(plane.admin_kubeconfig)
        since = gateway.list("ConfigMap").version
        for number in range(3):
            gateway.create(a_config_map(f"m{number}", "default"))
        plane.compact()
        with pytest.raises(Expired):
            list(gateway.watch("ConfigMap", since, timeout_seconds=2))
        listing = gateway.list("ConfigMap", namespace="default")
        assert {obj["metadata"]["name"] for obj in listing.items} >= {"m0", "m1", "m2"}
        list(gateway.watch("ConfigMap", listing.version, timeout_seconds=1))

"""Writing the mirror: only by who leads, rows and resume version together, whatever is in a row."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, connections

from devices import mirror
from devices.cluster.gateway import Change
from devices.mirror import leadership
from devices.mirror.leadership import LeadershipLost
from devices.mirror.rows import Row
from devices.mirror.store import Batch, Store
from devices.models import ClusterState, Leadership, Observed, Sync

pytestmark = pytest.mark.django_db


def a_row(uid, *, kind="ResourceClaim", version="1", **columns):
    empty = dict.fromkeys(Row._fields, "")
    return Row(
        **{
            **empty,
            "created_at": datetime(2026, 11, 30, tzinfo=UTC),
            "deleting": False,
            "classes": [],
            "counts": [],
            "uses": [],
            "small": False,
            "uid": uid,
            "kind": kind,
            "api_version": "resource.k8s.io/v1",
            "namespace": "apollo",
            "name": f"name-{uid}",
            "resource_version": version,
            "raw": b'{"metadata":{"name":"x"}}',
            **columns,
        }
    )


@pytest.fixture
def store():
    assert leadership.take("me")
    return Store("me")


def stored():
    return dict(Observed.objects.values_list("uid", "resource_version"))


def told(changes):
    return sorted((change.change, change.uid) for change in changes)


def test_a_list_stores_what_is_there_and_takes_away_what_is_gone(store):
    store.put_page([a_row("a"), a_row("b")])
    store.put_page([a_row("c")])
    store.end_list("ResourceClaim", ["a", "b", "c"], version="10", api_version="v1")
    page = store.put_page([a_row("a"), a_row("b", version="2"), a_row("d")])
    gone = store.end_list("ResourceClaim", ["a", "b", "d"], version="20", api_version="v1")
    assert stored() == {"a": "1", "b": "2", "d": "1"}
    assert told(page) == [(Change.ADDED, "d"), (Change.MODIFIED, "b")]
    assert told(gone) == [(Change.DELETED, "c")]
    assert store.versions() == {"ResourceClaim": "20"}


def test_a_list_of_one_kind_leaves_the_others_alone(store):
    store.put_page([a_row("a"), a_row("p", kind="Pod")])
    store.end_list("ResourceClaim", [], version="10", api_version="v1")
    assert stored() == {"p": "1"}


def test_changes_of_several_kinds_are_stored_together_with_their_versions(store):
    store.put_page([a_row("a"), a_row("p", kind="Pod")])
    changed = store.put_changes(
        [
            Batch("ResourceClaim", "31", {"a": a_row("a", version="30"), "b": a_row("b")}),
            Batch("Pod", "32", {"p": None}),
            Batch("Node", "33"),
        ]
    )
    assert told(changed) == [
        (Change.ADDED, "b"),
        (Change.DELETED, "p"),
        (Change.MODIFIED, "a"),
    ]
    assert stored() == {"a": "30", "b": "1"}
    assert store.versions() == {"ResourceClaim": "31", "Pod": "32", "Node": "33"}


def test_a_batch_that_is_stored_twice_changes_nothing_the_second_time(store):
    batch = Batch("ResourceClaim", "31", {"a": a_row("a"), "gone": None})
    store.put_changes([batch])
    before = Observed.objects.get(uid="a").seen_at
    assert store.put_changes([batch]) == []
    assert Observed.objects.get(uid="a").seen_at == before


def test_events_outlive_the_cluster_for_a_week(store):
    event = a_row("e", kind="Event", phase="FailedScheduling")
    store.put_page([event, a_row("f", kind="Event")])
    store.end_list("Event", ["f"], version="5", api_version="v1")
    store.put_changes([Batch("Event", "6", {"f": None})])
    assert set(stored()) == {"e", "f"}
    assert not Observed.objects.filter(gone_at=None).exists()
    assert mirror.raw_objects("Event") == {"Event": []}
    Observed.objects.filter(uid="e").update(gone_at=datetime.now(UTC) - timedelta(days=8))
    assert store.drop_old() == 1
    assert set(stored()) == {"f"}
    # The same event again: it happened once more before the cluster forgot it elsewhere.
    store.put_page([a_row("f", kind="Event")])
    assert Observed.objects.get(uid="f").gone_at is None


def test_heartbeats_and_pods_without_devices_are_no_news(store):
    lease = a_row("l", kind="Lease")
    changes = store.put_page([lease, a_row("p", kind="Pod", small=True), a_row("a")])
    assert told(changes) == [(Change.ADDED, "a")]
    assert store.put_changes([Batch("Lease", "7", {"l": None})]) == []


def test_a_change_tells_whom_it_concerns(store):
    row = a_row(
        "p", kind="Pod", claim="c-1", tenant="apollo", node="n1", uses=["x"], owner_uid="job"
    )
    (change,) = store.put_page([row])
    assert (change.kind, change.namespace, change.name) == ("Pod", "apollo", "name-p")
    assert (change.claim, change.tenant, change.node) == ("c-1", "apollo", "n1")
    assert (list(change.uses), change.owner_uid) == (["x"], "job")
    (gone,) = store.put_changes([Batch("Pod", "8", {"p": None})])
    assert (gone.claim, list(gone.uses), gone.owner_uid) == ("c-1", ["x"], "job")


@pytest.mark.parametrize(
    "column, value",
    [
        pytest.param("pool", "x" * 254, id="too long"),
        pytest.param("node", "n\x00", id="NUL"),
    ],
)
def test_a_row_that_the_database_refuses_is_stored_bare_and_keeps_no_other_out(
    store, column, value
):
    store.put_page([a_row("a"), a_row("bad", **{column: value}), a_row("z")])
    assert set(stored()) == {"a", "bad", "z"}
    row = Observed.objects.get(uid="bad")
    assert "could not be stored" in row.note
    assert row.obj["metadata"]["name"] == "name-bad"


def test_nobody_writes_who_does_not_lead(store):
    with pytest.raises(LeadershipLost):
        Store("another").put_page([a_row("a")])
    Leadership.objects.update(expires=datetime.now(UTC) - timedelta(seconds=1))
    with pytest.raises(LeadershipLost):
        store.put_page([a_row("a")])
    assert leadership.take("another")
    with pytest.raises(LeadershipLost):
        store.put_changes([Batch("Pod", "9")])
    assert stored() == {}
    assert not Sync.objects.exists()


def test_the_lease_is_taken_once_renewed_by_its_holder_and_free_when_given_up():
    assert leadership.take("a")
    assert not leadership.take("b")
    assert leadership.take("a")
    since = Leadership.objects.get().since
    leadership.give_up("b")
    assert not leadership.take("b")
    leadership.give_up("a")
    assert leadership.take("b")
    assert Leadership.objects.get().since > since


@pytest.mark.django_db(transaction=True)
def test_a_successor_waits_for_the_write_of_a_leader_whose_lease_runs_out_in_the_middle():
    """The leader's transaction holds the lease's row: a takeover happens after it, never inside."""
    assert leadership.take("old")
    order: list[str] = []

    def successor():
        Leadership.objects.filter(name="watch").update(expires=datetime.now(UTC))
        assert leadership.take("new")
        order.append("taken over")
        connections.close_all()

    with Store("old")._write():
        thread = threading.Thread(target=successor)
        thread.start()
        thread.join(0.5)
        order.append("written")
    thread.join()
    assert order == ["written", "taken over"]


def test_trouble_with_a_kind_is_noted_with_its_beginning_and_ends_with_news(store):
    store.end_list("Pod", [], version="1", api_version="v1")
    store.trouble("Pod", "list Pod: forbidden")
    since = Sync.objects.get(kind="Pod").error_since
    assert since is not None
    store.trouble("Pod", "list Pod: forbidden still")
    assert Sync.objects.get(kind="Pod").error_since == since
    assert mirror.freshness()["Pod"].error == "list Pod: forbidden still"
    store.put_changes([Batch("Pod", "2")])
    row = Sync.objects.get(kind="Pod")
    assert (row.error, row.error_since, row.version) == ("", None, "2")


def test_what_an_earlier_berth_mirrored_and_this_one_does_not_is_taken_away(store):
    store.put_page([a_row("a"), a_row("b")])
    store.end_list("ResourceClaim", ["a", "b"], version="5", api_version="v1")
    Observed.objects.filter(uid="b").update(kind="ResourceClass")
    Sync.objects.create(kind="ResourceClass", version="4")
    assert store.versions() == {"ResourceClaim": "5"}
    assert set(stored()) == {"a"}
    assert not Sync.objects.filter(kind="ResourceClass").exists()


def test_a_kind_that_is_no_longer_served_has_no_objects_and_no_age(store):
    store.put_page([a_row("r", kind="DeviceTaintRule")])
    store.end_list("DeviceTaintRule", ["r"], version="1", api_version="v1")
    store.end_list("Node", [], version="1", api_version="v1")
    store.trouble("DeviceTaintRule", "", served=False)
    store.forget("DeviceTaintRule")
    assert stored() == {}
    assert mirror.taken("DeviceTaintRule", "Node") == Sync.objects.get(kind="Node").alive_at


def test_a_picture_is_as_old_as_its_oldest_kind_and_none_before_the_first_list(store):
    store.end_list("Node", [], version="1", api_version="v1")
    assert mirror.taken("Node", "Pod") is None
    store.trouble("Pod", "list Pod: no answer")
    assert mirror.taken("Node", "Pod") is None
    store.end_list("Pod", [], version="1", api_version="v1")
    Sync.objects.filter(kind="Node").update(alive_at=datetime(2026, 1, 1, tzinfo=UTC))
    assert mirror.taken("Node", "Pod") == datetime(2026, 1, 1, tzinfo=UTC)
    store.alive(["Node"])
    assert mirror.freshness()["Node"].age < 60


def test_the_clusters_state_turns_once_and_keeps_the_last_contact(store):
    assert store.cluster(reachable=False, message="nobody listens")
    assert store.cluster(reachable=True, message="")
    assert not store.cluster(reachable=True, message="")
    row = ClusterState.objects.get()
    contact = row.contact_at
    assert store.cluster(reachable=False, message="refused")
    row.refresh_from_db()
    assert (row.message, row.contact_at) == ("refused", contact)
    assert row.since > contact


def test_objects_are_read_back_with_their_kind(store):
    store.put_page([a_row("a", raw=b'{"metadata":{"name":"a"}}')])
    row = mirror.find("ResourceClaim", "name-a", "apollo")
    assert row is not None
    assert row.obj == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "a"},
    }
    assert list(mirror.snapshot_objects("ResourceClaim", "Node")) == [
        ("ResourceClaim", {"metadata": {"name": "a"}})
    ]


def test_the_columns_that_are_written_are_those_of_the_table(store):
    """A column of the table that no reader fills would be empty for ever."""
    with connection.cursor() as cursor:
        names = {
            column.name
            for column in connection.introspection.get_table_description(cursor, "devices_observed")
        }
    assert names - set(Row._fields) == {"seen_at", "gone_at"}

"""The watch command's table: which change wakes whose turn, and what happens without a broker."""

from __future__ import annotations

import json
from base64 import b64decode

import pytest
import redis
from django.conf import settings
from django.core.cache import cache
from django.core.management import call_command

from devices.cluster.gateway import Change
from devices.mirror.store import Changed
from devices.models import Observed
from portal import news
from portal.management.commands import watchcluster
from portal.management.commands.watchcluster import COUNT, POLICY, RECONCILE, WAKE
from tenants.allowance import TURN_TENANT
from tests.devices.test_mirror_store import a_row
from tests.factories import GPU_CONTENT, make_access, make_claim, make_tenant, make_version

pytestmark = pytest.mark.django_db


@pytest.fixture
def queue(settings, servers, monkeypatch):
    """What tasks wait at the broker: (name, args), in no order. What comes at most once in a while
    does so once in a test, however slow the machine.
    """
    for pace in ("TURN_SECONDS", "COUNT_SECONDS"):
        monkeypatch.setattr(f"portal.management.commands.watchcluster.{pace}", 60)
    valkey = redis.Redis.from_url(settings.VALKEY_URL)
    valkey.delete("celery")
    cache.clear()

    def read():
        found = []
        for message in valkey.lrange("celery", 0, -1):
            task = json.loads(message)
            found.append((task["headers"]["task"], json.loads(b64decode(task["body"]))[0]))
        return sorted(found)

    yield read
    valkey.delete("celery")
    valkey.close()


def observed(uid, **columns):
    row = a_row(uid, **columns)._asdict()
    row.pop("small")
    Observed.objects.create(**row, seen_at="2026-11-30T08:00:00Z")


def changed(kind, **fields):
    return Changed(
        Change.MODIFIED, **{"uid": "u", "kind": kind, "namespace": "apollo", "name": "n", **fields}
    )


def wakes(queue):
    return [args for name, args in queue() if name == RECONCILE]


def test_a_claim_wakes_the_turn_of_its_request_once_a_batch_and_a_count(queue):
    WAKE["ResourceClaim"](
        [changed("ResourceClaim", claim="c-1"), changed("ResourceClaim", claim="c-1")]
    )
    assert queue() == [(COUNT, []), (RECONCILE, ["c-1"])]


def test_a_claim_of_nobodys_wakes_only_the_count(queue):
    WAKE["ResourceClaim"]([changed("ResourceClaim")])
    assert queue() == [(COUNT, [])]


def test_a_pod_wakes_by_its_own_label_and_by_the_claims_and_templates_it_names(queue):
    observed("1", name="shared", claim="c-1")
    observed("2", name="template", kind="ResourceClaimTemplate", claim="c-2")
    observed("3", name="shared", namespace="elsewhere", claim="c-3")
    observed("4", name="other", claim="c-4")
    WAKE["Pod"](
        [
            changed("Pod", uses=["shared", "template"]),
            changed("Pod", claim="c-5"),
            changed("Pod", uses=["unknown"]),
        ]
    )
    assert wakes(queue) == [["c-1"], ["c-2"], ["c-5"]]


def test_an_event_wakes_who_uses_what_it_is_about(queue):
    observed("claim", name="shared", claim="c-1")
    observed("pod", kind="Pod", name="p", uses=["shared"])
    observed("node", kind="Node", name="n1", claim="no")
    WAKE["Event"]([changed("Event", owner_uid="pod"), changed("Event", owner_uid="node")])
    assert wakes(queue) == [["c-1"]]
    WAKE["Event"]([changed("Event", owner_uid="claim")])
    assert wakes(queue) == [["c-1"], ["c-1"]]


@pytest.mark.parametrize("kind", ["ResourceSlice", "DeviceTaintRule", "Node"])
def test_hardware_that_changes_is_counted_at_most_once_a_second(queue, kind):
    for _ in range(20):
        WAKE[kind]([changed(kind)])
    assert queue() == [(COUNT, [])]


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        pytest.param("Namespace", {"namespace": "", "name": "tide-train"}, id="its namespace"),
        pytest.param("ResourceQuota", {"namespace": "tide-train", "name": "berth"}, id="its quota"),
    ],
)
def test_a_tenant_is_looked_at_when_somebody_touches_what_is_written_for_it(queue, kind, fields):
    make_tenant("tide", namespaces=("tide-train", "tide-eval"))
    WAKE[kind]([changed(kind, **fields), changed(kind, namespace="", name="kube-system")])
    assert queue() == [(TURN_TENANT, ["tide"])]
    for _ in range(20):
        WAKE[kind]([changed(kind, **fields)])
    assert queue() == [(TURN_TENANT, ["tide"])] * 2, "one more for what came meanwhile"


def test_a_pod_of_a_claim_that_few_may_share_wakes_its_tenant(queue):
    access = make_access(slug="tide")
    free, few = (
        make_claim(access, make_version(slug=slug, content={**GPU_CONTENT, "shared": True, **more}))
        for slug, more in (("free", {}), ("few", {"pods": 2}))
    )
    redis.Redis.from_url(settings.VALKEY_URL).delete("celery")
    WAKE["Pod"]([changed("Pod", claim=free.public_id)])
    assert [name for name, _ in queue() if name == TURN_TENANT] == []
    WAKE["Pod"]([changed("Pod", claim=few.public_id)])
    assert [args for name, args in queue() if name == TURN_TENANT] == [["tide"]]


def test_a_class_that_changes_concerns_every_tenant_and_the_policies(queue):
    make_tenant("tide", namespaces=("tide-train",))
    make_tenant("reef", namespaces=("reef-train",))
    WAKE["DeviceClass"]([changed("DeviceClass", namespace="")])
    assert queue() == [
        (COUNT, []),
        (POLICY, []),
        (TURN_TENANT, ["reef"]),
        (TURN_TENANT, ["tide"]),
    ]


def test_pages_are_told_when_the_cluster_comes_or_goes(queue, settings):
    valkey = redis.Redis.from_url(settings.VALKEY_URL)
    before = valkey.xlen(news.KEPT)
    watchcluster.turned()
    assert valkey.xlen(news.KEPT) == before + 1
    ((_, told),) = valkey.xrevrange(news.KEPT, count=1)
    assert json.loads(told[b"news"]) == {"tenant": "", "topics": ["cluster"]}
    valkey.close()


@pytest.mark.django_db(transaction=True)
@pytest.mark.cluster
def test_once_lists_everything_and_leaves(plane_137, settings):
    settings.CLUSTER_KUBECONFIG = str(plane_137.admin_kubeconfig)
    call_command("watchcluster", "--once")
    assert Observed.objects.filter(kind="Namespace", name="kube-system").exists()

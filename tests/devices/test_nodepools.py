"""Node pools: what a good one is, a node in one only, two people at once, and how nodes stand."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from devices.dra.snapshot import Snapshot, read
from devices.fleet.nodepools import (
    Overlap,
    Wish,
    change,
    define,
    problems,
    remove,
    standings,
)
from devices.fleet.ownershipbook import scan
from devices.forecasts.picture import picture
from devices.models import NodePool, Sync
from portal.audit.models import AuditLine
from portal.errors import Invalid, NotPermitted, Outdated
from tenants.access import PlatformAccess
from tenants.models import PlatformRole
from tests.devices.pages import client_of, text
from tests.devices.test_ownershipbook import GPU, a_claim, a_node, a_pod, a_slice
from tests.factories import NOON, make_person

pytestmark = pytest.mark.django_db
WISH = Wish(
    name="H100 rack",
    words="Training",
    selector={"pool": "h100"},
    resource=GPU,
    driver="gpu.nvidia.com",
    device_class="h100",
    plugin_label="x.example/plugin=on",
    driver_label="x.example/dra=on",
    plugin_sets=("gpu/plugin",),
    driver_sets=("gpu/driver",),
    devices_per_node=8,
)


def labelled(obj: Any, **labels: str) -> Any:
    names = {"pool": "pool", "plugin": "x.example/plugin", "dra": "x.example/dra"}
    obj["metadata"]["labels"] = {names[key]: value for key, value in labels.items()}
    obj["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    return obj


def a_cluster() -> Snapshot:
    """Two plugin nodes (one with a Pod), two DRA nodes (one with a claim), one of another pool."""
    return read(
        [
            labelled(a_node("a1", 8), pool="h100", plugin="on"),
            labelled(a_node("a2", 8), pool="h100", plugin="on"),
            labelled(a_node("b1", 0), pool="h100", dra="on"),
            a_slice("b1", 8),
            labelled(a_node("b2", 0), pool="h100", plugin="on"),
            a_slice("b2", 8),
            labelled(a_node("z", 8), pool="other"),
            a_pod("p", "a2"),
            a_claim("c", "b2"),
        ]
    )


@pytest.fixture
def operator() -> PlatformAccess:
    user = make_person("olga")
    PlatformRole.objects.create(user=user, role="operator")
    return PlatformAccess(user, frozenset({"operator"}))


def made(access: PlatformAccess, wish: Wish = WISH, slug: str = "h100") -> NodePool:
    return define(slug, wish, access=access, snapshot=a_cluster(), request_id="request-1", now=NOON)


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        pytest.param({}, set(), id="a good one"),
        pytest.param({"selector": {}}, {"selector"}, id="no label would be every node"),
        pytest.param({"selector": {"a b": "c"}}, {"selector"}, id="no label name"),
        pytest.param({"plugin_label": "on"}, {"plugin_label"}, id="a switch has a value"),
        pytest.param(
            {"driver_label": "x.example/plugin=on"}, {"driver_label"}, id="one label for both"
        ),
        pytest.param({"plugin_sets": ("plugin",)}, {"plugin_sets"}, id="a set has a namespace"),
        pytest.param({"resource": "gpu"}, {"resource"}, id="a resource has a domain"),
        pytest.param({"driver": " ", "name": ""}, {"driver", "name"}, id="all that is missing"),
        pytest.param({"settling": timedelta(hours=2)}, {"settling"}, id="longer than an hour"),
    ],
)
def test_what_is_wrong_with_a_wish(changed: dict[str, Any], wrong: set[str]) -> None:
    assert set(problems(replace(WISH, **changed))) == wrong


def test_a_node_is_in_one_pool_of_its_devices_only(operator: PlatformAccess) -> None:
    made(operator)
    with pytest.raises(Overlap, match="a1, a2, b1, b2 would be in H100 rack too"):
        made(operator, replace(WISH, name="Twin", driver="another.example"), "twin")
    made(operator, replace(WISH, resource="x.example/nic", driver="nic.example"), "nics")
    assert NodePool.objects.count() == 2


def test_names_are_taken_once_and_rights_are_asked(operator: PlatformAccess) -> None:
    made(operator)
    with pytest.raises(Invalid) as refused:
        made(operator, slug="h100")
    assert set(refused.value.fields) == {"slug"}
    with pytest.raises(NotPermitted):
        made(PlatformAccess(operator.user, frozenset({"auditor"})), slug="other")


def test_two_people_change_it_and_the_later_one_is_told(operator: PlatformAccess) -> None:
    pool = made(operator)
    by: dict[str, Any] = {
        "access": operator, "snapshot": a_cluster(), "request_id": "r", "now": NOON,
    }  # fmt: skip
    change(pool, replace(WISH, words="Inference"), revision=1, **by)
    with pytest.raises(Outdated):
        change(pool, replace(WISH, words="Both"), revision=1, **by)
    pool.refresh_from_db()
    assert (pool.words, pool.revision) == ("Inference", 2)
    facts = AuditLine.objects.get(action="nodepool.changed").facts
    assert facts["changed"] == ["words"]
    change(pool, replace(WISH, words="Inference"), revision=2, **by)
    assert AuditLine.objects.filter(action="nodepool.changed").count() == 1
    remove(pool, access=operator, request_id="r", now=NOON)
    assert not NodePool.objects.exists()


def test_how_each_node_stands(operator: PlatformAccess) -> None:
    pool, cluster = made(operator), a_cluster()
    scan(cluster, NOON)
    for kind in ("Node", "Pod", "ResourceClaim", "ResourceSlice"):
        Sync.objects.create(kind=kind, listed_at=NOON, alive_at=NOON)
    found = {one.node.name: one for one in standings(pool, picture(cluster, NOON), NOON)}
    assert {name: one.owner for name, one in found.items()} == {
        "a1": "plugin", "a2": "plugin", "b1": "dra", "b2": "dra",
    }  # fmt: skip
    assert [name for name, one in found.items() if not one.switches_agree] == ["b2"]
    waits = {name: one.leave.evidence for name, one in found.items() if one.leave}
    assert waits == {"a1": (), "a2": ("ns/p",), "b1": (), "b2": ("ns/c",)}


def test_what_was_not_heard_is_not_known(operator: PlatformAccess) -> None:
    pool, cluster = made(operator), a_cluster()
    scan(cluster, NOON)
    leaves = [one.leave for one in standings(pool, picture(cluster, NOON), NOON)]
    assert {leave.verdict.value for leave in leaves if leave} == {"not known"}


def test_pages_define_show_and_change(operator: PlatformAccess) -> None:
    client = client_of(operator.user)
    assert "No node pool yet" in text(client.get("/platform/node-pools/"))
    form = {
        "slug": "h100", "name": "H100 rack", "selector": "pool=h100", "resource": GPU,
        "driver": "gpu.nvidia.com", "device_class": "h100", "plugin_label": "x.example/plugin=on",
        "driver_label": "x.example/dra=on", "settling": "320",
    }  # fmt: skip
    refused = client.post("/platform/node-pools/", {**form, "plugin_label": "on"})
    assert refused.status_code == 422 and "key=value" in text(refused)
    assert client.post("/platform/node-pools/", form).status_code == 302
    page = text(client.get("/platform/node-pools/h100/"))
    assert "The cluster has not been seen yet" in page
    late = client.post("/platform/node-pools/h100/", {**form, "name": "Other", "revision": "7"})
    assert late.status_code == 422 and "meanwhile" in text(late)
    assert client.post("/platform/node-pools/h100/remove/").status_code == 302

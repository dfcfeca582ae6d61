"""Pages of classes, pools, nodes and devices: what they say, and to whom which claim is named."""

from __future__ import annotations

import copy
from datetime import timedelta
from functools import cache
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from devices.catalogue import holdings
from devices.catalogue.offers import count
from devices.forecasts.warm import warm
from devices.models import ClassWords, Holding, Observed, Sync
from tenants.models import PlatformRole, Tenant, TenantNamespace
from tests.devices.demofleet import fleet_objects, h100, holding, mirror
from tests.devices.pages import client_of, text
from tests.factories import make_limit, make_person, make_tenant, make_version

pytestmark = pytest.mark.django_db

OWN, OTHERS = "tidewater-train", "basalt-pipelines"
DEVICE = "devices/gpu.helios.example/h100-a01/gpu-0/"
POOL = "pools/gpu.helios.example/h100-a01/"
EVERY_PAGE = (
    "catalogue/",
    "catalogue/?view=table",
    "catalogue/?q=80+GB+NVLink",
    "catalogue/classes/h100-80gb/",
    "catalogue/classes/cpu-numa/",
    "pools/",
    "pools/?state=complete&driver=gpu.helios.example&q=h100",
    POOL,
    "nodes/",
    "nodes/?state=",
    "nodes/h100-a01/",
    "nodes/lite-g01/",
    DEVICE,
    "capabilities/",
)


@cache
def machines() -> tuple[dict[str, Any], ...]:
    """The demo's nodes, slices and classes."""
    return tuple(fleet_objects())


def look_again(*objects: dict[str, Any], version: str = "1") -> None:
    """The watch process writes these objects; a worker counts, and writes who holds what."""
    mirror(objects, version=version)
    now = timezone.now()
    count(now)
    seen = warm()
    assert seen is not None
    holdings.record(seen.now, now)


@pytest.fixture
def fleet() -> None:
    """The demo's machines and two tenants; four H100 of one are held, two of them by the first."""
    make_tenant("tidewater", (OWN,), {"h100-80gb": 8})
    make_tenant("basalt", (OTHERS,), {"*": None})
    ClassWords.objects.create(
        device_class="h100-80gb", display_name="H100, 80 GB", words="For training.", icon="gpu"
    )
    look_again(
        *machines(),
        holding("mine", h100(1, 0, 1), namespace=OWN),
        holding("secret-fold", h100(1, 2, 3), namespace=OTHERS),
    )


@pytest.fixture
def tenant(fleet: None) -> Client:
    return client_of(make_person("tim", Tenant.objects.get(slug="tidewater")))


@pytest.fixture
def platform(tenant: Client) -> Client:
    person = make_person("otto")
    PlatformRole.objects.create(user=person, role="operator")
    return client_of(person)


def test_every_page_stands_for_tenants_and_platform(tenant: Client, platform: Client) -> None:
    nobody, stranger = client_of(make_person("nobody")), client_of(make_person("stranger"))
    for path in EVERY_PAGE:
        assert tenant.get(f"/t/tidewater/{path}").status_code == 200, path
        assert platform.get(f"/platform/{path}").status_code == 200, path
        assert nobody.get(f"/platform/{path}").status_code == 404
        assert stranger.get(f"/t/tidewater/{path}").status_code == 404


def test_anothers_claim_is_counted_and_never_named(tenant: Client, platform: Client) -> None:
    for path in ("catalogue/classes/h100-80gb/", POOL, "nodes/h100-a01/", DEVICE):
        shown = text(tenant.get(f"/t/tidewater/{path}"))
        assert "mine" in shown, path
        assert "secret-fold" not in shown and OTHERS not in shown, path
        assert "mine" in text(platform.get(f"/platform/{path}"))
    others = text(tenant.get("/t/tidewater/" + DEVICE.replace("gpu-0", "gpu-2")))
    assert "secret-fold" not in others and "1 claim of others" in others
    assert "somebody else" in others
    assert "secret-fold" in text(platform.get("/platform/" + DEVICE.replace("gpu-0", "gpu-2")))


def test_a_class_says_who_may_use_it_and_what_it_relies_on(tenant: Client) -> None:
    make_version()
    shown = text(tenant.get("/t/tidewater/catalogue/"))
    assert "6 left of 8" in shown and "Not open to Tidewater" in shown
    assert "28 idle, 4 allocated" in shown
    assert "8 on one node" in shown
    table = text(tenant.get("/t/tidewater/catalogue/?view=table"))
    assert "6 / 8" in table and "no access" in table
    parts = text(tenant.get("/t/tidewater/catalogue/classes/a100-mig-1g/"))
    assert "Partitions" in parts and "Not in your limits" in parts
    assert tenant.get("/t/tidewater/catalogue/classes/nothing/").status_code == 404


def test_a_search_says_what_it_understood_and_gives_groups(tenant: Client) -> None:
    for typed, understood, first in (
        ("80 GB NVLink", "at least 80 GB of memory", "H100 80GB HBM3"),
        ("half a GPU", "half of a device", "A100-SXM4-80GB 3g.40gb"),
        ("100 Gb RDMA", "at least 100 Gb/s", "Sable"),
    ):
        answer = tenant.get("/t/tidewater/catalogue/", {"q": typed})
        assert understood in text(answer)
        hits = answer.context["found"].hits
        assert hits and hits[0].group["title"].startswith(first), typed


def test_a_search_that_nothing_fits_shows_what_is_near(tenant: Client) -> None:
    answer = tenant.get("/t/tidewater/catalogue/", {"q": "96 GB NVLink"})
    shown = text(answer)
    assert "Nothing fits; this is near" in shown and "79.6 GiB only" in shown
    assert "No device fits that" in text(tenant.get("/t/tidewater/catalogue/", {"q": "zeppelin"}))
    hostile = text(tenant.get("/t/tidewater/catalogue/", {"q": "<script>alert(1)</script>"}))
    assert "<script>alert" not in hostile


def test_the_history_of_a_device_begins_and_ends(tenant: Client, platform: Client) -> None:
    assert Holding.objects.filter(until=None).count() == 4
    Observed.objects.filter(kind="ResourceClaim", name="mine").delete()
    Sync.objects.filter(kind="ResourceClaim").update(version="2")
    look_again(holding("next", h100(1, 0), namespace=OTHERS), version="3")
    shown = text(tenant.get(f"/t/tidewater/{DEVICE}"))
    assert "mine" in shown and "somebody else" in shown and "next" not in shown
    assert "Holds it" in shown and "2 entries" in shown
    every = text(platform.get(f"/platform/{DEVICE}"))
    assert "next" in every and "mine" in every
    assert holdings.forget(timezone.now() + holdings.KEPT - timedelta(hours=1)) == 0
    assert holdings.forget(timezone.now() + holdings.KEPT + timedelta(hours=1)) == 2


def test_a_namespace_that_changes_hands_takes_no_history_along(tenant: Client) -> None:
    other = make_tenant("reef", ("reef-train",))
    TenantNamespace.objects.filter(name=OTHERS).update(tenant=other)
    reef = client_of(make_person("coral", other))
    shown = text(reef.get("/t/reef/" + DEVICE.replace("gpu-0", "gpu-2")))
    assert "somebody else" in shown


def test_writing_twice_changes_nothing(fleet: None) -> None:
    seen = warm()
    assert seen is not None
    assert holdings.record(seen.now, timezone.now()) == 0
    assert Holding.objects.count() == 4


def test_a_pool_with_missing_slices_says_why_nothing_is_given(tenant: Client) -> None:
    piece = next(
        one
        for one in machines()
        if one["kind"] == "ResourceSlice" and one["spec"]["pool"]["name"] == "h100-a02"
        and one["spec"]["driver"] == "gpu.helios.example"
    )  # fmt: skip
    half = copy.deepcopy(piece)
    half["spec"]["pool"]["resourceSliceCount"] = 2
    half["metadata"]["uid"] = f"ResourceSlice-{machines().index(piece)}"
    Observed.objects.filter(name=piece["metadata"]["name"]).delete()
    look_again(half, version="2")
    shown = text(tenant.get("/t/tidewater/pools/gpu.helios.example/h100-a02/"))
    assert "Nothing is given from this pool" in shown
    assert "1 of 2 slices of generation 1 are there" in shown and "POOL_INCOMPLETE" in shown
    listed = text(tenant.get("/t/tidewater/pools/?state=incomplete"))
    assert "h100-a02" in listed and "h100-a01" not in listed
    assert "Needs a look" in text(tenant.get("/t/tidewater/catalogue/classes/h100-80gb/"))


@pytest.mark.parametrize(
    "address",
    ["pools/no.such/pool/", "nodes/nowhere/", "devices/gpu.helios.example/h100-a01/gpu-99/"],
)
def test_what_is_not_there_is_not_found(address: str, tenant: Client) -> None:
    assert tenant.get(f"/t/tidewater/{address}").status_code == 404


def test_before_the_cluster_was_seen_pages_say_so() -> None:
    client = client_of(make_person("tim", make_tenant("tidewater")))
    for path in ("pools/", "nodes/", POOL, "nodes/h100-a01/"):
        assert "look again in a few seconds" in text(client.get(f"/t/tidewater/{path}"))
    assert client.get(f"/t/tidewater/{DEVICE}").status_code == 404


def queries(client: Client, path: str) -> int:
    client.get(f"/t/tidewater/{path}")
    with CaptureQueriesContext(connection) as asked:
        client.get(f"/t/tidewater/{path}")
    return len(asked)


def test_pages_cost_the_same_whatever_there_is(tenant: Client) -> None:
    make_version()
    before = {path: queries(tenant, path) for path in EVERY_PAGE}
    look_again(
        *(holding(f"more-{n}", h100(2, n), namespace=OWN) for n in range(4)),
        *(holding(f"others-{n}", h100(3, n), namespace=OTHERS) for n in range(4)),
        version="2",
    )
    make_limit(Tenant.objects.get(slug="tidewater"), "cpu-numa", 4)
    make_version("another")
    assert {path: queries(tenant, path) for path in EVERY_PAGE} == before

"""Forecasts that are remembered, and what came of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import ProgrammingError, transaction
from django.test import Client
from django.utils import timezone

from devices.catalogue.offers import count as count_offers
from devices.forecasts.forecast import hit_rate, judge_open, remember
from devices.forecasts.judging import ALLOCATED_WITHIN, POD_WITHIN, Verdict, judge
from devices.forecasts.whatif import Fate
from devices.models import Claim, ClusterState, Forecast, StageTimes
from devices.routing.paths import routed
from devices.routing.routes import Path, Ruling, Serving, route
from portal.management.demo_templates import TEMPLATES
from tenants.access import Access
from tests.devices.demofleet import fleet_objects, h100, holding, mirror
from tests.devices.test_whatif import asking
from tests.factories import make_access, make_claim, make_version

NOON = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)
SOON = timedelta(seconds=5)
LATER = ALLOCATED_WITHIN + SOON


@pytest.mark.parametrize(
    ("fate", "pod", "allocated", "wanted", "now", "verdict"),
    [
        pytest.param(Fate.NOW, SOON, 2 * SOON, True, 3 * SOON, "right", id="fits, and did"),
        pytest.param(Fate.NOW, SOON, None, True, LATER, None, id="fits, still within its time"),
        pytest.param(Fate.NOW, SOON, None, True, 2 * LATER, "wrong", id="fits, and waited"),
        pytest.param(Fate.NOW, SOON, 2 * LATER, True, 3 * LATER, "wrong", id="fits, but late"),
        pytest.param(Fate.TAKEN, SOON, None, True, 2 * LATER, "right", id="waits, and did"),
        pytest.param(Fate.NEVER, SOON, 2 * LATER, True, 3 * LATER, "right", id="waits, then came"),
        pytest.param(Fate.TAKEN, SOON, 2 * SOON, True, LATER, "wrong", id="waits, but fitted"),
        pytest.param(Fate.NOW, None, None, True, LATER, None, id="no Pod yet"),
        pytest.param(
            Fate.NOW, None, None, True, 2 * POD_WITHIN, "not compared", id="no Pod came soon"
        ),
        pytest.param(
            Fate.NOW,
            2 * POD_WITHIN,
            2 * POD_WITHIN + SOON,
            True,
            3 * POD_WITHIN,
            "not compared",
            id="a Pod that comes much later meets another cluster",
        ),
        pytest.param(Fate.NOW, None, None, False, SOON, "not compared", id="released unused"),
        pytest.param(
            Fate.TAKEN, SOON, None, False, 2 * SOON, "not compared", id="released while it waited"
        ),
        pytest.param(Fate.UNKNOWN, SOON, 2 * SOON, True, LATER, "not compared", id="not foretold"),
    ],
)
def test_what_came_of_a_forecast(
    fate: Fate,
    pod: timedelta | None,
    allocated: timedelta | None,
    wanted: bool,
    now: timedelta,
    verdict: str | None,
) -> None:
    found = judge(
        fate=fate,
        made=NOON,
        pod=None if pod is None else NOON + pod,
        allocated=None if allocated is None else NOON + allocated,
        wanted=wanted,
        now=NOON + now,
    )
    assert (found and found.verdict) == (verdict and Verdict(verdict))


@pytest.fixture
def access(db: None) -> Access:
    made = make_access()
    mirror(
        [
            *fleet_objects(),
            holding("whole-1", h100(1, *range(8))),
            holding("whole-2", h100(2, *range(8))),
            holding("half-3", h100(3, *range(4))),
            holding("half-4", h100(4, *range(4))),
        ]
    )
    return made


def ask(access: Access, gpus: int, name: str = "train") -> Claim:
    version = make_version(slug=f"gpu-{name}", content=TEMPLATES["gpu"][3])
    values = {"memory": "80-nvlink", "gpus": gpus}
    return make_claim(access, version, values=values, name=name, now=timezone.now())


def test_each_ask_remembers_what_was_foretold(access: Access) -> None:
    fits, waits = ask(access, 4), ask(access, 8, "big")
    now = timezone.now()
    first, second = remember(fits, now), remember(waits, now)
    assert (first.fate, first.code, first.nodes) == ("fits now", "", 2)
    assert (second.fate, second.code, second.nodes) == ("taken now", "NOT_ENOUGH_ON_ONE_NODE", 0)
    assert first.seen_at is not None and first.release == "1.37"
    assert remember(fits, now + SOON) == first, "the first word counts"


def test_an_accepted_ask_makes_its_forecast_once_it_is_through(
    access: Access, django_capture_on_commit_callbacks: object
) -> None:
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
        claim = ask(access, 4)
    assert Forecast.objects.get(claim=claim).fate == "fits now"


def test_nothing_is_foretold_of_a_cluster_that_is_not_heard(access: Access) -> None:
    ClusterState.objects.update(reachable=False)
    assert remember(ask(access, 4), timezone.now()).fate == "not known"


def test_what_was_told_and_what_was_judged_cannot_be_changed(access: Access) -> None:
    told = remember(ask(access, 4), timezone.now())
    with pytest.raises(ProgrammingError, match="Cannot update"), transaction.atomic():
        Forecast.objects.filter(pk=told.pk).update(fate="taken now")
    Forecast.objects.filter(pk=told.pk).update(outcome="right")
    with pytest.raises(ProgrammingError, match="transition"), transaction.atomic():
        Forecast.objects.filter(pk=told.pk).update(outcome="wrong")


def test_the_hit_rate_counts_what_could_be_compared(access: Access, client: Client) -> None:
    now = timezone.now()
    late = now + LATER + LATER
    cases = [("a", 4, SOON), ("b", 4, None), ("c", 8, None), ("d", 8, SOON), ("e", 4, "no pod")]
    for name, gpus, took in cases:
        claim = ask(access, gpus, name)
        remember(claim, now)
        if took == "no pod":
            Claim.objects.filter(pk=claim.pk).update(released_at=now)
            continue
        assert took is None or isinstance(took, timedelta)
        StageTimes.objects.create(
            claim=claim,
            tenant=claim.tenant,
            pod_uid=name,
            pod=name,
            classes=["h100-80gb"],
            created_at=now,
            allocated_at=None if took is None else now + took,
        )
        Claim.objects.filter(pk=claim.pk).update(code="NOT_ENOUGH_ON_ONE_NODE")
    assert judge_open(now) == 3, "two Pods still have time"
    assert judge_open(late) == 2
    rate = hit_rate(late)
    assert (rate.fits_right, rate.fits_wrong, rate.waits_right, rate.waits_wrong) == (1, 1, 1, 1)
    assert (rate.same_code, rate.not_compared, rate.open) == (1, 1, 0)
    assert (rate.right, rate.compared, rate.percent) == (2, 4, "50")
    count_offers(now)
    client.force_login(access.user)
    page = client.get("/t/tidewater/catalogue/").text
    assert "came true for 2 of 4 asks" in page and "1 could not be compared" in page
    assert "too few to say" in page
    assert "“fits” 1 of 2, “waits” 1 of 2" in page
    Forecast.objects.exclude(fate="fits now").delete()
    page = client.get("/t/tidewater/catalogue/").text
    assert "“fits” 1 of 2, “waits” has no history yet" in page


def ruled(path: Path, **more: object) -> Ruling:
    set_at = datetime(2026, 11, 2, 9, tzinfo=UTC)
    fields = {"id": path.value, "device_class": "h100-80gb", "reason": "moving pool-3"}
    return Ruling(path=path, set_at=set_at, **{**fields, **more})  # type: ignore[arg-type]


SERVED = {"by_dra": 32, "by_plugin": 0, "extended": True}


@pytest.mark.parametrize(
    ("serving", "near", "path", "also", "why"),
    [
        pytest.param(SERVED, "", Path.CLAIM, True, "DRA serves", id="DRA alone: a claim"),
        pytest.param(SERVED, "x/y", Path.CLAIM, False, "Only a claim", id="a condition: a claim"),
        pytest.param(
            {**SERVED, "extended": False},
            "",
            Path.CLAIM,
            False,
            "DRA serves",
            id="no extended resources where the cluster turns none into claims",
        ),
        pytest.param(
            {"by_dra": 8, "by_plugin": 8}, "", Path.CLAIM, False, "Some nodes", id="both: DRA's"
        ),
        pytest.param(
            {"by_dra": 0, "by_plugin": 8, "resource": "x.example/gpu"},
            "",
            Path.PLUGIN,
            False,
            "Only the device plugin",
            id="the plugin alone: its resource",
        ),
        pytest.param(
            {"by_dra": 0, "by_plugin": 8, "resource": "x.example/gpu"},
            "x/y",
            Path.CLAIM,
            False,
            "cannot be said",
            id="the plugin alone and a condition: the claim waits",
        ),
        pytest.param(
            {**SERVED, "resource": "x.example/gpu", "ruling": ruled(Path.PLUGIN)},
            "",
            Path.PLUGIN,
            False,
            "platform team",
            id="sent to the plugin by whoever moves the pools",
        ),
        pytest.param(
            {**SERVED, "ruling": ruled(Path.EXTENDED)},
            "",
            Path.EXTENDED,
            True,
            "platform team",
            id="sent by extended resource",
        ),
    ],
)
def test_the_route_of_new_work(
    serving: dict[str, object], near: str, path: Path, also: bool, why: str
) -> None:
    found = route(asking(count=2, near=near), [Serving("h100-80gb", **serving)])  # type: ignore[arg-type]
    assert found.path is path and why in found.why
    name = serving.get("resource") or "deviceclass.resource.kubernetes.io/h100-80gb"
    if path is Path.CLAIM:
        assert found.also == (((name, 2),) if also else ())
    else:
        assert found.resources == ((name, 2),)


def test_the_route_is_read_from_the_newest_counts(access: Access) -> None:
    count_offers(timezone.now())
    found = routed(asking(count=2), "gpu", timezone.now())
    assert (found.path, found.also) == (
        Path.CLAIM,
        (("deviceclass.resource.kubernetes.io/h100-80gb", 2),),
    )

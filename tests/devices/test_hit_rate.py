"""How often forecasts come true: requests through the demo's fleet and the real scheduler.

Each ask goes the product's whole way: verb, forecast, turn, Pod, scheduler, turn, comparison. A
small run each time; two hundred with the long tests. Both print the rate.
"""

from __future__ import annotations

import random
import time
from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import yaml
from django.utils import timezone

from devices.asks import reconcile
from devices.asks.snippets import manifests
from devices.cluster.gateway import Gateway, Ref
from devices.forecasts.forecast import hit_rate, judge_open
from devices.forecasts.judging import ALLOCATED_WITHIN
from devices.forecasts.warm import warm
from devices.models import Claim, Forecast, Observed, StageTimes, Sync, TemplateVersion
from devices.tenancy import turns
from playground.fleet.fleet import Fleet
from playground.fleet.spec import load
from playground.plane.controlplane import ControlPlane
from portal.management.demo_templates import TEMPLATES
from tenants.access import Access
from tests.devices.demofleet import unbounded
from tests.devices.following import following, until
from tests.factories import make_access, make_claim, make_version
from tests.playground.planes import NEWEST, built

pytestmark = [pytest.mark.cluster, pytest.mark.django_db(transaction=True)]

NAMESPACE = "tidewater-train"
#: So many Pods run at a time; the oldest is ended for a new one, so that there is room at times.
AT_ONCE = 14
#: Machines of the demo and the devices that they publish.
DEVICES = 168
#: Kinds of ask, with how often each comes.
ASKS: list[tuple[str, dict[str, list[Any]]]] = [
    (
        "gpu",
        {
            "memory": ["80-nvlink", "80", "40", "10"],
            "gpus": list(range(1, 9)),
            "near": [False, True],
        },
    ),
    ("gpu", {"memory": ["80-nvlink"], "gpus": [2, 4, 8], "near": [False, True]}),
    ("training-pair", {"gpus": [1, 2], "near": [True, False]}),
    ("fpga-card", {"cards": [1, 2]}),
    ("half-gpu", {"size": ["half", "seventh"], "parts": [2], "apart": [False, True]}),
    ("any-gpu", {"order": ["fast", "roomy", "only"]}),
    ("cores", {"cores": [8, 24, 62], "two": [False, True]}),
]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """The demo's machines without the demo's own work."""
    with ControlPlane(tmp_path_factory.mktemp("hit-rate"), built(NEWEST)) as plane:
        made = Fleet(msgspec.structs.replace(load("demo"), workloads=[]), plane)
        made.start()
        yield made
        made.stop()


@pytest.fixture
def access() -> Access:
    for slug, (_, _, _, content) in TEMPLATES.items():
        make_version(slug=slug, content=unbounded(content))
    return make_access(namespaces=(NAMESPACE,))


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(24, marks=pytest.mark.long, id="two dozen"),
        pytest.param(200, id="two hundred", marks=pytest.mark.long),
    ],
)
def test_forecasts_come_true(
    fleet: Fleet, access: Access, number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway = fleet.admin
    chance = random.Random(number)
    running: deque[str] = deque()
    with following(gateway):
        until(lambda: published() == DEVICES, seconds=120, what="the fleet's devices")
        turns.turn(access.tenant.slug, gateway=gateway, now=timezone.now())
        began = time.monotonic()
        for index in range(number):
            if len(running) == AT_ONCE:
                end(gateway, running.popleft())
            name = ask_and_run(gateway, access, chance, f"n{number}-{index}")
            if name:
                running.append(name)
        seconds = time.monotonic() - began
        for name in running:
            gateway.delete(Ref("Pod", name, NAMESPACE), grace_seconds=0)
    judge_open(timezone.now() + 2 * ALLOCATED_WITHIN)
    rate = hit_rate(timezone.now())
    wrong = [
        f"{row.claim.words}: {row.fate} {row.code}, then {row.why} {row.outcome_code}"
        for row in Forecast.objects.filter(outcome="wrong").select_related("claim")
    ]
    others = Counter(
        f"{row.code} → {row.outcome_code}"
        for row in Forecast.objects.exclude(fate="fits now").filter(outcome="right")
        if row.code != row.outcome_code
    )
    with capsys.disabled():
        print(
            f"\n{number} asks in {seconds:.0f} s: {rate.right} of {rate.compared} forecasts right "
            f"({rate.percent} %); fits {rate.fits_right}/{rate.fits_right + rate.fits_wrong}, "
            f"waits {rate.waits_right}/{rate.waits_right + rate.waits_wrong}, same reason "
            f"{rate.same_code} {dict(others)}; not compared {rate.not_compared}"
        )
    assert rate.compared >= 0.9 * number, "nearly all were compared"
    assert rate.fits_right and rate.waits_right, "both kinds came"
    assert rate.share is not None and rate.share >= 0.97, wrong
    Forecast.objects.all().delete()


def published() -> int:
    """How many devices the warm picture knows."""
    seen = warm()
    return sum(len(piece.devices) for piece in seen.now.slices) if seen else 0


def ask_and_run(gateway: Gateway, access: Access, chance: random.Random, name: str) -> str:
    """One ask and one Pod for it; returns the Pod's name where it was placed."""
    slug, choices = chance.choice(ASKS)
    values = {parameter: chance.choice(options) for parameter, options in choices.items()}
    version = TemplateVersion.objects.get(template__slug=slug)
    claim = make_claim(access, version, values=values, name=name, now=timezone.now())
    assert Forecast.objects.filter(claim=claim).exists(), "each ask remembers its forecast"
    reconcile.turn(claim.public_id, gateway=gateway, now=timezone.now())
    (pod,) = (
        yaml.safe_load(snippet.text) for snippet in manifests(claim.wish()) if snippet.key == "pod"
    )
    requests = {"cpu": "1", "memory": "1Gi"}
    pod["spec"]["containers"][0]["resources"]["requests"] = requests
    pod["metadata"]["annotations"] = {"playground.berth.dev/run-for": "3600s"}
    made = gateway.create(pod)["metadata"]
    ref = Ref("Pod", made["name"], NAMESPACE)
    placed = until(lambda: decided(gateway, ref), seconds=60, what="the scheduler's word")
    seen_by_mirror(gateway, claim, ref)
    reconcile.turn(claim.public_id, gateway=gateway, now=timezone.now())
    assert StageTimes.objects.filter(claim=claim, pod_uid=made["uid"]).exists()
    if placed == "placed":
        return str(made["name"])
    end(gateway, made["name"])
    return ""


def decided(gateway: Gateway, ref: Ref) -> str:
    """ "placed", "waits", or nothing while the scheduler has not looked at the Pod."""
    pod = gateway.get(ref)
    assert pod is not None
    if pod["spec"].get("nodeName"):
        return "placed"
    conditions = pod.get("status", {}).get("conditions", [])
    return "waits" if any(c.get("reason") == "Unschedulable" for c in conditions) else ""


def seen_by_mirror(gateway: Gateway, claim: Claim, ref: Ref) -> None:
    """The mirror has what the scheduler wrote, as it has in the product a moment later."""

    def seen() -> bool:
        picture, pod = warm(), gateway.get(ref)
        if picture is None or pod is None:
            return False
        found = picture.now.pods.get((NAMESPACE, ref.name))
        if found is None or found.node_name != (pod["spec"].get("nodeName") or ""):
            return False
        if not found.node_name:
            version = pod["metadata"]["resourceVersion"]
            return Observed.objects.filter(
                pk=pod["metadata"]["uid"], resource_version=version
            ).exists()
        label = f"berth.dev/claim={claim.public_id}"
        made = gateway.list("ResourceClaim", namespace=NAMESPACE, labels=label).items
        return all(
            (known := picture.now.claims.get((NAMESPACE, one["metadata"]["name"]))) is not None
            and known.allocation is not None
            for one in made
        )

    until(seen, seconds=30, what="the mirror")


def end(gateway: Gateway, name: str) -> None:
    """Ends a Pod, and waits until its devices are free in the mirror too."""
    gateway.delete(Ref("Pod", name, NAMESPACE), grace_seconds=0)

    def freed() -> bool:
        picture = warm()
        return picture is not None and not any(
            any(owner.name == name for owner in one.meta.owners)
            for one in picture.now.claims.values()
        )

    try:
        until(freed, seconds=60, what=f"the devices of {name}")
    except AssertionError as error:
        raise AssertionError(f"{error}; {whereabouts(gateway, name)}") from error


def whereabouts(gateway: Gateway, name: str) -> str:
    """Who still has the claim of a Pod that was deleted: the cluster or the mirror."""
    there = [
        {key: one["metadata"].get(key) for key in ("name", "finalizers", "deletionTimestamp")}
        for one in gateway.list("ResourceClaim", namespace=NAMESPACE).items
        if any(owner["name"] == name for owner in one["metadata"].get("ownerReferences", ()))
    ]
    rows = Observed.objects.filter(kind="ResourceClaim", namespace=NAMESPACE, gone_at=None)
    synced = list(Sync.objects.filter(kind="ResourceClaim").values("version", "error", "alive_at"))
    pod = gateway.get(Ref("Pod", name, NAMESPACE))
    return (
        f"the cluster has {there}, its Pod {'exists' if pod else 'is gone'}; "
        f"the mirror has {sorted(rows.values_list('name', flat=True))} at {synced}"
    )

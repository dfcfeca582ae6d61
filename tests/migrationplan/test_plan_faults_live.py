"""What goes wrong in the middle of a wave, on a real control plane with simulated nodes.

Drift, two owners made by hand, a driver that publishes nothing: each ends paused or rolled back,
with a person called, and goes on once it is mended.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.utils import timezone

from devices.cluster.gateway import Gateway, Ref
from devices.models import Freeze
from devices.tenancy import freezes
from migrationplan.evidence.bundle import verified
from migrationplan.evidence.collecting import exported
from migrationplan.models import Evidence, Move, Wave
from migrationplan.moving import moves
from migrationplan.phases import OnFailure, Phase
from migrationplan.plans import running
from playground.faults.table import broken
from playground.fleet.fleet import Fleet
from playground.plane.controlplane import ControlPlane
from portal.alerts.models import Alert
from tests.migrationplan.planstory import DRIVER, PLUGIN_SWITCH, PlanStory, nothing_happened
from tests.migrationplan.sampling import restarted, samples, used_twice
from tests.migrationplan.test_plan_live import a_fleet, told, wish, worker

__all__ = ["worker"]

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.django_db(transaction=True)]
#: A simulated node's five minutes last 15 s; the scale is in the nodes' names.
SCALE = 0.05


@pytest.fixture(scope="module")
def fleet(real_plane: ControlPlane) -> Iterator[Fleet]:
    with ExitStack() as stack:
        yield a_fleet(stack, real_plane, 3, SCALE)


@pytest.fixture
def story(fleet: Fleet, worker: Gateway, tmp_path: Path) -> Iterator[PlanStory]:
    with told(fleet, worker, tmp_path, SCALE) as made:
        yield made


def half_way(story: PlanStory) -> tuple[Wave, str]:
    """A wave of which one node is through, and the next one waits for the Pod `long`."""
    wave = story.plan(wish("All", 100, concurrency=1)).waves.get()
    first, second, *_ = (row.node for row in wave.nodes.all())
    story.work("long", second)
    story.until(lambda: story.running("long"), what="the Pod")
    story.submit(wave)
    story.until(lambda: "waits for Pod long" in Wave.objects.get(pk=wave.pk).why, what="long")
    assert story.owners()[first] == "dra"
    return wave, first


def paused(story: PlanStory, wave: Wave, code: str) -> None:
    """The wave stops by itself for that reason, rings, ends nobody and starts nothing more."""
    story.phase(wave, Phase.PAUSED, 300)
    assert wave.code == code, wave.why
    assert Alert.objects.filter(code=code, over_at=None).exists()
    assert story.running("long"), "nobody is ended"
    begun = wave.nodes.exclude(move=None).count()
    story.end("long")
    story.until(lambda: not wave.nodes.filter(stand="moving").exists(), 600, "begun ones finish")
    assert wave.nodes.exclude(move=None).count() == begun == 2, "nothing starts"


def goes_on(story: PlanStory, wave: Wave) -> None:
    running.resume(wave, reason="It is mended", **story.by())
    story.phase(wave, Phase.DONE, 900)
    story.owned("dra")


def test_a_device_that_vanishes_from_a_converted_node(story: PlanStory, tmp_path: Path) -> None:
    wave, first = half_way(story)
    device = next(
        one["spec"]["devices"][0]["name"]
        for one in story.admin.list("ResourceSlice").items
        if one["spec"].get("nodeName") == first and one["spec"]["driver"] == DRIVER
    )
    with broken(story.fleet, "device-gone", node=first, device=device, driver=DRIVER):
        paused(story, wave, "WAVE_DRIFT")
        assert first in wave.why
    goes_on(story, wave)
    nothing_happened(tmp_path, least=100)


def test_two_owners_made_by_hand(story: PlanStory, tmp_path: Path) -> None:
    """Somebody sets the plugin's switch on a node of DRA: nothing new of the class any more."""
    wave, first = half_way(story)
    switch = {"metadata": {"labels": {PLUGIN_SWITCH: "true"}}}
    story.admin.merge(Ref("Node", first), switch)
    paused(story, wave, "OWNER_CONFLICT")
    [frozen] = Freeze.objects.filter(ended_at=None, scope="class")
    assert frozen.target == "l40s"
    stops = wave.events.filter(text__startswith="two owners on ")
    before = stops.count()
    running.resume(wave, reason="Try it", **story.by())
    story.until(lambda: stops.count() > before, 120, "it stops again")
    story.phase(wave, Phase.PAUSED)
    assert wave.nodes.exclude(move=None).count() == 2, "nothing started meanwhile"

    switch["metadata"]["labels"][PLUGIN_SWITCH] = None  # type: ignore[assignment]
    story.admin.merge(Ref("Node", first), switch)
    story.owned("dra", [first])
    rings = Alert.objects.filter(code="OWNER_CONFLICT", subject__contains=first, over_at=None)
    story.until(lambda: not rings.exists(), 60, "the alert ends")
    freezes.lift(public_id=frozen.public_id, **story.by())
    goes_on(story, wave)
    seen = samples(tmp_path / "pods.jsonl")
    assert len(seen) >= 100 and restarted(seen) == [] and used_twice(seen) == []


def test_a_driver_that_publishes_nothing_pauses_and_goes_on(
    story: PlanStory, tmp_path: Path
) -> None:
    wave = story.plan(wish("All", 100, concurrency=1)).waves.get()
    second = list(wave.nodes.all())[1].node
    with broken(story.fleet, "slices-stale", node=second, driver=DRIVER):
        story.submit(wave)
        story.phase(wave, Phase.PAUSED, 900)
        assert (wave.code, second in wave.why) == ("WAVE_TOO_MANY_ERRORS", True)
        move = Move.objects.get(node=second, ended_at=None)
        assert (move.step, bool(move.called)) == ("driver on", True)
        node = story.admin.get(Ref("Node", second)) or {}
        assert any(one["key"] == "berth.dev/quiescing" for one in node["spec"]["taints"])
    assert story.owners()[second] == "none", "by nobody, and closed"
    moves.look_again(move, **story.by())
    story.until(
        lambda: not wave.nodes.filter(stand="a person is called").exists(), 600, "it goes on"
    )
    goes_on(story, wave)
    nothing_happened(tmp_path, least=100)


def test_a_driver_that_publishes_nothing_rolls_the_wave_back(
    story: PlanStory, tmp_path: Path
) -> None:
    rules = {"concurrency": 1, "on_failure": OnFailure.ROLL_BACK}
    wave = story.plan(wish("All", 100, **rules)).waves.get()
    second = list(wave.nodes.all())[1].node
    with broken(story.fleet, "slices-stale", node=second, driver=DRIVER):
        story.submit(wave)
        story.phase(wave, Phase.ROLLING_BACK, 900)
        story.phase(wave, Phase.ROLLED_BACK, 900)
    story.owned("plugin")
    [evidence] = Evidence.objects.filter(moves__len__gt=0)
    found = verified(io.BytesIO(b"".join(exported(evidence))))
    assert (found.problems, found.digest) == ((), evidence.digest)
    assert evidence.until <= timezone.now() and len(evidence.moves) >= 2
    nothing_happened(tmp_path, least=100)

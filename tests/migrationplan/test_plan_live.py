"""Plans on a real control plane with simulated nodes: no Pod restarts, no device has two owners.

A witness of its own lists what the API server has, several times a second, and is judged last.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from django.utils import timezone
from playwright.sync_api import Browser

from devices import cluster
from devices.cluster.gateway import Gateway
from devices.dra.names import SYSTEM_NAMESPACE
from devices.models import Freeze, FreezeHold
from migrationplan.models import Move, Wave
from migrationplan.phases import Phase
from migrationplan.plans import calendar, leave, running
from migrationplan.plans.reading import windows
from migrationplan.plans.wishes import WaveWish
from playground.fleet.fleet import Fleet
from playground.plane.controlplane import ControlPlane
from portal.alerts.models import Alert
from portal.audit.models import AuditLine
from tenants.access import platform_of
from tenants.models import PlatformRole
from tests.deploy.ground import rights
from tests.devices.following import following
from tests.factories import make_person
from tests.migrationplan.planstory import (
    NAMESPACE,
    RESOURCE,
    PlanStory,
    load,
    nothing_happened,
    witness,
)
from tests.migrationplan.sampling import sampling
from tests.pictures.camera import show
from tests.pictures.conftest import (  # noqa: F401 - for the browser of pictures
    browser_type_launch_args,
    same_thread,
)
from tests.pictures.stage import of_platform
from tests.playground.conversion.test_conversion import start_fleet
from tests.playground.probing import install_probe
from tests.playground.realnode import RealGround

pytestmark = [pytest.mark.cluster, pytest.mark.django_db(transaction=True)]
#: A simulated node's five minutes last six seconds.
SCALE = 0.02
ALWAYS = windows("daily 00:00-00:00 Europe/Berlin")
SCREENSHOTS = Path(__file__).parents[2] / "docs" / "screenshots"


def a_fleet(stack: ExitStack, plane: ControlPlane, count: int, scale: float = SCALE) -> Fleet:
    """The scale is in the nodes' names, so two fleets of a plane need two."""
    made = start_fleet(stack, plane, count, scale)
    install_probe(RealGround(made.admin, ""))
    return made


@pytest.fixture(scope="module")
def fleet(real_plane: ControlPlane) -> Iterator[Fleet]:
    with ExitStack() as stack:
        yield a_fleet(stack, real_plane, 4)


@pytest.fixture(scope="module")
def worker(real_plane: ControlPlane) -> Gateway:
    """Berth's own worker, with the rights of `deploy/` and no others."""
    admin = cluster.connect(real_plane.admin_kubeconfig)
    for obj in rights():
        admin.apply(obj, manager="berth-playground", force=True)
    return cluster.connect(real_plane.service_account_kubeconfig(SYSTEM_NAMESPACE, "berth-worker"))


@contextmanager
def told(fleet: Fleet, worker: Gateway, folder: Path, scale: float = SCALE) -> Iterator[PlanStory]:
    people = {}
    for name, role in (("olga", "operator"), ("pike", "approver")):
        user = make_person(name)
        PlatformRole.objects.create(user=user, role=role)
        people[role] = platform_of(user)
    story = PlanStory(fleet, worker, people["operator"], people["approver"], scale)
    with following(fleet.admin):
        story.pool()
        story.owned("plugin")
        pods, owners = folder / "pods.jsonl", folder / "owners.jsonl"
        with (
            sampling(fleet.admin, pods, namespace=NAMESPACE, resource=RESOURCE),
            witness(fleet.admin, story.names, owners),
        ):
            yield story


@pytest.fixture
def story(fleet: Fleet, worker: Gateway, tmp_path: Path) -> Iterator[PlanStory]:
    with told(fleet, worker, tmp_path) as made:
        yield made


def wish(name: str, percent: int, **rules: object) -> WaveWish:
    usual = {"soak": timedelta(seconds=2), "windows": ALWAYS, "concurrency": 2}
    return WaveWish(name, percent=percent, **{**usual, **rules})  # type: ignore[arg-type]


def test_two_waves_over_four_nodes_wait_for_whom_they_must(
    story: PlanStory, tmp_path: Path
) -> None:
    """Approval, window, a Pod that is waited for, an approval taken back in the middle, soak."""
    plan = story.plan(wish("Canary", 25), wish("The rest", 100, concurrency=3))
    first, second = plan.waves.all()
    canary, last = first.nodes.get().node, list(second.nodes.all())[-1].node
    story.work("train", canary)
    story.work("long", last)
    story.until(lambda: story.running("train") and story.running("long"), what="the Pods")

    story.submit(first, approve=False)
    story.submit(second)
    story.phase(first, Phase.IN_REVIEW)
    assert Alert.objects.get(code="WAVE_NEEDS_APPROVAL", over_at=None)
    story.until(lambda: Wave.objects.get(pk=second.pk).why == "starts after 1 Canary")
    story.approve(first)
    story.phase(first, Phase.RUNNING)
    story.until(lambda: "waits for Pod train" in Wave.objects.get(pk=first.pk).why)
    assert story.running("train"), "nobody is evicted"
    story.end("train")
    story.phase(first, Phase.SOAKING)
    story.phase(first, Phase.DONE)
    assert story.owners()[canary] == "dra"

    story.phase(second, Phase.RUNNING)
    story.until(lambda: second.nodes.exclude(move=None).count() == 3, what="three at once")
    assert story.running("long")
    leave.withdraw(second, reason="the driver leaks", **story.by(story.approver))
    story.phase(second, Phase.PAUSED)
    assert second.code == "WAVE_NOT_APPROVED" and "the driver leaks" in second.why
    assert Alert.objects.filter(code="WAVE_NOT_APPROVED", over_at=None).exists()
    story.submit(second)
    running.resume(second, reason="fixed in the image", **story.by())
    story.phase(second, Phase.RUNNING)
    story.end("long")
    story.phase(second, Phase.DONE)
    story.owned("dra")
    assert not Alert.objects.filter(over_at=None).exclude(code__startswith="DRIFT").exists()
    phases = list(AuditLine.objects.filter(action__startswith="wave.").values_list("action"))
    assert ("wave.done",) in phases and ("wave.approval_withdrawn",) in phases
    nothing_happened(tmp_path, least=100)


@pytest.mark.long
def test_a_window_that_closes_lets_begun_nodes_finish_and_a_rollback_ends_nothing(
    story: PlanStory, tmp_path: Path
) -> None:
    plan = story.plan(wish("All", 100, concurrency=1))
    wave = plan.waves.get()
    story.submit(wave)
    story.until(lambda: wave.nodes.filter(stand="converted").count() >= 1, 600, "one is through")
    story.until(lambda: wave.nodes.filter(stand="moving").exists(), 600, "the next")
    now = timezone.now()
    entry = calendar.enter(
        reason="The exhibition", begins=now, ends=now + timedelta(hours=2), pools=[], **story.by()
    )
    begun = set(wave.nodes.exclude(move=None).values_list("node", flat=True))
    story.until(lambda: not wave.nodes.filter(stand="moving").exists(), 600, "begun ones finish")
    story.until(lambda: "frozen: The exhibition" in Wave.objects.get(pk=wave.pk).why)
    assert set(wave.nodes.exclude(move=None).values_list("node", flat=True)) == begun
    calendar.remove(entry, **story.by())

    story.until(lambda: wave.nodes.filter(stand="moving").exists(), 600, "it goes on")
    running.roll_back(wave, reason="tenants complain", **story.by())
    story.phase(wave, Phase.ROLLING_BACK)
    story.until(lambda: Freeze.objects.filter(ended_at=None).count() == 2, 60, "frozen")
    story.phase(wave, Phase.ROLLED_BACK)
    story.owned("plugin")
    story.until(lambda: not FreezeHold.objects.exclude(state="open").exists(), 60, "open again")
    assert not story.admin.list("DeviceTaintRule", labels="berth.dev/freeze").items
    nothing_happened(tmp_path, least=100)


@pytest.mark.long
def test_the_api_server_goes_away_in_the_middle(
    story: PlanStory, real_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("migrationplan.wave.AWAY_PATIENCE", timedelta(seconds=5))
    plan = story.plan(wish("All", 100, concurrency=2))
    wave = plan.waves.get()
    story.submit(wave)
    story.until(lambda: wave.nodes.filter(stand="moving").count() == 2, 600, "two are under way")
    real_plane.stop_component("kube-apiserver", kill=True)
    try:
        story.phase(wave, Phase.PAUSED)
        assert wave.code in ("CLUSTER_UNREACHABLE", "MIRROR_STALE")
    finally:
        real_plane.start_component("kube-apiserver")
    story.until(lambda: wave.nodes.filter(stand="moving").count() == 0, 600, "they finish")
    begun = wave.nodes.exclude(move=None).count()
    assert begun == 2, "nothing starts while it is paused"
    running.resume(wave, reason="it is back", **story.by())
    story.phase(wave, Phase.DONE)
    story.owned("dra")
    nothing_happened(tmp_path, least=50)


class Dying:
    """The worker's way to the cluster. The worker dies at its first request, then at the second one
    that it makes from then on, and so on: at each request of a turn in its turn, and then anew.
    """

    def __init__(self, gateway: Gateway, most: int) -> None:
        self.gateway, self.most = gateway, most
        self.asked, self.at, self.deaths = 0, 1, 0

    def __getattr__(self, name: str) -> object:
        self.asked += 1
        if self.asked == self.at:
            self.asked, self.at, self.deaths = 0, self.at % self.most + 1, self.deaths + 1
            raise SystemExit
        return getattr(self.gateway, name)


@pytest.mark.long
def test_a_worker_that_dies_again_and_again(
    real_plane: ControlPlane, worker: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leases of killed turns run out by themselves; here they are as short as all times are.
    A node whose plugin stopped must be asked before its five minutes are over, deaths or not.
    """
    monkeypatch.setattr(Wave, "lease_time", timedelta(seconds=2))
    monkeypatch.setattr(Move, "lease_time", timedelta(seconds=2))
    with ExitStack() as stack:
        fleet = a_fleet(stack, real_plane, 4, 0.1)
        story = stack.enter_context(told(fleet, worker, tmp_path, 0.1))
        wave = story.plan(wish("All", 100, concurrency=4)).waves.get()
        story.submit(wave)
        Wave.objects.update(lease="killed", lease_until=timezone.now() + timedelta(seconds=3))
        dying = Dying(story.worker, 30)
        story.worker = dying  # type: ignore[assignment]
        story.mortal = True
        story.phase(wave, Phase.DONE, 900)
        assert dying.deaths > 20, "at each of the requests that a turn makes"
        starts = wave.events.filter(text="Begun to DRA.").count()
        assert starts == 4 == wave.nodes.count(), "each node began once"
        story.owned("dra")
    nothing_happened(tmp_path, least=100)


@pytest.fixture
def picture(request: pytest.FixtureRequest) -> Callable[[Wave, str], None]:
    """Keeps a wave's page as a picture for docs, where BERTH_PICTURES is set."""
    if "BERTH_PICTURES" not in os.environ:
        return lambda wave, name: None
    browser: Browser = request.getfixturevalue("browser")

    def take(wave: Wave, name: str) -> None:
        address = f"/platform/plans/{wave.plan.public_id}/waves/{wave.position}/"
        page = show(browser, of_platform(address))
        path = SCREENSHOTS / f"{name}.jpg"
        page.screenshot(path=path, full_page=True, type="jpeg", quality=55)
        page.context.close()

    return take


@pytest.mark.long
def test_four_waves_over_twelve_nodes_under_load(
    real_plane: ControlPlane,
    worker: Gateway,
    tmp_path: Path,
    picture: Callable[[Wave, str], None],
) -> None:
    """Pods hold devices in every wave; their owners end them one after the other. Others come and
    go all the time, on whichever path has room for them.
    """
    with ExitStack() as stack:
        fleet = a_fleet(stack, real_plane, 12, 0.06)
        story = stack.enter_context(told(fleet, worker, tmp_path, 0.06))
        ran = stack.enter_context(load(fleet.admin))
        plan = story.plan(
            wish("Canary", 8, concurrency=1),
            wish("Retryable", 25, concurrency=2),
            wish("Throughput", 34, concurrency=4),
            wish("Long-running last", 100, concurrency=4),
        )
        waves = list(plan.waves.all())
        assert [wave.nodes.count() for wave in waves] == [1, 3, 5, 3]
        names = [f"work-{wave.position}" for wave in waves]
        for wave, name in zip(waves, names, strict=True):
            story.work(name, next(iter(wave.nodes.all())).node)
        story.until(lambda: all(map(story.running, names)), what="the Pods")
        for wave in waves:
            story.submit(wave)
        for wave, name in zip(waves, names, strict=True):
            story.until(partial(_waits_for, wave, name), what=name)
            assert story.running(name), "nobody is evicted"
            if wave.position == 3:
                picture(wave, "plan-of-twelve-3")
            story.end(name)
            story.phase(wave, Phase.DONE, 1200)
        picture(waves[-1], "plan-of-twelve-done")
        story.owned("dra")
        before = len(ran)
        story.until(lambda: len(ran) > before + 3, 60, "work goes on by DRA")
    assert len(ran) > 30, "there was load all the time"
    nothing_happened(tmp_path, least=300)


def _waits_for(wave: Wave, pod: str) -> bool:
    return f"Pod {pod}" in Wave.objects.get(pk=wave.pk).why

"""Each failure that the playground can make of a request: its code on page, API, metric and bell.

What every other code looks like is staged in `tests/pictures`; here nothing is staged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import expect

from devices.cluster.gateway import Ref
from playground.commands.fleet import mailbox
from playground.faults.table import TABLE
from tests.chaos.story import NAMESPACE, Story, persist
from tests.journeys.conftest import Demo, SignIn
from tests.journeys.test_crash import patiently
from tests.journeys.test_first_device import TIDEWATER, until

pytestmark = [pytest.mark.cluster, pytest.mark.browser, pytest.mark.long]

DRIVER = "gpu.helios.example"
NODE = "a100-c01"
SHOWN_WITHIN = 120_000


@dataclass(frozen=True, slots=True)
class Scene:
    """How one failure is made: what is broken, what the Pod asks besides, what happens then."""

    code: str
    broken: tuple[str, dict[str, object]] | None = None
    spec: dict[str, Any] = field(default_factory=dict)
    pod: bool = True
    then: Callable[[Stage], None] | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """One claim of the demo's tenant, with its Pod."""

    demo: Demo
    story: Story
    made: dict[str, Any]
    pod: str

    def release(self) -> None:
        patiently(f"{self.story.claims}/{self.made['id']}/release", self.story.token, {})

    def delete_object(self) -> None:
        # Before a turn has seen what it made, a missing object is one that is not made yet.
        until(lambda: self.state() == "applied", 90)
        persist(lambda: self.demo.gateway.delete(self.ref))

    def state(self) -> str:
        return patiently(f"{self.story.claims}/{self.made['id']}", self.story.token)[1]["state"]

    @property
    def ref(self) -> Ref:
        return Ref(self.made["kind"], self.made["object_name"], NAMESPACE)

    def end_pod(self) -> None:
        persist(lambda: self.demo.gateway.delete(Ref("Pod", self.pod, NAMESPACE)))


ON_NODE = {"nodeSelector": {"kubernetes.io/hostname": NODE}}


def fails(code: str, message: str, **more: object) -> Scene:
    """Devices cannot be got ready on the node, and the driver says why in these words."""
    broken = {"node": NODE, "driver": DRIVER, "message": message, **more}
    return Scene(code, broken=("prepare-fails", broken), spec=ON_NODE)


SCENES = [
    Scene("IN_USE_UNTIL_PODS_END", then=Stage.release),
    Scene("DELETED_OUTSIDE", pod=False, then=Stage.delete_object),
    Scene("SCHEDULING_GATED", spec={"schedulingGates": [{"name": "example.com/queue"}]}),
    Scene("NODE_NOT_SELECTED", spec={"nodeSelector": {"helios.example/pool": "base"}}),
    Scene("NOT_SCHEDULED_YET", broken=("scheduler-down", {})),
    Scene("CLAIM_NOT_GENERATED", broken=("controller-manager-down", {})),
    fails("PREPARE_FAILED", "the moon is in the wrong quarter"),
    fails("PREPARE_CONFIG_REFUSED", 'error decoding config: unknown field "sharng"'),
    fails("PREPARE_DEVICE_FAULT", "getting device handle from UUID: Not Found"),
    fails("PREPARE_ALREADY_IN_USE", "requested device x is already allocated to different claim y"),
    fails("PREPARE_CALL_FAILED", "driver is shutting down", rpc=True),
    Scene(
        "PREPARE_DRIVER_UNREACHABLE",
        broken=("driver-down", {"node": NODE, "driver": DRIVER}),
        spec=ON_NODE,
    ),
]
#: Of these a person has to hear: the bell rings.
RUNG = frozenset(
    {
        "NODE_NOT_SELECTED",
        "PREPARE_ALREADY_IN_USE",
        "PREPARE_CONFIG_REFUSED",
        "PREPARE_DEVICE_FAULT",
        "PREPARE_FAILED",
    }
)


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.code)
def test_the_code_is_on_the_page_with_the_way_to_its_runbook(
    demo: Demo, sign_in: SignIn, scene: Scene
) -> None:
    story = Story(demo, SCENES.index(scene), 0)
    page = sign_in("avocet", width=1024)
    with _broken(demo, scene):
        stage = _set(demo, story, scene)
        try:
            page.goto(f"{TIDEWATER}/claims/{stage.made['id']}/")
            if scene.then is not None:
                if scene.pod:
                    expect(page.locator("#verdict")).to_contain_text(
                        "Running", timeout=SHOWN_WITHIN
                    )
                scene.then(stage)
            code = page.locator(f'code.code:text-is("{scene.code}")').first
            expect(code).to_be_visible(timeout=SHOWN_WITHIN)
            expect(page.get_by_role("link", name=f"What to do about {scene.code}")).to_be_visible()
            answer = patiently(f"{story.claims}/{stage.made['id']}", story.token)[1]
            assert answer["code"] == scene.code
            told = story.count("told")
            counted = f'berth_claims{{code="{scene.code}",state="{answer["state"]}"}}'
            over = answer["state"] == "released"
            assert over or any(line.startswith(counted) for line in told["metrics"]), counted
            rung = [f"claim {stage.made['id']}", scene.code] in told["alerts"]
            assert rung or scene.code not in RUNG
        finally:
            stage.end_pod()
            stage.release()
    page.goto(f"/help/codes/{scene.code}/")
    expect(page.get_by_role("heading", name="What to do")).to_be_visible()


def _set(demo: Demo, story: Story, scene: Scene) -> Stage:
    name = f"picture-{scene.code.lower().replace('_', '-')}"[:40]
    body = {
        "template": "gpu",
        "namespace": NAMESPACE,
        "name": name,
        "values": {"memory": "10"},
    }
    status, made = patiently(story.claims, story.token, body)
    assert status == 201, made
    stage = Stage(demo, story, dict(made), f"pod-{made['id']}")
    uses = "resourceClaimName" if made["kind"] == "ResourceClaim" else "resourceClaimTemplateName"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": stage.pod, "namespace": NAMESPACE},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": "main",
                    "image": "example/train",
                    "resources": {"claims": [{"name": "devices"}]},
                }
            ],
            "resourceClaims": [{"name": "devices", uses: made["object_name"]}],
            **scene.spec,
        },
    }
    if scene.pod:
        persist(lambda: demo.gateway.create(pod))
    return stage


def _broken(demo: Demo, scene: Scene) -> AbstractContextManager[None]:
    return _fault(demo, *scene.broken) if scene.broken else nullcontext()


@contextmanager
def _fault(demo: Demo, name: str, arguments: dict[str, object]) -> Iterator[None]:
    fault = TABLE[name]

    def do(*, mend: bool) -> None:
        known = fault.options(mend=mend)
        kept = {key: value for key, value in arguments.items() if key in known}
        if fault.of_fleet:
            letters = mailbox(demo.plane.folder)
            letters.ask("fault", fault=name, mend=mend, arguments=kept)
        else:
            fault.do(demo.plane, mend=mend, arguments=kept)

    do(mend=False)
    try:
        yield
    finally:
        do(mend=True)

"""Proofs by Pods of Berth's own: the one that must not be placed, and the one that must run."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from devices.dra.conversion import canary_proves, canary_started, taint_holds
from devices.dra.ownership import Owner
from tests.devices.dra.conversion.scene import (
    NOW,
    PLACE,
    RESOURCE,
    Obj,
    Scene,
    a_claim,
    a_node,
    a_pod,
    a_slice,
    ago,
    scene,
    told,
)

TAINT = "berth.dev/quiescing"
CLOSED = a_node(taints=[f"{TAINT}:NoSchedule"])
KEPT_OFF = "0/1 nodes are available: 1 node(s) had untolerated taint(s)."
TRIAL = ("team", "trial")


def a_trial(said: str = KEPT_OFF, **options: Any) -> Obj:
    return a_pod("trial", **{"node": "", "pinned": True, "unplaced": said, **options})


@pytest.mark.parametrize(
    "objects, verdict, why",
    [
        pytest.param(
            [CLOSED, a_trial()],
            "proved",
            "team/trial is kept off the node by its taints",
            id="the scheduler says so",
        ),
        pytest.param(
            [a_node(), a_trial()],
            "not yet",
            f"node n has no taint {TAINT}",
            id="the taint is not there",
        ),
        pytest.param(
            [a_node(taints=[f"{TAINT}:PreferNoSchedule"]), a_trial()],
            "not yet",
            f"node n has no taint {TAINT}",
            id="a taint that only asks",
        ),
        pytest.param(
            [CLOSED],
            "not yet",
            "the node has the taint, and nobody has tried it",
            id="the taint stands there, and the scheduler may not know",
        ),
        pytest.param(
            [CLOSED, a_trial("")],
            "not yet",
            "the scheduler has not looked at team/trial",
            id="the scheduler has said nothing",
        ),
        pytest.param(
            [CLOSED, a_trial("0/1 nodes are available: 1 Insufficient cpu.")],
            "not yet",
            "team/trial waits for another reason: 0/1 nodes are available: 1 Insufficient cpu.",
            id="it waits for something else",
        ),
        pytest.param(
            [CLOSED, a_trial(pinned=False)],
            "not known",
            "team/trial may run on other nodes too, so that it waits tells nothing",
            id="other nodes may be the ones with taints",
        ),
        pytest.param(
            [CLOSED, a_trial(node="n", unplaced="")],
            "not yet",
            "team/trial was placed before the scheduler knew of the taint: try another",
            id="the scheduler was quicker",
        ),
        pytest.param(
            [
                a_node(
                    taints=[f"{TAINT}:NoSchedule", "node.kubernetes.io/unreachable:NoExecute"],
                ),
                a_trial(),
            ],
            "not known",
            "team/trial is kept off by other taints as well",
            id="another taint may be the one",
        ),
        pytest.param(
            [
                a_node(
                    taints=[f"{TAINT}:NoSchedule", "vendor/maintenance:NoSchedule"],
                ),
                a_trial(tolerates=["vendor/maintenance"]),
            ],
            "proved",
            "team/trial is kept off the node by its taints",
            id="it tolerates every other taint",
        ),
        pytest.param(
            [CLOSED, a_trial(tolerates=[TAINT])],
            "not known",
            "team/trial tolerates the taint that it is to try",
            id="it would be let in",
        ),
    ],
)
def test_a_taint_holds(objects: list[Obj], verdict: str, why: str) -> None:
    look = scene(*objects).look
    assert told(taint_holds(PLACE, look, NOW, taint=TAINT, trial=TRIAL)) == (verdict, why)


def test_a_pod_may_be_pinned_by_the_node_s_name() -> None:
    trial = a_trial(pinned=False)
    fields = [{"key": "metadata.name", "operator": "In", "values": ["n"]}]
    trial["spec"]["affinity"] = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchFields": fields}]
            }
        }
    }
    assert taint_holds(PLACE, scene(CLOSED, trial).look, NOW, taint=TAINT, trial=TRIAL).proved


def test_without_pods_no_taint_is_tried() -> None:
    deaf = Scene((CLOSED,), missing=("Pod",)).look
    found = taint_holds(PLACE, deaf, NOW, taint=TAINT, trial=TRIAL)
    assert told(found) == ("not known", "no list of Pods was heard")


CANARY = ("team", "canary")
SINCE = ago(minutes=1)
ONE = {RESOURCE: "1"}
WAITS = "endpoint not found in cache for a registered resource: " + RESOURCE


def a_canary(**options: Any) -> Obj:
    return a_pod("canary", **{"limits": ONE, "started": ago(seconds=20), **options})


@pytest.mark.parametrize(
    "pod, verdict, why",
    [
        pytest.param(a_canary(), "proved", "team/canary runs", id="it runs"),
        pytest.param(
            a_canary(started=ago(minutes=2)),
            "not known",
            "team/canary started too early to tell: make another",
            id="it started within the five minutes",
        ),
        pytest.param(
            a_canary(waiting=("ContainerCreating", ""), phase="Pending"),
            "not yet",
            "team/canary does not run: ContainerCreating",
            id="it starts",
        ),
        pytest.param(
            a_canary(waiting=("CreateContainerConfigError", WAITS), phase="Pending"),
            "refuted",
            f"team/canary is caught: the kubelet remembers {RESOURCE}",
            id="the trap",
        ),
        pytest.param(
            a_canary(node="", phase="Pending", unplaced="0/1 nodes are available"),
            "not yet",
            "team/canary is not placed: 0/1 nodes are available",
            id="it has no node",
        ),
        pytest.param(a_canary(node="m"), "refuted", "team/canary runs on m", id="another node"),
        pytest.param(
            a_canary(phase="Failed"),
            "refuted",
            "team/canary has ended: Failed",
            id="it was refused",
        ),
        pytest.param(
            a_canary(deleted=True),
            "refuted",
            "team/canary has ended: Running",
            id="somebody deletes it",
        ),
        pytest.param(
            a_pod("other"), "not known", "there is no such Pod: team/canary", id="it is not there"
        ),
    ],
)
def test_a_canary_has_started(pod: Obj, verdict: str, why: str) -> None:
    look = scene(pod).look
    assert told(canary_started(PLACE, look, NOW, canary=CANARY, since=SINCE)) == (verdict, why)


BY_DRIVER = a_canary(extended="canary-extended")
ITS_CLAIM = a_claim("canary-extended")


@pytest.mark.parametrize(
    "objects, by_driver, by_plugin",
    [
        pytest.param(
            [BY_DRIVER, ITS_CLAIM, a_slice()],
            ("proved", "team/canary runs with a device of the driver"),
            ("refuted", "team/canary got its device from the driver"),
            id="a claim of its own in this node's pool",
        ),
        pytest.param(
            [a_canary(devices=["gpu-1"])],
            ("refuted", "team/canary got its device from the plugin"),
            ("proved", "team/canary runs with a device of the plugin"),
            id="a device that the kubelet names",
        ),
        pytest.param(
            [a_canary()],
            ("refuted", "team/canary got its device from the plugin"),
            ("not yet", "the kubelet names no device of team/canary yet"),
            id="no device is named yet",
        ),
        pytest.param(
            [BY_DRIVER, a_slice()],
            ("not known", "the claim of team/canary was not seen"),
            ("refuted", "team/canary got its device from the driver"),
            id="its claim was not seen",
        ),
        pytest.param(
            [BY_DRIVER, a_claim("canary-extended", pool="m"), a_slice(), a_slice(node="m")],
            ("refuted", "team/canary got devices of another driver or node"),
            ("refuted", "team/canary got its device from the driver"),
            id="a device of another pool",
        ),
        pytest.param(
            [a_canary(limits={})],
            ("not known", f"team/canary does not ask for {RESOURCE}"),
            ("not known", f"team/canary does not ask for {RESOURCE}"),
            id="it asks for nothing",
        ),
    ],
)
def test_a_canary_proves_a_path(
    objects: list[Obj], by_driver: tuple[str, str], by_plugin: tuple[str, str]
) -> None:
    look = scene(*objects).look

    def asked(path: Owner, since: datetime = SINCE) -> tuple[str, str]:
        return told(canary_proves(PLACE, look, NOW, canary=CANARY, since=since, path=path))

    assert (asked(Owner.DRA), asked(Owner.PLUGIN)) == (by_driver, by_plugin)
    assert asked(Owner.DRA, NOW)[0] != "proved", "what started earlier proves nothing"


def test_the_wrong_path_and_the_trap_have_names() -> None:
    caught = a_canary(waiting=("CreateContainerConfigError", WAITS), phase="Pending")
    for pod, name in ((a_canary(), "OWNER_CONFLICT"), (caught, "KUBELET_TRAP")):
        found = canary_proves(
            PLACE, scene(pod).look, NOW, canary=CANARY, since=SINCE, path=Owner.DRA
        )
        assert str(found.code) == name


def test_a_pod_has_one_of_two_paths() -> None:
    with pytest.raises(ValueError, match="no path"):
        canary_proves(PLACE, scene().look, NOW, canary=CANARY, since=SINCE, path=Owner.CONFLICT)

"""A Pod's life on a simulated node, on the real API server, scheduler and controllers."""

from __future__ import annotations

import time

import pytest

from playground.faults.table import broken
from playground.fleet.fleet import Fleet
from tests.playground.conftest import Ground, a_claim, a_pod, condition

GPU = "gpu.helios.example"
PREPARE = "FailedPrepareDynamicResources"


def test_a_pod_with_a_claim_from_a_template_is_ready_and_names_its_device(ground: Ground) -> None:
    ground.make(a_claim("one", template=True), a_pod("work", template="one"))
    pod = ground.ready("work")
    claim = pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    (result,) = ground.results(claim)
    assert result["driver"] == GPU and result["pool"] == pod["spec"]["nodeName"]
    (container,) = pod["status"]["containerStatuses"]
    uid = (ground.get("ResourceClaim", claim) or {})["metadata"]["uid"]
    assert container["allocatedResourcesStatus"] == [
        {
            "name": "claim:gpu",
            "resources": [
                {"resourceID": f"{GPU}/device={uid}-{result['device']}", "health": "Healthy"}
            ],
        }
    ]
    assert [reason for reason, _ in ground.events("work") if reason != "FailedScheduling"] == [
        "Scheduled",
        "Pulled",
        "Created",
        "Started",
    ]
    ground.delete("Pod", "work")
    ground.gone("Pod", "work")
    ground.gone("ResourceClaim", claim)
    assert not ground.fleet.kubelets[pod["spec"]["nodeName"]].claims.in_use()


def test_the_driver_tells_the_device_s_state_in_the_claim(ground: Ground) -> None:
    ground.make(a_claim("c"), a_pod("work", claim="c"))
    ground.ready("work")
    (told,) = (ground.get("ResourceClaim", "c") or {})["status"]["devices"]
    assert (told["driver"], told["conditions"][0]["type"]) == (GPU, "Ready")


def test_two_pods_share_a_claim_and_the_last_one_gives_it_back(ground: Ground) -> None:
    ground.make(a_claim("c"), a_pod("first", claim="c"), a_pod("second", claim="c"))
    node = ground.ready("first")["spec"]["nodeName"]
    assert ground.ready("second")["spec"]["nodeName"] == node
    kubelet = ground.fleet.kubelets[node]
    ground.delete("Pod", "first")
    ground.gone("Pod", "first")
    assert kubelet.claims.in_use() == {GPU: 1}
    ground.delete("Pod", "second")
    ground.gone("Pod", "second")
    ground.wait("nothing prepared", lambda: not kubelet.claims.in_use())


def test_a_pod_that_is_deleted_ends_in_its_own_time(ground: Ground) -> None:
    ground.make(a_pod("slow", annotations={"playground.berth.dev/stop-after": "1s"}))
    ground.ready("slow")
    began = time.monotonic()
    ground.delete("Pod", "slow")
    assert ground.pod("slow")["metadata"]["deletionTimestamp"]
    ground.gone("Pod", "slow")
    assert time.monotonic() - began >= 0.9
    assert ground.said("slow", "Killing") == "Stopping container main"


def test_a_pod_that_is_deleted_by_force_is_gone_at_once_and_cleaned_up_later(
    ground: Ground,
) -> None:
    ground.make(a_claim("c"), a_pod("work", claim="c", annotations=slow_end(60)))
    node = ground.ready("work")["spec"]["nodeName"]
    ground.delete("Pod", "work", grace_seconds=0)
    assert ground.get("Pod", "work") is None
    claims = ground.fleet.kubelets[node].claims
    ground.wait("unprepared after the fact", lambda: not claims.in_use())


@pytest.mark.parametrize(
    "annotations, spec, phase, reason",
    [
        pytest.param({"run-for": "0.2"}, {}, "Succeeded", "", id="ends well"),
        pytest.param({"run-for": "0.2", "exit-code": "3"}, {}, "Failed", "", id="ends badly"),
        pytest.param({}, {"command": ["sleep", "1"]}, "Succeeded", "", id="sleeps as it is told"),
        pytest.param(
            {}, {"activeDeadlineSeconds": 1}, "Failed", "DeadlineExceeded", id="is out of time"
        ),
    ],
)
def test_a_pod_that_ends_by_itself_gives_its_device_back(
    ground: Ground,
    annotations: dict[str, str],
    spec: dict[str, object],
    phase: str,
    reason: str,
) -> None:
    pod = a_pod(
        "job",
        claim="c",
        annotations={f"playground.berth.dev/{key}": value for key, value in annotations.items()},
        restartPolicy="Never",
    )
    if "command" in spec:
        pod["spec"]["containers"][0] |= spec
    else:
        pod["spec"] |= spec
    ground.make(a_claim("c"), pod)
    ground.wait(phase, lambda: ground.pod("job")["status"]["phase"] == phase)
    assert ground.pod("job")["status"].get("reason", "") == reason
    ground.wait("the claim free", lambda: not ground.results("c"))


def test_a_container_that_fails_is_started_again_with_growing_pauses(ground: Ground) -> None:
    annotations = {
        "playground.berth.dev/run-for": "0.1",
        "playground.berth.dev/exit-code": "1",
    }
    ground.make(a_pod("crash", annotations=annotations))

    def restarts() -> int:
        statuses = ground.pod("crash")["status"].get("containerStatuses", ())
        return sum(one["restartCount"] for one in statuses)

    ground.wait("two restarts", lambda: restarts() >= 2)
    words = "Back-off restarting failed container main in pod crash"
    assert ground.said("crash", "BackOff") == words
    assert ground.pod("crash")["status"]["phase"] == "Running"


# Preparing


@pytest.mark.parametrize(
    "how, text",
    [
        pytest.param(
            {"message": "device is on fire"},
            "NodePrepareResources failed for ResourceClaim c: device is on fire",
            id="the driver refuses the claim",
        ),
        pytest.param(
            {"message": "broken", "rpc": True},
            "NodePrepareResources: rpc error: code = Unknown desc ="
            " prepare resource claims: broken",
            id="the call fails",
        ),
        pytest.param(
            {"hang": True},
            "NodePrepareResources: rpc error: code = DeadlineExceeded"
            " desc = context deadline exceeded",
            id="the driver does not answer",
        ),
    ],
)
def test_a_failing_prepare_is_told_in_the_kubelet_s_words_and_tried_again(
    ground: Ground, how: dict[str, object], text: str
) -> None:
    with broken(ground.fleet, "prepare-fails", node="gpu-1", driver=GPU, **how):
        ground.make(a_claim("c"), a_pod("work", claim="c", node="gpu-1"))
        said = ground.wait("the event", lambda: ground.said("work", PREPARE))
        assert said == f"Failed to prepare dynamic resources: prepare dynamic resources: {text}"
        pod = ground.pod("work")
        assert pod["status"]["phase"] == "Pending"
        assert condition(pod, "PodScheduled") == "True"
        assert condition(pod, "PodReadyToStartContainers") == "False"
        (container,) = pod["status"]["containerStatuses"]
        assert container["state"] == {"waiting": {"reason": "ContainerCreating"}}
    ground.ready("work")


def test_a_prepare_that_fails_twice_succeeds_the_third_time(ground: Ground) -> None:
    with broken(ground.fleet, "prepare-fails", node="gpu-1", driver=GPU, times=2):
        ground.make(a_claim("c"), a_pod("work", claim="c", node="gpu-1"))
        ground.ready("work")
    fields = f"involvedObject.name=work,reason={PREPARE}"
    (event,) = ground.admin.list("Event", namespace=ground.namespace, fields=fields).items
    assert event["count"] == 2


def test_a_pod_whose_prepare_fails_can_be_deleted(ground: Ground) -> None:
    with broken(ground.fleet, "prepare-fails", node="gpu-1", driver=GPU):
        ground.make(a_claim("c"), a_pod("work", claim="c", node="gpu-1"))
        ground.wait("the event", lambda: ground.said("work", PREPARE))
        ground.delete("Pod", "work")
        ground.gone("Pod", "work")


def test_a_pod_that_went_round_the_scheduler_may_not_use_the_claim(ground: Ground) -> None:
    ground.make(a_claim("c"), a_pod("work", claim="c", bound="gpu-1"))
    said = ground.wait("the event", lambda: ground.said("work", PREPARE))
    uid = ground.pod("work")["metadata"]["uid"]
    assert f"pod work ({uid}) is not allowed to use ResourceClaim c" in said


def test_unpreparing_that_fails_keeps_the_pod_terminating(ground: Ground) -> None:
    ground.make(a_claim("c"), a_pod("work", claim="c", node="gpu-1"))
    ground.ready("work")
    with broken(ground.fleet, "unprepare-fails", node="gpu-1", driver=GPU):
        ground.delete("Pod", "work")
        ended = lambda: "terminated" in container_state(ground, "work")  # noqa: E731
        ground.wait("the container ended", ended)
        time.sleep(0.3)
        assert ground.results("c"), "the claim stays allocated as long as the Pod is there"
    ground.gone("Pod", "work")


# Nodes


def test_a_node_without_heartbeats_is_lost_and_found_again(ground: Ground) -> None:
    ground.make(a_pod("work", node="base"))
    ground.ready("work")
    with broken(ground.fleet, "kubelet-down", node="base"):
        ready = lambda: condition(ground.node("base"), "Ready")  # noqa: E731
        ground.wait("NotReady", lambda: ready() == "Unknown", seconds=40)
        ground.wait("the Pod not Ready", lambda: condition(ground.pod("work"), "Ready") == "False")
        assert ground.pod("work")["status"]["phase"] == "Running"
        reasons = {one["reason"] for one in ground.node("base")["status"]["conditions"]}
        assert "NodeStatusUnknown" in reasons
    ground.wait("Ready again", lambda: ready() == "True")
    pod = ground.ready("work")
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0


def test_a_kubelet_that_restarts_wipes_slices_and_leaves_pods_alone(ground: Ground) -> None:
    ground.make(a_claim("c"), a_pod("work", claim="c", node="gpu-2"))
    before = ground.ready("work")
    old = {one["metadata"]["uid"] for one in ground.slices("gpu-2")}
    with broken(ground.fleet, "kubelet-restart", node="gpu-2"):
        new = lambda: {one["metadata"]["uid"] for one in ground.slices("gpu-2")} - old  # noqa: E731
        ground.wait("slices put back by the driver", lambda: len(new()) == 2)
    after = ground.pod("work")
    assert after["status"]["containerStatuses"] == before["status"]["containerStatuses"]


def test_a_node_that_is_deleted_takes_slices_and_pods_with_it(ground: Ground) -> None:
    ground.make(a_pod("work", node="gpu-2"))
    ground.ready("work")
    uid = ground.node("gpu-2")["metadata"]["uid"]
    with broken(ground.fleet, "node-deleted", node="gpu-2"):
        ground.wait("no slices", lambda: not ground.slices("gpu-2"))
        ground.delete("Pod", "work", grace_seconds=0)
    new = lambda: ground.node("gpu-2").get("metadata", {}).get("uid", uid) != uid  # noqa: E731
    ground.wait("a new node", new)
    ground.wait("slices of the new node", lambda: len(ground.devices("gpu-2")) == 4)


# Starting over


def test_a_fleet_that_starts_again_finds_everything_as_it_left_it(
    ground: Ground, fleet: Fleet
) -> None:
    ground.make(a_claim("c"), a_pod("work", claim="c", node="gpu-1"), a_pod("plain"))
    before = [ground.ready(name) for name in ("work", "plain")]
    slices = versions(ground)
    fleet.stop()
    again = Fleet(fleet.spec, fleet.plane)
    again.start()
    try:
        agent = lambda: again.agent(GPU, "gpu-1")  # noqa: E731
        ground.wait("the driver registered", agent)
        ground.wait("the claim known", lambda: again.kubelets["gpu-1"].claims.in_use() == {GPU: 1})
        time.sleep(0.5)
        after = [ground.pod(name) for name in ("work", "plain")]
        assert [one["status"] for one in after] == [one["status"] for one in before]
        assert versions(ground) == slices
        ground.delete("Pod", "work")
        ground.gone("Pod", "work")
    finally:
        again.stop()
        restart(fleet)


def restart(fleet: Fleet) -> None:
    """Sets the run's fleet going again: a fleet starts once, so its insides are made anew."""
    fresh = Fleet(fleet.spec, fleet.plane)
    fleet.__dict__.update(fresh.__dict__)
    fleet.start()


def versions(ground: Ground) -> list[str]:
    return sorted(one["metadata"]["resourceVersion"] for one in ground.slices("gpu-1"))


def slow_end(seconds: int) -> dict[str, str]:
    return {"playground.berth.dev/stop-after": f"{seconds}s"}


def container_state(ground: Ground, name: str) -> dict[str, object]:
    (container,) = ground.pod(name)["status"]["containerStatuses"]
    return dict(container["state"])

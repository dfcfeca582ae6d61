"""A claim's page: why it waits for this viewer, how long stages took, what the cluster said."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from devices.asks import history
from devices.asks.claimfacts import device_named
from devices.dra.lifecycle import State
from devices.dra.status import Status
from devices.forecasts.forecast import refined
from devices.models import Claim, Observed, StageTimes
from portal.management.demo_templates import TEMPLATES
from tenants.access import Access, tenant_for
from tests.devices.demofleet import fleet_objects, h100, holding, mirror, unbounded
from tests.factories import make_claim, make_person, make_tenant, make_version

pytestmark = pytest.mark.django_db
Obj = dict[str, Any]
WORDS = "0/21 nodes are available: 21 cannot allocate all claims."


@pytest.fixture
def access() -> Access:
    return tenant_for(make_person("avocet", make_tenant()), "tidewater")


@pytest.fixture
def waiting(access: Access, client: Client) -> Claim:
    """A claim for a whole machine, whose Pod waits; the machines are held by others and by us."""
    client.force_login(access.user)
    claim = make_claim(
        access,
        make_version(content=TEMPLATES["gpu"][3]),
        values={"memory": "80-nvlink", "gpus": 8},
        now=timezone.now(),
    )
    mirror(
        [
            *fleet_objects(),
            holding("secret-1", h100(1, *range(8))),
            holding("mine-2", h100(2, *range(8)), namespace="tidewater-train"),
            holding("secret-3", h100(3, *range(4))),
            holding("secret-4", h100(4, *range(4))),
            template_of(claim),
            pod_of(claim),
        ]
    )
    for state in (State.APPLIED, State.PENDING):
        Claim.objects.update(state=state)
    Claim.objects.update(
        code="NO_MATCHING_DEVICE_FREE",
        why=WORDS,
        pods=[{"name": "train-pod", "phase": "Pending", "node": "", "ready": False}],
        looked_at=timezone.now(),
    )
    claim.refresh_from_db()
    return claim


def template_of(claim: Claim) -> Obj:
    from devices.dra.objects import claim_objects

    (obj,) = claim_objects(claim.wish())
    return dict(obj)


def pod_of(claim: Claim, **status: Any) -> Obj:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": WORDS,
        "lastTransitionTime": "2026-11-02T12:00:00Z",
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "train-pod",
            "namespace": "tidewater-train",
            "uid": "pod-1",
            "creationTimestamp": "2026-11-02T12:00:00Z",
            "labels": {"berth.dev/claim": claim.public_id},
        },
        "spec": {
            "containers": [{"name": "main", "resources": {"claims": [{"name": "devices"}]}}],
            "resourceClaims": [{"name": "devices", "resourceClaimTemplateName": claim.object_name}],
        },
        "status": {"phase": "Pending", "conditions": [condition], **status},
    }


def page(client: Client, claim: Claim) -> str:
    answer = client.get(f"/t/tidewater/claims/{claim.public_id}/")
    assert answer.status_code == 200
    return answer.text


def test_a_pending_claim_says_why_whose_job_and_what_would_unblock_it(
    client: Client, waiting: Claim
) -> None:
    text = page(client, waiting)
    assert "8 are free, at most 4 of them on one node; 8 are asked for." in text
    assert "NOT_ENOUGH_ON_ONE_NODE" in text and "Nobody has to act" in text
    assert "What would unblock it" in text and "You release mine-2" in text
    assert "4 instead of 8 GPUs per Pod" in text
    assert WORDS in text, "the cluster's own words are the evidence"
    assert "secret" not in text and "basalt" not in text


@pytest.mark.parametrize(
    ("values", "code"),
    [
        pytest.param({"memory": "80-nvlink", "gpus": 8}, "NOT_ENOUGH_ON_ONE_NODE", id="taken"),
        pytest.param({"memory": "80", "gpus": 5}, "MORE_THAN_ANY_NODE_HAS", id="never"),
        pytest.param({"memory": "10", "gpus": 1}, "NO_MATCHING_DEVICE_FREE", id="fits by now"),
    ],
)
def test_a_turn_records_what_the_schedulers_words_mean(
    access: Access, waiting: Claim, values: dict[str, Any], code: str
) -> None:
    version = make_version("any-number", unbounded(TEMPLATES["gpu"][3]))
    claim = make_claim(access, version, values=values, name="another")
    status = Status(State.PENDING, "NO_MATCHING_DEVICE_FREE", WORDS)
    assert refined(claim, status) == code
    assert refined(claim, Status(State.PENDING, "SCHEDULING_GATED", "")) == "SCHEDULING_GATED"


def test_a_pod_that_its_own_wishes_keep_away_is_told_so(client: Client, waiting: Claim) -> None:
    Claim.objects.update(values={"memory": "80-nvlink", "gpus": 4})
    pod = pod_of(waiting)
    pod["spec"]["nodeSelector"] = {"helios.example/pool": "base"}
    template = template_of(waiting)
    template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] = 4
    mirror([template, pod], version="2")
    text = page(client, waiting)
    assert "Devices are free on 2 nodes, but the Pod cannot go there." in text
    assert "Your job" in text or "NODE_NOT_SELECTED" in text


def test_stage_times_are_shown_against_the_usual_of_the_same_classes(
    client: Client, waiting: Claim
) -> None:
    assert "How long it took" not in page(client, waiting), "no Pod, no times"
    times(waiting, 3)
    assert "too few to say" in page(client, waiting)
    times(waiting, 3, first=3)
    text = page(client, waiting)
    assert "of 6 Pods in 30 days" in text and "Against the usual" in text
    assert "usually 2 s" in text, "the wait beside the reason"


def times(claim: Claim, number: int, first: int = 0) -> None:
    now = timezone.now()
    for index in range(first, first + number):
        made = now - timedelta(minutes=10 + index)
        StageTimes.objects.create(
            claim=claim,
            tenant=claim.tenant,
            pod_uid=f"uid-{index}",
            pod=f"pod-{index}",
            classes=history.classes_of(claim),
            created_at=made,
            generated_at=made + timedelta(seconds=1),
            allocated_at=made + timedelta(seconds=2),
            bound_at=made + timedelta(seconds=3),
            prepared_at=made + timedelta(seconds=9),
            running_at=made + timedelta(seconds=10),
            observed=["prepared_at"],
        )


def test_usual_waits_by_class_count_what_they_say() -> None:
    access = tenant_for(make_person("avocet", make_tenant()), "tidewater")
    claim = make_claim(access, make_version())
    now = timezone.now()
    times(claim, 4)
    assert history.usual_waits(now) == {"gpu": history.Usual(4)}
    times(claim, 1, first=4)
    assert history.usual_waits(now) == {"gpu": history.Usual(5, 2.0, 2.0)}
    assert history.usual_times(["gpu"], now)["prepared"] == history.Usual(5, 6.0, 6.0)
    assert history.usual_times(["gpu", "nic"], now)["wait"] == history.Usual(0)
    assert history.forget(now + timedelta(days=91)) == 5


def test_events_are_shown_after_the_cluster_forgot_them(client: Client, waiting: Claim) -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "tidewater-train", "uid": "event-1"},
        "involvedObject": {"kind": "Pod", "name": "train-pod", "uid": "pod-1"},
        "reason": "FailedScheduling",
        "message": "<b>no</b> devices",
        "type": "Warning",
        "count": 14,
        "lastTimestamp": "2026-11-02T12:30:00Z",
    }
    mirror([event])
    Observed.objects.filter(kind="Event").update(gone_at=timezone.now())
    text = page(client, waiting)
    assert "FailedScheduling" in text and "14 times" in text
    assert "forgotten by the cluster" in text
    assert "<b>no</b>" not in text, "what the cluster says is text"


def test_devices_show_health_and_who_shares_as_far_as_the_viewer_may_know(
    client: Client, waiting: Claim
) -> None:
    device = {"driver": "cpu.numa.example", "pool": "cpu-f01", "device": "numa0"}
    placed = {**device, "claim": "mine", "request": "cores", "node": "cpu-f01"}

    def share(name: str, namespace: str) -> Obj:
        obj = holding(
            name,
            [tuple(device.values())],
            namespace=namespace,
            device_class="cpu-numa",  # type: ignore[list-item]
        )
        result = obj["status"]["allocation"]["devices"]["results"][0]
        result["shareID"] = f"00000000-0000-0000-0000-{abs(hash(name)) % 10**12:012}"
        return obj

    status = {
        "phase": "Running",
        "containerStatuses": [
            {
                "name": "main",
                "allocatedResourcesStatus": [
                    {
                        "name": "claim:devices",
                        "resources": [
                            {
                                "resourceID": "cpu.numa.example/cpu-f01/numa0",
                                "health": "Unhealthy",
                                "message": "too hot",
                            }
                        ],
                    }
                ],
            }
        ],
    }
    mirror(
        [
            share("mine", "tidewater-train"),
            share("also-mine", "tidewater-train"),
            share("secret", "basalt-pipelines"),
            pod_of(waiting, **status),
        ],
        version="3",
    )
    for state in (State.ALLOCATED, State.IN_USE):
        Claim.objects.update(state=state)
    Claim.objects.update(placed=[placed], code="")
    text = page(client, waiting)
    assert "Unhealthy" in text and "too hot" in text
    assert "also-mine" in text and "1 claim of other tenants" in text
    assert "secret" not in text


@pytest.mark.parametrize(
    ("resource", "device"),
    [
        pytest.param("gpu.example/node/gpu-1", "gpu-1", id="driver, pool and device"),
        pytest.param("gpu.example/device=4f2a-gpu-1", "gpu-1", id="a CDI id with the claim"),
        pytest.param("nvidia.com/gpu=gpu-11", "gpu-11", id="a CDI id that is the name"),
        pytest.param("x/y=7-mig-gpu-1", "mig-gpu-1", id="the longest name counts"),
        pytest.param("x/y=4f2a", None, id="a CDI id that names no device is not guessed"),
    ],
)
def test_whose_health_the_kubelet_tells(resource: str, device: str | None) -> None:
    keys = [("gpu.example", "node", name) for name in ("gpu-1", "gpu-11", "mig-gpu-1")]
    found = device_named(resource, keys)
    assert (found and found[2]) == device


def test_the_page_costs_a_constant_number_of_queries(client: Client, waiting: Claim) -> None:
    page(client, waiting)
    with CaptureQueriesContext(connection) as few:
        page(client, waiting)
    times(waiting, 40)
    with CaptureQueriesContext(connection) as more:
        page(client, waiting)
    assert len(few) <= len(more) <= len(few) + 1


def test_how_allocation_works_names_the_viewers_own_objects(client: Client, waiting: Claim) -> None:
    address = "/t/tidewater/how-allocation-works/"
    text = client.get(f"{address}?claim={waiting.public_id}").text
    assert waiting.object_name[:20] in text and "h100-80gb" in text
    assert "not allocated" in text.lower() or "No Pod uses it yet" in text
    placed = {
        "driver": "gpu.helios.example",
        "pool": "h100-a01",
        "device": "gpu-0",
        "claim": "c",
        "request": "gpu",
        "node": "h100-a01",
    }
    Claim.objects.update(placed=[placed])
    text = client.get(address).text
    assert "generation 1" in text and "8 devices" in text
    other = make_tenant("basalt", namespaces=("basalt-x",))
    client.force_login(make_person("sorrel", other))
    foreign = client.get(f"/t/basalt/how-allocation-works/?claim={waiting.public_id}")
    assert foreign.status_code == 200 and waiting.object_name[:20] not in foreign.text
    assert client.get(address).status_code == 404


def test_an_open_page_keeps_how_to_share_when_the_claim_takes_another_path(
    client: Client, waiting: Claim
) -> None:
    address = f"/t/tidewater/claims/{waiting.public_id}/"
    fragment = client.get(f"{address}?path=plugin", headers={"HX-Request": "true"}).content.decode()
    assert 'id="use-h">Use it' in fragment, "what to paste is another thing now"
    assert 'id="share-h">Share it' in fragment
    assert f'id="share-address">http://testserver{address}<' in fragment
    unchanged = client.get(f"{address}?path=claim", headers={"HX-Request": "true"})
    assert "share-h" not in unchanged.content.decode(), "an open tab there is left alone"

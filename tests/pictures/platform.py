"""Scenes of what scans of the whole cluster find: leaks, owners, drift, ledgers, sick places."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from typing import Any

from django.utils import timezone

from devices.dra.snapshot import Snapshot, read
from devices.fleet import driftbook, isolation, leakboard, ownershipbook
from devices.fleet.inventory import adopt, record_now
from devices.fleet.isolationwishes import wish
from devices.fleet.nodepools import define
from devices.ledger import book
from devices.models import ClusterState, Isolation, LeakRow, Sync
from portal.alerts.models import Alert
from portal.approvals.models import Approval
from tenants.access import PlatformAccess
from tenants.models import PlatformRole
from tests.devices import test_isolation as sickness
from tests.devices.demofleet import fleet_objects, h100, holding
from tests.devices.dra.cases import by_number, snapshot
from tests.devices.ledger.clusters import Cluster
from tests.devices.test_nodepools import WISH, labelled
from tests.devices.test_ownershipbook import a_node, a_slice
from tests.factories import make_person, make_tenant
from tests.pictures.stage import Obj, Shown, of_platform

Scene = Callable[[], Shown]
MINUTE = timedelta(minutes=1)


def rung(code: str, role: str = "operator") -> Shown:
    """The page of the alert with this code: it leads to the page that it is about."""
    return of_platform(f"/alerts/{Alert.objects.get(code=code).public_id}/", role)


def operator() -> PlatformAccess:
    user = make_person("osk")
    PlatformRole.objects.create(user=user, role="operator")
    return PlatformAccess(user, frozenset({"operator"}))


# --- leaks ---


def leaked(number: str, code: str) -> Shown:
    """A finding on the board, in a case's cluster."""
    return board(snapshot(by_number(number)), code)


def kept_by(phase: str, code: str) -> Shown:
    """A generated claim with a device, reserved for a Pod that ended or (no phase) is gone."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "train-0", "uid": "u0", "controller": True}
    consumer = {"resource": "pods", "name": "train-0", "uid": "u0"}
    claim = holding("train-0-gpu", h100(1, 0), namespace="team-a")
    claim["metadata"]["annotations"] = {"resource.kubernetes.io/pod-claim-name": "gpu"}
    claim["metadata"]["ownerReferences"] = [owner]
    claim["status"]["reservedFor"] = [consumer] if phase else []
    other = {
        "kind": "Pod",
        "metadata": {"name": "train-0" if phase else "train-1", "namespace": "team-a",
                     "uid": "u0" if phase else "u1"},
        "spec": {"nodeName": "h100-a01", "containers": [{"name": "main"}],
                 "resourceClaims": [{"name": "gpu", "resourceClaimName": "train-0-gpu"}]},
        "status": {"phase": phase or "Running"},
    }  # fmt: skip
    return board(read([*fleet_objects(), claim, other]), code)


def board(cluster: Snapshot, code: str) -> Shown:
    make_tenant("tidewater", ("team-a",))
    now = timezone.now()
    leakboard.scan(cluster, now - 9 * MINUTE)
    leakboard.scan(cluster, now)
    row = LeakRow.objects.filter(code=code).order_by("pk")[0]
    return of_platform(f"/platform/leaks/{row.public_id}/")


# --- owners ---


def conflict() -> Shown:
    now = timezone.now()
    cluster = read([a_node("a100-c01", 8), a_slice("a100-c01", 8), a_node("a100-c02", 8)])
    ownershipbook.scan(cluster, now - MINUTE)
    ownershipbook.scan(cluster, now)
    return rung("OWNER_CONFLICT")


# --- drift ---


def nodes(*slices: Obj, plugin: int = 0) -> Snapshot:
    """Two nodes of a pool with these slices; `plugin`: what the plugin offers on the first."""
    return read(
        [
            labelled(a_node("a100-c01", plugin), pool="h100", dra="on"),
            labelled(a_node("a100-c02", 0), pool="h100", dra="on"),
            *slices,
        ]
    )


def cards(node: str, number: int = 8, first: int = 0, **changed: Any) -> Obj:
    """A slice of cards, each with a mark of its own."""
    piece = copy.deepcopy(a_slice(node, number))
    for index, device in enumerate(piece["spec"]["devices"]):
        device["attributes"] = {
            "uuid": {"string": f"GPU-{node}-{first + index}"},
            "productName": {"string": "A100"},
        }
    piece["spec"].update(changed)
    return piece


def two(node: str) -> Obj:
    """A pool of which one slice is missing."""
    piece = cards(node)
    piece["spec"]["pool"]["resourceSliceCount"] = 2
    return piece


def doubled(node: str) -> Obj:
    """A pool in which one name stands twice."""
    piece = cards(node)
    piece["spec"]["devices"][1]["name"] = "gpu-0"
    return piece


def renamed(node: str) -> Obj:
    piece = cards(node)
    piece["spec"]["devices"][7]["name"] = "gpu-8"
    return piece


def shared(node: str) -> Obj:
    """The same cards, which may be shared here alone."""
    piece = cards(node)
    for device in piece["spec"]["devices"]:
        device["allowMultipleAllocations"] = True
    return piece


def drifts(code: str, *slices: Obj, plugin: int = 0, before: int = 0) -> Shown:
    """The page of drift, a while after the nodes changed from what was recorded."""
    now = timezone.now()
    access = operator()
    for kind in ("Node", "ResourceSlice"):
        Sync.objects.create(kind=kind, listed_at=now, alive_at=now)
    by: dict[str, Any] = {"access": access, "request_id": "request-1", "now": now - 20 * MINUTE}
    pool = define("a100", _pool(), **{**by, "snapshot": None})
    first = [] if before else [cards("a100-c01")]
    yesterday = nodes(*first, cards("a100-c02"), plugin=before)
    made = record_now(pool, note="As delivered", snapshot=yesterday, **by)
    Approval.objects.filter(pk=made.approval).update(state="approved")
    assert adopt(made.pk, now=now - 20 * MINUTE)
    cluster = nodes(*slices, plugin=plugin)
    for ago in (10, 8, 6, 4, 2, 0):
        driftbook.scan(cluster, now - ago * MINUTE)
    return of_platform("/platform/drift/")


def _pool() -> Any:
    from dataclasses import replace

    return replace(WISH, name="A100 rack", plugin_sets=(), driver_sets=())


# --- the ledger ---


def ledger(
    *steps: Callable[[Cluster], object],
    start: Callable[[Cluster], object] | None = None,
    first: Callable[[Cluster], object] | None = None,
    address: str = "/platform/ledger/nodes/n1/",
) -> Shown:
    """A node's ledger after looks at a cluster in which these things happened one by one; `start`
    takes the place of the slices, `first` happens before anybody looks.
    """
    made = Cluster()
    made.node("n1", cpu="16", memory="64Gi")
    if start is None:
        made.slices("n1", mapping="2", overhead=("500m", "250m"))
    else:
        start(made)
    made.claim("c1", "n1", 0)
    made.pod("p1", "n1", cpu="1", claims=["c1"], references=2)
    if start is None:
        made.schedule()
    if first is not None:
        first(made)
    now = timezone.now()
    played = (_nothing, *steps, _nothing)
    for number, step in enumerate(played, start=1):
        step(made)
        moment = now - (len(played) - number) * MINUTE
        if number < len(played):
            moment -= book.REBUILDS  # what lasts that long wakes somebody
        book.scan(made.read(), moment, moment)
    return of_platform(address)


def _nothing(made: Cluster) -> None:
    """Only time passes."""


def withdrawn(made: Cluster) -> None:
    made.remove("ResourceSlice", "n1")


def claim_gone(made: Cluster) -> None:
    made.remove("ResourceClaim", "c1")


def crowded(made: Cluster) -> None:
    made.pod("p9", "n1", cpu="20")


def says_less(made: Cluster) -> None:
    status = made._found["Pod", "p1"]["status"]["nodeAllocatableResourceClaimStatuses"][0]
    status["mapping"][0]["quantity"] = "1"


def forgotten(made: Cluster) -> None:
    """The cluster became newer, and what devices cost is in no object any more."""
    ClusterState.objects.update(release="v1.37.2")
    made._found["Pod", "p1"]["status"]["nodeAllocatableResourceClaimStatuses"] = []
    for device in made._found["ResourceSlice", "n1"]["spec"]["devices"]:
        del device["nodeAllocatableResources"]
    for kind, name in (("Pod", "p1"), ("ResourceSlice", "n1")):
        made._found[kind, name]["metadata"]["resourceVersion"] = "99"


def older_release(made: Cluster) -> None:
    ClusterState.objects.create(name="cluster", release="v1.36.3")


def stopped(made: Cluster) -> None:
    """An operator stops the rollout of node-allocatable resources on this node."""
    from devices.dra.ledgerrollout import Phase
    from devices.ledger import rollouts

    now, access = timezone.now(), operator()
    made._found["Node", "n1"]["status"]["declaredFeatures"] = ["DRANodeAllocatableResources"]
    by: dict[str, Any] = {"access": access, "request_id": "request-1", "now": now}
    row = rollouts.start(canaries=["n1"], soak=timedelta(hours=1), **by)
    rollouts.act(row, Phase.STOPPED, why="The canary disagrees", **by)


def second_user(made: Cluster) -> None:
    made.pod("p2", "n1", claims=["c1"])
    made.schedule()


def odd_shape(made: Cluster) -> None:
    made.slices("n1", mapping="2")
    for device in made._found["ResourceSlice", "n1"]["spec"]["devices"]:
        device["nodeAllocatableResources"] = {"cpu": {"byTheHour": {"tide": "2"}}}


def older(made: Cluster) -> None:
    made.slices("n1", mapping="2", overhead=("500m", "250m"), generation=1)


def newer(made: Cluster) -> None:
    made.slices("n1", mapping="2", overhead=("500m", "250m"), generation=2)


def silent(made: Cluster) -> None:
    status = made._found["Node", "n1"]["status"]
    status["conditions"] = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]


# --- sick places ---


def sick() -> Snapshot:
    now = timezone.now()
    for number in range(3):
        sickness.told(f"sick-{number}", now - 5 * MINUTE)
    names = [f"n{number}" for number in range(1, 6)]
    made = [one for name in names for one in (sickness.a_node(name), sickness.a_slice(name))]
    for number in range(3):
        made += sickness.a_user(f"sick-{number}", "n1", number)
    for number in range(8):
        node = names[1 + number % 4]
        made += sickness.a_user(f"well-{number}", node, number // 4, now - MINUTE)
    return read(made)


def proposed() -> Isolation:
    """A place that fails alone, what closing it would touch read already."""
    isolation.scan(sick(), timezone.now())
    told = {"text": "3 pods would be evicted in 1 namespace", "pods": 3, "published": 8,
            "allocated": 3}  # fmt: skip
    Isolation.objects.update(state="tried", dry_run=told, dry_run_at=timezone.now())
    return Isolation.objects.get()


def proposal() -> Shown:
    proposed()
    return rung("ISOLATION_PROPOSED")


def isolated(*, refused: bool = False) -> Shown:
    from devices.fleet import isolationturn

    row = proposed()
    now = timezone.now()
    wish(row, "apply", access=operator(), why="Three failed", request_id="request-2", now=now)
    row.refresh_from_db()
    if refused:
        answer = "It would close 16 of 40 devices; 10 may be closed."
        seen = {"code": "ISOLATION_SHARE_REACHED", "wish": "", "answer": answer}
    else:
        seen = {"state": "applied", "applied_at": now, "applied_by": row.wished_by, "wish": ""}
    isolationturn._record(row, row.lease, row.wished_at, seen, now)
    if refused:
        return of_platform(f"/platform/isolations/{row.public_id}/")
    return rung("DEVICES_ISOLATED")


def drifting(code: str, *slices: Obj, **changed: Any) -> Scene:
    return partial(drifts, code, *slices, **changed)


def _leaks(rows: Iterable[tuple[str, str]]) -> dict[str, Scene]:
    return {code: partial(leaked, number, code) for number, code in rows}


OTHER = cards("a100-c02")
SCENES: dict[str, Scene] = {
    **_leaks(
        [
            ("29", "LEAK_UNRESERVED"),
            ("29", "LEAK_RESERVED_BY_GONE_POD"),
            ("29", "LEAK_FINALIZER"),
            ("42", "LEAK_DEVICE_VANISHED"),
            ("37", "LEAK_DOUBLE_ALLOCATION"),
            ("31", "LEAK_ORPHANED"),
            ("31", "DRIVER_NOT_PUBLISHING"),
            ("33", "CLAIM_PRETENDS_EXTENDED"),
        ]
    ),
    "LEAK_RESERVED_BY_ENDED_POD": partial(kept_by, "Succeeded", "LEAK_RESERVED_BY_ENDED_POD"),
    "LEAK_GENERATED_CLAIM": partial(kept_by, "", "LEAK_GENERATED_CLAIM"),
    "OWNER_CONFLICT": conflict,
    "DRIFT_DEVICES_MISSING": drifting("DRIFT_DEVICES_MISSING", cards("a100-c01", 7), OTHER),
    "DRIFT_DEVICES_TOO_MANY": drifting("DRIFT_DEVICES_TOO_MANY", cards("a100-c01", 9), OTHER),
    "DRIFT_EMPTY_POOL": drifting("DRIFT_EMPTY_POOL", cards("a100-c01", 0), OTHER),
    "DRIFT_DRIVER_NOT_RUNNING": drifting("DRIFT_DRIVER_NOT_RUNNING", OTHER),
    "DRIFT_POOL_INCOMPLETE": drifting("DRIFT_POOL_INCOMPLETE", two("a100-c01"), OTHER),
    "DRIFT_POOL_INVALID": drifting("DRIFT_POOL_INVALID", doubled("a100-c01"), OTHER),
    "DRIFT_IDENTITY_CHANGED": drifting(
        "DRIFT_IDENTITY_CHANGED", cards("a100-c01", first=20), OTHER
    ),
    "DRIFT_RENAMED": drifting("DRIFT_RENAMED", renamed("a100-c01"), OTHER),
    "DRIFT_CONFIGURATION": drifting("DRIFT_CONFIGURATION", shared("a100-c01"), OTHER),
    "DRIFT_ALLOCATABLE_DIFFERS": drifting("DRIFT_ALLOCATABLE_DIFFERS", OTHER, plugin=4, before=8),
    "LEDGER_POD_STATUS_DIFFERS": partial(ledger, says_less),
    "LEDGER_CLAIM_GONE": partial(
        ledger, first=claim_gone, address="/platform/ledger/lines/?pod=ns/p1"
    ),
    "LEDGER_COUNTED_TWICE": partial(ledger, second_user),
    "LEDGER_UNKNOWN_SHAPE": partial(ledger, start=odd_shape),
    "LEDGER_DEVICE_NOT_FOUND": partial(ledger, first=withdrawn),
    "LEDGER_OLDER_VERSION": partial(ledger, newer, older),
    "LEDGER_REBUILDING": partial(ledger, withdrawn),
    "LEDGER_MAPPING_STALE": partial(ledger, silent),
    "LEDGER_SHAPE_LOST": partial(ledger, forgotten, first=older_release),
    "LEDGER_STOPPED": partial(ledger, stopped),
    "LEDGER_OVERCOMMITTED": partial(ledger, crowded),
    "ISOLATION_PROPOSED": proposal,
    "DEVICES_ISOLATED": isolated,
    "ISOLATION_SHARE_REACHED": partial(isolated, refused=True),
}

"""Scenes of asks that Berth itself holds or ends: freezes, doubts, refusals of the API server."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial

from devices.asks import line
from devices.cluster.gateway import Conflict, Forbidden, Rejected, Unreachable
from devices.dra.lifecycle import State
from devices.forecasts.warm import forget
from devices.models import Claim, Freeze, LedgerNode, PoolMark, Sync
from tenants.models import Tenant
from tests.devices.demofleet import mirror
from tests.pictures.stage import DRIVER, NODE, Shown, Stage
from tests.pictures.waiting import ONE

Scene = Callable[[], Shown]


def held(break_it: Callable[[Stage], None]) -> Shown:
    """An ask that is not sent, because of what `break_it` does to the cluster or its rows."""
    stage = Stage(state=State.REQUESTED)
    mirror(stage.fleet)
    break_it(stage)
    forget()
    stage.claim.refresh_from_db()
    kept = line.ground(stage.now).hold(Claim.objects.select_related("tenant").get())
    assert kept is not None
    return stage.record({"state": State.HELD, "code": kept.code, "why": kept.why})


def frozen(stage: Stage) -> None:
    Freeze.objects.create(
        scope=Freeze.Scope.CLASS,
        target="h100-80gb",
        reason="the H100 rack is moved",
        until=stage.now + timedelta(hours=2),
        frozen_by=stage.access.user.person,
        frozen_at=stage.now,
        request_id="request-f",
    )


def closing(stage: Stage) -> None:
    Tenant.objects.update(state=Tenant.State.CLOSING)


def unheard(stage: Stage) -> None:
    Sync.objects.update(alive_at=stage.now - timedelta(minutes=4))


def _pools(stage: Stage) -> set[str]:
    """Slice pools of the H100 machines' GPUs."""
    return {
        one["spec"]["pool"]["name"]
        for one in stage.fleet
        if one["kind"] == "ResourceSlice"
        and one["spec"]["driver"] == DRIVER
        and one["spec"]["pool"]["name"].startswith("h100")
    }


def went_back(stage: Stage) -> None:
    for name in _pools(stage):
        PoolMark.objects.create(
            driver=DRIVER, pool=name, generation=2, slices=[], seen_at=stage.now,
            back_at=stage.now,
        )  # fmt: skip


def unsafe(stage: Stage) -> None:
    for one in stage.fleet:
        if one["kind"] == "ResourceSlice" and "h100" in one["metadata"]["name"]:
            for device in one["spec"]["devices"]:
                cost = {"cpu": {"mapping": {"deviceMultiplier": "2"}}}
                device["nodeAllocatableResources"] = cost
    mirror(stage.fleet, version="2")
    for name in _pools(stage):
        LedgerNode.objects.create(
            node=name, state="unsafe", code="LEDGER_POD_STATUS_DIFFERS", since=stage.now
        )


def answered(error: Exception, *, final: bool = False) -> Shown:
    """The API server's answer to making the object."""
    stage = Stage(state=State.REQUESTED)
    mirror(stage.fleet)
    return stage.fails(error, final=final)  # type: ignore[arg-type]


def place(code: str, why: str) -> Shown:
    """The namespace is not as it has to be."""
    stage = Stage(state=State.REQUESTED)
    mirror(stage.fleet)
    return stage.record({"state": State.HELD, "code": code, "why": why})


def deleted() -> Shown:
    stage = Stage()
    Claim.objects.update(object_uid="own-1")
    stage.claim.refresh_from_db()
    return stage.shows(own=False)


def releasing(*, expired: bool = False) -> Shown:
    """A person released it, or its time was over; a Pod may still use it."""
    stage = Stage(state=State.IN_USE)
    past = stage.now - timedelta(minutes=1)
    Claim.objects.update(
        state=State.RELEASING, released_at=past, object_uid="own-1", expired=expired,
        expires_at=past if expired else None,
    )  # fmt: skip
    stage.claim.refresh_from_db()
    if expired:
        return stage.shows(own=False)
    bound = stage.condition("PodScheduled", "True")
    pod = stage.pod(node=NODE, phase="Running", conditions=[bound])
    return stage.shows(stage.made(devices=ONE), pod)


SCENES: dict[str, Scene] = {
    "FROZEN": partial(held, frozen),
    "TENANT_CLOSING": partial(held, closing),
    "STALE_INVENTORY": partial(held, unheard),
    "GENERATION_WENT_BACK": partial(held, went_back),
    "LEDGER_UNSAFE": partial(held, unsafe),
    "CLUSTER_UNREACHABLE": partial(answered, Unreachable("connection refused")),
    "RIGHTS_MISSING": partial(
        answered,
        Forbidden(
            'resourceclaimtemplates.resource.k8s.io is forbidden: User "system:serviceaccount:'
            'berth-system:berth-worker" cannot create resource "resourceclaimtemplates"',
            status=403,
        ),
    ),
    "REFUSED_BY_CLUSTER": partial(
        answered,
        Rejected(
            "ValidatingAdmissionPolicy 'berth-classes' with binding 'berth-classes' denied"
            " request: h100-80gb is not among the classes of this namespace",
            status=422,
        ),
        final=True,
    ),
    "FIELD_OWNED_BY_OTHERS": partial(
        answered,
        Conflict('Apply failed with 1 conflict: conflict with "argocd": .spec.spec', status=409),
        final=True,
    ),
    "NAMESPACE_MISSING": partial(
        place,
        "NAMESPACE_MISSING",
        "The namespace tidewater-train is being deleted; nothing new can be put into it.",
    ),
    "NAMESPACE_OF_ANOTHER": partial(
        place,
        "NAMESPACE_OF_ANOTHER",
        "The namespace tidewater-train is labelled as another tenant's. Berth does not overrule"
        " that.",
    ),
    "DELETED_OUTSIDE": deleted,
    "IN_USE_UNTIL_PODS_END": releasing,
    "EXPIRED": partial(releasing, expired=True),
}

"""How far a Pod with devices has come: stages, each with the cluster's own time where it has one.

Kubernetes keeps no time for some stages (prepared on some nodes, released never); those stay None
rather than being filled with the time somebody looked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from devices.dra.claims import Claim
from devices.dra.pods import Pod
from devices.dra.podstatus import PodStatus
from devices.dra.reading import moment


class Stage(StrEnum):
    """Stages in their order."""

    CREATED = "created"
    GENERATED = "claim generated"
    ALLOCATED = "allocated"
    BOUND = "bound"
    PREPARED = "prepared"
    RUNNING = "running"
    RELEASED = "released"


ORDER: tuple[Stage, ...] = tuple(Stage)


@dataclass(frozen=True, slots=True)
class Step:
    """One stage that was reached; ``at`` is None where the cluster does not say when."""

    stage: Stage
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """The stages that were reached, in order, without gaps; ``ready`` is when the Pod became
    Ready, which some durations need.
    """

    steps: tuple[Step, ...]
    ready: datetime | None = None

    @property
    def stage(self) -> Stage:
        """The stage that it has reached."""
        return self.steps[-1].stage

    def at(self, stage: Stage) -> datetime | None:
        """When a stage was reached; None where it was not, or where nobody knows."""
        return next((step.at for step in self.steps if step.stage is stage), None)

    def took(self, start: Stage, end: Stage) -> timedelta | None:
        """How long it took from one stage to another, where both times are known."""
        began, ended = self.at(start), self.at(end)
        return ended - began if began is not None and ended is not None else None


def progress(pod: Pod, status: PodStatus, claims: Sequence[Claim | None]) -> Progress:
    """How far a Pod has come. ``claims`` are the claims that it uses, None for one that is not
    there yet.
    """
    there = [claim for claim in claims if claim is not None]
    reached: dict[Stage, datetime | None] = {Stage.CREATED: pod.meta.created}
    running = [c.started for c in status.containers if c.running or c.ended]
    prepared = status.is_true("PodReadyToStartContainers") or bool(running)
    if len(there) == len(claims) and claims:
        reached[Stage.GENERATED] = _latest(claim.meta.created for claim in there)
        if all(claim.allocation is not None for claim in there):
            reached[Stage.ALLOCATED] = _latest(map(allocated_at, there))
    if pod.node_name:
        reached[Stage.BOUND] = _when_true(status, "PodScheduled")
    if prepared:
        reached[Stage.PREPARED] = _when_true(status, "PodReadyToStartContainers")
    if running or pod.phase == "Running" or pod.finished:
        reached[Stage.RUNNING] = _latest(running)
    if pod.finished and not any(_reserved(claim, pod) for claim in there):
        reached = {**reached, Stage.RELEASED: None}
    last = max(ORDER.index(stage) for stage in reached)
    return Progress(
        tuple(Step(stage, reached.get(stage)) for stage in ORDER[: last + 1]),
        _when_true(status, "Ready"),
    )


def allocated_at(claim: Claim) -> datetime | None:
    """When a claim was allocated: its own time stamp (kept where binding conditions are on), else
    the time at which the scheduler last wrote its status, else unknown.
    """
    if claim.allocation is None:
        return None
    if claim.allocation.at is not None:
        return claim.allocation.at
    meta = claim.raw.get("metadata")
    fields = meta.get("managedFields") if isinstance(meta, Mapping) else None
    return _latest(
        moment(entry.get("time"))
        for entry in (fields if isinstance(fields, list) else ())
        if entry.get("manager") == "kube-scheduler" and entry.get("subresource") == "status"
    )


def _reserved(claim: Claim, pod: Pod) -> bool:
    return any(consumer.uid == pod.meta.uid for consumer in claim.reserved_for)


def _when_true(status: PodStatus, kind: str) -> datetime | None:
    found = status.conditions.get(kind)
    return found.at if found is not None and found.true else None


def _latest(moments: Iterable[datetime | None]) -> datetime | None:
    return max((m for m in moments if m is not None), default=None)

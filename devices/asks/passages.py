"""A Pod's way through the stages, remembered: what the cluster stamps, else what was seen. Pure.

Kubernetes keeps no time for some stages (prepared on some nodes, released never). The moment at
which Berth first saw such a stage stands for it, and is marked as observed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from devices.dra.claims import Claim
from devices.dra.holders import used_claims
from devices.dra.pods import Pod
from devices.dra.podstatus import read_pod_status
from devices.dra.progress import ORDER, Progress, Stage, progress

#: Stages after the first, with the column in which each is kept.
COLUMNS: Final[Mapping[Stage, str]] = {
    Stage.GENERATED: "generated_at",
    Stage.ALLOCATED: "allocated_at",
    Stage.BOUND: "bound_at",
    Stage.PREPARED: "prepared_at",
    Stage.RUNNING: "running_at",
    Stage.RELEASED: "released_at",
}


@dataclass(frozen=True, slots=True)
class Passage:
    """When a Pod reached each stage; ``observed`` names the columns that nobody but Berth timed."""

    created: datetime
    times: Mapping[str, datetime] = field(default_factory=dict)
    ready: datetime | None = None
    observed: frozenset[str] = frozenset()


def progress_of(pod: Pod, claims: Mapping[str, Claim]) -> Progress:
    """How far a Pod is with the claims of one ask (by name), others that it uses left out."""
    asked = {entry.name for entry in pod.claims if not entry.claim} - pod.generated.keys()
    used = [
        claim
        for name, claim in used_claims(pod, claims.get).items()
        if claim is not None or name in asked
    ]
    return progress(pod, read_pod_status(pod.raw), used)


def passage(found: Progress, before: Passage | None, now: datetime) -> Passage:
    """What is known after a look at ``now``, with what was known before it.

    A stamp of the cluster replaces a moment that was only seen. A stage that was passed unseen
    stays without a time, where a later one is stamped: "now" would come after what followed it.
    """
    created = found.at(Stage.CREATED) or (before.created if before else now)
    times = dict(before.times) if before else {}
    observed = set(before.observed) if before else set()
    if found.stage is not Stage.RELEASED:  # it was thought to be gone, and is not
        times.pop(COLUMNS[Stage.RELEASED], None)
        observed.discard(COLUMNS[Stage.RELEASED])
    stamped = {step.stage: step.at for step in found.steps if step.at is not None}
    for step in found.steps[1:]:
        column = COLUMNS[step.stage]
        later = ORDER[ORDER.index(step.stage) + 1 :]
        if step.at is not None:
            times[column] = step.at
            observed.discard(column)
        elif column not in times and not any(stage in stamped for stage in later):
            times[column] = now
            observed.add(column)
    ready = found.ready or (before.ready if before else None)
    return Passage(created, times, ready, frozenset(observed))


def left(before: Passage, now: datetime) -> Passage:
    """The same for a Pod that is gone: its devices are released, seen now."""
    column = COLUMNS[Stage.RELEASED]
    if column in before.times:
        return before
    return Passage(
        before.created, {**before.times, column: now}, before.ready, before.observed | {column}
    )

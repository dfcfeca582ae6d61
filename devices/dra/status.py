"""Found objects → where an ask stands, why, and whose job it is. Pure.

Must not ask the cluster. Reads claims, Pods and events as the API server wrote them; a message that
no rule knows is passed on as it is, with a code that says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from devices.dra.claims import Claim, read_claim
from devices.dra.codes import Class, code
from devices.dra.events import Event, read_event
from devices.dra.holders import used_claims
from devices.dra.lifecycle import State
from devices.dra.pods import Pod, read_pod
from devices.dra.podstatus import PodStatus, read_pod_status
from devices.dra.progress import ORDER, Progress, progress
from devices.dra.reasons import Around, Reason, pod_reason

Obj = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Placed:
    """One device that an ask holds: driver/pool/device is its identity in the cluster."""

    claim: str
    request: str
    driver: str
    pool: str
    device: str
    node: str

    def as_json(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class PodSeen:
    """A Pod that uses the ask's claims; ``stage`` and ``code`` say how far it has come and why."""

    name: str
    phase: str
    node: str
    ready: bool
    message: str
    stage: str = ""
    code: str = ""

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Status:
    """Where an ask stands: state, one dominant reason with its code, what it holds and for whom.

    ``why`` is what the cluster said, or the reason in words where it said nothing; ``progress`` is
    that of the Pod that has come furthest, None without a Pod.
    """

    state: State
    code: str
    why: str
    placed: tuple[Placed, ...] = ()
    pods: tuple[PodSeen, ...] = ()
    reason: Reason | None = None
    progress: Progress | None = None

    @property
    def node(self) -> str:
        """The node, where all devices are on one; empty otherwise."""
        nodes = {device.node for device in self.placed}
        return nodes.pop() if len(nodes) == 1 else ""


#: Classes of reasons, the most urgent first.
URGENCY: Final = (
    Class.NEEDS_CLEANUP,
    Class.NOT_RETRYABLE,
    Class.UNKNOWN,
    Class.RETRYABLE,
    Class.INFORMATION,
)


@dataclass(frozen=True, slots=True)
class _Seen:
    """One Pod with all that was derived from it."""

    pod: Pod
    status: PodStatus
    progress: Progress
    reason: Reason

    @property
    def ready(self) -> bool:
        return self.status.is_true("Ready")

    @property
    def runs(self) -> bool:
        return self.ready or self.pod.phase == "Running"


def status_of(
    *,
    claims: Sequence[Obj],
    template: Obj | None,
    pods: Sequence[Obj],
    events: Sequence[Obj] = (),
    now: datetime | None = None,
) -> Status:
    """The status of an ask whose objects are in the cluster.

    ``claims`` are its ResourceClaims (named, or generated from its template), ``template`` its
    ResourceClaimTemplate, ``pods`` the Pods that use them, ``events`` Events about these Pods. With
    several Pods the one furthest along gives the state, the most urgent reason is given, and of
    equally urgent ones that of the Pod least along. Without ``now`` nothing counts as overdue.
    Raises Unreadable for a claim or Pod that has not the shape of one.
    """
    read = [read_claim(claim)[0] for claim in claims]
    around = Around(claims={claim.meta.name: claim for claim in read})
    told = [read_event(event) for event in events]
    seen = [_see(read_pod(pod), around, told, now) for pod in pods]
    placed = tuple(device for claim in read for device in _placed(claim))
    live = [each for each in seen if not each.pod.finished]
    if any(each.runs for each in live):
        state = State.IN_USE
    elif any(claim.allocation is not None for claim in read):
        state = State.ALLOCATED
    else:
        state = State.PENDING if live else State.APPLIED
    reason = dominant([each.reason for each in sorted(live, key=_along)])
    return Status(
        state,
        *_told(state, reason, template),
        placed,
        tuple(map(_pod, seen)),
        reason,
        max((each.progress for each in seen), key=lambda p: ORDER.index(p.stage), default=None),
    )


def dominant(reasons: Iterable[Reason]) -> Reason | None:
    """The most urgent reason; of equally urgent ones the first."""
    return min(reasons, key=lambda reason: URGENCY.index(reason.code.class_), default=None)


def _told(state: State, reason: Reason | None, template: Obj | None) -> tuple[str, str]:
    if reason is None:
        if state is State.ALLOCATED:
            return "NOT_RESERVED", code("NOT_RESERVED").words
        what = "template" if template is not None else "claim"
        return "WAITING_FOR_POD", f"The {what} is ready; it gets its devices when a Pod uses it."
    if reason.code.name == "RUNNING":
        return "", ""  # the state says it
    return reason.code.name, reason.text or reason.sentence


def _see(pod: Pod, around: Around, events: Sequence[Event], now: datetime | None) -> _Seen:
    status = read_pod_status(pod.raw)
    mine = [event for event in events if event.uid == pod.meta.uid]
    # Claims of other asks that the Pod uses too are not this ask's progress.
    asked = {entry.name for entry in pod.claims if not entry.claim} - pod.generated.keys()
    used = [
        claim
        for name, claim in used_claims(pod, around.claims.get).items()
        if claim is not None or name in asked
    ]
    return _Seen(
        pod,
        status,
        progress(pod, status, used),
        pod_reason(pod, status, around, mine, now),
    )


def _along(seen: _Seen) -> int:
    return ORDER.index(seen.progress.stage)


def _placed(claim: Claim) -> Iterable[Placed]:
    if claim.allocation is None:
        return
    selector = claim.allocation.selector
    for result in claim.allocation.results:
        yield Placed(
            claim=claim.meta.name,
            request=result.request,
            driver=result.driver,
            pool=result.pool,
            device=result.device,
            node=(selector.only_node or "") if selector is not None else "",
        )


def _pod(seen: _Seen) -> PodSeen:
    scheduled = seen.status.conditions.get("PodScheduled")
    return PodSeen(
        name=seen.pod.meta.name,
        phase=seen.pod.phase,
        node=seen.pod.node_name,
        ready=seen.ready,
        message=scheduled.message if scheduled is not None else "",
        stage=seen.progress.stage.value,
        code=seen.reason.code.name,
    )

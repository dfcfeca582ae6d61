"""Found objects → where an ask stands, why, and whose job it is. Pure.

Must not ask the cluster. Reads claims and Pods as the API server wrote them; a message that no rule
knows is passed on as it is, with the code UNKNOWN_MESSAGE.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from devices.dra.lifecycle import State

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
    """A Pod that uses the ask's claims."""

    name: str
    phase: str
    node: str
    ready: bool
    message: str

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Status:
    """Where an ask stands: state, one dominant reason with its code, what it holds and for whom."""

    state: State
    code: str
    why: str
    placed: tuple[Placed, ...] = ()
    pods: tuple[PodSeen, ...] = ()

    @property
    def node(self) -> str:
        """The node, where all devices are on one; empty otherwise."""
        nodes = {device.node for device in self.placed}
        return nodes.pop() if len(nodes) == 1 else ""


PREPARE_FRAGMENT = "Failed to prepare dynamic resources"


def status_of(
    *, claims: Sequence[Obj], template: Obj | None, pods: Sequence[Obj], prepare_message: str = ""
) -> Status:
    """The status of an ask whose objects are in the cluster.

    `claims` are its ResourceClaims (named, or generated from its template), `template` its
    ResourceClaimTemplate, `pods` the Pods that use them, `prepare_message` the newest text of a
    FailedPrepareDynamicResources event of one of them. With several claims the one furthest along
    gives the state, the one least along gives the reason.
    """
    placed = tuple(device for claim in claims for device in _placed(claim))
    live = [pod for pod in pods if (pod.get("status") or {}).get("phase") in {None, "", *OPEN}]
    seen = tuple(_pod(pod) for pod in pods)
    if any(pod.ready or pod.phase == "Running" for pod in seen):
        state = State.IN_USE
    elif placed:
        state = State.ALLOCATED
    elif live:
        state = State.PENDING
    else:
        state = State.APPLIED
    code, why = _reason(state, claims, template, live, prepare_message)
    return Status(state, code, why, placed, seen)


OPEN = frozenset({"Pending", "Running", "Unknown"})


def _reason(
    state: State,
    claims: Sequence[Obj],
    template: Obj | None,
    live: Sequence[Obj],
    prepare_message: str,
) -> tuple[str, str]:
    if state is State.APPLIED:
        what = "template" if template is not None else "claim"
        return "WAITING_FOR_POD", f"The {what} is ready; it gets its devices when a Pod uses it."
    for pod in live:
        condition = _condition(pod, "PodScheduled")
        if condition and condition.get("status") == "False":
            reason, message = condition.get("reason", ""), condition.get("message", "")
            if reason == "SchedulingGated":
                return "SCHEDULING_GATED", "A scheduling gate on the Pod keeps it from being placed."
            return _scheduler_code(message), message
    if state is State.PENDING:
        if not claims and template is not None:
            return "CLAIM_NOT_GENERATED", "Kubernetes has not made this Pod's claim yet."
        return "NOT_SCHEDULED_YET", "The scheduler has not looked at the Pod yet."
    if state is State.ALLOCATED:
        if prepare_message:
            return "PREPARE_FAILED", prepare_message
        if live:
            return "PREPARING", "The devices are chosen; the node is getting them ready."
        return "NOT_RESERVED", "The devices are allocated and no Pod uses them right now."
    return "", ""


SCHEDULER_CODES: tuple[tuple[str, str], ...] = (
    ("cannot allocate all claims", "NO_MATCHING_DEVICE_FREE"),
    ("does not exist", "CLASS_MISSING"),
    ("CEL runtime error", "SELECTOR_FAILS"),
    ("is being deleted", "CLAIM_BEING_DELETED"),
    ("resourceclaim in use", "CLAIM_IN_USE"),
    ("resourceclaim not available on the node", "CLAIM_ELSEWHERE"),
    ("Insufficient", "NODE_RESOURCES_SHORT"),
)


def _scheduler_code(message: str) -> str:
    for fragment, code in SCHEDULER_CODES:
        if fragment in message:
            return code
    return "UNKNOWN_MESSAGE" if message else "NOT_SCHEDULED_YET"


def _placed(claim: Obj) -> Iterable[Placed]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    node = _node(allocation.get("nodeSelector") or {})
    for result in (allocation.get("devices") or {}).get("results") or []:
        yield Placed(
            claim=claim["metadata"]["name"],
            request=str(result.get("request", "")),
            driver=str(result.get("driver", "")),
            pool=str(result.get("pool", "")),
            device=str(result.get("device", "")),
            node=node,
        )


def _node(selector: Obj) -> str:
    """The node's name where the selector names exactly one (KEP-4381), else empty."""
    terms = selector.get("nodeSelectorTerms") or []
    fields = terms[0].get("matchFields") or [] if len(terms) == 1 else []
    if len(fields) == 1 and fields[0].get("key") == "metadata.name":
        values = fields[0].get("values") or []
        return str(values[0]) if len(values) == 1 else ""
    return ""


def _pod(pod: Obj) -> PodSeen:
    status = pod.get("status") or {}
    ready = _condition(pod, "Ready") or {}
    scheduled = _condition(pod, "PodScheduled") or {}
    return PodSeen(
        name=pod["metadata"]["name"],
        phase=str(status.get("phase", "")),
        node=str((pod.get("spec") or {}).get("nodeName", "")),
        ready=ready.get("status") == "True",
        message=str(scheduled.get("message", "")),
    )


def _condition(pod: Obj, kind: str) -> Obj | None:
    for condition in (pod.get("status") or {}).get("conditions") or []:
        if condition.get("type") == kind:
            return dict(condition)
    return None

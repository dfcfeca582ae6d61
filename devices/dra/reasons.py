"""Why a Pod with devices stands where it stands: one dominant reason from the closed list of codes.

The order is that of a Pod's life: what ends it, what runs, what keeps it from a node, what the node
is doing with it. The newest word of the cluster is believed over an older one, and the objects over
any word: a message stays in a Pod's status long after its cause is gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from devices.dra import events as said
from devices.dra.claims import Claim
from devices.dra.codes import Code, Who, code
from devices.dra.devicestatus import DeviceState, Health, device_states
from devices.dra.events import Event, newest
from devices.dra.holders import full, used_claims
from devices.dra.messages import (
    Meaning,
    Speaker,
    meaning,
    more_than_the_quota,
    scheduler_says,
)
from devices.dra.pods import Pod
from devices.dra.podstatus import Condition, PodStatus
from devices.dra.schedulinggates import gate_owner

#: The scheduler's default for DynamicResourcesArgs.bindingTimeout.
BINDING_TIMEOUT: Final = timedelta(seconds=600)


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason: the code, what the cluster said, what that names, and what else it said.

    ``nodes`` is how many nodes the scheduler looked at; ``others`` are lesser reasons of the same
    message; ``overdue`` is True where it has lasted longer than is normal.
    """

    code: Code
    text: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    since: datetime | None = None
    others: tuple[Meaning, ...] = ()
    nodes: int | None = None
    overdue: bool = False

    @property
    def who(self) -> Who:
        """Whose job it is, now."""
        return Who.PLATFORM if self.overdue else self.code.who

    @property
    def sentence(self) -> str:
        """The code's words, with the facts in them where all are known."""
        return self.code.sentence(self.facts)


@dataclass(frozen=True, slots=True)
class Around:
    """What is known around a Pod. Absence counts as absence only where it is known: ``templates``
    and ``nodes`` are None where nobody read them, and ``every_claim`` says whether ``claims`` are
    all claims of the namespace.
    """

    claims: Mapping[str, Claim] = field(default_factory=dict)
    every_claim: bool = False
    templates: frozenset[str] | None = None
    nodes: frozenset[str] | None = None


def pod_reason(
    pod: Pod,
    status: PodStatus,
    around: Around,
    events: Sequence[Event] = (),
    now: datetime | None = None,
) -> Reason:
    """The dominant reason for a Pod's state. ``events`` are those about this Pod; without ``now``
    nothing is called overdue.
    """
    found = (
        _ending(pod, status, events)
        or _running(pod, status)
        or (
            _on_node(pod, status, around, events)
            if pod.node_name
            else _without_node(pod, status, around, events, now)
        )
    )
    return _aged(found, now)


def _ending(pod: Pod, status: PodStatus, events: Sequence[Event]) -> Reason | None:
    disrupted = status.conditions.get("DisruptionTarget")
    if disrupted and disrupted.true and disrupted.reason == "DeletionByDeviceTaintManager":
        return _of("EVICTED_BY_DEVICE_TAINT", disrupted.message, since=disrupted.at)
    if pod.finished:
        return _of("ENDED")
    if pod.meta.deleted is None:
        return None
    event = newest(events, said.PREPARE_FAILED)
    if event is not None:
        # The kubelet reports a driver that is away in the same words for both directions.
        known = meaning(event.message, Speaker.KUBELET)
        if known.code in ("PREPARE_DRIVER_UNREACHABLE", "UNPREPARE_FAILED"):
            return _of("UNPREPARE_FAILED", event.message, known.facts, pod.meta.deleted)
    return _of("ENDING", since=pod.meta.deleted)


def _running(pod: Pod, status: PodStatus) -> Reason | None:
    if pod.phase != "Running":
        return None
    for device in status.health:
        if device.health == "Unhealthy":
            facts = {"device": device.resource, "failed": device.message or "no message"}
            return _of("DEVICE_UNHEALTHY", device.message, facts)
    return _of("RUNNING")


# --- before a node is chosen ---


def _without_node(
    pod: Pod, status: PodStatus, around: Around, events: Sequence[Event], now: datetime | None
) -> Reason:
    condition = status.conditions.get("PodScheduled")
    if pod.gates:
        gate = pod.gates[0]
        owner = gate_owner(gate)
        facts = {
            "gate": ", ".join(pod.gates),
            "owner": owner.name,
            "waits_for": owner.waits_for,
        }
        return _of("SCHEDULING_GATED", _message(condition), facts, _since(condition))
    used = [claim for claim in _used(pod, around).values() if claim is not None]
    attaching = _attaching(used, now)
    if attaching is not None:
        return attaching
    missing = _missing(pod, around, events)
    if missing is not None:
        return replace(missing, since=missing.since or _since(condition) or pod.meta.created)
    if _all_given(pod, around):
        return _of("BEING_BOUND", since=_since(condition))
    spoken = _spoken(condition, events)
    if spoken is None:
        return _of("NOT_SCHEDULED_YET", since=pod.meta.created)
    message, since = spoken
    return _scheduler_reason(message, since, used, around)


def _scheduler_reason(
    message: str, since: datetime | None, used: Sequence[Claim], around: Around
) -> Reason:
    says = scheduler_says(message)
    if not says.reasons:
        return _of("UNMAPPED_MESSAGE", message, since=since)
    first, *others = says.reasons
    name, facts = first.code, dict(first.facts)
    if name == "CLAIM_IN_USE":
        crowded = next((claim for claim in used if full(claim)), None)
        if crowded is not None:
            name, facts["claim"] = "CLAIM_CONSUMERS_FULL", crowded.meta.name
    if name == "CLAIM_ELSEWHERE":
        for claim in used:
            node = _pinned(claim)
            if node and around.nodes is not None and node not in around.nodes:
                name = "CLAIM_ON_LOST_NODE"
                facts |= {"claim": claim.meta.name, "node": node}
    return Reason(code(name), message, facts, since, tuple(others), says.nodes)


def _attaching(claims: Sequence[Claim], now: datetime | None) -> Reason | None:
    """Devices that were given and have to be attached before the Pod is bound (KEP-5007)."""
    states = [(claim, state) for claim in claims for state in device_states(claim)]
    for _, state in states:
        broken = [c for c in state.failed if c.type in state.result.binding_failures]
        if broken:
            text = f"{broken[0].type}: {broken[0].message or broken[0].reason}"
            return _of("BINDING_FAILED", text, {"failed": text}, broken[0].at)
    waiting = [(claim, state) for claim, state in states if state.waiting_for]
    if not waiting:
        return None
    claim, state = waiting[0]
    since = claim.allocation.at if claim.allocation else None
    until = since + BINDING_TIMEOUT if since else None
    facts = {"waiting_for": ", ".join(state.waiting_for), "claim": claim.meta.name}
    if until is not None:
        facts["until"] = until.isoformat(timespec="seconds")
    late = until is not None and now is not None and now > until
    return _of("BINDING_OVERDUE" if late else "BINDING_PENDING", "", facts, since)


def _missing(pod: Pod, around: Around, events: Sequence[Event]) -> Reason | None:
    """Claims that are not there, or not this Pod's. The scheduler holds such a Pod back before its
    queue and says nothing about it, so this is read off the objects.
    """
    for entry in pod.claims:
        name = entry.claim or pod.generated.get(entry.name)
        claim = around.claims.get(name) if name else None
        if claim is not None:
            if claim.meta.deleted is not None:
                return _of("CLAIM_BEING_DELETED", facts={"claim": claim.meta.name})
            owned = entry.claim or any(owner.uid == pod.meta.uid for owner in claim.meta.owners)
            if not owned:
                return _of("CLAIM_OF_ANOTHER_POD", facts={"claim": claim.meta.name})
        elif entry.claim:
            if around.every_claim:
                return _of("CLAIM_MISSING", facts={"claim": entry.claim})
        elif entry.name not in pod.generated:
            return _not_generated(entry.template, around, events)
    return None


def _not_generated(template: str, around: Around, events: Sequence[Event]) -> Reason:
    event = newest(events, said.CLAIM_CREATION_FAILED)
    there = around.templates is None or template in around.templates
    if event is None:
        if there:
            return _of("CLAIM_NOT_GENERATED")
        return _of("TEMPLATE_MISSING", facts={"template": template})
    known = meaning(event.message, Speaker.CONTROLLER)
    name = known.code
    if name == "QUOTA_EXCEEDED" and more_than_the_quota(event.message):
        name = "QUOTA_TOO_SMALL"
    return _of(name, event.message, known.facts, event.first)


def _all_given(pod: Pod, around: Around) -> bool:
    """Whether every claim is allocated and reserved for this Pod, so that binding is all that is
    left, whatever older messages say.
    """
    claims = _used(pod, around)
    return bool(claims) and all(
        claim is not None
        and claim.allocation is not None
        and any(consumer.uid == pod.meta.uid for consumer in claim.reserved_for)
        for claim in claims.values()
    )


def _spoken(
    condition: Condition | None, events: Sequence[Event]
) -> tuple[str, datetime | None] | None:
    """The scheduler's newest words: the condition's, else those of an event."""
    if condition is not None and not condition.true and condition.message:
        return condition.message, condition.at
    event = newest(events, said.SCHEDULING_FAILED) or newest(events, said.BINDING_PENDING)
    return (event.message, event.first) if event is not None else None


# --- on the node ---


def _on_node(pod: Pod, status: PodStatus, around: Around, events: Sequence[Event]) -> Reason:
    scheduled = status.conditions.get("PodScheduled")
    since = _since(scheduled)
    stuck = next((c for c in status.containers if "CDI devices" in c.message), None)
    failed = newest(events, said.CONTAINER_FAILED)
    if stuck is not None or (failed is not None and "CDI devices" in failed.message):
        text = stuck.message if stuck is not None else failed.message if failed else ""
        return _of("CDI_DEVICES_MISSING", text, since=since)
    if status.is_true("PodReadyToStartContainers"):
        waiting = next((c for c in status.containers if _blocked(c.waiting)), None)
        if waiting is None:
            return _of("STARTING", since=since)
        known = meaning(waiting.message, Speaker.KUBELET)
        if known.code == "KUBELET_TRAP":
            return _of(known.code, waiting.message, known.facts, since)
        facts = {"container": waiting.name, "waiting": waiting.waiting}
        return _of("CONTAINER_NOT_STARTING", waiting.message or waiting.waiting, facts, since)
    event = newest(events, said.PREPARE_FAILED)
    if event is not None:
        known = meaning(event.message, Speaker.KUBELET)
        return _of(known.code, event.message, known.facts, event.first or since)
    states = [
        state
        for claim in _used(pod, around).values()
        if claim is not None
        for state in device_states(claim)
    ]
    return _devices_failed(states) or _of("PREPARING", since=since)


def _devices_failed(states: Sequence[DeviceState]) -> Reason | None:
    failed = [state for state in states if state.health is Health.FAILED]
    if not failed:
        return None
    first = failed[0].failed[0]
    text = f"{first.type}: {first.message or first.reason}"
    facts = {
        "failed_devices": str(len(failed)),
        "devices": str(len(states)),
        "device": failed[0].result.device,
        "failed": text,
    }
    return _of("DEVICE_NOT_READY", text, facts, first.at)


def _blocked(waiting: str) -> bool:
    return bool(waiting) and waiting not in ("ContainerCreating", "PodInitializing")


# --- small things ---


def _used(pod: Pod, around: Around) -> dict[str, Claim | None]:
    return used_claims(pod, around.claims.get)


def _pinned(claim: Claim) -> str | None:
    selector = claim.allocation.selector if claim.allocation else None
    return selector.only_node if selector else None


def _of(
    name: str,
    text: str = "",
    facts: Mapping[str, str] | None = None,
    since: datetime | None = None,
) -> Reason:
    return Reason(code(name), text, facts or {}, since)


def _aged(reason: Reason, now: datetime | None) -> Reason:
    patience = reason.code.patience
    if now is None or reason.since is None or patience is None:
        return reason
    return replace(reason, overdue=now - reason.since > patience)


def _message(condition: Condition | None) -> str:
    return condition.message if condition is not None else ""


def _since(condition: Condition | None) -> datetime | None:
    return condition.at if condition is not None else None

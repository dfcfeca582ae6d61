"""The cluster's own words → codes: one table of fragments, so that a new wording is one new row.

Kubernetes gives no machine-readable reason, and its wording changes between releases, so texts are
bound by fragment; a text that no row knows stays UNMAPPED_MESSAGE and is shown as it is. Sources:
``pkg/scheduler/framework/plugins/dynamicresources``, ``pkg/controller/resourceclaim``,
``pkg/kubelet/cm/dra`` and ``k8s.io/dynamic-resource-allocation`` of 1.34 to 1.37.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

UNMAPPED: Final = "UNMAPPED_MESSAGE"


class Speaker(StrEnum):
    """Which part of the cluster said it."""

    SCHEDULER = "scheduler"
    CONTROLLER = "resource claim controller"
    KUBELET = "kubelet"


@dataclass(frozen=True, slots=True)
class Row:
    """A text that contains ``fragment`` (and one of ``also``, where given) means ``code``.

    ``facts`` is a pattern whose named groups are what the text names: a class, a claim, a node.
    """

    fragment: str
    code: str
    facts: str = ""
    also: tuple[str, ...] = ()


#: Read from top to bottom; the first row that fits wins. Among several reasons in one message the
#: one whose row stands highest is the dominant one.
SCHEDULER: Final = (
    Row("resourceclaims/binding", "SCHEDULER_FORBIDDEN"),
    Row("got allocated elsewhere in the meantime", "ALLOCATION_RACE", r"claim (?P<claim>\S+) got"),
    Row("in the meantime", "ALLOCATION_RACE", r"claim (?P<claim>\S+) got"),
    Row("to claim", "SCHEDULER_FORBIDDEN", also=("forbidden",)),
    Row("add allocation and reservation to claim", "ALLOCATION_RACE", r"to claim (?P<claim>[^:]+)"),
    Row("add reservation to claim", "ALLOCATION_RACE", r"to claim (?P<claim>[^:]+)"),
    Row("add finalizer to claim", "ALLOCATION_RACE", r"to claim (?P<claim>[^:]+)"),
    Row("conflicting concurrent modification", "ALLOCATION_RACE"),
    # What is wrong with the Pod, whatever the nodes have.
    Row("ResourceClaim not created yet", "CLAIM_NOT_GENERATED"),
    Row(
        "was not created for",
        "CLAIM_OF_ANOTHER_POD",
        r"ResourceClaim \S+?/(?P<claim>\S+) was not",
    ),
    Row(
        "is being deleted",
        "CLAIM_BEING_DELETED",
        r'resourceclaim "(?P<claim>[^"]+)"',
        also=("resourceclaim",),
    ),
    Row("resourceclaim", "CLAIM_MISSING", r'"(?P<claim>[^"]+)" not found', also=("not found",)),
    Row("resource claim template", "TEMPLATE_MISSING", also=("not found",)),
    Row("device class", "CLASS_MISSING", r"class (?P<class>\S+) does", also=("does not exist",)),
    Row("could not retrieve device class", "CLASS_MISSING", r"class (?P<class>[^:\s]+):"),
    Row("no such key", "SELECTOR_NO_SUCH_KEY", r"no such key: (?P<key>[^\s,]+)"),
    Row("CEL compile error", "SELECTOR_INVALID"),
    Row("CEL expression empty", "SELECTOR_INVALID"),
    Row("CEL runtime error", "SELECTOR_FAILS"),
    Row("claim constraint would not be satisfied", "CONSTRAINT_NOT_SATISFIED"),
    Row("exceeds the claim limit", "TOO_MANY_DEVICES"),
    Row("exact count", "TOO_MANY_DEVICES", also=("too large",)),
    Row("feature is disabled", "FEATURE_OFF", r"the (?P<feature>DRA\w+) feature"),
    Row("requires DRAOptionalNodeOperations", "FEATURE_OFF"),
    Row("unsupported", "FEATURE_OFF", also=("request type", "count mode", "constraint type")),
    Row("unknown request type", "FEATURE_OFF"),
    Row("cannot be shared across pods", "CLAIM_NOT_SHAREABLE", r"claim (?P<claim>\S+) has"),
    Row("is already used by another pod", "CLAIM_NOT_SHAREABLE", r"claim (?P<claim>\S+) is"),
    Row("shared by multiple pods", "CLAIM_NOT_SHAREABLE", r"claim (?P<claim>\S+) shared"),
    Row(
        "not referenced by any container",
        "CLAIM_NOT_REFERENCED",
        r"claim (?P<claim>[^:\s]+): node-allocatable",
    ),
    Row("pod level request for", "POD_BUDGET_TOO_SMALL", r"request for (?P<resource>\S+) is"),
    Row("pod level limit for", "POD_BUDGET_TOO_SMALL", r"limit for (?P<resource>\S+) is"),
    Row("resourceclaim in use", "CLAIM_IN_USE"),
    Row(
        "in the process of being allocated",
        "CLAIM_BEING_ALLOCATED",
        r"claim \S+?/(?P<claim>\S+) is in",
    ),
    # Attaching devices before binding.
    Row("device binding timeout", "BINDING_TIMED_OUT", r"claim=(?P<claim>[^\s,]+)"),
    Row("binding timeout", "BINDING_TIMED_OUT", r"claim (?P<claim>\S+) binding"),
    Row("device binding failed", "BINDING_FAILED", r"claim=(?P<claim>[^\s,]+)"),
    Row("binding failed: reason=", "BINDING_FAILED", r"claim (?P<claim>\S+) binding"),
    Row("waiting for binding conditions", "BINDING_PENDING", r"on node (?P<node>\S+)"),
    # Devices, by node.
    Row("invalid resource pools were encountered", "POOL_INVALID"),
    Row("is currently invalid", "POOL_INVALID", r"resource pool (?P<pool>\S+) is"),
    Row("is currently being updated", "POOL_INCOMPLETE", r"resource pool (?P<pool>\S+) is"),
    Row(
        "timed out trying to allocate devices",
        "ALLOCATION_TIMED_OUT",
        r"node (?P<node>[^:\s]+): timed",
    ),
    Row("filter operation aborted", "ALLOCATION_TIMED_OUT"),
    Row("asked by caller to stop allocating", "ALLOCATION_TIMED_OUT"),
    Row("cannot allocate all claims", "NO_MATCHING_DEVICE_FREE"),
    Row("cannot schedule extended resource claim", "EXTENDED_RESOURCE_SHORT"),
    Row("cannot fit resource", "EXTENDED_RESOURCE_SHORT"),
    Row("resourceclaim not available on the node", "CLAIM_ELSEWHERE"),
    # The node side.
    Row("Insufficient ", "NODE_RESOURCES_SHORT", r"Insufficient (?P<resource>[^\s,]+)"),
    Row("Too many pods", "NODE_RESOURCES_SHORT"),
    Row("untolerated taint", "NODE_TAINTED", r"taint \{(?P<taint>[^}]+)\}"),
    Row("didn't match Pod's node affinity/selector", "NODE_NOT_SELECTED"),
    Row("[NodeAffinity]", "NODE_NOT_SELECTED"),
    Row("were unschedulable", "NODE_CLOSED"),
    Row("is smaller than number of claims", "SCHEDULER_ERROR"),
    Row("internal error", "SCHEDULER_ERROR"),
    Row("deallocation of ResourceClaim completed", "SCHEDULER_FREED_CLAIM"),
    Row("deletion of ResourceClaim completed", "SCHEDULER_FREED_CLAIM"),
    Row("of ResourceClaims completed", "SCHEDULER_FREED_CLAIM"),
    Row("of PodGroup ResourceClaim completed", "SCHEDULER_FREED_CLAIM"),
    Row("ResourceClaim unreserved for PodGroup", "SCHEDULER_FREED_CLAIM"),
    Row("Scheduling is blocked due to non-empty scheduling gates", "SCHEDULING_GATED"),
)

CONTROLLER: Final = (
    Row(
        "resource claim template",
        "TEMPLATE_MISSING",
        r'claim template "(?P<template>[^"]+)"',
        also=("not found",),
    ),
    Row("exceeded quota", "QUOTA_EXCEEDED", r"exceeded quota: (?P<quota>[^,\s]+)"),
    Row("admin access to devices requires", "ADMIN_ACCESS_DENIED"),
    Row("feature is disabled", "FEATURE_OFF"),
    Row("was not created for", "CLAIM_OF_ANOTHER_POD"),
    Row("denied request", "REFUSED_BY_CLUSTER", r"ValidatingAdmissionPolicy '(?P<policy>[^']+)'"),
    Row("denied the request", "REFUSED_BY_CLUSTER", r'webhook "(?P<policy>[^"]+)"'),
    Row("forbidden", "REFUSED_BY_CLUSTER"),
    Row("is invalid", "CLAIM_INVALID"),
    Row("must specify one of: resourceClaimName", "CLAIM_INVALID"),
)

_REFUSED = "NodePrepareResources failed for ResourceClaim"
_CLAIM = r"ResourceClaim (?P<claim>[^:\s]+)"
_SETTINGS = ("decoding config", "config parameters", "invalid config", "unknown field", "unmarshal")
KUBELET: Final = (
    Row("is not registered", "PREPARE_DRIVER_UNREACHABLE", r"driver (?P<driver>\S+) is not"),
    Row("fetch ResourceClaim", "PREPARE_CLAIM_UNREADABLE", _CLAIM),
    Row(
        "is not allowed to use",
        "PREPARE_NOT_RESERVED",
        r"use (?:ResourceClaim|resource claim) (?P<claim>[^\s(]+)",
    ),
    Row(": not allocated", "PREPARE_NOT_RESERVED", _CLAIM),
    Row("was not created for", "CLAIM_OF_ANOTHER_POD"),
    Row(
        "different UID", "PREPARE_LEFTOVER", r"same name (?P<claim>\S+) and", also=("old Resource",)
    ),
    Row("is being unprepared", "PREPARE_BEING_UNPREPARED", _CLAIM),
    # The driver's own words. Its settings first: "Not Found" may stand in them as well.
    Row(_REFUSED, "PREPARE_CONFIG_REFUSED", _CLAIM, also=_SETTINGS),
    Row(
        _REFUSED,
        "PREPARE_ALREADY_IN_USE",
        r"device (?P<device>\S+) is already",
        also=("already allocated to different claim", "already prepared", "overlap"),
    ),
    Row(
        _REFUSED,
        "PREPARE_DEVICE_FAULT",
        _CLAIM,
        also=("device handle", "not found", "fallen off the bus", "xid", "no such device"),
    ),
    Row(_REFUSED, "PREPARE_FAILED", _CLAIM),
    Row("returned result for unknown claim", "PREPARE_DRIVER_SKIPPED"),
    Row("skipped", "PREPARE_DRIVER_SKIPPED", also=("resourceclaims",)),
    Row("NodePrepareResources: ", "PREPARE_CALL_FAILED", r"code = (?P<grpc>\w+)"),
    Row("NodeUnprepareResources", "UNPREPARE_FAILED"),
    Row("unprepare dynamic resources", "UNPREPARE_FAILED"),
    Row("unresolvable CDI devices", "CDI_DEVICES_MISSING"),
    Row(
        "endpoint not found in cache for a registered resource",
        "KUBELET_TRAP",
        r"registered resource: (?P<resource>\S+)",
    ),
    Row("checkpoint", "NODE_STATE_BROKEN"),
    Row("internal error", "NODE_STATE_BROKEN"),
    Row("DRAOptionalNodeOperations feature gate is disabled", "FEATURE_OFF"),
    Row("Failed to prepare dynamic resources", "PREPARE_FAILED"),
)

TABLES: Final[Mapping[Speaker, tuple[Row, ...]]] = {
    Speaker.SCHEDULER: SCHEDULER,
    Speaker.CONTROLLER: CONTROLLER,
    Speaker.KUBELET: KUBELET,
}
#: Where no row of a speaker fits.
_UNMAPPED_OF: Final = {Speaker.CONTROLLER: "CLAIM_CREATION_FAILED"}


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a text means: a code, the facts that it names, and the text itself.

    ``nodes`` is how many nodes the scheduler said it about; ``rank`` orders reasons, lowest first.
    """

    code: str
    text: str
    facts: Mapping[str, str] = field(default_factory=dict)
    nodes: int | None = None
    rank: int = 0


def meaning(text: str, speaker: Speaker, nodes: int | None = None) -> Meaning:
    """The first row that fits a text; case does not matter."""
    lowered = text.casefold()
    rows = TABLES[speaker]
    for rank, row in enumerate(rows):
        if row.fragment.casefold() in lowered and (
            not row.also or any(part.casefold() in lowered for part in row.also)
        ):
            found = re.search(row.facts, text) if row.facts else None
            facts = {k: v for k, v in found.groupdict().items() if v} if found else {}
            return Meaning(row.code, text, facts, nodes, rank)
    return Meaning(_UNMAPPED_OF.get(speaker, UNMAPPED), text, {}, nodes, len(rows))


_HEAD = re.compile(r"\s*\d+/(\d+) nodes are available:\s*")
#: What a PostFilter plugin adds after the reasons, each begun by a full stop.
_TAIL = re.compile(
    r"\.\s+(?=still not schedulable|no new claims to deallocate|preemption: "
    r"|pod group preemption: |deallocation of |deletion of |deallocation and deletion of )"
)
_BETWEEN = re.compile(r", (?=\d+ \D)")
_COUNTED = re.compile(r"(\d+) (?=\D)(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SchedulerSays:
    """One message of the scheduler, taken apart: reasons with node counts, dominant one first.

    ``nodes`` is how many nodes there are, None where the message does not say; ``after`` is what
    was tried afterwards (preemption, taking devices back).
    """

    reasons: tuple[Meaning, ...]
    nodes: int | None = None
    after: str = ""


def scheduler_says(message: str) -> SchedulerSays:
    """Takes a FailedScheduling text or PodScheduled message apart.

    ``0/10 nodes are available: 2 Insufficient cpu, 5 cannot allocate all claims. still not …``
    gives two reasons, devices first. The order in the message is by text and means nothing.
    """
    head = _HEAD.match(message)
    if head is None:
        return SchedulerSays((meaning(message, Speaker.SCHEDULER),) if message else ())
    total = int(head.group(1))
    body, *after = _TAIL.split(message[head.end() :], maxsplit=1)
    reasons = [_reason(part) for part in _BETWEEN.split(body.removesuffix(".")) if part]
    return SchedulerSays(ranked(reasons), total, after[0] if after else "")


def ranked(reasons: Iterable[Meaning]) -> tuple[Meaning, ...]:
    """Reasons with the dominant one first, then those that more nodes share, then by text."""
    return tuple(sorted(reasons, key=lambda r: (r.rank, -(r.nodes or 0), r.text)))


def _reason(part: str) -> Meaning:
    counted = _COUNTED.fullmatch(part)
    if counted is None:
        return meaning(part, Speaker.SCHEDULER)
    return meaning(counted.group(2), Speaker.SCHEDULER, int(counted.group(1)))


_AMOUNTS = re.compile(r"(requested|used|limited): (.*?)(?=, (?:requested|used|limited): |$)")
_AMOUNT = re.compile(r"([^=,\s]+)=(\d+)")


def more_than_the_quota(text: str) -> bool:
    """Whether an ``exceeded quota`` text asks for more than the whole quota, so that no release
    of anything would help.
    """
    parts = {name: dict(_AMOUNT.findall(amounts)) for name, amounts in _AMOUNTS.findall(text)}
    asked, limits = parts.get("requested", {}), parts.get("limited", {})
    return any(int(amount) > int(limits[key]) for key, amount in asked.items() if key in limits)

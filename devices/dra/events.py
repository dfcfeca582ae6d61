"""Events of the cluster as evidence: who said what about which object, and since when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from devices.dra.reading import Raw, moment

PREPARE_FAILED = "FailedPrepareDynamicResources"
CLAIM_CREATION_FAILED = "FailedResourceClaimCreation"
SCHEDULING_FAILED = "FailedScheduling"
BINDING_PENDING = "BindingConditionsPending"
#: The kubelet's reason for anything about one container, such as a device it cannot resolve.
CONTAINER_FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class Event:
    """One Event of core/v1 or events.k8s.io/v1, whose fields mean the same.

    ``uid`` is of the object that it is about; ``last`` is None where the event has no time.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    reason: str
    message: str
    warning: bool = False
    count: int = 1
    first: datetime | None = None
    last: datetime | None = None
    source: str = ""


def read_event(raw: Raw) -> Event:
    """A raw Event; absent parts are empty, nothing is refused."""
    about = _map(raw.get("regarding") or raw.get("involvedObject"))
    series = _map(raw.get("series"))
    first = moment(raw.get("firstTimestamp") or raw.get("deprecatedFirstTimestamp"))
    last = moment(series.get("lastObservedTime")) or moment(
        raw.get("lastTimestamp") or raw.get("deprecatedLastTimestamp")
    )
    once = moment(raw.get("eventTime")) or moment(
        _map(raw.get("metadata")).get("creationTimestamp")
    )
    count = series.get("count") or raw.get("count") or raw.get("deprecatedCount") or 1
    return Event(
        kind=str(about.get("kind") or ""),
        namespace=str(about.get("namespace") or ""),
        name=str(about.get("name") or ""),
        uid=str(about.get("uid") or ""),
        reason=str(raw.get("reason") or ""),
        message=str(raw.get("note") or raw.get("message") or ""),
        warning=raw.get("type") == "Warning",
        count=count if isinstance(count, int) else 1,
        first=first or once or last,
        last=last or once or first,
        source=str(
            raw.get("reportingComponent")
            or raw.get("reportingController")
            or _map(raw.get("source")).get("component")
            or ""
        ),
    )


def newest(events: Iterable[Event], reason: str, uid: str = "") -> Event | None:
    """The newest event with this reason (about the object with this uid, where one is given)."""
    found = [e for e in events if e.reason == reason and uid in ("", e.uid)]
    if not found:
        return None
    dated = [(e.last, index) for index, e in enumerate(found) if e.last is not None]
    return found[max(dated)[1]] if dated else found[-1]


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}

"""When a Pod ends by itself, and how long it takes to end when it is told to."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from devices.dra.names import EXPECTED_END_ANNOTATION, RETRYABLE_LABEL
from devices.dra.pods import Pod
from devices.dra.reading import moment

#: What Kubernetes gives a Pod that does not say (terminationGracePeriodSeconds).
USUAL_GRACE: Final = timedelta(seconds=30)


def expected_end(pod: Pod) -> datetime | None:
    """When the Pod is known to end: its deletion, its deadline, or what its owner wrote on it;
    None where nobody has said.
    """
    if pod.meta.deleted is not None:
        return pod.meta.deleted
    spec, status = _part(pod, "spec"), _part(pod, "status")
    started, seconds = moment(status.get("startTime")), spec.get("activeDeadlineSeconds")
    said = moment(pod.meta.annotations.get(EXPECTED_END_ANNOTATION))
    deadline = None
    if started is not None and isinstance(seconds, int):
        deadline = started + timedelta(seconds=seconds)
    known = [end for end in (deadline, said) if end is not None]
    return min(known) if known else None


def grace(pod: Pod) -> timedelta:
    """How long the Pod may take to end once it is told to."""
    seconds = _part(pod, "spec").get("terminationGracePeriodSeconds")
    return timedelta(seconds=seconds) if isinstance(seconds, int) else USUAL_GRACE


def started(pod: Pod) -> datetime | None:
    """Since when the Pod runs on its node; None where its status does not say."""
    return moment(_part(pod, "status").get("startTime"))


def retryable(pod: Pod) -> bool:
    """Whether its owner has said that it may be ended and started again."""
    return pod.meta.labels.get(RETRYABLE_LABEL) == "true"


def _part(pod: Pod, name: str) -> Mapping[str, Any]:
    found = pod.raw.get(name)
    return found if isinstance(found, Mapping) else {}

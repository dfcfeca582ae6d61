"""What gates measure: the closed list, and how samples of each are judged. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """How samples become a verdict (see `gates.read`)."""

    SHARE = "share"
    """How many of the samples are bad, against the baseline."""
    SLOW = "slow"
    """How many of the samples are slower than the baseline's 95th percentile allows."""
    NONE_ALLOWED = "none allowed"
    """One is too many; the baseline stands beside it and does not matter."""
    WITHIN = "within"
    """Each sample stays within a limit; there is no baseline."""
    OUTSIDE = "outside"
    """Somebody else answers."""


class Measure(StrEnum):
    """What a gate looks at."""

    ALLOCATION = "allocation"
    WAIT = "wait"
    PREPARED = "prepared"
    STARTED = "started"
    READY = "ready"
    NOT_RETRYABLE = "not retryable"
    NEEDS_CLEANUP = "needs cleanup"
    RETRIES = "retries"
    FRAGMENTATION = "fragmentation"
    USEFUL = "useful time"
    DRIFT = "drift"
    CONFLICTS = "conflicts"
    MISSING = "missing devices"
    VIOLATIONS = "tenant violations"
    RESTART = "driver restart"
    WEBHOOK = "webhook"
    PROMETHEUS = "prometheus"


@dataclass(frozen=True, slots=True)
class About:
    """A measure in words: its title, what one sample is, and what makes one bad (of what is slow,
    ``{limit}`` stands for the limit), in which unit.
    """

    title: str
    kind: Kind
    noun: str
    bad: str
    unit: str = "s"


ABOUT: Final[Mapping[Measure, About]] = {
    Measure.ALLOCATION: About(
        "Allocation success", Kind.SHARE, "Pod", "got no devices within the patience"
    ),
    Measure.WAIT: About(
        "Wait for devices", Kind.SLOW, "Pod", "waited longer than {limit} for devices"
    ),
    Measure.PREPARED: About(
        "Prepare time", Kind.SLOW, "Pod", "took longer than {limit} from bound to prepared"
    ),
    Measure.STARTED: About(
        "Start time", Kind.SLOW, "Pod", "took longer than {limit} from prepared to running"
    ),
    Measure.READY: About(
        "Claim to Ready", Kind.SLOW, "Pod", "took longer than {limit} from created to Ready"
    ),
    Measure.NOT_RETRYABLE: About(
        "Failures that waiting does not mend", Kind.SHARE, "Pod", "met one"
    ),
    Measure.NEEDS_CLEANUP: About("Failures that need cleanup", Kind.SHARE, "Pod", "met one"),
    Measure.RETRIES: About("Retried preparations", Kind.SHARE, "Pod", "were prepared again"),
    Measure.FRAGMENTATION: About(
        "Fragmentation", Kind.SHARE, "free device", "lie on nodes that are partly in use"
    ),
    Measure.USEFUL: About(
        "Lost device time", Kind.SLOW, "Pod", "lost more than {limit} of their device time", "%"
    ),
    Measure.DRIFT: About("Drift", Kind.NONE_ALLOWED, "node", "do not show what they should have"),
    Measure.CONFLICTS: About("Conflicts", Kind.NONE_ALLOWED, "node", "had two owners"),
    Measure.MISSING: About(
        "Devices that are seen",
        Kind.NONE_ALLOWED,
        "node",
        "show fewer devices than they should",
    ),
    Measure.VIOLATIONS: About(
        "Tenant violations", Kind.NONE_ALLOWED, "place", "hold what a tenant may not have"
    ),
    Measure.RESTART: About("Driver restart to first Ready", Kind.WITHIN, "restart", "took longer"),
    Measure.WEBHOOK: About("Webhook", Kind.OUTSIDE, "answer", ""),
    Measure.PROMETHEUS: About("Prometheus query", Kind.OUTSIDE, "answer", ""),
}

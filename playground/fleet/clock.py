"""Times as Kubernetes writes them, and the fleet's own pace."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime


def now() -> datetime:
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """To the second, as metav1.Time."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_stamp(moment: datetime) -> str:
    """To the microsecond, as metav1.MicroTime (leases, events)."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def read(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


@dataclass(frozen=True, slots=True)
class Pace:
    """Turns the seconds a real kubelet takes into those of this fleet (`time_scale`)."""

    scale: float = 1.0
    sync_seconds: float = 60.0

    def of(self, real_seconds: float) -> float:
        return real_seconds * self.scale

    # What a real kubelet waits, measured on 1.36.3 and 1.37.2 with its defaults.
    @property
    def status(self) -> float:
        """Node status is compared and written (nodeStatusUpdateFrequency)."""
        return self.of(10.0)

    @property
    def resync(self) -> float:
        """The least wait before a failed Pod is tried again (syncFrequency)."""
        return self.of(self.sync_seconds)

    @property
    def wipe(self) -> float:
        """A driver gone so long loses its node's slices (defaultWipingDelay)."""
        return self.of(30.0)

    @property
    def plugin_grace(self) -> float:
        """A plugin gone so long loses its capacity too (endpointStopGracePeriod)."""
        return self.of(300.0)

    @property
    def rpc_timeout(self) -> float:
        """A driver that does not answer is given up (NodePrepareResources' deadline)."""
        return self.of(45.0)

    @property
    def republish(self) -> float:
        """A running driver notices that its slices were wiped (the helper's re-sync delay)."""
        return self.of(30.0)

    @property
    def health_timeout(self) -> float:
        """Health not renewed so long is unknown (seen 12 s after a driver's death)."""
        return self.of(12.0)

    @property
    def crash_back_off(self) -> float:
        """First pause before a container that ended is started again."""
        return self.of(10.0)

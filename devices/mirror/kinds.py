"""The kinds that the mirror follows, in the order in which a first sync lists them.

What is left out of an object is said where it is read (`rows.py`): `managedFields` (of slices, and
of Pods that are charged for claims, who wrote them is kept), images of Nodes, most of Pods that use
no device, Jobs that ask for none, Events about other kinds.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from devices.mirror import rows, shapes
from devices.mirror.reader import Reader


@dataclass(frozen=True, slots=True)
class Mirrored:
    """One kind. `namespace` narrows it to one; `reader` makes rows of its objects.

    `quiet`: changes are heartbeats, applied every few seconds and news to nobody.
    `kept`: rows outlive the cluster's objects by that long.
    """

    reader: Reader
    namespace: str = ""
    quiet: bool = False
    kept: timedelta | None = None

    @property
    def kind(self) -> str:
        return self.reader.kind


def _plain(kind: str, *, opaque: bool = False) -> Mirrored:
    return Mirrored(Reader(kind, shapes.Plain, rows.look_plain, opaque=opaque))


_OBJECTS = (
    _plain("DeviceClass", opaque=True),
    Mirrored(Reader("Node", shapes.Node, rows.look_node)),
    Mirrored(Reader("ResourceSlice", shapes.Slice, rows.look_slice)),
    Mirrored(Reader("ResourceClaim", shapes.Claim, rows.look_claim, opaque=True)),
    Mirrored(Reader("ResourceClaimTemplate", shapes.Template, rows.look_template, opaque=True)),
    Mirrored(Reader("DeviceTaintRule", shapes.Rule, rows.look_rule)),
    Mirrored(Reader("Pod", shapes.Pod, rows.look_pod)),
    _plain("Namespace"),
    _plain("ResourceQuota"),
    _plain("DaemonSet"),
    Mirrored(Reader("Job", shapes.Job, rows.look_job)),
    _plain("PodDisruptionBudget"),
    # Of nodes only: the other leases are locks of controllers.
    Mirrored(
        Reader("Lease", shapes.Plain, rows.look_lease), namespace="kube-node-lease", quiet=True
    ),
)

# The API server forgets Events after an hour (--event-ttl); why a claim failed is asked for longer.
_EVENTS = Mirrored(
    Reader(
        "Event",
        shapes.Event,
        partial(rows.look_event, about=frozenset(entry.kind for entry in _OBJECTS)),
    ),
    kept=timedelta(days=7),
)

MIRRORED: dict[str, Mirrored] = {entry.kind: entry for entry in (*_OBJECTS, _EVENTS)}

"""The words of a node's conversion: directions, steps, acts, and how long each may take. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from devices.dra.conversion import NodeReport, Place, Times
from devices.dra.ownership import Owner


class Direction(StrEnum):
    """Which path the node's devices take afterwards."""

    TO_DRA = "to DRA"
    TO_PLUGIN = "to the plugin"

    @property
    def path(self) -> Owner:
        return Owner.DRA if self is Direction.TO_DRA else Owner.PLUGIN


class Step(StrEnum):
    """Where a conversion stands; the values are stored."""

    QUIESCING = "quiescing"
    PLUGIN_OFF = "plugin off"
    NODE_PROOF = "node-side proof"
    DRIVER_ON = "driver on"
    SETTLING = "settling"
    DRIVER_OFF = "driver off"
    SLICES_GONE = "slices gone"
    PLUGIN_ON = "plugin on"
    VERIFYING = "verifying"
    OPENING = "opening"
    DONE = "done"
    LOST = "lost"


ENDED: Final = frozenset({Step.DONE, Step.LOST})
WAYS: Final[Mapping[Direction, tuple[Step, ...]]] = {
    Direction.TO_DRA: (
        Step.QUIESCING,
        Step.PLUGIN_OFF,
        Step.NODE_PROOF,
        Step.DRIVER_ON,
        Step.SETTLING,
        Step.VERIFYING,
        Step.OPENING,
        Step.DONE,
    ),
    Direction.TO_PLUGIN: (
        Step.QUIESCING,
        Step.DRIVER_OFF,
        Step.SLICES_GONE,
        Step.PLUGIN_ON,
        Step.VERIFYING,
        Step.OPENING,
        Step.DONE,
    ),
}


class Act(StrEnum):
    """What a step asks for; each says how something should be."""

    CLOSE = "close the node"
    TRY_TAINT = "a Pod that must be kept off"
    PLUGIN_ON = "the plugin's switch on"
    PLUGIN_OFF = "the plugin's switch off"
    DRIVER_ON = "the driver's switch on"
    DRIVER_OFF = "the driver's switch off"
    PROBE = "ask the node itself"
    CANARY = "a Pod that must run"
    TIDY = "Berth's own Pods away"
    OPEN = "open the node"


@dataclass(frozen=True, slots=True)
class Conversion:
    """One conversion as its row has it.

    ``since`` is the beginning of the step (or of a person's leave to look again). ``empty_since``:
    the first of an unbroken row of looks at which nobody held a device. ``plugin_off``: when the
    plugin was proved off. ``mark`` is the label's value on all of Berth's Pods for it, ``trial``
    and ``canary`` are two of them. ``called`` is the code for which a person was called, or "".
    ``cancelled``: given up before anything was changed.
    """

    direction: Direction
    step: Step
    since: datetime
    place: Place
    times: Times = field(default_factory=Times)
    empty_since: datetime | None = None
    plugin_off: datetime | None = None
    reports: tuple[NodeReport, ...] = ()
    mark: str = ""
    trial: tuple[str, str] | None = None
    canary: tuple[str, str] | None = None
    called: str = ""
    cancelled: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """Either `move`, or `acts` and a wait. `remember` are fields of the row that change with it;
    `called` is the code for which a person is called.
    """

    why: str
    move: Step | None = None
    acts: tuple[Act, ...] = ()
    evidence: tuple[str, ...] = ()
    called: str = ""
    remember: Mapping[str, datetime | None] = field(default_factory=dict)
    recheck: timedelta = timedelta(seconds=2)


#: How long a step may take before a person is called; steps that wait for Pods have no end of
#: their own. Real kubelets (1.37, a busy machine) took: plugin off 3 s, node-side proof 5 s, driver
#: on 4 s, driver off 4 s, slices gone 30 s, plugin on 13 s, verifying 4 s, opening 5 s; the rest is
#: for the 10 s between two reports of a kubelet's status, for images and for slower machines.
PATIENCE: Final[Mapping[Step, timedelta]] = {
    Step.PLUGIN_OFF: timedelta(seconds=90),
    Step.NODE_PROOF: timedelta(seconds=90),
    Step.DRIVER_ON: timedelta(seconds=150),
    Step.DRIVER_OFF: timedelta(seconds=120),
    Step.SLICES_GONE: timedelta(seconds=120),
    Step.PLUGIN_ON: timedelta(seconds=90),
    Step.VERIFYING: timedelta(minutes=3),
    Step.OPENING: timedelta(minutes=2),
}
#: Beyond the settling itself.
SETTLING_PATIENCE: Final = timedelta(seconds=100)
#: Until the taint is seen to hold.
TAINT_PATIENCE: Final = timedelta(seconds=90)
TIMED_OUT: Final = "CONVERSION_TIMED_OUT"
REFUTED: Final = "CONVERSION_REFUTED"

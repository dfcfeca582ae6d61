"""A node that is well, and what is other than that in the steps of a drill."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from devices.dra.conversion import DaemonSet, Look, Place
from devices.dra.snapshot import KINDS, read
from migrationplan.drills.scene import Scene, remembered
from tests.factories import NOON
from tests.migrationplan.keeping import (
    DRIVER,
    GPU,
    a_claim,
    a_class,
    a_driver,
    a_node,
    a_pod,
    a_slice,
)  # fmt: skip

Obj = dict[str, Any]
PLACE = Place("n1", "u-n1", GPU, DRIVER, (DaemonSet("gpu", "plugin"),),
              (DaemonSet("gpu", "driver"),), 2, 2)  # fmt: skip
MARK = "drill-abcd"


def scene(*objects: Obj, **changed: Any) -> Scene:
    heard = dict.fromkeys(KINDS, NOON)
    given: dict[str, Any] = {"mark": MARK, "since": NOON - timedelta(seconds=30), "owner": "dra"}
    return Scene(PLACE, Look(read(objects), heard), NOON, **{**given, **changed})


WELL = (
    a_node(),
    a_class(),
    a_slice(),
    a_driver(),
    a_claim("c1", pod="train"),
    a_pod("train", "c1"),
)
BASE = remembered(scene(*WELL))


def but(*changed: Obj) -> list[Obj]:
    """The world with other versions of some objects, by kind and name."""
    names = {(one["kind"], one["metadata"]["name"]) for one in changed}
    kept = [one for one in WELL if (one["kind"], one["metadata"]["name"]) not in names]
    return [*kept, *changed]


def mine(name: str, device: str = "gpu-1") -> Obj:
    return a_claim(f"{MARK}{name}", device)


RESTARTED = a_pod("train", "c1")
RESTARTED["status"] = {
    **RESTARTED["status"],
    "containerStatuses": [
        {"name": "main", "state": {"running": {"startedAt": "2026-11-02T11:59:00Z"}}}
    ],
}
NEW = a_driver("u-another")
THERE, BACK = ("driver on", "to DRA"), ("slices gone", "to the plugin")
ACROSS = a_pod(MARK, "c1", nodeName="")
ACROSS["status"] = {"phase": "Pending"}
TAKEN = a_pod(MARK, "c1")
NO_DRIVER = [one for one in WELL if one["metadata"]["name"] != a_driver()["metadata"]["name"]]

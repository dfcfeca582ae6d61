"""Control planes that no test of this process needs now stand still.

An idle one takes about a tenth of a processor, and a run has several in each of its processes. They
are frozen, not ended: their ports, their objects and what is connected to them stay.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import pytest

from playground.plane.controlplane import ControlPlane

NEWEST, OLDER = "1.37.2", "1.36.3"

#: For real nodes; its name beside the releases.
REAL = "real"

planes: dict[str, ControlPlane] = {}
_asleep: set[str] = set()
_wanted: defaultdict[str, set[str]] = defaultdict(set)


def note(items: Iterable[pytest.Item]) -> None:
    """Remembers which planes each file uses, and each folder: what stands for a whole package is
    taken down long after the last test that used it.
    """
    for item in items:
        wanted = _wanted_by(item)
        _wanted[str(item.path)] |= wanted
        if wanted and _lasts_for_a_package(item):
            _wanted[str(item.path.parent)] |= wanted


def only_for(item: pytest.Item) -> None:
    """Wakes the planes that the test's file uses, and lets the others rest."""
    wanted = _wanted[str(item.path)] | _wanted.get(str(item.path.parent), set())
    if "journeys" not in item.path.parts:
        wanted |= {REAL}  # its nodes would be taken for lost
    for name, plane in planes.items():
        if name in wanted and name in _asleep:
            for component in reversed(list(plane.pids())):
                plane.resume(component)
            _asleep.discard(name)
        elif name not in wanted and name not in _asleep:
            for component in plane.pids():
                plane.pause(component)
            _asleep.add(name)


def _wanted_by(item: pytest.Item) -> set[str]:
    names = set(getattr(item, "fixturenames", ()))
    parameters = (
        item.callspec.params
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
        else {}
    )
    wanted = {
        release
        for fixture, release in (("plane_137", NEWEST), ("plane_136", OLDER))
        if fixture in names
    }
    if "plane" in names:
        wanted.add(str(parameters.get("plane", "")))
    if not wanted and "start_plane" in names:
        wanted = {NEWEST, OLDER}
    return wanted


def _lasts_for_a_package(item: pytest.Item) -> bool:
    known = item._fixtureinfo.name2fixturedefs  # pytest has no other way to ask
    return any(one.scope == "package" for found in known.values() for one in found)

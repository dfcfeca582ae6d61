"""Real nodes as a fleet file describes them: its group `real`, whose nodes nobody simulates.

One file describes simulated and real nodes alike: labels, taints, and what drivers and plugins find
there. The group counts no nodes of its own (`count: 0`); how many there are is asked when the
playground starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from playground.errors import PlaygroundError
from playground.fleet import install
from playground.fleet.spec import FleetSpec, NodeGroup, SpecError, load
from playground.manifests import Access, for_real_nodes
from playground.plane.controlplane import ControlPlane
from playground.realnodes.config import Settings
from playground.realnodes.node import RealNode
from playground.realnodes.nodefiles import devices_file

Obj = dict[str, Any]

GROUP = "real"
NOBODY = NodeGroup(name=GROUP, count=0, node="real-{number}")


def spec_of(scenario: str) -> FleetSpec:
    """The fleet of a scenario. Raises `PlaygroundError` with a sentence."""
    try:
        return load(scenario)
    except SpecError as error:
        raise PlaygroundError(str(error)) from error


def group_of(spec: FleetSpec) -> NodeGroup:
    """The group of real nodes; one without labels and devices where the file has none."""
    return next((group for group in spec.groups if group.name == GROUP), NOBODY)


def name_of(spec: FleetSpec, index: int) -> str:
    """The name of the `index`-th real node, from 0."""
    return group_of(spec).node.format(index=index, number=index + 1)


def settings_of(spec: FleetSpec, base: Settings | None = None) -> Settings:
    """The group's labels and taints, on top of what `base` says."""
    group, base = group_of(spec), base or Settings()
    return replace(
        base, labels={**base.labels, **group.labels}, taints=(*base.taints, *group.taints)
    )


def describe(node: RealNode, spec: FleetSpec, index: int = 0) -> None:
    """Puts on a node what its drivers and plugins find there, before they start."""
    node.write_devices(devices_file(spec, group_of(spec), node.name, index))


def objects(spec: FleetSpec, plane: ControlPlane) -> Iterator[Obj]:
    """What vendors' charts install (`install.objects`), fit to run on real nodes too."""
    host, port = plane.url.removeprefix("https://").split(":")
    return for_real_nodes(install.objects(spec), spec, Access(host, port))

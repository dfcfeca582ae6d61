"""A fleet file (YAML) as frozen values, and its templates as devices and names.

A fleet file names node groups, drivers with the pools they publish, device plugins, and the objects
that vendors and tenants bring. msgspec checks types and names the path of a mistake (`SpecError`).
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

SCENARIOS = Path(__file__).resolve().parent.parent / "scenarios"

Obj = dict[str, Any]


class SpecError(ValueError):
    """The fleet file does not say what a fleet is; the message is one sentence for people."""


class NodeGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`count` nodes alike. `node` is their name's pattern: `{index}` from 0, `{number}` from 1."""

    name: str
    count: int
    node: str
    labels: dict[str, str] = {}
    taints: list[dict[str, str]] = []
    capacity: dict[str, str] = {}
    allocatable: dict[str, str] = {}
    declared_features: tuple[str, ...] = ("DRANodeAllocatableResources",)

    def node_names(self) -> list[str]:
        return [self.node.format(index=i, number=i + 1) for i in range(self.count)]


class Template(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Devices (or counter sets) alike: `body` once for every combination of `repeat`.

    `repeat` gives each variable its count, the first varies slowest. `name` and every text in
    `body` may use them in braces, besides `{node}`, `{node_index}` and `{uuid}`; a mapping
    `{each: [...], by: variable}` is replaced by the entry of that variable (modulo the length).
    """

    name: str
    repeat: dict[str, int] = {}
    body: dict[str, Any] = {}


class Pool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A slice pool: node-local for each node of `group`, or one for the cluster (`selector`)."""

    name: str = "{node}"
    group: str = ""
    selector: dict[str, list[str]] = {}
    counters: list[Template] = []
    devices: list[Template] = []
    devices_per_slice: int = 128


class Driver(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A DRA driver: a DaemonSet on nodes with `node_labels`, and its pools.

    `controller` adds a Deployment that publishes the cluster's pools and attaches their devices.
    Times are seconds of a real driver on idle hardware.
    """

    name: str
    namespace: str
    version: str = "1.0.0"
    node_labels: dict[str, str] = {}
    pools: list[Pool] = []
    controller: bool = False
    controller_labels: dict[str, str] = {}
    publish_seconds: float = 1.1
    prepare_seconds: float = 0.3
    attach_seconds: float = 6.0
    device_status: bool = False
    network: bool = False


class Plugin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A device plugin: a DaemonSet on nodes with `node_labels`; `devices` per node group."""

    name: str
    namespace: str
    resource: str
    version: str = "1.0.0"
    node_labels: dict[str, str] = {}
    devices: dict[str, int] = {}
    device: str = "dev-{index}"
    register_seconds: float = 1.7


class FleetSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole fleet. `time_scale` shortens what a real kubelet takes minutes for (0.1: a tenth);
    `sync_seconds` is its syncFrequency, by which it tries again to prepare.

    `objects` are always made so (classes, namespaces); `workloads` are made once per cluster.
    """

    name: str
    time_scale: float = 1.0
    sync_seconds: float = 60.0
    heartbeat_seconds: float = 10.0
    start_seconds: float = 0.3
    groups: list[NodeGroup] = []
    drivers: list[Driver] = []
    plugins: list[Plugin] = []
    objects: list[dict[str, Any]] = []
    workloads: list[dict[str, Any]] = []

    def group_of(self, node: str) -> NodeGroup:
        return next(group for group in self.groups if node in group.node_names())


def load(scenario: str | Path) -> FleetSpec:
    """The fleet of a scenario's name (`demo`) or of a file's path. Raises SpecError."""
    path = Path(scenario)
    if not path.suffix:
        path = SCENARIOS / f"{scenario}.yaml"
    try:
        text = path.read_text()
    except FileNotFoundError:
        known = ", ".join(sorted(one.stem for one in SCENARIOS.glob("*.yaml")))
        raise SpecError(f"There is no scenario {scenario!s}; there are: {known}.") from None
    try:
        spec = msgspec.convert(yaml.safe_load(text), FleetSpec)
    except (msgspec.ValidationError, yaml.YAMLError) as error:
        raise SpecError(f"{path.name}: {error}.") from error
    _check(spec, path.name)
    return spec


def _check(spec: FleetSpec, source: str) -> None:
    groups = {group.name for group in spec.groups}
    for driver in spec.drivers:
        for pool in driver.pools:
            if pool.group and pool.group not in groups:
                raise SpecError(f"{source}: driver {driver.name} names no group {pool.group}.")
            if not pool.group and not driver.controller:
                raise SpecError(
                    f"{source}: driver {driver.name} has a pool of the cluster, but no controller."
                )
    for plugin in spec.plugins:
        if missing := set(plugin.devices) - groups:
            raise SpecError(f"{source}: plugin {plugin.name} names no group {missing.pop()}.")
    nodes = [name for group in spec.groups for name in group.node_names()]
    if len(nodes) != len(set(nodes)):
        raise SpecError(f"{source}: two nodes have one name.")


def expand(template: Template, **known: Any) -> Iterator[Obj]:
    """The template's objects in order, each with its `name`; `known` are further variables."""
    counts = [range(count) for count in template.repeat.values()]
    for values in itertools.product(*counts):
        variables = {**known, **dict(zip(template.repeat, values, strict=True))}
        name = template.name.format(**variables)
        seed = f"{known.get('seed', '')}/{known.get('node', '')}/{name}"
        variables |= {"uuid": str(uuid.uuid5(uuid.NAMESPACE_OID, seed))}
        yield {
            "name": name,
            **_fill(template.body, variables, first=next(iter(template.repeat), "")),
        }


def _fill(value: Any, variables: Mapping[str, Any], first: str) -> Any:
    match value:
        case str() if "{" in value:
            return value.format(**variables)
        case {"each": list(entries), **rest}:
            chosen = entries[variables[str(rest.get("by", first))] % len(entries)]
            return _fill(chosen, variables, first)
        case dict():
            return {
                _fill(k, variables, first): _fill(v, variables, first) for k, v in value.items()
            }
        case list():
            return [_fill(entry, variables, first) for entry in value]
        case _:
            return value

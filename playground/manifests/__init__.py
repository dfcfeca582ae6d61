"""Fits the fleet's DaemonSets to real nodes: the same objects serve simulated and real ones.

A simulated kubelet runs a driver's Pod by its annotation and looks at nothing else; a real one
needs an image, arguments and the kubelet's folders: the YAML files beside this one. Pure.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from playground.fleet.install import PROGRAM
from playground.fleet.spec import FleetSpec

Obj = dict[str, Any]

FOLDER = Path(__file__).resolve().parent
# Which program plays which part, and the name its image has (`images.image_name`).
IMAGES = {"driver": "localhost/berth/simdriver:1", "plugin": "localhost/berth/simplugin:1"}


@dataclass(frozen=True, slots=True)
class Access:
    """How Pods on real nodes reach things. Folders are as the node sees them.

    `host` and `port` are the API server's; `control` holds devices.json and faults.json.
    """

    host: str
    port: str
    kubelet: str = "/var/lib/kubelet"
    cdi: str = "/var/run/cdi"
    control: str = "/var/lib/kubelet/berth"


def for_real_nodes(objects: Iterable[Obj], spec: FleetSpec, access: Access) -> Iterator[Obj]:
    """The fleet's objects (`install.objects`) with DaemonSets that real nodes can run too."""
    resources = {plugin.name: plugin.resource for plugin in spec.plugins}
    for obj in objects:
        template = obj.get("spec", {}).get("template", {})
        program = template.get("metadata", {}).get("annotations", {}).get(PROGRAM, "")
        part, _, name = program.partition(":")
        if obj["kind"] == "DaemonSet" and part in IMAGES:
            values = {
                "name": resources.get(name, name),
                "image": IMAGES[part],
                "host": access.host,
                "port": access.port,
                "kubelet": access.kubelet,
                "cdi": access.cdi,
                "control": access.control,
            }
            obj = copy.deepcopy(obj)
            pod = obj["spec"]["template"]["spec"]
            addition = filled(part, values)["spec"]
            for container in pod["containers"]:
                container.update(addition["containers"][0])
            pod.update({key: value for key, value in addition.items() if key != "containers"})
        yield obj


def filled(part: str, values: Mapping[str, str]) -> Obj:
    """The YAML of a part with its placeholders replaced."""
    return dict(fill(yaml.safe_load((FOLDER / f"{part}.yaml").read_text()), values))


def fill(value: Any, values: Mapping[str, str]) -> Any:
    """A value of YAML, with `{name}` in every text of it replaced by that of `values`."""
    match value:
        case str():
            return value.format_map(values)
        case dict():
            return {key: fill(entry, values) for key, entry in value.items()}
        case list():
            return [fill(entry, values) for entry in value]
        case _:
            return value

"""Reads the shared cases: object sets of the real world with the right answers in their headers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from devices.dra.gates import Gates, gates
from devices.dra.requests import Wish
from devices.dra.snapshot import Snapshot, read

FOLDER = Path(__file__).parents[2] / "cases"
PATHS = sorted(FOLDER.glob("[0-9]*.yaml"))


@dataclass(frozen=True, slots=True)
class Oracle:
    """One ORACLE line: the allocator's answer for one claim or template on one node."""

    case: str
    kind: str
    name: str
    node: str
    verdict: str
    rest: str

    def __str__(self) -> str:
        return f"{self.case}: {self.kind}/{self.name} on {self.node}"


@cache
def objects(path: Path) -> tuple[dict[str, Any], ...]:
    """The objects of a case."""
    return tuple(doc for doc in yaml.safe_load_all(path.read_text()) if doc)


def snapshot(path: Path, cluster: Gates | None = None) -> Snapshot:
    """The objects of a case in a cluster with these gates."""
    return read(objects(path), gates=cluster or case_gates(path))


def by_number(number: str) -> Path:
    """The case of that number."""
    return next(path for path in PATHS if path.name.startswith(number))


def case_gates(path: Path) -> Gates:
    """What the answers of a case presume: 1.36, everything on but list attributes."""
    named = re.search(r"^# GATES: (\w+)", path.read_text(), re.MULTILINE)
    settings = {"DRADeviceTaintRules": True, "DRANodeAllocatableResources": True}
    return gates("1.36", settings | ({named.group(1): True} if named else {}))


def wish(cluster: Snapshot, name: str) -> list[Wish]:
    """The claim that a template of a case makes."""
    [template] = [t for t in cluster.templates.values() if t.meta.name == name]
    return [Wish(f"{template.meta.namespace}/{name}", template.spec)]


def oracles() -> list[Oracle]:
    """Every ORACLE line of every case."""
    found = []
    line = re.compile(
        r"^# ORACLE: (claim|template)/(\S+)@(\S+) => (OK|NODE-ERROR|NO|FATAL) ?(.*)$", re.MULTILINE
    )
    for path in PATHS:
        for kind, name, node, verdict, rest in line.findall(path.read_text()):
            found.append(
                Oracle(path.stem, kind, name, node, verdict.replace("-", "_"), rest.strip())
            )
    return found

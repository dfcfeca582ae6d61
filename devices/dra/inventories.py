"""What nodes should have: lines recorded from a snapshot or read from a file, and what drift is
compared with. Pure.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from devices.dra.drift import Inventory, Place, kind_of
from devices.dra.hardware import Spot, count, identities, spots
from devices.dra.pluginpath import whole
from devices.dra.pools import pools
from devices.dra.snapshot import Snapshot

COLUMNS: Final = ("node", "driver", "model", "count")
#: Devices of one kind on one node; a larger number is a slip of the pen.
MOST_DEVICES: Final = 4096
MOST_LINES: Final = 20_000


@dataclass(frozen=True, slots=True)
class Line:
    """So many devices of one model by one driver on one node. ``devices`` are the marks (uuid, PCI
    address, serial number) of each by its name, where they were recorded.
    """

    node: str
    driver: str
    model: str
    count: int
    devices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """As people read it."""
        return f"{self.count} × {self.model or 'device'}"


@dataclass(frozen=True, slots=True)
class Recorded:
    """Lines as a snapshot shows them, and nodes that show nothing that could be recorded."""

    lines: tuple[Line, ...]
    left_out: tuple[str, ...] = ()


def recorded(snapshot: Snapshot, nodes: Collection[str], driver: str, resource: str) -> Recorded:
    """What these nodes show of a driver now; where it publishes nothing, what a plugin offers.

    Nodes with an incomplete pool are left out: what they have is not known yet.
    """
    half = {
        piece.reach.node_name
        for pool in pools(snapshot).values()
        if pool.driver == driver and pool.incomplete
        for piece in pool.slices
    }
    lines: list[Line] = []
    left_out = []
    for node in sorted(nodes):
        found = spots(snapshot).get(node, {}).get(driver) or []
        offered = _offered(snapshot, node, resource)
        if node in half or (not found and not offered):
            left_out.append(node)
        elif found:
            lines += _of_node(node, driver, found)
        else:
            lines.append(Line(node, driver, "", offered))
    return Recorded(tuple(lines), tuple(left_out))


def read_file(
    text: str, nodes: Collection[str], driver: str
) -> tuple[tuple[Line, ...], tuple[str, ...]]:
    """Lines of a file of comma-separated values with the columns node, driver, model, count, and
    what is wrong with it, by line. Driver may be left out: a node pool has one.
    """
    rows = csv.reader(io.StringIO(text.strip("\ufeff \n\r\t"), newline=""), skipinitialspace=True)
    lines: dict[tuple[str, str], Line] = {}
    wrong: list[str] = []
    names: list[str] = []
    try:
        for number, row in enumerate(rows, 1):
            cells = [cell.strip().removeprefix("'") for cell in row]
            if not any(cells):
                continue
            if not names:
                names = [cell.casefold() for cell in cells]
                if not {"node", "count"} <= set(names) <= set(COLUMNS):
                    return (), (f"Line {number}: begin with the columns {', '.join(COLUMNS)}.",)
                continue
            said = dict(zip(names, cells, strict=False))
            problem = _problem(said, nodes, driver)
            key = (said.get("node", ""), said.get("model", ""))
            if not problem and key in lines:
                problem = f"{key[0]} has {key[1] or 'that'} twice"
            if problem:
                wrong.append(f"Line {number}: {problem}.")
                continue
            lines[key] = Line(key[0], driver, key[1], int(said["count"]))
    except csv.Error as error:
        wrong.append(f"It is no file of comma-separated values: {error}.")
    if not lines and not wrong:
        wrong.append("It has no lines.")
    if len(lines) > MOST_LINES:
        wrong.append(f"At most {MOST_LINES} lines.")
    return tuple(sorted(lines.values(), key=lambda one: (one.node, one.model))), tuple(wrong)


def file_of(lines: Iterable[Line]) -> str:
    """The same lines as a file."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for line in lines:
        writer.writerow([_plain(line.node), line.driver, _plain(line.model), line.count])
    return out.getvalue()


def expected(lines: Iterable[Line]) -> Mapping[Place, Inventory]:
    """What drift is compared with: all models of a driver on a node together."""
    counts: dict[Place, int] = defaultdict(int)
    devices: dict[Place, dict[str, frozenset[str]]] = defaultdict(dict)
    for line in lines:
        place = (line.node, line.driver)
        counts[place] += line.count
        devices[place] |= {name: frozenset(marks) for name, marks in line.devices.items()}
    return {place: Inventory(number, devices[place]) for place, number in counts.items()}


def _problem(said: Mapping[str, str], nodes: Collection[str], driver: str) -> str:
    node, number = said.get("node", ""), said.get("count", "")
    if node not in nodes:
        return f"{node or 'it'} is no node of this pool"
    if said.get("driver", driver) not in ("", driver):
        return f"this pool's driver is {driver}, not {said['driver']}"
    if not (number.isascii() and number.isdecimal()) or int(number) > MOST_DEVICES:
        return f"{number or 'nothing'} is no number of devices from 0 to {MOST_DEVICES}"
    if len(said.get("model", "")) > 120:
        return "a model has at most 120 characters"
    return ""


def _of_node(node: str, driver: str, found: Iterable[Spot]) -> Iterable[Line]:
    by_model: dict[str, list[Spot]] = defaultdict(list)
    for spot in found:
        by_model[kind_of(spot[1].attributes)].append(spot)
    for model, devices in sorted(by_model.items()):
        marks = {
            device.name: tuple(sorted(identities(device)))
            for _, device in devices
            if identities(device)
        }
        yield Line(node, driver, model, count(devices), marks)


def _offered(snapshot: Snapshot, node: str, resource: str) -> int:
    """What a plugin offers on a node; 0 where none does."""
    amount = snapshot.node(node).allocatable.get(resource)
    return whole(amount) if amount is not None else 0


def _plain(text: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text

"""Makes a disagreement small: leaves out objects and parts of the question while it stays one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

Record = dict[str, Any]
#: Whether a record still shows a disagreement.
Differs = Callable[[Record], bool]


def shrunk(record: Record, differs: Differs) -> Record:
    """The smallest record that can be had by leaving out one thing after the other."""
    again = True
    while again:
        again = False
        for smaller in _smaller(record):
            if differs(smaller):
                record, again = smaller, True
                break
    return record


def _smaller(record: Record) -> Iterator[Record]:
    """Records with one object, claim, request, constraint or device less."""
    yield from _without(record, ("objects",))
    if len(record["claims"]) > 1:
        yield from _without(record, ("claims",))
    for number, claim in enumerate(record["claims"]):
        devices = claim["spec"]["devices"]
        path: tuple[str | int, ...] = ("claims", number, "spec", "devices")
        if len(devices["requests"]) > 1:
            yield from _without(record, (*path, "requests"))
        if devices.get("constraints"):
            yield from _without(record, (*path, "constraints"))
    for number, obj in enumerate(record["objects"]):
        if len(obj.get("spec", {}).get("devices", ())) > 1 and obj["kind"] == "ResourceSlice":
            yield from _without(record, ("objects", number, "spec", "devices"))


def _without(record: Record, path: tuple[str | int, ...]) -> Iterator[Record]:
    """Copies that each lack one item of the list at the path."""
    items = _at(record, path)
    for number in reversed(range(len(items))):
        smaller = copy.deepcopy(record)
        del _at(smaller, path)[number]
        yield smaller


def _at(record: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        record = record[step]
    return record

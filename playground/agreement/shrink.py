"""Makes a disagreement small: leaves out objects and parts of the question while it stays one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

Record = dict[str, Any]
#: Whether a record still shows a disagreement.
Differs = Callable[[Record], bool]


def shrunk(record: Record, differs: Differs, *, tries: int | None = None) -> Record:
    """The smallest record that can be had by leaving out many things at once, then one after the
    other; with `tries` the smallest that so many questions lead to.
    """
    again = True
    while again:
        again = False
        for smaller in _smaller(record):
            if tries is not None:
                if not tries:
                    return record
                tries -= 1
            if differs(smaller):
                record, again = smaller, True
                break
    return record


def _smaller(record: Record) -> Iterator[Record]:
    """Records with some objects, claims, requests, constraints or devices less."""
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
    """Copies that each lack some of the list at the path: a half, a quarter, … one item."""
    amount = len(_at(record, path))
    size = amount // 2 or amount
    while size:
        for end in range(amount, 0, -size):
            smaller = copy.deepcopy(record)
            del _at(smaller, path)[max(end - size, 0) : end]
            yield smaller
        size //= 2


def _at(record: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        record = record[step]
    return record

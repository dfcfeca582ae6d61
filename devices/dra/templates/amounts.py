"""What devices say of an amount that is asked for: what is taken, how many share one, what is left.

All of it is read from the devices' own request policies (KEP-5075); where a device says nothing,
nothing is promised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from devices.dra.capacity_requests import NotRepresentable, consumed
from devices.dra.claims import DeviceClass
from devices.dra.gates import Gates
from devices.dra.matching import all_match
from devices.dra.objects import DeviceWish
from devices.dra.pools import pools
from devices.dra.quantity import Quantity, parse
from devices.dra.restate import shown, spaced
from devices.dra.slices import Capacity
from devices.dra.snapshot import Snapshot
from devices.dra.templates.words import amount_of

#: Kinds of devices that are told apart in words; more would be a table of the hardware.
MOST_KINDS: Final = 3


@dataclass(frozen=True, slots=True)
class Kind:
    """Devices of a class that offer the same amounts under the same policies."""

    capacity: Mapping[str, Capacity]
    shareable: bool
    partition: bool
    devices: int


def kinds_of(snapshot: Snapshot, device_class: str) -> tuple[Kind, ...]:
    """The kinds of a class's devices, the most frequent first."""
    found = snapshot.classes.get(device_class)
    if found is None:
        return ()
    return snapshot.once(("amount kinds", device_class), lambda s: _kinds(s, found))


def _kinds(snapshot: Snapshot, device_class: DeviceClass) -> tuple[Kind, ...]:
    counts: Counter[object] = Counter()
    kinds: dict[object, Kind] = {}
    for pool in pools(snapshot).values():
        for piece in pool.slices:
            answers = all_match(snapshot, device_class.selectors, piece)
            for device, answer in zip(piece.devices, answers, strict=True):
                if answer is True:
                    parted, amounts = bool(device.consumes), tuple(device.capacity.items())
                    key = (device.shareable, parted, amounts)
                    counts[key] += 1
                    kinds.setdefault(key, Kind(device.capacity, device.shareable, parted, 0))
    return tuple(replace(kinds[key], devices=count) for key, count in counts.most_common())


@dataclass(frozen=True, slots=True)
class Told:
    """What one kind of devices makes of an ask. ``taken`` is None where it refuses."""

    kind: Kind
    taken: Mapping[str, Quantity] | None
    at_once: int | None
    """So many asks of this size share one device; None where nothing limits it."""


def told(snapshot: Snapshot, ask: DeviceWish) -> tuple[Told, ...]:
    """What each kind of the class's devices makes of one ask."""
    asked = {name: parse(text) for name, text in ask.capacity}
    return tuple(
        _told(kind, asked, snapshot.gates) for kind in kinds_of(snapshot, ask.device_class)
    )


def _told(kind: Kind, asked: Mapping[str, Quantity], gates: Gates) -> Told:
    try:
        taken = consumed(asked, kind.capacity, gates)
    except NotRepresentable:
        taken = None
    if taken is None or any(taken[name] > kind.capacity[name].value for name in taken):
        return Told(kind, None, 0)
    if not kind.shareable:
        return Told(kind, taken, 1)
    shares = [
        kind.capacity[name].value.nanos // amount.nanos for name, amount in taken.items() if amount
    ]
    return Told(kind, taken, min(shares, default=None))


def sentences(snapshot: Snapshot, ask: DeviceWish, *, shared: bool) -> tuple[str, ...]:
    """What is taken for an ask, how many at once, what is left over, when it is given back."""
    answers = [one for one in told(snapshot, ask) if one.taken is not None]
    lines: dict[str, None] = {}
    for answer in answers[:MOST_KINDS]:
        about = "" if len(answers) == 1 else f"{_size(answer.kind, ask)}: "
        for text in _sentences(answer, ask):
            lines[about + text] = None
    ends = "the last Pod that uses it ends" if shared else "the Pod ends"
    return (*lines, f"Given back when {ends}.")


def _sentences(answer: Told, ask: DeviceWish) -> Iterator[str]:
    assert answer.taken is not None
    for name, text in ask.capacity:
        offer, amount = answer.kind.capacity[name], answer.taken[name]
        yield from _policy(name, offer)
        if amount != parse(text):
            yield f"{amount_of(text, name)} becomes {shown(str(amount))}."
    if not answer.kind.shareable:
        yield "The device is yours alone, also what you did not ask for."
    elif answer.at_once is None:
        yield "How many share a device is not limited by this driver."
    elif answer.at_once == 1:
        yield "One ask of this size at a time on each device."
    else:
        yield f"Up to {answer.at_once} asks of this size at a time on each device."
    if answer.kind.shareable and answer.at_once:
        yield from _rest(answer, answer.at_once, ask)


def _policy(name: str, offer: Capacity) -> Iterator[str]:
    policy = offer.policy
    if policy is None:
        return
    if policy.range is not None and policy.range.step is not None:
        step = str(policy.range.step)
        yield (
            f"Rounded up to whole {spaced(name)}."
            if step == "1"
            else f"Rounded up to the next {amount_of(step, name)}."
        )
    elif policy.values:
        yield f"{', '.join(shown(str(one)) for one in policy.values)}: the next of these is taken."


def _rest(answer: Told, at_once: int, ask: DeviceWish) -> Iterator[str]:
    """What is left of a device that is full of such asks, and who can have it."""
    assert answer.taken is not None
    for name, _ in ask.capacity:
        offer = answer.kind.capacity[name]
        rest = offer.value - answer.taken[name] * at_once
        if not rest:
            continue
        least = offer.policy and (
            (offer.policy.range and offer.policy.range.min)
            or min(offer.policy.values or (), default=None)
        )
        fate = "unused" if least and rest < least else "for smaller asks"
        yield f"Left beside these, {fate}: {amount_of(str(rest), name)}."


def _size(kind: Kind, ask: DeviceWish) -> str:
    sizes = [amount_of(str(kind.capacity[name].value), name) for name, _ in ask.capacity]
    return f"Devices with {' and '.join(sizes)}"

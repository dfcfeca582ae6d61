"""What a device is, in words people use: "memory 79.6 GiB", "RDMA", "link NVLink". Pure.

Drivers name attributes as they like, and quantities carry no unit. What is said here is the name's
last part in words and the value with the unit that the name implies; nothing is judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from typing import Final

from devices.dra.quantity import QuantityError, parse

#: Attributes that say what a device is, the most telling first; by their last part.
NAMING: Final = ("productName", "model", "product", "profile", "type")
#: How far down the order of telling traits a line of a few words goes.
MOST_TELLING: Final = 3
#: Attributes whose value needs no label: "NVLink" says more than "interconnect NVLink".
_BARE: Final = frozenset({"interconnect", "architecture", "productName", "profile", "type", "kind"})
#: Words with a spelling of their own.
_SPELLED: Final = {
    word.lower(): word
    for word in (
        "NVLink", "NVSwitch", "RDMA", "PCIe", "PCI", "NUMA", "UUID", "CUDA", "GPU", "MIG", "SMT",
        "NIC", "MAC", "FPGA", "CPU", "ECC", "RoCE", "InfiniBand", "SR-IOV", "vGPU", "VF", "IP",
    )
}  # fmt: skip


class Kind(StrEnum):
    """What an amount is an amount of."""

    BYTES = "bytes"
    RATE = "bits per second"
    NUMBER = "number"


#: Last parts of names (in small letters) by what they measure, with the size of one unit.
_MEASURES: Final[Mapping[str, tuple[Kind, int]]] = {
    "bandwidth": (Kind.RATE, 1),
    "throughput": (Kind.RATE, 1),
    "linkspeed": (Kind.RATE, 1),
    "gigabits": (Kind.RATE, 10**9),
    "speedgbps": (Kind.RATE, 10**9),
    "linkspeedgbps": (Kind.RATE, 10**9),
    "speedmbps": (Kind.RATE, 10**6),
}
_BYTES: Final = ("memory", "storage", "hbm", "vram", "hugepages")
#: Names that say the unit and not the thing.
_CALLED: Final = {"gigabits": "link speed", "speedgbps": "link speed", "speedmbps": "link speed"}


@dataclass(frozen=True, slots=True)
class Amount:
    """A capacity or a numeric attribute: how much of what, in bytes, bits per second or ones."""

    label: str
    kind: Kind
    value: Fraction

    @property
    def words(self) -> str:
        return amount_words(self.kind, self.value)


@dataclass(frozen=True, slots=True)
class Trait:
    """One attribute or capacity. ``name`` is its qualified name, ``words`` how it reads alone
    ("memory 79.6 GiB", "no RDMA"), ``label`` and ``value`` how it reads in a table.
    """

    name: str
    label: str
    value: str
    words: str
    amount: Amount | None = None
    capacity: bool = False


def title(driver: str, attributes: Mapping[str, str]) -> str:
    """What a device calls itself: its product, with its profile where it is a part of one."""
    by_last = {_last(name): value for name, value in attributes.items()}
    name = next((by_last[key] for key in NAMING if by_last.get(key)), driver)
    profile = by_last.get("profile")
    return f"{name} {profile}" if profile and profile not in name else name


def make(driver: str, attributes: Mapping[str, str]) -> str:
    """What tells which devices are whole ones or parts of the same kind of hardware."""
    by_last = {_last(name): value for name, value in attributes.items()}
    product = next((by_last[key] for key in NAMING[:3] if by_last.get(key)), "")
    return f"{driver}/{product}"


def traits(attributes: Mapping[str, str], capacity: Mapping[str, str]) -> tuple[Trait, ...]:
    """Capacities first, then attributes, each by its name. Both map qualified names to text."""
    found = [_capacity(name, value) for name, value in capacity.items()]
    found += [_attribute(name, value) for name, value in sorted(attributes.items(), key=_by_last)]
    return tuple(found)


def told(found: Iterable[Trait], *, besides: str = "", most: int = 4) -> str:
    """What tells devices apart, in one line: amounts, what it has, its kind; never what it has not,
    nor numbers that only say which one it is, nor what ``besides`` already says.
    """
    said = besides.lower()
    words: list[str] = []
    for trait in sorted(found, key=_telling):
        known = trait.words in words or trait.words.lower() in said
        if _telling(trait)[0] <= MOST_TELLING and not known:
            words.append(trait.words)
    return " · ".join(words[:most])


def label(name: str) -> str:
    """A qualified name's last part in words: ``driverVersion`` → "driver version"."""
    short = _last(name)
    if short.lower() in _CALLED:
        return _CALLED[short.lower()]
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", short).replace("_", " ").replace("-", " ")
    return " ".join(_spelled(word) for word in words.split()) or name


def spelled(word: str) -> str:
    """A word with the spelling that it has: "nvlink" → "NVLink"; others as they are."""
    return _SPELLED.get(word.lower(), word)


def amount_words(kind: Kind, value: Fraction) -> str:
    """An amount with its unit: "79.6 GiB", "200 Gb/s", "62"."""
    match kind:
        case Kind.BYTES:
            return _scaled(value, 1024, ("B", "KiB", "MiB", "GiB", "TiB", "PiB"))
        case Kind.RATE:
            return _scaled(value, 1000, ("b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s"))
    return _short(value)


def quantity_words(name: str, text: str) -> str:
    """A quantity of that name as people read it; one that cannot be read as it is."""
    amount = _amount_of(name, text, capacity=True)
    return text if amount is None else amount.words


def _capacity(name: str, text: str) -> Trait:
    amount = _amount_of(name, text, capacity=True)
    value = text if amount is None else amount.words
    return Trait(name, label(name), value, f"{label(name)} {value}", amount, capacity=True)


def _attribute(name: str, text: str) -> Trait:
    short, called = _last(name), label(name)
    if text in ("true", "false"):
        yes = text == "true"
        return Trait(name, called, "yes" if yes else "no", called if yes else f"no {called}")
    amount = _amount_of(name, text, capacity=False)
    if amount is not None and amount.kind is not Kind.NUMBER:
        return Trait(name, called, amount.words, f"{called} {amount.words}", amount)
    value = _SPELLED.get(text.lower(), text)
    if short in _BARE:
        value = value if any(map(str.isupper, value)) else value.replace("-", " ")
        return Trait(name, called, value, value, amount)
    if short.lower().endswith("version"):
        return Trait(name, called, value, f"{called} {value}", None)
    return Trait(name, called, value, f"{called} {value}", amount)


@lru_cache(maxsize=1 << 12)
def _amount_of(name: str, text: str, *, capacity: bool) -> Amount | None:
    try:
        value = parse(text).fraction
    except QuantityError:
        return None
    short = _last(name).lower()
    kind, size = _MEASURES.get(short, (Kind.NUMBER, 1))
    if kind is Kind.NUMBER and capacity and (_binary(text) or short.startswith(_BYTES)):
        kind = Kind.BYTES
    return Amount(label(name), kind, value * size)


def _binary(text: str) -> bool:
    return text.endswith("i") and text[-2:-1].isalpha()


def _scaled(value: Fraction, step: int, units: tuple[str, ...]) -> str:
    for unit in units:
        if abs(value) < step or unit == units[-1]:
            break
        value /= step
    return f"{_short(value)} {unit}"


def _short(value: Fraction) -> str:
    if value.denominator == 1:
        return f"{int(value):,}"
    return f"{float(value):,.1f}".removesuffix(".0")


def _spelled(word: str) -> str:
    if word.lower() in _SPELLED:
        return _SPELLED[word.lower()]
    return word if any(letter.isupper() for letter in word[1:]) else word.lower()


def _last(name: str) -> str:
    return name.rpartition("/")[2]


def _by_last(item: tuple[str, str]) -> tuple[str, str]:
    return _last(item[0]).lower(), item[0]


def _telling(trait: Trait) -> tuple[int, str]:
    """Capacities first, then other amounts, what it has, and what kind it is."""
    short = _last(trait.name)
    if trait.capacity:
        return 0, short
    if trait.amount is not None and trait.amount.kind is not Kind.NUMBER:
        return 1, short
    if short == "interconnect" or trait.value == "yes":
        return 2, short
    if short in _BARE and short not in NAMING:
        return MOST_TELLING, short
    return MOST_TELLING + 1, short

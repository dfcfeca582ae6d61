"""What somebody looks for, typed as people talk: "80 GB NVLink", "half a GPU", "100 Gb RDMA". Pure.

Text → terms, each with the words in which it was understood. What no rule understands is a word to
be found in what is known of devices; nothing typed is ever an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from devices.dra.describe import Kind, amount_words, spelled

#: Longer texts and more terms than these are cut: nobody types them.
MOST_LETTERS: Final = 200
MOST_TERMS: Final = 12


@dataclass(frozen=True, slots=True)
class Word:
    """A word that must (or with ``absent`` must not) stand in what is known of a device."""

    text: str
    absent: bool = False

    @property
    def words(self) -> str:
        return f"{'without ' if self.absent else ''}“{spelled(self.text)}”"


@dataclass(frozen=True, slots=True)
class Much:
    """So much of something at least, or with ``most`` at most; ``kind`` is None where the unit
    leaves open what is meant ("80G"). ``label`` narrows it to amounts of that name ("cores").
    """

    value: Fraction
    kind: Kind | None
    label: str = ""
    most: bool = False

    @property
    def words(self) -> str:
        bound = "at most" if self.most else "at least"
        if self.kind is None:
            size = f"{amount_words(Kind.NUMBER, self.value / 10**9)} G"
            return f"{bound} {size} of memory or bandwidth"
        amount = said(self.kind, self.value)
        what = {Kind.BYTES: " of memory", Kind.RATE: " of bandwidth"}.get(self.kind, "")
        return f"{bound} {amount}{what}{' ' + self.label if self.label else ''}"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a device: a partition of about that size, or a share."""

    of: Fraction

    @property
    def words(self) -> str:
        names = {2: "half", 3: "a third", 4: "a quarter", 7: "a seventh", 8: "an eighth"}
        if self.of.numerator == 1 and self.of.denominator in names:
            size = names[self.of.denominator]
        else:
            size = f"{float(self.of) * 100:.0f} %"
        return f"{size} of a device: a partition of that size, or a share"


@dataclass(frozen=True, slots=True)
class Count:
    """So many devices at once, on one node."""

    number: int

    @property
    def words(self) -> str:
        return f"{self.number} at once on one node"


Term = Word | Much | Part | Count


@dataclass(frozen=True, slots=True)
class Sought:
    """What was understood of a text, in the order in which it was typed."""

    text: str = ""
    terms: tuple[Term, ...] = field(default=())

    @property
    def words(self) -> tuple[str, ...]:
        """What was understood, term by term."""
        return tuple(term.words for term in self.terms)

    def __bool__(self) -> bool:
        return bool(self.terms)


#: Units as people write them. Big and small letters tell bytes from bits where both are used.
_SIZES: Final = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "p": 10**15}
_BINARY: Final = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40, "pi": 2**50}
_RATE: Final = re.compile(r"([kKMmGgTt])(?:b|bit|bits)?(?:/s|ps|bps)|([kKMGT])(?:b|bit|bits)")
_BYTES: Final = re.compile(r"([kKmMgGtTpP]i?)(?:B|b|byte|bytes)|([kKMGTP]i)")
_OPEN: Final = re.compile(r"[gGtT]")
_NUMBER: Final = r"\d{1,9}(?:[.,]\d{1,6})?"
_TOKEN: Final = re.compile(
    rf"(?P<fraction>\b\d{{1,3}}/\d{{1,3}}\b)"
    rf"|(?P<percent>\b{_NUMBER}\s*%)"
    rf"|(?P<times>\b\d{{1,4}}\s*[x×](?=\s|\b))"
    rf"|(?P<much>(?<![\w.]){_NUMBER}\s*(?:[kKmMgGtTpP]i?(?:[bB](?:it|its|yte|ytes|ps)?|ps|bps)?(?:/s)?)\b(?!\.\w))"
    rf"|(?P<number>(?<![\w.]){_NUMBER}(?![\w.]))"
    rf"|(?P<word>[^\s,;]+)"
)
_FRACTIONS: Final = {
    "half": Fraction(1, 2),
    "third": Fraction(1, 3),
    "quarter": Fraction(1, 4),
    "fifth": Fraction(1, 5),
    "sixth": Fraction(1, 6),
    "seventh": Fraction(1, 7),
    "eighth": Fraction(1, 8),
    "halves": Fraction(1, 2),
}
_NUMBERS: Final = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
}  # fmt: skip
_IDLE: Final = frozenset(
    {
        "a", "an", "and", "any", "are", "at", "by", "card", "cards", "class", "device", "devices",
        "each", "for", "free", "from", "give", "i", "in", "is", "it", "least", "me", "minimum",
        "more", "my", "need", "of", "on", "or", "over", "per", "please", "plus", "some", "than",
        "that", "the", "to", "want", "which", "with",
    }
)  # fmt: skip
_MOST: Final = frozenset({"below", "fewer", "less", "max", "maximum", "most", "under", "<", "<="})
_NOT: Final = frozenset({"no", "not", "without"})
#: Words that stand for another: plurals, and what people call things that drivers call otherwise.
_SAME: Final = {
    "gpus": "gpu", "nics": "nic", "fpgas": "fpga", "cpus": "cpu", "ports": "port", "slices": "mig",
    "slice": "mig", "partition": "mig", "partitions": "mig", "gib": "", "ram": "memory",
    "vram": "memory", "network": "nic", "ethernet": "nic", "infiniband": "rdma", "roce": "rdma",
    "nv-link": "nvlink",
}  # fmt: skip
_COUNTED: Final = frozenset({"core", "cores", "lanes", "ports"})


#: Units in full.
_IN_FULL: Final = re.compile(r"\b(kilo|mega|giga|tera)(bit|byte)s?\b", re.IGNORECASE)


def understood(text: str) -> Sought:
    """The terms of a text; idle words ("a", "with") are left out."""
    short = _IN_FULL.sub(_unit, text[:MOST_LETTERS])
    tokens = list(_TOKEN.finditer(short.strip()))
    terms: list[Term] = []
    most = absent = False
    skip = False
    for place, token in enumerate(tokens):
        if skip:
            skip = False
            continue
        following = tokens[place + 1].group().lower() if place + 1 < len(tokens) else ""
        if token.lastgroup == "word":
            word = token.group().lower().strip("\"'“”„().?!")
            if word in _MOST or (word == "up" and following == "to"):
                most = True
                continue
            if word in _NOT:
                absent = True
                continue
            found = _word(word, following, absent)
        else:
            found, skip = _measured(token, following, most)
        if found is not None:
            terms.append(found)
            most = absent = False
    return Sought(text.strip()[:MOST_LETTERS], tuple(dict.fromkeys(terms))[:MOST_TERMS])


def _unit(found: re.Match[str]) -> str:
    """ "gigabits" → "Gb"."""
    return found[1][0].upper() + ("b" if found[2].lower() == "bit" else "B")


def said(kind: Kind, value: Fraction) -> str:
    """An amount as it was probably typed: whole units of 1000 where it is one, else of 1024."""
    if kind is Kind.BYTES and value % 10**6 == 0:
        for size, unit in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB")):
            if value >= size:
                return f"{amount_words(Kind.NUMBER, value / size)} {unit}"
    return amount_words(kind, value)


def _word(word: str, following: str, absent: bool) -> Term | None:
    if word in _FRACTIONS:
        return Part(_FRACTIONS[word])
    if word in _NUMBERS and following.rstrip("s") in ("gpu", "card", "device", "nic", "port"):
        return Count(_NUMBERS[word]) if _NUMBERS[word] > 1 else None
    word = _SAME.get(word, word)
    if not word or word in _IDLE or word in _NUMBERS:
        return None
    return Word(word, absent)


def _measured(token: re.Match[str], following: str, most: bool) -> tuple[Term | None, bool]:
    """The term of a number, and whether the word after it was part of it."""
    text = token.group().replace(",", ".")
    match token.lastgroup:
        case "fraction":
            above, _, below = text.partition("/")
            share = Fraction(int(above), int(below)) if int(below) else Fraction(0)
            return (Part(share), False) if 0 < share < 1 else (None, False)
        case "percent":
            share = Fraction(text.rstrip("% ")) / 100
            return (Part(share), False) if 0 < share < 1 else (None, False)
        case "times":
            number = int(re.match(r"\d+", text).group())  # type: ignore[union-attr]
            return (Count(number), False) if number > 1 else (None, False)
        case "much":
            return _much(text, most), False
    value = Fraction(text)
    if 0 < value < 1:
        return Part(value), False
    if following in _COUNTED:
        return Much(value, Kind.NUMBER, "cores" if following == "core" else following, most), True
    if value.denominator == 1 and 1 < value <= 64 and following not in ("", "%"):
        return Count(int(value)), False
    return Word(token.group()), False


def _much(text: str, most: bool) -> Term:
    number, unit = re.match(r"([\d.]+)\s*(.*)", text).groups()  # type: ignore[union-attr]
    value = Fraction(number)
    rate = _RATE.fullmatch(unit)
    if rate is not None:
        return Much(value * _SIZES[(rate[1] or rate[2]).lower()], Kind.RATE, most=most)
    size = _BYTES.fullmatch(unit)
    if size is not None:
        prefix = (size[1] or size[2]).lower()
        factor = _BINARY[prefix] if prefix in _BINARY else _SIZES[prefix]
        return Much(value * factor, Kind.BYTES, most=most)
    if _OPEN.fullmatch(unit):
        return Much(value * _SIZES[unit.lower()], None, most=most)
    return Word(text.replace(" ", ""))

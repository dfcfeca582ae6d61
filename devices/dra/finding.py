"""Which groups of devices fit what somebody looks for, the best first, else what is near. Pure.

An amount fits where a device has at least so much of it, a twentieth short allowed: a card that is
sold as 80 GB has 79.6 GiB. Nothing is hidden for being taken; what is free now comes first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from devices.dra.describe import Amount, Kind, Trait, label, spelled, traits
from devices.dra.sought import Count, Much, Part, Sought, Term, Word, understood

#: How much less than asked for still fits.
SLACK: Final = Fraction(19, 20)
#: How much more than a most still fits: 40 GiB are 40 GB to whoever sells them.
MOST_SLACK: Final = Fraction(27, 25)
#: A part may be so much larger or smaller than was asked for.
PART_SLACK: Final = Fraction(1, 4)
#: How many near ones are shown where nothing fits.
MOST_NEAR: Final = 6


@dataclass(frozen=True, slots=True)
class Candidate:
    """A group of equal devices, with all that can be found of it.

    ``texts`` are names and sentences about it; ``whole`` is what tells which groups are parts of
    the same kind of hardware. ``free`` and ``largest`` (at once on one node) are None where nobody
    knows.
    """

    key: tuple[str, int]
    texts: tuple[str, ...]
    attributes: Mapping[str, str] = field(default_factory=dict)
    capacity: Mapping[str, str] = field(default_factory=dict)
    whole: str = ""
    partition: bool = False
    shareable: bool = False
    free: int | None = None
    largest: int | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A candidate that fits, or nearly: ``lacks`` says what of it does not, ``excess`` by how much
    it is more than was asked for (0: exactly).
    """

    key: tuple[str, int]
    excess: float
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """What fits, the best first; ``near`` is filled where nothing does."""

    sought: Sought
    fits: tuple[Found, ...] = ()
    near: tuple[Found, ...] = ()


def find(sought: Sought, candidates: Sequence[Candidate]) -> Finding:
    """Judges every candidate; an empty search fits all."""
    looks = [_Look(one, _largest_of(one.whole, candidates)) for one in candidates]
    judged = [(look.judge(sought.terms), look) for look in looks]
    fits = [(found, look) for found, look in judged if not found.lacks]
    if fits or not sought:
        return Finding(sought, tuple(found for found, _ in sorted(fits, key=_best)))
    close = [(f, k) for f, k in judged if len(f.lacks) < len(sought.terms) or _measured(sought)]
    return Finding(sought, near=tuple(found for found, _ in sorted(close, key=_best)[:MOST_NEAR]))


def _best(pair: tuple[Found, _Look]) -> tuple[int, bool, float, int, tuple[str, int]]:
    found, look = pair
    free = look.candidate.free
    taken = free is not None and free <= 0
    return len(found.lacks), taken, found.excess, -(free or 0), found.key


def _measured(sought: Sought) -> bool:
    """Whether some term can be missed by little."""
    return any(isinstance(term, Much | Part | Count) for term in sought.terms)


class _Look:
    """One candidate, read once for all terms."""

    def __init__(self, candidate: Candidate, whole: Fraction | None) -> None:
        self.candidate = candidate
        found = traits(candidate.attributes, candidate.capacity)
        self._amounts = [trait.amount for trait in found if trait.amount is not None]
        self._amounts += _read(candidate.texts)
        self._text = _haystack(candidate.texts, found)
        self._whole = whole

    def judge(self, terms: Iterable[Term]) -> Found:
        lacks, excess = [], 0.0
        for term in terms:
            lack, more = self._term(term)
            excess += more
            if lack:
                lacks.append(lack)
        return Found(self.candidate.key, excess, tuple(lacks))

    def _term(self, term: Term) -> tuple[str, float]:
        """What of the term is missing, in words, and how far the candidate is from it."""
        match term:
            case Word():
                there = _stands(term.text, self._text)
                if there is term.absent:
                    name = spelled(term.text)
                    return (f"has {name}" if there else f"no {name}"), 1.0
                return "", 0.0
            case Much():
                return self._much(term)
            case Part():
                return self._part(term)
            case Count():
                return self._count(term)

    def _much(self, term: Much) -> tuple[str, float]:
        here = [amount for amount in self._amounts if _about(amount, term)]
        if not here:
            kind = {Kind.BYTES: "memory", Kind.RATE: "bandwidth"}.get(term.kind or Kind.BYTES)
            return f"no {term.label or kind} known", 2.0
        if term.most:
            least = min(here, key=_value)
            enough = least.value <= term.value * MOST_SLACK
            return ("" if enough else f"{least.words}"), abs(float(least.value / term.value) - 1)
        enough_of = [amount for amount in here if amount.value >= term.value * SLACK]
        if enough_of:
            nearest = min(enough_of, key=_value)
            return "", max(float(nearest.value / term.value) - 1, 0.0)
        most = max(here, key=_value)
        return f"{most.words} only", 1 - float(most.value / term.value)

    def _part(self, term: Part) -> tuple[str, float]:
        if self.candidate.shareable:
            return "", 0.1
        if not self.candidate.partition:
            return "whole devices", 0.6
        own = _main(self.candidate.capacity)
        if own is None or not self._whole:
            return "a part of unknown size", 0.8
        share = own / self._whole
        off = abs(float(share / term.of) - 1)
        return ("" if off <= PART_SLACK else f"about {_share(share)} of one"), off

    def _count(self, term: Count) -> tuple[str, float]:
        most = self.candidate.largest
        if most is None or most >= term.number:
            return "", 0.0
        return f"{most} at once now", 0.5


def _about(amount: Amount, term: Much) -> bool:
    if term.kind is None:
        return amount.kind is not Kind.NUMBER
    return amount.kind is term.kind and (not term.label or term.label in amount.label)


def _value(amount: Amount) -> Fraction:
    return amount.value


def _main(capacity: Mapping[str, str]) -> Fraction | None:
    """The amount that tells a part's size: its memory, else its only capacity."""
    found = [trait.amount for trait in traits({}, capacity) if trait.amount is not None]
    sizes = [amount for amount in found if amount.kind is Kind.BYTES] or found
    return sizes[0].value if sizes else None


def _largest_of(whole: str, candidates: Iterable[Candidate]) -> Fraction | None:
    """The size of the largest device of that hardware that is offered."""
    sizes = [
        size
        for one in candidates
        if whole and one.whole == whole
        if (size := _main(one.capacity)) is not None
    ]
    return max(sizes, default=None)


def _read(texts: Iterable[str]) -> list[Amount]:
    """Amounts that stand in names and sentences: of "L40S, 48 GB" the 48 GB."""
    return [
        Amount("", term.kind, term.value)
        for text in texts
        for term in understood(text).terms
        if isinstance(term, Much) and term.kind in (Kind.BYTES, Kind.RATE) and not term.most
    ]


def _haystack(texts: Iterable[str], found: Iterable[Trait]) -> str:
    """All that is said of a candidate, in small letters; what it has not is not said."""
    parts = list(texts)
    for trait in found:
        if trait.value != "no":
            parts += [trait.words, label(trait.name)]
    return " ".join(parts).lower()


def _stands(word: str, text: str) -> bool:
    """Whether a word stands in a text: at the beginning of one of its words, or (three letters and
    more) within one. A plural finds its singular.
    """
    for form in {word, word.removesuffix("s") if len(word) > 3 else word}:
        if re.search(rf"(?<![a-z0-9]){re.escape(form)}", text):
            return True
        if len(form) >= 3 and form in text:
            return True
    return False


def _share(share: Fraction) -> str:
    return f"{float(share) * 100:.0f} %"

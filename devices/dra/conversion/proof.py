"""What a look at the cluster proves of one step of a conversion: a verdict, and why."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from devices.dra.codes import Code, code


class Verdict(StrEnum):
    """Whether something is so. Only PROVED lets a conversion go on."""

    PROVED = "proved"
    NOT_YET = "not yet"
    """It is not so, and may become so by waiting."""
    REFUTED = "refuted"
    """It is not so, and no waiting will help: a person has to look."""
    NOT_KNOWN = "not known"
    """Nothing that was seen tells; never to be taken for either."""


@dataclass(frozen=True, slots=True)
class Proof:
    """A verdict and its reason, as a sentence without full stop.

    ``evidence`` names the objects that it rests on or that stand in the way (``namespace/name``,
    or the name alone), ``code`` is set where the reason has one of its own, ``again`` is the
    earliest moment at which another look can tell more.
    """

    verdict: Verdict
    why: str
    evidence: tuple[str, ...] = ()
    code: Code | None = None
    again: datetime | None = None

    @property
    def proved(self) -> bool:
        """Whether the next step may begin."""
        return self.verdict is Verdict.PROVED


def proved(why: str, *evidence: str) -> Proof:
    """It is so."""
    return Proof(Verdict.PROVED, why, evidence)


def not_yet(why: str, *evidence: str, again: datetime | None = None) -> Proof:
    """It is not so, but may become so."""
    return Proof(Verdict.NOT_YET, why, evidence, again=again)


def refuted(why: str, *evidence: str, name: str = "") -> Proof:
    """It is not so, and waiting does not help; ``name`` is that of the code."""
    return Proof(Verdict.REFUTED, why, evidence, code(name) if name else None)


def not_known(why: str, *evidence: str, again: datetime | None = None) -> Proof:
    """Nobody can tell from what was seen."""
    return Proof(Verdict.NOT_KNOWN, why, evidence, again=again)

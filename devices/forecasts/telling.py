"""An outlook in words for one viewer: funnel, holders, and what would let it in. Pure.

What a viewer may know: their own tenant's claims by name; everybody else's are counted, never
named, neither by the claim nor by its namespace. Nodes, devices and taints are the platform's and
are named.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from devices.asks.verdicts import JOBS, Job
from devices.dra.codes import Who
from devices.dra.funnel import NAMED, Funnel, Step
from devices.dra.restate import restate
from devices.dra.waits import Wait
from devices.forecasts.whatif import Fate, Outlook
from portal.ui.words import one_or_many

#: How many ways to wait are listed.
MOST_WAITS: Final = 4

_HELD: Final = frozenset({"NO_MATCHING_DEVICE_FREE", "CAPACITY_TAKEN", "COUNTERS_TAKEN"})
_LEFT: Final[Mapping[str, str]] = {
    "POOL_INCOMPLETE": "in pools that can be used",
    "POOL_INVALID": "in pools that can be used",
    "SELECTOR_NO_SUCH_KEY": "on which the condition can be computed",
    "SELECTOR_FAILS": "on which the condition can be computed",
    "CAPACITY_NOT_OFFERED": "offer that amount",
    "FEATURE_OFF": "usable with the features of this cluster",
    "DEVICE_TAINTED": "open to new work",
    "NO_MATCHING_DEVICE_FREE": "free now",
    "CAPACITY_TAKEN": "with enough left to share",
    "COUNTERS_TAKEN": "not blocked by other partitions",
}
_LOST: Final[Mapping[str, str]] = {
    "NO_DEVICE_IN_CLASS": "are of other classes",
    "POOL_INCOMPLETE": "are in a pool that is being published: {by}",
    "POOL_INVALID": "are in a pool that contradicts itself: {by}",
    "CAPACITY_NOT_OFFERED": "offer less",
    "FEATURE_OFF": "need {by}, which is off",
    "DEVICE_TAINTED": "are closed: {by}",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One step of a funnel: what is left and what that is, and what the next step takes away."""

    count: int
    what: str
    lost: str = ""
    clause: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """One request's funnel; ``asked`` is None where all that match are."""

    request: str
    device_class: str
    asked: int | None
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Waiting:
    """Holders whose end lets it in. ``yours`` are claims of the viewer by name, ``others`` is how
    many more there are; ``until`` is when their Pods end, None where nobody has said.
    """

    yours: tuple[str, ...]
    others: int
    node: str
    until: datetime | None

    @property
    def text(self) -> str:
        """Who has to end, as a title."""
        foreign = one_or_many(self.others, "claim") + " of other tenants" if self.others else ""
        if not self.yours:
            return f"{foreign[:1].upper()}{foreign[1:]} end{'s' if self.others == 1 else ''}"
        mine = ", ".join(self.yours)
        return f"You release {mine}" + (f", and {foreign} end" if foreign else "")

    @property
    def job(self) -> Job:
        return Job.NOBODY if not self.yours else Job.TENANT


def job_of(who: Who) -> Job:
    """Whose job it is, in the words of the pages."""
    return JOBS[who]


def told(
    found: Outlook, mine: Collection[str], names: Mapping[str, str] | None = None
) -> tuple[Told, ...]:
    """The funnels for a viewer whose namespaces are ``mine``; ``names`` are classes in words."""
    return tuple(
        Told(
            funnel.request,
            (names or {}).get(funnel.device_class, funnel.device_class),
            funnel.need,
            tuple(_rows(funnel, mine, (names or {}).get(funnel.device_class, ""))),
        )
        for funnel in found.funnels
    )


def waiting(found: Outlook, mine: Collection[str]) -> tuple[Waiting, ...]:
    """Ways to wait: those with a known end first, soonest first, and the viewer's own before
    others'.
    """
    rows = {_waiting(wait, mine) for wait in found.waits}
    latest = datetime.max
    order = sorted(
        rows,
        key=lambda row: (
            row.until is None,
            row.until.replace(tzinfo=None) if row.until else latest,
            row.others,
            row.yours,
            row.node,
        ),
    )
    return tuple(order[:MOST_WAITS])


def evidence(found: Outlook) -> tuple[str, ...]:
    """What else was found, without the sentences that name holders (the funnel counts them)."""
    return tuple(text for text in found.evidence if not text.endswith("stands in the way"))


def next_step(found: Outlook) -> str:
    """What that somebody does, or what happens by itself."""
    if found.fate is Fate.NOW:
        return "The scheduler picks the devices when a Pod uses it."
    return found.step


def _rows(funnel: Funnel, mine: Collection[str], name: str) -> list[Row]:
    steps = _joined(funnel.steps)
    rows = [Row(funnel.published, "devices that drivers publish")]
    for step in steps:
        last = rows[-1]
        lost, clause = _lost(step, mine)
        rows[-1] = Row(last.count, last.what, lost, clause)
        rows.append(Row(step.left, _left(step, name)))
    need = funnel.need
    if need is not None and rows[-1].count >= need > funnel.best:
        last = rows[-1]
        rows[-1] = Row(last.count, last.what, "are on other nodes")
        where = f"on one node, {funnel.best_node}" if funnel.best_node else "on one node"
        rows.append(Row(funnel.best, where))
    if need is not None and rows[-1].count < need:
        last = rows[-1]
        rows[-1] = Row(last.count, last.what, f"You ask for {need}")
    return rows


def _joined(steps: Sequence[Step]) -> list[Step]:
    """The selectors of a class are one step: people know the class, not its conditions."""
    found: list[Step] = []
    for step in steps:
        if found and step.code == found[-1].code == "NO_DEVICE_IN_CLASS":
            before = found.pop()
            removed = before.removed + step.removed
            step = Step(step.what, step.code, step.left, removed)
        found.append(step)
    return found


def _left(step: Step, name: str) -> str:
    if step.code == "NO_DEVICE_IN_CLASS":
        return f"{name or 'of the class'}"
    if step.code == "NO_DEVICE_MATCHES_SELECTOR":
        return f"with {words}" if (words := restate(step.clause)) else "that meet the condition"
    return _LEFT.get(step.code, step.what)


def _lost(step: Step, mine: Collection[str]) -> tuple[str, str]:
    """Why the others are gone, and the clause where it has no words."""
    if step.code in _HELD:
        return f"{_how_held(step.code)} {holders(step.by, mine)}".rstrip(), ""
    if step.failed:
        return f"fail: {step.failed}", step.clause
    if step.code == "NO_DEVICE_MATCHES_SELECTOR":
        return "have not", "" if restate(step.clause) else step.clause
    return _LOST.get(step.code, "are not").format(by=", ".join(step.by)), ""


def _how_held(code: str) -> str:
    return {
        "NO_MATCHING_DEVICE_FREE": "taken",
        "CAPACITY_TAKEN": "shared out",
        "COUNTERS_TAKEN": "other partitions of the same hardware are taken",
    }[code]


def holders(names: Sequence[str], mine: Collection[str]) -> str:
    """``namespace/name`` of holders as the viewer may know them: "by a, b and 3 claims of others".

    At most ``NAMED`` holders are known to a step, so that many may be more.
    """
    own = [name.partition("/")[2] for name in names if name.partition("/")[0] in mine]
    others = len(names) - len(own)
    parts = [f"your {', '.join(own)}"] if own else []
    if others:
        more = "at least " if len(names) == NAMED else ""
        parts.append(f"{more}{one_or_many(others, 'claim')} of other tenants")
    return f"by {' and '.join(parts)}" if parts else ""


def _waiting(wait: Wait, mine: Collection[str]) -> Waiting:
    own = tuple(name.partition("/")[2] for name in wait.claims if name.partition("/")[0] in mine)
    return Waiting(own, len(wait.claims) - len(own), wait.node, wait.until)

"""What a wave, a plan and a strategy are to be: wishes, what is wrong with them, and their words.

One wish is asked by pages and API alike, kept by strategies as JSON, shown to approvers as lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from devices.dra.wording import some_of
from migrationplan.models.plan import Wave, windows_as_json, windows_from
from migrationplan.phases import Audience, OnFailure
from migrationplan.windows import Window, about
from portal.approvals.rules import Line

MOST_WAVES: Final = 20
LONGEST_SOAK: Final = timedelta(days=30)
MOST_AT_ONCE: Final = 200
MOST_APPROVALS: Final = 5
LONGEST_REHEARSED: Final = 365
#: Node names that an approval shows; the digest is over all of them.
SHOWN: Final = 40


@dataclass(frozen=True, slots=True)
class WaveWish:
    """One wave: `percent` of each pool's nodes that no wave before took, or named `nodes`."""

    name: str
    percent: int | None = 100
    nodes: tuple[str, ...] = ()
    audience: Audience = Audience.ALL
    concurrency: int = 1
    max_errors: int = 0
    soak: timedelta = timedelta(hours=24)
    windows: tuple[Window, ...] = ()
    on_failure: OnFailure = OnFailure.PAUSE
    evict_retryable: bool = False
    approvals_needed: int = 1
    rehearsed_days: int = 0
    gates: tuple[str, ...] = ()

    def fields(self) -> dict[str, Any]:
        """As columns of a `Wave`."""
        return {
            "name": self.name.strip(),
            "percent": None if self.nodes else self.percent,
            "audience": self.audience.value,
            "concurrency": self.concurrency,
            "max_errors": self.max_errors,
            "soak": self.soak,
            "windows": windows_as_json(self.windows),
            "on_failure": self.on_failure.value,
            "evict_retryable": self.evict_retryable,
            "approvals_needed": self.approvals_needed,
            "rehearsed_days": self.rehearsed_days,
            "gates": list(self.gates),
        }

    def as_json(self) -> dict[str, Any]:
        """As strategies keep it: without node names."""
        return {**self.fields(), "percent": self.percent, "soak": self.soak.total_seconds()}


def wish_from_json(stored: Mapping[str, Any]) -> WaveWish:
    """What `as_json` wrote."""
    return WaveWish(
        name=stored["name"],
        percent=stored["percent"],
        audience=Audience(stored["audience"]),
        concurrency=stored["concurrency"],
        max_errors=stored["max_errors"],
        soak=timedelta(seconds=stored["soak"]),
        windows=windows_from(stored["windows"]),
        on_failure=OnFailure(stored["on_failure"]),
        evict_retryable=stored["evict_retryable"],
        approvals_needed=stored["approvals_needed"],
        rehearsed_days=stored.get("rehearsed_days", 0),  # strategies of earlier releases lack it
        gates=tuple(stored["gates"]),
    )


def wish_of(wave: Wave, nodes: Sequence[str] = ()) -> WaveWish:
    """A wave as it is, as a wish; with `nodes` where they are named one by one."""
    return WaveWish(
        name=wave.name,
        percent=wave.percent,
        nodes=tuple(nodes) if wave.percent is None else (),
        audience=Audience(wave.audience),
        concurrency=wave.concurrency,
        max_errors=wave.max_errors,
        soak=wave.soak,
        windows=windows_from(wave.windows),
        on_failure=OnFailure(wave.on_failure),
        evict_retryable=wave.evict_retryable,
        approvals_needed=wave.approvals_needed,
        rehearsed_days=wave.rehearsed_days,
        gates=tuple(wave.gates),
    )


@dataclass(frozen=True, slots=True)
class PlanWish:
    """A plan: which node pools go which way, by which waves."""

    name: str
    pools: tuple[str, ...]
    direction: str
    words: str = ""
    strategy: str = ""
    waves: tuple[WaveWish, ...] = field(default=())


def problems(wish: WaveWish) -> dict[str, str]:
    """What is wrong with a wave, by field; empty where nothing is."""
    wrong = {}
    if not 0 < len(wish.name.strip()) <= 80:
        wrong["name"] = "Give it a name, at most 80 characters."
    if not wish.nodes and not (wish.percent and 0 < wish.percent <= 100):
        wrong["percent"] = "From 1 to 100, or name its nodes."
    if not 1 <= wish.concurrency <= MOST_AT_ONCE:
        wrong["concurrency"] = f"From 1 to {MOST_AT_ONCE}."
    if not 0 <= wish.max_errors <= 1000:
        wrong["max_errors"] = "From 0 to 1000; 0 stops at the first."
    if not timedelta(0) <= wish.soak <= LONGEST_SOAK:
        wrong["soak"] = f"At most {LONGEST_SOAK.days} days."
    if not 0 <= wish.approvals_needed <= MOST_APPROVALS:
        wrong["approvals_needed"] = f"From 0 to {MOST_APPROVALS}."
    if not 0 <= wish.rehearsed_days <= LONGEST_REHEARSED:
        wrong["rehearsed_days"] = f"From 0 to {LONGEST_REHEARSED} days; 0: it is not asked."
    for window in wish.windows:
        if not window.days or not window.days <= frozenset(range(7)):
            wrong["windows"] = "Choose at least one weekday, or leave the window empty."
        elif not zone_known(window.zone):
            wrong["windows"] = f"{window.zone} is no time zone; write one such as Europe/Berlin."
    return wrong


def zone_known(name: str) -> bool:
    """Whether this machine has such a time zone."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def lines_of(
    wish: WaveWish, nodes: Sequence[str], before: Mapping[str, str] | None = None
) -> list[Line]:
    """A wave as an approver reads it; `before` is what was approved last, by label."""
    old = before or {}
    return [
        Line(label=label, before=old.get(label), after=text, group=wish.name)
        for label, text in words_of(wish, nodes).items()
    ]


def words_of(wish: WaveWish, nodes: Sequence[str]) -> dict[str, str]:
    """Every setting in words, by label."""
    return {
        "nodes": f"{len(nodes)}: {some_of(nodes, SHOWN)}" if nodes else "none",
        "nodes at once": str(wish.concurrency),
        "nodes that may fail": str(wish.max_errors),
        "window": "; ".join(map(str, wish.windows)) or "at any time",
        "soak": about(wish.soak).removeprefix("about ") if wish.soak else "none",
        "whose work": "retryable work alone"
        if wish.audience is Audience.RETRYABLE
        else "whatever runs there",
        "evictions": "Pods that declare themselves retryable, by the eviction API"
        if wish.evict_retryable
        else "nobody",
        "on failure": wish.on_failure.value,
        "gates": ", ".join(wish.gates) or "none",
        "rollback rehearsed": f"within {wish.rehearsed_days} days"
        if wish.rehearsed_days
        else "not asked",
        "approvals": str(wish.approvals_needed),
    }


def differences(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """What changed, in words: "nodes at once 1 → 2"."""
    return [
        f"{label} {old.get(label, 'none')} → {text}"
        for label, text in new.items()
        if old.get(label) != text
    ]

"""Answers that can be compared, how they are counted, and what is written of a difference."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from devices.dra.gates import Gates
from devices.dra.quantity import Quantity
from playground.agreement.objectclaims import Question
from playground.agreement.objectsets import ObjectSet


@dataclass(frozen=True, slots=True)
class Told:
    """An answer that can be compared: a verdict, and for OK the devices and what is taken."""

    verdict: str
    devices: tuple[tuple[str, ...], ...] = ()
    text: str = ""

    @property
    def comparable(self) -> tuple[str, tuple[tuple[str, ...], ...]]:
        """What must be equal: texts are only for reading."""
        return (self.verdict, self.devices)


@dataclass(slots=True)
class Tally:
    """What came out, by verdict and by feature; ``apart`` counts what is no disagreement.

    ``reasons`` are ours for a NO of the scheduler, ``unsaid`` those that it does not give as well.
    """

    asked: int = 0
    equal: int = 0
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    apart: Counter[str] = field(default_factory=Counter)
    sets: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    unsaid: Counter[str] = field(default_factory=Counter)
    different: list[Path] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """The share of equal answers, 1.0 where nothing was asked."""
        return self.equal / self.asked if self.asked else 1.0

    def add(self, ours: Told, theirs: Told, features: Iterable[str]) -> bool:
        """Counts one pair of answers; True where they agree.

        Who runs into the time limit depends on the machine: one that does beside one that does
        not is counted apart.
        """
        if ours.verdict != theirs.verdict and "TIMEOUT" in (ours.verdict, theirs.verdict):
            self.apart[f"upstream {theirs.verdict}, ours {ours.verdict}: near the time limit"] += 1
            return True
        same = ours.comparable == theirs.comparable
        self.asked += 1
        self.equal += same
        self.verdicts[theirs.verdict, ours.verdict] += 1
        if theirs.text and ours.verdict == theirs.verdict == "NO":
            self.reasons[ours.text] += 1
            self.unsaid[ours.text] += ours.text not in theirs.text
        for feature in features:
            self.features[feature] += 1
            self.missed[feature] += not same
        return same


def amounts_text(amounts: Mapping[str, Quantity] | None) -> str:
    """Consumed capacity by value: the scheduler may write it in another unit."""
    return " ".join(f"{k}={v.nanos}" for k, v in sorted((amounts or {}).items()))


def record(
    one: ObjectSet, question: Question, gates: Gates, mine: Told, answer: Told
) -> dict[str, Any]:
    """Everything needed to ask again."""
    return {
        "seed": one.seed,
        "release": gates.release,
        "gates": sorted(gates.on),
        "node": question.node,
        "claims": question.claims,
        **{part: value for part, value in _of_the_pod(question).items() if value},
        "ours": _shown(mine),
        "theirs": _shown(answer),
        "objects": one.objects,
    }


def question_of(found: Mapping[str, Any]) -> Question:
    """The question of a record."""
    return Question(
        "0",
        found["node"],
        tuple(found["claims"]),
        frozenset(),
        found.get("spec", {}),
        tuple(found.get("terms", ())),
        tuple(found.get("held", ())),
    )


def _of_the_pod(question: Question) -> dict[str, Any]:
    return {"spec": question.spec, "terms": question.terms, "held": question.held}


def _shown(answer: Told) -> dict[str, Any]:
    return {"verdict": answer.verdict, "devices": answer.devices, "text": answer.text}


def keep(folder: Path, tally: Tally, name: str, record: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(record, indent=1))
    tally.different.append(path)


def report(tally: Tally, sets: int, out: Any = sys.stdout) -> None:
    """Prints agreement by verdict and by feature."""
    share = f"{100 * tally.rate:.2f} %"
    print(f"{tally.equal} of {tally.asked} answers agree ({share}), {sets} object sets", file=out)
    print("\nupstream says     ours says          answers", file=out)
    for (theirs_, ours_), count in sorted(tally.verdicts.items()):
        mark = "" if theirs_ == ours_ else "   differs"
        print(f"{theirs_:<17} {ours_:<17} {count:>8}{mark}", file=out)
    print("\nfeature                         questions  agree     in sets", file=out)
    for feature in sorted(tally.features.keys() | tally.sets.keys()):
        count = tally.features[feature]
        agree = 100 * (count - tally.missed[feature]) / count if count else 100
        within = (
            f"{100 * tally.sets[feature] / sets:6.1f} %" if sets and feature in tally.sets else ""
        )
        print(f"{feature:<30} {count:>9}  {agree:6.2f} %  {within}", file=out)
    for what, count in sorted(tally.reasons.items()):
        said = count - tally.unsaid[what]
        print(f"NO because {what}: {count}, of which the scheduler says so {said}", file=out)
    for what, count in sorted(tally.apart.items()):
        print(f"counted apart: {count} × {what}", file=out)
    for path in tally.different[:20]:
        print(f"disagreement: {path}", file=out)

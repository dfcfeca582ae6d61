"""How often Berth's rules agree with upstream: random object sets, both asked, differences kept.

`python -m playground.agreement` asks the allocator and CEL of a release through the playground's
program (`oracle`); with `--scheduler` it loads the sets into a real control plane instead and lets
kube-scheduler answer. Each disagreement is written as a small file that says how to repeat it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from devices.dra.allocate import Kind, Verdict, allocate
from devices.dra.cel.evaluate import Unmodelled
from devices.dra.claims import read_claim_spec
from devices.dra.gates import Gates, parse
from devices.dra.quantity import read as read_quantity
from devices.dra.requests import Wish
from devices.dra.selector import Fault, SelectorError, compile_selector
from devices.dra.slicereader import SliceReader
from devices.dra.snapshot import Snapshot, read
from playground.build import build, known_release, minor
from playground.expressions import DRIVER, a_device, an_expression
from playground.objectclaims import Question
from playground.objectsets import ObjectSet, make

#: Objects that the oracle reads; it needs no others.
ORACLE_KINDS = ("DeviceClass", "ResourceSlice", "ResourceClaim", "Node", "DeviceTaintRule")


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
    """What came out, by verdict and by feature; ``apart`` counts what is no disagreement."""

    asked: int = 0
    equal: int = 0
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    apart: Counter[str] = field(default_factory=Counter)
    sets: Counter[str] = field(default_factory=Counter)
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
        for feature in features:
            self.features[feature] += 1
            self.missed[feature] += not same
        return same


def ours(seen: Snapshot, question: Question) -> Told:
    """What Berth's rules answer."""
    wishes = [
        Wish(
            f"{claim['metadata']['namespace']}/{claim['metadata']['name']}",
            read_claim_spec(claim["spec"], "spec", []),
        )
        for claim in question.claims
    ]
    return told(allocate(seen, seen.node(question.node), wishes))


def told(verdict: Verdict) -> Told:
    """A verdict in the form of an answer of the oracle."""
    kind = "TIMEOUT" if verdict.code == "SEARCH_TOO_LONG" else verdict.kind.value
    devices = tuple(
        (str(given.claim), given.request, *given.device, _amounts(given.consumed))
        for given in verdict.given
    )
    return Told(kind, devices if verdict.kind is Kind.OK else (), verdict.text)


def theirs(answer: dict[str, Any]) -> Told:
    """An answer of the oracle."""
    devices = tuple(
        (
            str(number),
            one["request"],
            one["driver"],
            one["pool"],
            one["device"],
            _amounts({k: read_quantity(v) for k, v in one.get("consumed", {}).items()}),
        )
        for number, claim in enumerate(answer.get("devices", ()))
        for one in claim
    )
    return Told(answer["verdict"], devices, answer.get("text", ""))


def _amounts(amounts: Any) -> str:
    """Consumed capacity by value: the scheduler may write it in another unit."""
    return " ".join(f"{k}={v.nanos}" for k, v in sorted((amounts or {}).items()))


def ask_allocator(program: Path, gates: Gates, sets: Sequence[ObjectSet]) -> Iterator[list[Told]]:
    """The answers of upstream's allocator, set by set."""
    documents = [
        {
            "features": sorted(gates.on),
            "objects": [o for o in one.objects if o["kind"] in ORACLE_KINDS],
            "questions": [
                {"id": q.id, "node": q.node, "claims": list(q.claims)} for q in one.questions
            ],
        }
        for one in sets
    ]
    lines = iter(_oracle(program, documents))
    for one in sets:
        yield [theirs(next(lines)) for _ in one.questions]


def ask_cel(
    program: Path, gates: Gates, seed: int, amount: int, tally: Tally, folder: Path
) -> None:
    """Random expressions on random devices."""
    dice = random.Random(seed)
    questions = [
        {
            "id": str(n),
            "expression": an_expression(dice),
            "driver": DRIVER,
            "device": a_device(dice),
        }
        for n in range(amount)
    ]
    documents = [{"features": sorted(gates.on), "objects": [], "questions": questions}]
    for question, answer in zip(questions, _oracle(program, documents), strict=True):
        mine = _cel_answer(question, gates)
        if mine.verdict == "not modelled":
            tally.apart["CEL functions that are not modelled"] += 1
            continue
        if not tally.add(mine, Told(answer["verdict"], text=answer.get("text", "")), ("cel",)):
            _keep(
                folder,
                tally,
                f"cel-{seed}-{question['id']}",
                question | {"ours": mine.verdict, "theirs": answer},
            )


def _cel_answer(question: dict[str, Any], gates: Gates) -> Told:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": "n", "pool": pool, "devices": [question["device"]]}
    [device] = SliceReader().read({"metadata": {"name": "s"}, "spec": spec}).devices
    try:
        outcome = compile_selector(question["expression"], gates).matches(device, DRIVER)
    except SelectorError as error:
        return Told("compile-error", text=str(error))
    except Unmodelled as error:
        return Told("not modelled", text=str(error))
    if isinstance(outcome, Fault):
        return Told("runtime-error", text=outcome.why)
    return Told("true" if outcome else "false")


def _oracle(program: Path, documents: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    done = subprocess.run(
        [str(program), "oracle"],
        input="\n".join(json.dumps(document) for document in documents),
        capture_output=True,
        text=True,
        check=True,
        timeout=3600,
        env={**os.environ, "GOMAXPROCS": "1"},
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def compare(
    one: ObjectSet, answers: Sequence[Told], gates: Gates, tally: Tally, folder: Path
) -> None:
    """Asks Berth's rules the questions of a set and counts how the answers compare."""
    seen = read(one.objects, gates=gates)
    tally.sets.update(one.features)
    for question, answer in zip(one.questions, answers, strict=True):
        mine = ours(seen, question)
        if not tally.add(mine, answer, question.features | {"any"}):
            record = {
                "seed": one.seed,
                "release": gates.release,
                "gates": sorted(gates.on),
                "node": question.node,
                "claims": question.claims,
                "ours": _shown(mine),
                "theirs": _shown(answer),
                "objects": one.objects,
            }
            _keep(folder, tally, f"set-{one.seed}-{question.id}", record)


def _shown(answer: Told) -> dict[str, Any]:
    return {"verdict": answer.verdict, "devices": answer.devices, "text": answer.text}


def _keep(folder: Path, tally: Tally, name: str, record: dict[str, Any]) -> None:
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
    for what, count in sorted(tally.apart.items()):
        print(f"counted apart: {count} × {what}", file=out)
    for path in tally.different[:20]:
        print(f"disagreement: {path}", file=out)


def run(
    program: Path, gates: Gates, seeds: range, folder: Path, *, questions: int = 24, cel: int = 0
) -> Tally:
    """Asks allocator and CEL about the sets of these seeds."""
    tally = Tally()
    lists, derived = gates.lists, "DRADerivedAttributes" in gates
    sets = [make(seed, questions, lists=lists, derived=derived) for seed in seeds]
    for start in range(0, len(sets), 50):
        some = sets[start : start + 50]
        for one, answers in zip(some, ask_allocator(program, gates, some), strict=True):
            compare(one, answers, gates, tally, folder)
    if cel:
        ask_cel(program, gates, seeds.start, cel, tally, folder)
    return tally


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs from the command line; 1 where fewer than 99.5 % of the answers agree."""
    parser = argparse.ArgumentParser(prog="python -m playground.agreement", description=__doc__)
    parser.add_argument("--release", default="1.37", help="1.36 or 1.37")
    parser.add_argument("--sets", type=int, default=200, help="how many object sets")
    parser.add_argument("--seed", type=int, default=0, help="the first set's seed")
    parser.add_argument("--gates", default="default", help="default, all, then Name=true,…")
    parser.add_argument("--cel", type=int, default=2000, help="how many expressions")
    parser.add_argument("--folder", type=Path, help="where disagreements are written")
    options = parser.parse_args(arguments)
    release = known_release(options.release)
    gates = parse(options.gates, minor(release))
    folder = options.folder or Path(tempfile.mkdtemp(prefix="berth-agreement-"))
    seeds = range(options.seed, options.seed + options.sets)
    tally = run(build(release), gates, seeds, folder, cel=options.cel)
    report(tally, options.sets)
    return 0 if tally.rate >= 0.995 else 1


if __name__ == "__main__":
    sys.exit(main())

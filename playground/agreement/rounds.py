"""One round: both sides are asked about the same random object sets, and compared.

`run` asks the allocator and CEL of a release through the playground's program (`oracle`);
`run_scheduler` loads the sets into a real control plane and lets kube-scheduler answer. Each
disagreement is written as a small file that says how to repeat it.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from devices.cluster.gateway import Rejected
from devices.dra.allocate import Kind, Verdict, allocate
from devices.dra.cel.evaluate import Unmodelled
from devices.dra.claims import read_claim_spec
from devices.dra.gates import Gates
from devices.dra.podverdict import pod_verdicts
from devices.dra.quantity import read as read_quantity
from devices.dra.requests import Wish
from devices.dra.selector import Fault, SelectorError, compile_selector
from devices.dra.slicereader import SliceReader
from devices.dra.snapshot import Snapshot, read
from playground.agreement.comparison import Tally, Told, amounts_text, keep, question_of, record
from playground.agreement.expressions import DRIVER, a_device, an_expression
from playground.agreement.nodesides import NAMESPACE, with_sides
from playground.agreement.objectclaims import Question
from playground.agreement.objectsets import ObjectSet, make
from playground.agreement.scheduling import RealScheduler, pod_of
from playground.agreement.shrink import shrunk

#: Each try to make a disagreement with the scheduler smaller loads a set anew: two seconds.
SCHEDULER_TRIES = 150
#: Objects that the oracle reads; it needs no others.
ORACLE_KINDS = ("DeviceClass", "ResourceSlice", "ResourceClaim", "Node", "DeviceTaintRule")


def wishes_of(question: Question) -> list[Wish]:
    """The claims of a question as the rules take them."""
    return [
        Wish(
            f"{claim['metadata']['namespace']}/{claim['metadata']['name']}",
            read_claim_spec(claim["spec"], "spec", []),
        )
        for claim in question.claims
    ]


def ours(seen: Snapshot, question: Question) -> Told:
    """What Berth's rules answer."""
    return told(allocate(seen, seen.node(question.node), wishes_of(question)))


def told(verdict: Verdict) -> Told:
    """A verdict in the form of an answer of the oracle."""
    kind = "TIMEOUT" if verdict.code == "SEARCH_TOO_LONG" else verdict.kind.value
    devices = tuple(
        (str(given.claim), given.request, *given.device, amounts_text(given.consumed))
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
            amounts_text({k: read_quantity(v) for k, v in one.get("consumed", {}).items()}),
        )
        for number, claim in enumerate(answer.get("devices", ()))
        for one in claim
    )
    return Told(answer["verdict"], devices, answer.get("text", ""))


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
            keep(
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
    program: Path,
    one: ObjectSet,
    answers: Sequence[Told],
    gates: Gates,
    tally: Tally,
    folder: Path,
) -> None:
    """Asks Berth's rules the questions of a set, counts how the answers compare, and keeps what
    differs, made as small as it can be.
    """
    seen = read(one.objects, gates=gates)
    tally.sets.update(one.features)
    for question, answer in zip(one.questions, answers, strict=True):
        mine = ours(seen, question)
        if not tally.add(mine, answer, question.features | {"any"}):
            name = f"set-{one.seed}-{question.id}"
            found = record(one, question, gates, mine, answer)
            small = shrunk(found, lambda r: _differs(program, r))
            keep(folder, tally, name, asked_again(program, small))


def _differs(program: Path, found: dict[str, Any]) -> bool:
    return bool(asked_again(program, found)["differs"])


def asked_again(program: Path, found: dict[str, Any]) -> dict[str, Any]:
    """A record with both answers asked anew; ``differs`` says whether they do."""
    gates = Gates(found["release"], frozenset(found["gates"]))
    question = question_of(found)
    one = ObjectSet(found["seed"], tuple(found["objects"]), (question,), frozenset())
    [[answer]] = ask_allocator(program, gates, [one])
    mine = ours(read(one.objects, gates=gates), question)
    again = record(one, question, gates, mine, answer)
    return {**again, "differs": mine.comparable != answer.comparable}


def run_scheduler(release: str, seeds: range, folder: Path, *, questions: int = 24) -> Tally:
    """Asks kube-scheduler itself, Pod by Pod, about the sets of these seeds."""
    tally = Tally()
    with (
        tempfile.TemporaryDirectory(prefix="berth-scheduler-") as place,
        RealScheduler(Path(place) / "plane", release) as scheduler,
    ):
        gates = scheduler.gates
        for seed in seeds:
            derived = "DRADerivedAttributes" in gates
            one = with_sides(make(seed, questions, lists=gates.lists, derived=derived))
            try:
                if _ask_scheduler(scheduler, one, gates, tally, folder):
                    scheduler.forget()
            except Rejected as error:
                tally.apart[f"object set refused: {str(error)[:90]}"] += 1
    return tally


def _ask_scheduler(
    scheduler: RealScheduler, one: ObjectSet, gates: Gates, tally: Tally, folder: Path
) -> bool:
    """One set; True where a Pod waited for binding. Such questions are asked last: a Pod that is
    deleted while it waits leaves its devices taken in the scheduler's memory.
    """
    mine = {question.id: our_pod(one, question, gates) for question in one.questions}
    waits = binding_devices(one)
    late = {q.id for q in one.questions if any(d[2:5] in waits for d in mine[q.id].devices)}
    order = sorted(one.questions, key=lambda q: q.id in late)
    tally.sets.update(one.features)
    waiting = False
    different: list[dict[str, Any]] = []
    for question, answer in zip(order, scheduler.ask(one, order), strict=True):
        told_ = Told(answer.verdict, answer.devices, answer.text)
        if answer.verdict in ("REJECTED", "SILENT"):
            tally.apart[f"{answer.verdict.lower()}: {answer.text[-70:]}"] += 1
            continue
        if told_.comparable != mine[question.id].comparable:
            again = scheduler.again(question)
            if Told(again.verdict, again.devices).comparable == mine[question.id].comparable:
                tally.apart["after-effect of the question before; equal when asked again"] += 1
                told_ = Told(again.verdict, again.devices, again.text)
        if told_.comparable != mine[question.id].comparable and waiting:
            tally.apart["after-effect of a Pod that waited for binding"] += 1
            continue
        waiting = waiting or question.id in late
        if not tally.add(mine[question.id], told_, question.features | {"any"}):
            found = record(one, question, gates, mine[question.id], told_)
            different.append(found | {"question": question.id})
    for found in different:
        keep(folder, tally, f"pod-{one.seed}-{found.pop('question')}", smaller(scheduler, found))
    return waiting


def smaller(scheduler: RealScheduler, found: dict[str, Any]) -> dict[str, Any]:
    """A disagreement with the scheduler, made as small as a number of tries allow; as it was where
    the question alone is answered alike, for then what came before it counts.
    """
    if not scheduler_differs(scheduler, found):
        return {**found, "alone": "equal"}
    return shrunk(found, lambda r: scheduler_differs(scheduler, r), tries=SCHEDULER_TRIES)


def scheduler_differs(scheduler: RealScheduler, found: dict[str, Any]) -> bool:
    """Asks both about a record anew; False, too, where the API server does not take it."""
    question = question_of(found)
    one = ObjectSet(found["seed"], tuple(found["objects"]), (question,), frozenset())
    mine = our_pod(one, question, scheduler.gates)
    try:
        [answer] = scheduler.ask(one, [question])
    except Rejected:
        return False
    if answer.verdict in ("REJECTED", "SILENT"):
        return False
    return Told(answer.verdict, answer.devices).comparable != mine.comparable


def our_pod(one: ObjectSet, question: Question, gates: Gates) -> Told:
    """What Berth's rules answer for the Pod of a question."""
    pod = pod_of(question)
    meta = {**pod["metadata"], "uid": "the-pod"}
    seen = read([*one.objects, *question.claims, {**pod, "metadata": meta}], gates=gates)
    [verdict] = pod_verdicts(seen, seen.pods[NAMESPACE, meta["name"]], [question.node])
    devices = tuple(
        (str(given.claim), given.request, *given.device, amounts_text(given.consumed))
        for given in verdict.given
    )
    timeout = verdict.code == "SEARCH_TOO_LONG"
    return Told("TIMEOUT" if timeout else verdict.kind.value, devices, verdict.message)


def binding_devices(one: ObjectSet) -> frozenset[tuple[str, ...]]:
    """Devices of a set that have binding conditions: driver, pool and name."""
    return frozenset(
        (spec["driver"], spec["pool"]["name"], device["name"])
        for spec in (o["spec"] for o in one.objects if o["kind"] == "ResourceSlice")
        for device in spec.get("devices", ())
        if device.get("bindingConditions")
    )


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
            compare(program, one, answers, gates, tally, folder)
    if cel:
        ask_cel(program, gates, seeds.start, cel, tally, folder)
    return tally

"""What the rules answer about a dump, subject by subject: plain values that both writers print."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from devices.dra.allocate import Forecast, Given, Kind, forecast
from devices.dra.codes import Code, code
from devices.dra.dump import Dump, Place, Problem
from devices.dra.events import Event, read_event
from devices.dra.explain import Explanation, explain
from devices.dra.gates import Gates
from devices.dra.hints import Hint, hints
from devices.dra.holders import claims_of
from devices.dra.nodeside import budget_gaps
from devices.dra.podhints import pod_hints
from devices.dra.pods import Pod
from devices.dra.podstatus import read_pod_status
from devices.dra.podverdict import Asked, PodVerdict, asked_by, device_cost, pod_verdicts, waiting
from devices.dra.reasons import Around, Reason, pod_reason
from devices.dra.requests import Wish
from devices.dra.snapshot import CLAIM, NODE, TEMPLATE, Snapshot, read


@dataclass(frozen=True, slots=True)
class Answer:
    """The verdict on one subject on one node. ``devices`` is None for a claim or a template, and a
    Pod's verdict on its claims alone otherwise.
    """

    subject: str
    namespace: str
    node: str
    kind: Kind
    given: tuple[Given, ...]
    message: str
    devices: Kind | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """One unallocated claim, template or Pod, with its verdicts and why it does not fit.

    ``reason`` is what the cluster itself has said about a Pod so far.
    """

    kind: str
    namespace: str
    name: str
    answers: tuple[Answer, ...]
    code: Code | None
    sentence: str
    explanation: Explanation | None = None
    hints: tuple[Hint, ...] = ()
    evidence: tuple[str, ...] = ()
    reason: Reason | None = None
    unmodelled: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        """``claim/NAME``, ``template/NAME`` or ``pod/NAME``."""
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class Inspected:
    """A dump as the rules see it: the snapshot, and what has to be said about the files."""

    snapshot: Snapshot
    problems: tuple[Problem, ...]
    events: tuple[Event, ...] = field(default=(), repr=False)
    kinds: frozenset[str] = frozenset()


def inspect(dump: Dump, gates: Gates, before: tuple[Problem, ...] = ()) -> Inspected:
    """A dump → its snapshot, with a problem for every object that could not be read, after those
    that are known ``before``.
    """
    snapshot = read((found.raw for found in dump.objects), gates=gates)
    places = dump.places
    unread = tuple(
        Problem(places.get(each.object, Place("?", 0)), f"{each.object} is left out: {each.why}")
        for each in snapshot.unread
    )
    unknown = tuple(
        Problem(
            places.get(each.object, Place("?", 0)),
            f"{each.object}: {each.path} is not known here and is taken as unknown",
        )
        for each in snapshot.unknown
    )
    events = tuple(read_event(found.raw) for found in dump.objects if found.raw["kind"] == "Event")
    kinds = frozenset(str(found.raw["kind"]) for found in dump.objects)
    return Inspected(snapshot, (*before, *dump.problems, *unread, *unknown), events, kinds)


def subjects(inspected: Inspected) -> Iterator[Subject]:
    """Every unallocated claim, every template and every waiting Pod that uses devices."""
    snapshot = inspected.snapshot
    for claim in snapshot.claims.values():
        if claim.allocation is None and claim.meta.deleted is None:
            wish = Wish(str(claim), claim.spec)
            yield _alone(snapshot, "claim", claim.meta.namespace, claim.meta.name, wish)
    for template in snapshot.templates.values():
        name = f"{template.meta.namespace}/{template.meta.name}"
        wish = Wish(name, template.spec)
        yield _alone(snapshot, "template", template.meta.namespace, template.meta.name, wish)
    for pod in snapshot.pods.values():
        if waiting(pod) and _uses_devices(pod, snapshot):
            yield _pod(inspected, pod)


def _alone(snapshot: Snapshot, kind: str, namespace: str, name: str, wish: Wish) -> Subject:
    """A claim or template by itself: the allocator's answer on each node, and nothing else."""
    found = explain(snapshot, [wish])
    seen = found.forecast or forecast(snapshot, [wish])
    answers = tuple(_answers(seen, f"{kind}/{name}", namespace))
    suggested = hints(snapshot, [wish], seen) if found.kind is not Kind.OK else ()
    return Subject(
        kind,
        namespace,
        name,
        answers,
        found.code,
        found.sentence,
        found,
        suggested,
        found.evidence,
    )


def _answers(seen: Forecast, subject: str, namespace: str) -> Iterator[Answer]:
    for node, verdict in sorted(seen, key=lambda pair: pair[0]):
        yield Answer(subject, namespace, node, verdict.kind, verdict.given, verdict.text)


def _pod(inspected: Inspected, pod: Pod) -> Subject:
    snapshot = inspected.snapshot
    verdicts = tuple(sorted(pod_verdicts(snapshot, pod), key=lambda verdict: verdict.node))
    asked = asked_by(pod, snapshot)
    found = explain(snapshot, asked.wishes) if asked.wishes else None
    worst = _dominant(verdicts)
    sentence, chosen = _why(found, verdicts, worst)
    evidence = (*(found.evidence if found is not None else ()), *_gaps(snapshot, pod, asked))
    suggested: tuple[Hint, ...] = ()
    if found is not None and found.kind is not Kind.OK:
        suggested = hints(snapshot, asked.wishes, found.forecast)
    suggested = (*suggested, *pod_hints(snapshot, pod, verdicts))
    subject = f"pod/{pod.meta.name}"
    return Subject(
        "pod",
        pod.meta.namespace,
        pod.meta.name,
        tuple(
            Answer(subject, pod.meta.namespace, v.node, v.kind, v.given, v.message, v.devices)
            for v in verdicts
        ),
        chosen,
        sentence,
        found,
        suggested,
        evidence,
        _said(inspected, pod),
        pod.unmodelled,
    )


def _dominant(verdicts: tuple[PodVerdict, ...]) -> PodVerdict | None:
    """The verdict that stands for all nodes: a failure outweighs all, then whatever fits, then the
    node that comes furthest (its devices are there).
    """
    order = {Kind.FATAL: 0, Kind.OK: 1, Kind.NODE_ERROR: 3, Kind.NO: 3}

    def rank(verdict: PodVerdict) -> tuple[int, str]:
        nearly = verdict.kind is Kind.NO and verdict.devices is Kind.OK
        return (2 if nearly else order[verdict.kind], verdict.node)

    return min(verdicts, key=rank, default=None)


def _why(
    found: Explanation | None, verdicts: tuple[PodVerdict, ...], worst: PodVerdict | None
) -> tuple[str, Code | None]:
    fitting = [verdict.node for verdict in verdicts if verdict.kind is Kind.OK]
    if worst is not None and worst.kind is Kind.OK:
        where = fitting[0] if len(fitting) == 1 else f"{len(fitting)} nodes"
        return f"Fits now, on {where}.", None
    if worst is not None and worst.devices is Kind.OK and worst.code:
        return code(worst.code).words, code(worst.code)
    if found is not None and found.code is not None:
        return found.sentence, found.code
    if worst is not None and worst.code:
        return code(worst.code).words, code(worst.code)
    return "No node is known.", code("NO_MATCHING_DEVICE_FREE")


def _gaps(snapshot: Snapshot, pod: Pod, asked: Asked) -> Iterator[str]:
    """By how much a budget of the Pod is too small, on the first node where that is so."""
    for _, verdict in forecast(snapshot, asked.wishes) if asked.wishes else ():
        if verdict.kind is Kind.OK:
            cost = device_cost(snapshot, pod, verdict, asked)
            yield from (str(gap) for gap in budget_gaps(pod, cost))
            return


def _said(inspected: Inspected, pod: Pod) -> Reason:
    snapshot = inspected.snapshot
    namespace = pod.meta.namespace
    around = Around(
        claims={key[1]: claim for key, claim in snapshot.claims.items() if key[0] == namespace},
        every_claim=CLAIM in inspected.kinds,
        templates=frozenset(key[1] for key in snapshot.templates if key[0] == namespace)
        if TEMPLATE in inspected.kinds
        else None,
        nodes=frozenset(snapshot.nodes) if NODE in inspected.kinds else None,
    )
    events = [event for event in inspected.events if event.uid == pod.meta.uid]
    return pod_reason(pod, read_pod_status(pod.raw), around, events)


def _uses_devices(pod: Pod, snapshot: Snapshot) -> bool:
    return bool(pod.claims or claims_of(pod, snapshot) or _extended(pod, snapshot))


def _extended(pod: Pod, snapshot: Snapshot) -> bool:
    served = {c.extended_resource for c in snapshot.classes.values()} - {""}
    return any(served & container.requests.keys() for container in pod.containers)

"""Reads gates: samples from rows, a verdict by the rule, and a Reading that keeps both.

However many gates, a subject costs the same number of queries. A gate is read again after `EVERY`
(later on after `LATER`) at the earliest; between that its newest reading stands.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from devices.forecasts.picture import Picture
from devices.forecasts.warm import fresh
from migrationplan.gates import GateVerdict, Outcome, Sample, Samples, p95_range, read
from migrationplan.gates import Reading as Judged
from migrationplan.gating import outside, standing, useful, ways
from migrationplan.gating.subjects import Subject
from migrationplan.measures import ABOUT, Kind, Measure
from migrationplan.models.reading import Gate, Reading
from portal import news

TOPIC: Final = "readings"
#: A reading stands for so long while the newest of the nodes has just moved, and later on.
EVERY: Final = timedelta(minutes=2)
LATER: Final = timedelta(minutes=10)
JUST_MOVED: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class _Read:
    """One gate that was read just now."""

    gate: Gate
    samples: Samples
    judged: Judged


def judge(
    subjects: Subject | Sequence[Subject], gates: Iterable[str], now: datetime
) -> tuple[GateVerdict, ...]:
    """What the gates of these slugs say of nodes that moved, one verdict a gate and subject.

    A gate that is not there, or retired, is `NONE` and votes: no news is not good news. May ask
    webhooks and Prometheus, for a few seconds each: call it from a worker, without a transaction.
    """
    every = (subjects,) if isinstance(subjects, Subject) else tuple(subjects)
    slugs = list(dict.fromkeys(gates))
    known = {gate.slug: gate for gate in Gate.objects.filter(slug__in=slugs, retired_at=None)}
    found: list[GateVerdict] = []
    for subject in every:
        readings = read_now(subject, [known[slug] for slug in slugs if slug in known], now)
        for slug in slugs:
            found.append(_verdict(slug, readings.get(slug), subject, len(every) > 1))
    return tuple(found)


def read_now(
    subject: Subject,
    gates: Sequence[Gate],
    now: datetime,
    *,
    every: timedelta | None = None,
    picture: Picture | None = None,
) -> dict[str, Reading]:
    """The newest reading of each gate by slug; those older than `every` (or than they may be) are
    read and stored.
    """
    if every is None:
        just = now - max(subject.moved.values(), default=now) < JUST_MOVED
        every = EVERY if just else LATER
    before = newest(subject, [gate.slug for gate in gates])
    due = [gate for gate in gates if _due(gate, before.get(gate.slug), subject, now, every)]
    if not due or not subject.moved:
        return before
    written = [_row(subject, one, now) for one in _read(subject, due, now, picture or fresh())]
    Reading.objects.bulk_create(written)
    news.publish([TOPIC], tenant=news.PLATFORM)
    return {**before, **{one.gate: one for one in written}}


def newest(subject: Subject, slugs: Iterable[str]) -> dict[str, Reading]:
    """The newest reading of each gate about this subject; one query."""
    rows = Reading.objects.filter(
        pool=subject.pool, wave=subject.wave, gate__in=list(slugs), direction=subject.direction
    )
    if not subject.wave:
        rows = rows.filter(nodes=subject.nodes)
    rows = rows.order_by("gate", "-pk").distinct("gate").defer("samples")
    return {row.gate: row for row in rows}


def _due(
    gate: Gate, last: Reading | None, subject: Subject, now: datetime, every: timedelta
) -> bool:
    """Also where a gate, or the nodes, changed since: the reading is about something else."""
    if last is None or now - last.at >= every:
        return True
    same_gate = last.settings.get("revision") == gate.revision
    return not same_gate or last.moved != subject.moved_as_json()


def _read(
    subject: Subject, gates: Sequence[Gate], now: datetime, picture: Picture | None
) -> list[_Read]:
    pods = ways.ways_of(subject, now)
    ground = standing.ground_of(subject, picture)
    return [_one(gate, subject, pods, ground, now) for gate in gates]


def _one(
    gate: Gate, subject: Subject, pods: ways.Ways, ground: standing.Ground, now: datetime
) -> _Read:
    measure = Measure(gate.measure)
    if ABOUT[measure].kind is Kind.OUTSIDE:
        return _Read(gate, Samples(), outside.ask(gate, subject, now))
    if measure in ways.FROM_WAYS:
        samples = ways.samples_of(measure, pods, patience=gate.patience, now=now)
    elif measure is Measure.USEFUL:
        samples = useful.samples_of(pods, now)
    else:
        samples = standing.samples_of(measure, subject, ground, pods, gate.limit, now)
    return _Read(gate, samples, read(gate.rule(), samples))


def _row(subject: Subject, one: _Read, now: datetime) -> Reading:
    text = canonical(one.samples)
    return Reading(
        at=now,
        wave=subject.wave,
        pool=subject.pool,
        direction=subject.direction.value,
        moved=subject.moved_as_json(),
        nodes=subject.nodes,
        since=subject.since,
        gate=one.gate.slug,
        name=one.gate.name,
        measure=one.gate.measure,
        settings=one.gate.settings(),
        trial=one.gate.trial,
        verdict=one.judged.verdict.value,
        sentence=one.judged.sentence[:500],
        figures=figures(one.judged, one.samples),
        samples=zlib.compress(text),
        digest=hashlib.sha256(text).hexdigest(),
    )


def canonical(samples: Samples) -> bytes:
    """Samples as the bytes that are kept and digested."""

    def side(found: Iterable[Sample]) -> list[list[Any]]:
        return [[one.of, one.node, one.value] for one in found]

    content = {
        "moved": side(samples.moved),
        "others": side(samples.others),
        "unknown": samples.unknown,
    }
    return json.dumps(content, separators=(",", ":"), sort_keys=True).encode()


def kept(reading: Reading) -> Samples:
    """The samples of a reading, as the rule takes them.

    Raises ValueError where they are not what was digested.
    """
    text = zlib.decompress(bytes(reading.samples))
    if hashlib.sha256(text).hexdigest() != reading.digest:
        raise ValueError(f"the samples of reading {reading.public_id} are not those of its digest")
    content = json.loads(text)
    return Samples(
        tuple(Sample(*one) for one in content["moved"]),
        tuple(Sample(*one) for one in content["others"]),
        content["unknown"],
    )


def figures(judged: Judged, samples: Samples) -> Mapping[str, Any]:
    """The numbers of a reading as JSON."""
    found = asdict(judged)
    del found["verdict"], found["sentence"]
    if judged.moved.p95 is not None:
        found["moved"]["p95_range"] = asdict(p95_range(samples.moved))
    if judged.others.p95 is not None:
        found["others"]["p95_range"] = asdict(p95_range(samples.others))
    return found


def _verdict(slug: str, reading: Reading | None, subject: Subject, several: bool) -> GateVerdict:
    where = f" in {subject.pool.name}" if several else ""
    if reading is None:
        return GateVerdict(f"{slug}{where}", Outcome.NONE, "It has no reading.")
    return GateVerdict(
        f"{reading.name}{where}", Outcome(reading.verdict), reading.sentence, reading.trial
    )

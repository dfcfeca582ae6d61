"""Bundles of evidence: what was seen, decided and done to nodes of a pool in a span of time.

Everything is written down when it is collected, as exhibits; so the bytes of a bundle can be made
anew for as long as the database is there, long after the cluster has forgotten.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from devices.fleet.nodepools import selected
from devices.forecasts.warm import warm
from devices.models import NodePool, OwnershipLine
from migrationplan.evidence import records
from migrationplan.evidence.bundle import File, canonical, packed
from migrationplan.evidence.sighting import keep, sight
from migrationplan.models import Evidence, Exhibit, Move, Sighting, Wave
from portal import news
from portal.audit.record import record
from portal.errors import Invalid

TOPIC: Final = "evidence"
_BATCH: Final = 200


def collect(
    pool: NodePool,
    moves: Sequence[Move] | None,
    since: datetime,
    until: datetime | None,
    *,
    why: str,
    now: datetime,
    request_id: str,
    person: UUID | None = None,
) -> Evidence:
    """Writes down what is known of a pool's moves in a span; None takes every move under way in it.

    Without an end, or with one that is not yet over, what the mirror shows now is in it too. Raises
    `Invalid` for a span that ends before it begins.
    """
    ends = now if until is None or until > now else until
    if ends <= since:
        raise Invalid("It ends before it begins.", fields={"until": "Later than the beginning."})
    if moves is None:
        moves = list(moves_in(pool, since, ends))
    moves = sorted(moves, key=lambda one: one.pk)
    with transaction.atomic():
        if ends == now:
            sight(pool, moves, why=why, now=now, nodes=() if moves else nodes_of(pool))
        files = list(_files(pool, moves, since, ends))
        digests = keep(content for _, content in files)
        about = {
            "pool": pool.slug,
            "moves": [move.public_id for move in moves],
            "since": since.isoformat(),
            "until": ends.isoformat(),
            "why": why,
        }
        whole, size = hashlib.sha256(), 0
        for piece in packed(about, files):
            whole.update(piece)
            size += len(piece)
        made = Evidence.objects.create(
            pool=pool,
            moves=sorted(about["moves"]),
            since=since,
            until=ends,
            why=why[:240],
            made_by=person,
            made_at=now,
            request_id=request_id,
            about=about,
            files=[
                [name, digest, len(content)]
                for (name, content), digest in zip(files, digests, strict=True)
            ],
            digest=whole.hexdigest(),
            size=size,
        )
        record(
            action="evidence.collected",
            subject=f"evidence {made.public_id}",
            request_id=request_id,
            at=now,
            person=person,
            facts={**about, "sha256": made.digest, "size": size},
        )
        topics = [TOPIC]
        transaction.on_commit(lambda: news.publish(topics, tenant=news.PLATFORM), robust=True)
    return made


def exported(evidence: Evidence) -> Iterator[bytes]:
    """The bundle's bytes, piece by piece: always the same ones."""
    return packed(evidence.about, _kept(evidence))


def moves_in(pool: NodePool, since: datetime, until: datetime) -> Iterable[Move]:
    """Moves of a pool that were under way at some moment of a span."""
    begun = Move.objects.filter(pool=pool, begun_at__lte=until)
    return begun.filter(Q(ended_at=None) | Q(ended_at__gte=since))


def nodes_of(pool: NodePool) -> list[str]:
    """Names of its nodes as the mirror has them."""
    seen = warm()
    return selected(pool.selector, seen.now) if seen else []


def _kept(evidence: Evidence) -> Iterator[File]:
    files: list[list[Any]] = evidence.files
    for start in range(0, len(files), _BATCH):
        part = files[start : start + _BATCH]
        bodies = Exhibit.objects.in_bulk([digest for _, digest, _ in part])
        for name, digest, _ in part:
            yield name, bytes(bodies[digest].body)


def _files(
    pool: NodePool, moves: Sequence[Move], since: datetime, until: datetime
) -> Iterator[File]:
    waves = list(Wave.objects.filter(nodes__move__in=moves).distinct().order_by("pk"))
    nodes = sorted({move.node for move in moves}) or nodes_of(pool)
    lines = OwnershipLine.objects.filter(
        Q(until=None) | Q(until__gte=since),
        node__in=nodes,
        type__in=[pool.resource, pool.driver],
        since__lte=until,
    )
    yield "README.txt", README.encode()
    yield "pool.json", canonical(records.of_pool(pool)) + b"\n"
    yield "moves.jsonl", _lines(map(records.of_move, moves))
    yield "move-events.jsonl", _lines(records.move_events(moves, until))
    yield "waves.jsonl", _lines(map(records.of_wave, waves))
    yield "wave-events.jsonl", _lines(records.wave_events(waves, until))
    yield "ownership.jsonl", _lines(map(records.of_ownership, lines.order_by("pk")))
    yield "approvals.jsonl", _lines(records.approvals(pool, waves, until))
    yield "gates.jsonl", _lines(records.gate_readings(pool, nodes, since, until))
    yield "drills.jsonl", _lines(records.drills(pool, since, until))
    yield "freezes.jsonl", _lines(records.freezes(pool, since, until))
    yield "audit.jsonl", _lines(records.audit_lines(pool, moves, waves, since, until))
    yield from _sightings(pool, moves, since, until)


def _sightings(
    pool: NodePool, moves: Sequence[Move], since: datetime, until: datetime
) -> Iterator[File]:
    """An index for each moment, then each object once, however often it was seen so."""
    found = Sighting.objects.filter(pool=pool, at__gte=since, at__lte=until)
    if moves:
        found = found.filter(moves__overlap=[move.public_id for move in moves])
    objects: dict[str, str] = {}
    for number, one in enumerate(found.order_by("at", "pk"), start=1):
        index = []
        for entry in one.objects_seen:
            path = _path(entry)
            objects.setdefault(path, entry["digest"])
            index.append({**entry, "file": path})
        told = {
            "at": one.at.isoformat(),
            "why": one.why,
            "nodes": one.nodes,
            "nodes_left_out": one.left_out,
            "mirror_heard_until": one.heard,
            "objects": index,
        }
        yield f"sightings/{number:03}.json", canonical(told) + b"\n"
    paths = sorted(objects)
    for start in range(0, len(paths), _BATCH):
        part = paths[start : start + _BATCH]
        bodies = Exhibit.objects.in_bulk([objects[path] for path in part])
        for path in part:
            yield path, bytes(bodies[objects[path]].body)


def _path(entry: dict[str, Any]) -> str:
    """Kubernetes' names have no slash and no blank, so they are fit for paths."""
    place = "/".join(part for part in (entry["kind"], entry["namespace"]) if part)
    return f"objects/{place}/{entry['name']}@{entry['digest'][:12]}.json"


def _lines(rows: Iterable[Any]) -> bytes:
    return b"".join(canonical(row) + b"\n" for row in rows)


README: Final = """\
What Berth knows of some nodes of a node pool in a span of time. MANIFEST.json says which, and has
the SHA-256 digest of every file; `manage.py verifybundle FILE` checks them, and whether Berth
recorded this bundle. Times are UTC. People are opaque ids: their names stay in Berth.

pool.json          the node pool as it was when this was collected
moves.jsonl        conversions of nodes, with what the node itself said
move-events.jsonl  every step of them: when, why, which code, who
waves.jsonl        the waves that they belong to
wave-events.jsonl  what happened to those
ownership.jsonl    who gave the devices out, from when to when
approvals.jsonl    what was asked, who decided, when
gates.jsonl        what gates said of these nodes, with their samples
drills.jsonl       drills on this pool in the span
freezes.jsonl      what took no new work in the span
audit.jsonl        audit lines about all of that, with their place in Berth's chain
sightings/         what the mirror of the cluster showed, at the moments that matter
objects/           those objects, each version once. Left out of them: values of environment
                   variables, commands and arguments of Pods
"""

"""The answers as one JSON object per line, for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from devices.dra.capacity import Tally, capacity
from devices.dra.charges import Line, charges, idle_charges
from devices.dra.drift import drift, labelled
from devices.dra.funnel import Funnel
from devices.dra.hints import Hint
from devices.dra.largest import largest
from devices.dra.leaks import leaks
from devices.dra.ledger import accounts
from devices.dra.ownership import ownership, same_hardware
from devices.dra.pools import pools
from devices.dra.snapshot import Snapshot
from devices.inspection.answers import Answer, Inspected, Subject, subjects

Record = dict[str, Any]


def records(inspected: Inspected) -> Iterator[Record]:
    """Every answer, most general first: problems, gates, pools, capacity, verdicts, explanations,
    leaks, ownership, drift, charges.
    """
    snapshot = inspected.snapshot
    for problem in inspected.problems:
        place = problem.place
        yield {
            "kind": "problem",
            "file": place.file,
            "line": place.line or None,
            "message": problem.text,
        }
    gates = snapshot.gates
    yield {
        "kind": "gates",
        "release": gates.release,
        "on": sorted(gates.on),
        "assumed": list(gates.assumed),
    }
    yield from _pools(snapshot)
    yield from _capacity(snapshot)
    for subject in subjects(inspected):
        yield from map(_verdict, subject.answers)
        yield _explanation(subject)
    yield from _findings(snapshot)
    yield from _charges(snapshot)


def _pools(snapshot: Snapshot) -> Iterator[Record]:
    for pool in pools(snapshot).values():
        yield {
            "kind": "pool",
            "driver": pool.driver,
            "pool": pool.name,
            "generation": pool.generation,
            "slices": len(pool.slices),
            "expected": pool.expected,
            "devices": sum(1 for _ in pool.devices),
            "complete": not pool.incomplete,
            "invalid": pool.invalid,
            "outdated": list(pool.outdated),
        }


def _capacity(snapshot: Snapshot) -> Iterator[Record]:
    found = capacity(snapshot)
    yield _tally("cluster", "", found.cluster, not_published=_paths(found.not_published))
    for (driver, pool), tally in found.pools.items():
        yield _tally("pool", pool, tally, driver=driver)
    for name, tally in found.classes.items():
        most = largest(snapshot, name)
        yield _tally("class", name, tally, largest=most.count, largest_on=most.node)
    for node, tally in found.nodes.items():
        yield _tally("node", node, tally)


def _tally(scope: str, name: str, tally: Tally, **more: Any) -> Record:
    return {
        "kind": "capacity",
        "scope": scope,
        "name": name,
        "total": tally.total,
        "idle": tally.idle,
        "allocated": tally.allocated,
        "unavailable": dict(tally.unavailable),
        "fragmented": tally.fragmented,
        "unknown": dict(tally.unknown),
        "devices": tally.devices,
        **more,
    }


def _verdict(answer: Answer) -> Record:
    record: Record = {
        "kind": "verdict",
        "subject": answer.subject,
        "namespace": answer.namespace,
        "node": answer.node,
        "verdict": answer.kind.value,
        "devices": [str(given) for given in answer.given],
        "message": answer.message,
    }
    if answer.devices is not None:
        record["device_verdict"] = answer.devices.value
    return record


def _explanation(subject: Subject) -> Record:
    found, code = subject.explanation, subject.code
    record: Record = {
        "kind": "explanation",
        "subject": subject.subject,
        "namespace": subject.namespace,
        "code": code.name if code is not None else "OK",
        "class": code.class_.value if code is not None else "",
        "who": code.who.value if code is not None else "nobody",
        "sentence": subject.sentence,
        "next_step": code.next_step if code is not None else "",
        "evidence": list(subject.evidence),
        "funnel": [_funnel(each) for each in found.funnels] if found is not None else [],
        "hints": [_hint(hint) for hint in subject.hints],
    }
    if subject.unmodelled:
        record["not_modelled"] = list(subject.unmodelled)
    if subject.reason is not None:
        reason = subject.reason
        record["said"] = {
            "code": reason.code.name,
            "who": reason.who.value,
            "sentence": reason.sentence,
            "message": reason.text,
        }
    return record


def _funnel(found: Funnel) -> Record:
    return {
        "request": found.request,
        "class": found.device_class,
        "published": found.published,
        "asked": found.need if found.need is not None else "all",
        "best_node": found.best_node,
        "best": found.best,
        "steps": [
            {
                "what": step.what,
                "left": step.left,
                "removed": step.removed,
                "clause": step.clause,
                "by": list(step.by),
                "failed": step.failed,
            }
            for step in found.steps
        ],
    }


def _hint(hint: Hint) -> Record:
    return {
        "change": hint.change.name.lower(),
        "text": hint.text,
        "node": hint.node,
        "release": list(hint.release),
        "until": hint.until.isoformat() if hint.until is not None else None,
    }


def _findings(snapshot: Snapshot) -> Iterator[Record]:
    for leak in leaks(snapshot):
        yield {
            "kind": "leak",
            "code": leak.code.name,
            "claims": list(leak.claims),
            "devices": _paths(leak.devices),
            "node": leak.node,
            "since": leak.since.isoformat() if leak.since is not None else None,
            "proof": list(leak.proof),
            "message": leak.code.words,
        }
    for owned in ownership(snapshot):
        yield {
            "kind": "ownership",
            "node": owned.node,
            "type": owned.type,
            "owner": owned.owner.value,
            "plugin": owned.plugin,
            "published": owned.published,
            "hardware": owned.hardware,
            "left_over": owned.left_over,
            "code": owned.code.name if owned.code is not None else "",
        }
    for same in same_hardware(snapshot):
        yield {
            "kind": "same_hardware",
            "code": same.code.name,
            "node": same.node,
            "devices": _paths(same.devices),
            "by": list(same.by),
        }
    for each in drift(snapshot, labelled(snapshot)):
        yield {
            "kind": "drift",
            "code": each.code.name,
            "node": each.node,
            "driver": each.driver,
            "expected": each.expected,
            "published": each.published,
            "message": each.why,
        }


def _charges(snapshot: Snapshot) -> Iterator[Record]:
    for lines in charges(snapshot).values():
        yield from map(_charge, lines)
    for line in idle_charges(snapshot):
        yield {**_charge(line), "kind": "idle_charge"}
    for by_resource in accounts(snapshot).values():
        for account in by_resource.values():
            if account.lines:
                yield {
                    "kind": "balance",
                    "node": account.node,
                    "resource": account.resource,
                    "allocatable": _amount(account.allocatable),
                    "charged": _amount(account.charged),
                    "by_devices": _amount(account.by_devices),
                    "free": _amount(account.free),
                    "numa": {
                        "unknown" if zone is None else str(zone): _amount(amount)
                        for zone, amount in account.by_numa.items()
                    },
                }


def _charge(line: Line) -> Record:
    return {
        "kind": "charge",
        "node": line.node,
        "resource": line.resource,
        "quantity": _amount(line.amount),
        "payer": line.payer,
        "rule": line.rule.value,
        "claim": line.claim,
        "device": "/".join(line.device) if line.device is not None else "",
        "numa": line.numa,
        "contained": line.contained,
        "code": line.code,
    }


def _amount(amount: object) -> str:
    return "unknown" if amount is None else str(amount)


def _paths(devices: Iterable[tuple[str, str, str]]) -> list[str]:
    return ["/".join(device) for device in devices]


def figures(counts: Mapping[str, int]) -> str:
    """Counts by code as words: ``2 POOL_INVALID, 1 DEVICE_TAINTED``."""
    return ", ".join(f"{number} {name}" for name, number in sorted(counts.items()))

"""Which Pods device taints end, when, and what a rule would do before anybody makes it.

Only effect NoExecute ends Pods; it respects nothing but tolerations of the claim's own request that
name that effect. Source: ``pkg/controller/devicetainteviction``; rules select by driver, pool and
device, an empty selector every device of the cluster, and no selector none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from devices.dra.claims import Claim, DeviceKey, Result
from devices.dra.pools import pools
from devices.dra.published import published
from devices.dra.snapshot import Snapshot
from devices.dra.taints import DeviceTaint, Effect, TaintRule


@dataclass(frozen=True, slots=True)
class Eviction:
    """A claim whose Pods are ended. ``at`` is when (None: at once, for nobody noted since when the
    taint is there), ``pods`` are the names it is reserved for, with their namespace.
    """

    claim: str
    pods: tuple[str, ...]
    devices: tuple[DeviceKey, ...]
    taints: tuple[DeviceTaint, ...]
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class RuleReach:
    """What a DeviceTaintRule touches: published devices, those in use, and the Pods that use them,
    which effect NoExecute ends unless their claims tolerate it.
    """

    published: tuple[DeviceKey, ...]
    allocated: tuple[DeviceKey, ...]
    pods: tuple[str, ...]

    @property
    def drivers(self) -> tuple[str, ...]:
        """The drivers whose devices it touches."""
        return tuple(sorted({driver for driver, _, _ in (*self.published, *self.allocated)}))

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces whose Pods it touches."""
        return tuple(sorted({pod.partition("/")[0] for pod in self.pods}))


def evictions(snapshot: Snapshot) -> tuple[Eviction, ...]:
    """Every claim with a NoExecute taint that it does not tolerate for ever, by claim."""
    if "DRADeviceTaints" not in snapshot.gates:
        return ()
    found = []
    for claim in snapshot.claims.values():
        ended = _of_claim(claim, snapshot)
        if ended is not None:
            found.append(ended)
    return tuple(found)


def rule_reach(snapshot: Snapshot, rule: TaintRule) -> RuleReach:
    """What a rule touches now, whether it is in the cluster already or only planned. Pods count
    where the taint, with effect NoExecute, would not be tolerated for ever.
    """
    if not rule.selects:
        return RuleReach((), (), ())
    devices = [
        (pool.driver, pool.name, device.name)
        for pool in pools(snapshot).values()
        for device in pool.devices
        if rule.matches(pool.driver, pool.name, device.name)
    ]
    taint = DeviceTaint(rule.taint.key, rule.taint.value, Effect.NO_EXECUTE, rule=rule.name)
    allocated: set[DeviceKey] = set()
    pods: set[str] = set()
    for claim in snapshot.claims.values():
        results = claim.allocation.results if claim.allocation else ()
        touched = [result for result in results if rule.matches(*result.key)]
        allocated.update(result.key for result in touched)
        if any(_tolerated(result, taint) is not FOREVER for result in touched):
            pods.update(_pods(claim))
    return RuleReach(tuple(devices), tuple(sorted(allocated)), tuple(sorted(pods)))


#: Tolerated without an end.
FOREVER = timedelta.max


def _of_claim(claim: Claim, snapshot: Snapshot) -> Eviction | None:
    taints: list[DeviceTaint] = []
    devices: list[DeviceKey] = []
    times: list[datetime | None] = []
    for result in claim.allocation.results if claim.allocation else ():
        for taint in _ending(snapshot, result):
            tolerated = _tolerated(result, taint)
            if tolerated is not FOREVER:
                taints.append(taint)
                devices.append(result.key)
                times.append(taint.since + tolerated if taint.since else None)
    if not taints:
        return None
    known = [at for at in times if at is not None]
    return Eviction(
        str(claim),
        _pods(claim),
        tuple(dict.fromkeys(devices)),
        tuple(dict.fromkeys(taints)),
        min(known) if len(known) == len(times) else None,
    )


def _ending(snapshot: Snapshot, result: Result) -> Iterable[DeviceTaint]:
    """The NoExecute taints of one allocated device: of its slice, and of rules."""
    found = published(snapshot, result.key)
    if found is not None:
        yield from (t for t in found.device.taints if t.effect == Effect.NO_EXECUTE)
    if "DRADeviceTaintRules" in snapshot.gates:
        for rule in snapshot.rules:
            ends = rule.selects and rule.taint.effect == Effect.NO_EXECUTE
            if ends and rule.matches(*result.key):
                yield rule.taint


def _tolerated(result: Result, taint: DeviceTaint) -> timedelta:
    """For how long an allocated device tolerates a NoExecute taint: the shortest of its
    tolerations, for ever where one has no end, not at all where none names this effect.
    """
    shortest: timedelta | None = None
    for toleration in result.tolerations:
        if toleration.effect != Effect.NO_EXECUTE or not toleration.tolerates(taint):
            continue
        if toleration.seconds is None:
            return FOREVER
        seconds = timedelta(seconds=max(toleration.seconds, 0))
        shortest = seconds if shortest is None else min(shortest, seconds)
    return shortest or timedelta(0)


def _pods(claim: Claim) -> tuple[str, ...]:
    return tuple(
        f"{claim.meta.namespace}/{consumer.name}"
        for consumer in claim.reserved_for
        if consumer.resource == "pods" and not consumer.api_group
    )

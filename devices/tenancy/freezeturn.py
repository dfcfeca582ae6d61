"""One turn of a freeze of a place: its taints and rules stand, or are gone again; its locks hold.

It may run twice or die anywhere; it holds a lease but no lock while it talks to the cluster. What
it makes is written down before it is made. The mirror says what is to do, and the API server is
asked once more where something is done. Closed is what the mirror shows closed.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Q

from devices import mirror
from devices.cluster.decoding import loads
from devices.cluster.gateway import ClusterError, Gateway, NotServed, Ref
from devices.cluster.taints import remove_rule, set_taints
from devices.dra.closures import (
    RULE,
    TAINT,
    Closure,
    node_taints,
    rule_object,
    stands,
    wanted_of_driver,
    wanted_of_pool,
)
from devices.dra.evictions import rule_reach
from devices.dra.names import Manager
from devices.dra.snapshot import Snapshot
from devices.dra.taints import read_rule
from devices.fleet.nodepools import selected
from devices.fleet.ownershipbook import as_of
from devices.forecasts.warm import fresh
from devices.models import Freeze, FreezeHold, NodePool
from devices.tenancy.freezes import TURN
from devices.tenancy.turns import turn_policy
from portal import news
from portal.audit.record import record
from portal.outbox import lines as outbox

Obj = dict[str, Any]
State = FreezeHold.State
#: Changes to the cluster that one turn makes; the next turn goes on.
AT_ONCE: Final = 50
#: What is closed is looked at as often, and closed anew where somebody opened it.
KEEPING: Final = timedelta(seconds=30)
GONE: Final = "gone"


def turn(public_id: str, *, gateway: Gateway, now: datetime) -> bool:
    """Takes one freeze of a place a step further; False where another turn is at work.

    Raises `ClusterError` with `retry` where asking again can help; the reason stands on the row.
    """
    through = outbox.newest(TURN, public_id)
    hold = FreezeHold.objects.select_related("freeze").get(freeze__public_id=public_id)
    holder = secrets.token_hex(8)
    if not hold.take_lease(holder, now):
        return False
    try:
        hold.refresh_from_db()
        hold.freeze.refresh_from_db()
        try:
            changed = _agree(hold, holder, gateway, now)
        except ClusterError as error:
            changed = {"answer": error.message[:500]}
            if error.retry:
                _store(hold, holder, changed)
                raise
        before = hold.state
        _store(hold, holder, changed)
        if hold.state in (State.CLOSED, State.OPEN):
            outbox.settle(TURN, public_id, through=through)
        if hold.state != before:
            news.publish(["freezes"])
    finally:
        if hold.drop_lease(holder, looked_at=now):
            outbox.hint(TURN, public_id)
    return True


def due(now: datetime) -> Sequence[str]:
    """Public ids of freezes that a turn has to look at now."""
    under_way = Q(state__in=[State.CLOSING, State.OPENING])
    kept = Q(state=State.CLOSED) & (Q(looked_at=None) | Q(looked_at__lte=now - KEEPING))
    rows = FreezeHold.objects.filter(under_way | kept).order_by("looked_at")
    return list(rows.values_list("freeze__public_id", flat=True)[:200])


def _store(hold: FreezeHold, holder: str, changed: Obj) -> None:
    if changed and FreezeHold.objects.filter(pk=hold.pk, lease=holder).update(**changed):
        for name, value in changed.items():
            setattr(hold, name, value)


def _agree(hold: FreezeHold, holder: str, gateway: Gateway, now: datetime) -> Obj:
    frozen = hold.freeze
    if frozen.scope == Freeze.Scope.CHANGE:
        return _lock(hold, gateway, now)
    if frozen.ended_at is not None:
        return _open(hold, _made(hold), gateway)
    seen = fresh()
    if seen is None:
        return {"answer": "Berth has not seen the cluster yet."}
    snapshot = seen.now
    rules = "DRADeviceTaintRules" in snapshot.gates and not hold.by_node
    wanted = _wanted(frozen, snapshot, rules=rules)
    made = _made(hold)
    lacking = [one for one in wanted if not stands(one, frozen.public_id, snapshot)]
    over = [one for one in made if one not in set(wanted)]
    _store(hold, holder, {
        "closures": [asdict(one) for one in sorted({*made, *lacking[:AT_ONCE]})],
        "wanted": len(wanted),
        "by_node": hold.by_node or not rules,
        "reach": hold.reach or _reach(wanted, frozen.public_id, snapshot),
    })  # fmt: skip
    try:
        for one in lacking[:AT_ONCE]:
            _close(one, frozen.public_id, gateway)
    except NotServed:
        return {"by_node": True, "answer": "This cluster serves no DeviceTaintRule."}
    for one in over[:AT_ONCE]:
        _undo(one, frozen.public_id, gateway)
    left = [asdict(one) for one in _made(hold) if one not in set(over[:AT_ONCE])]
    done = not lacking and not over
    return {"state": State.CLOSED if done else State.CLOSING, "answer": "", "closures": left}


def _wanted(frozen: Freeze, snapshot: Snapshot, *, rules: bool) -> tuple[Closure, ...]:
    if frozen.scope == Freeze.Scope.DRIVER:
        return wanted_of_driver(frozen.target, snapshot, rules=rules)
    pool = NodePool.objects.filter(slug=frozen.target).first()
    if pool is None:
        return ()  # forgotten meanwhile: nothing says which nodes were in it
    names = selected(pool.selector, snapshot)
    lines = as_of().filter(node__in=names, type__in=[pool.resource, pool.driver])
    owners = dict.fromkeys(names, "none") | {
        line.node: line.owner for line in lines.order_by("pk") if line.owner != "none"
    }
    return wanted_of_pool(
        owners, pool.driver, snapshot, path=frozen.path, rules=rules, freeze=frozen.public_id
    )


def _made(hold: FreezeHold) -> list[Closure]:
    return [Closure(**one) for one in hold.closures]


def _reach(wanted: Iterable[Closure], freeze: str, snapshot: Snapshot) -> Obj:
    """What is closed and what stays, counted from the mirror; both are said on the page."""
    devices, pods = 0, set[str]()
    nodes = {one.node for one in wanted if one.kind == TAINT}
    for one in wanted:
        if one.kind == RULE:
            reach = rule_reach(snapshot, read_rule(rule_object(one, freeze))[0])
            devices += len(reach.published)
            pods.update(reach.pods)
    pods.update(
        str(pod) for pod in snapshot.pods.values() if pod.node_name in nodes and not pod.finished
    )
    return {"devices": devices, "nodes": len(nodes), "pods": len(pods)}


def _open(hold: FreezeHold, made: Sequence[Closure], gateway: Gateway) -> Obj:
    for one in made[:AT_ONCE]:
        _undo(one, hold.freeze.public_id, gateway)
    left = [asdict(one) for one in made[AT_ONCE:]]
    return {"closures": left, "state": State.OPENING if left else State.OPEN, "answer": ""}


def _close(one: Closure, freeze: str, gateway: Gateway) -> None:
    if one.kind == RULE:
        gateway.apply(rule_object(one, freeze), manager=Manager.FREEZE, force=True)
    else:
        _taint(one, freeze, gateway, closed=True)


def _undo(one: Closure, freeze: str, gateway: Gateway) -> None:
    if one.kind == TAINT:
        _taint(one, freeze, gateway, closed=False)
        return
    remove_rule(gateway, one.rule_name(freeze))


def _taint(one: Closure, freeze: str, gateway: Gateway, *, closed: bool) -> None:
    node = gateway.get(Ref("Node", one.node))
    if node is None or node["metadata"]["uid"] != one.uid:
        return
    set_taints(gateway, node, node_taints(node["spec"].get("taints") or [], freeze, closed=closed))


# --- driver changes ---


def _lock(hold: FreezeHold, gateway: Gateway, now: datetime) -> Obj:
    """The policy denies the changes; what got past it all the same is found by its generation."""
    if not turn_policy(gateway=gateway, now=now):
        return {"answer": "Berth does not know the device classes of the cluster yet."}
    if hold.freeze.ended_at is not None:
        return {"state": State.OPEN, "answer": ""}
    seen = _versions(hold.freeze.target)
    changed = [*hold.changed]
    versions = hold.versions or seen
    for name, version in versions.items():
        now_is = seen.get(name, GONE)
        if now_is != version and [name, now_is] not in [one[:2] for one in changed]:
            changed.append([name, now_is, now.isoformat()])
            _got_past(hold.freeze, name, version, now_is, now)
    return {"state": State.CLOSED, "answer": "", "versions": versions, "changed": changed}


def _versions(slug: str) -> dict[str, str]:
    """By name, the uid and generation of a node pool's DaemonSets and class, as mirrored."""
    pool = NodePool.objects.filter(slug=slug).first()
    if pool is None:
        return {}
    wanted = {f"DaemonSet {name}" for name in (*pool.plugin_sets, *pool.driver_sets)}
    wanted.add(f"DeviceClass {pool.device_class}")
    found = {}
    for kind, objects in mirror.raw_objects("DaemonSet", "DeviceClass").items():
        for meta in (loads(raw)["metadata"] for raw in objects):
            space = f"{meta['namespace']}/" if meta.get("namespace") else ""
            name = f"{kind} {space}{meta['name']}"
            if name in wanted:
                found[name] = f"{meta['uid']} {meta.get('generation', 0)}"
    return found


def _got_past(frozen: Freeze, name: str, was: str, became: str, now: datetime) -> None:
    record(
        action="freeze.got_past",
        subject=f"freeze {frozen.public_id}",
        request_id=frozen.request_id,
        at=now,
        facts={"target": frozen.target, "object": name, "was": was, "became": became},
    )

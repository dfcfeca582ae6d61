"""Where an admin lets it: every Pod waits for devices of nodes whose ledger cannot be relied on.

A turn may run twice or die anywhere. What is to stand follows from the tables and the mirror, what
stands is known by its name, and both are compared again ten seconds later.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction

from devices.cluster.gateway import ClusterError, Gateway, NotServed
from devices.cluster.taints import remove_rule
from devices.dra.ledgerclosures import rule_name, rule_object, standing, wanted
from devices.dra.ledgerstate import State
from devices.dra.names import Manager
from devices.dra.pools import PoolKey
from devices.dra.snapshot import Snapshot
from devices.ledger.book import TOPIC
from devices.models import LedgerNode, LedgerPolicy
from portal import news
from portal.audit.record import record
from tenants.access import PlatformAccess
from tenants.policy import PlatformAct

#: A driver that restarts is back by then; what is unsafe closes at once.
REBUILDS: Final = timedelta(seconds=60)
#: Changes to the cluster that one turn makes; the next turn goes on.
AT_ONCE: Final = 50
NOT_SERVED: Final = (
    "This cluster serves no DeviceTaintRule: Pods made outside of Berth do not wait."
)


@transaction.atomic
def set_policy(
    *, access: PlatformAccess, closes: bool, request_id: str, now: datetime
) -> LedgerPolicy:
    """Whether every Pod waits while a ledger cannot be relied on. Raises `NotPermitted`."""
    access.require(PlatformAct.ASSUME)
    LedgerPolicy.objects.get_or_create(name="ledger")
    row = LedgerPolicy.objects.select_for_update().get(name="ledger")
    if row.closes == closes:
        return row
    row.closes, row.said_by, row.said_at, row.answer = closes, access.user.person, now, ""
    row.save()
    record(
        action="ledger.policy set", subject="node ledger", request_id=request_id, at=now,
        person=access.user.person, facts={"closes": closes},
    )  # fmt: skip
    return row


def turn(snapshot: Snapshot, *, gateway: Gateway, now: datetime) -> None:
    """Closes and opens slice pools so that the cluster agrees with the policy.

    Raises `ClusterError` with `retry` where asking again can help; the reason stands on the row.
    """
    policy, stands = LedgerPolicy.current(), standing(snapshot)
    if not policy.closes and not policy.closed and not stands:
        return
    nodes = _nodes(policy, now)
    keys = wanted(snapshot, nodes)
    if keys and "DRADeviceTaintRules" not in snapshot.gates:
        _keep(policy, policy.closed, NOT_SERVED)
        return
    try:
        done = _agree(keys, stands, gateway)
    except NotServed:
        _keep(policy, policy.closed, NOT_SERVED)
    except ClusterError as error:
        _keep(policy, policy.closed, error.message[:500])
        if error.retry:
            raise
    else:
        _tell(policy, _closed(policy, snapshot, done, nodes, now), now)


def _nodes(policy: LedgerPolicy, now: datetime) -> Mapping[str, str]:
    """Nodes whose devices are closed, with why: unsafe ones, those that rebuild for too long, and
    those that are closed already and not safe again.
    """
    if not policy.closes:
        return {}
    closed = {one["node"] for one in policy.closed}
    rows = LedgerNode.objects.exclude(state=State.SAFE.value)
    return {
        row.node: row.code
        for row in rows.only("node", "state", "code", "since")
        if row.state == State.UNSAFE.value or row.node in closed or now - row.since >= REBUILDS
    }


def _agree(
    keys: Collection[PoolKey], stands: Mapping[str, PoolKey | None], gateway: Gateway
) -> list[PoolKey]:
    """Makes the rules that lack and removes those that are over; returns which pools are closed."""
    names = {rule_name(key): key for key in keys}
    lacking = [key for name, key in names.items() if stands.get(name) != key][:AT_ONCE]
    for key in lacking:
        gateway.apply(rule_object(key), manager=Manager.LEDGER, force=True)
    for name in [name for name in stands if name not in names][:AT_ONCE]:
        remove_rule(gateway, name)
    done = {*lacking, *stands.values()}
    return [key for key in keys if key in done]


def _closed(
    policy: LedgerPolicy,
    snapshot: Snapshot,
    keys: Collection[PoolKey],
    nodes: Mapping[str, str],
    now: datetime,
) -> list[dict[str, Any]]:
    """What is closed now, each since when it has been."""
    since = {(one["driver"], one["pool"]): one["since"] for one in policy.closed}
    node_of = {
        (piece.driver, piece.pool): piece.reach.node_name
        for piece in snapshot.slices
        if piece.reach.node_name in nodes
    }
    return [
        {
            "driver": key[0], "pool": key[1], "node": node_of[key], "code": nodes[node_of[key]],
            "since": since.get(key, now.isoformat()),
        }
        for key in keys
    ]  # fmt: skip


def _tell(policy: LedgerPolicy, closed: list[dict[str, Any]], now: datetime) -> None:
    """Writes down what is closed, and for the audit what closed and what opened."""
    was = {(one["driver"], one["pool"]): one for one in policy.closed}
    is_now = {(one["driver"], one["pool"]): one for one in closed}
    changed = [("ledger.closed", is_now[key]) for key in is_now.keys() - was.keys()]
    changed += [("ledger.opened", was[key]) for key in was.keys() - is_now.keys()]
    with transaction.atomic():
        if not _keep(policy, closed, ""):
            return
        for action, one in changed:
            record(
                action=action, subject=f"slice pool {one['driver']}/{one['pool']}"[:200],
                request_id="node-ledger", at=now,
                facts={name: one[name] for name in ("node", "code")},
            )  # fmt: skip
    news.publish([TOPIC], tenant=news.PLATFORM)


def _keep(policy: LedgerPolicy, closed: list[dict[str, Any]], answer: str) -> bool:
    """Stores it unless another turn was faster; returns whether anything changed."""
    if (policy.closed, policy.answer) == (closed, answer):
        return False
    rows = LedgerPolicy.objects.filter(pk=policy.pk, closed=policy.closed, answer=policy.answer)
    return bool(rows.update(closed=closed, answer=answer))

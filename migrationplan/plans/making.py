"""Verbs of those who plan: make a plan from a strategy, change a wave, submit it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from devices.dra.snapshot import Snapshot
from devices.models import NodePool
from migrationplan.models import Plan, Strategy, Wave, WaveNode
from migrationplan.phases import Phase
from migrationplan.plans import leave
from migrationplan.plans.choosing import Candidate, candidates, shared_out
from migrationplan.plans.story import told, wake, write_event
from migrationplan.plans.wishes import (
    MOST_WAVES,
    PlanWish,
    WaveWish,
    differences,
    problems,
    wish_from_json,
    wish_of,
    words_of,
)
from migrationplan.steps import Direction
from portal.errors import Invalid, Outdated, Refused
from tenants.access import PlatformAccess
from tenants.policy import PlatformAct

#: A wave that has not begun may get other nodes; later only its rules change.
NOT_BEGUN = frozenset({Phase.DRAFT, Phase.IN_REVIEW, Phase.APPROVED})
ENDED = frozenset({Phase.DONE, Phase.ROLLING_BACK, Phase.ROLLED_BACK})


class WaveRefused(Refused):
    """It cannot be done to a wave in this phase; the message says which it could."""

    code = "WAVE_REFUSED"
    http_status = 409


@transaction.atomic
def make(
    wish: PlanWish,
    *,
    access: PlatformAccess,
    snapshot: Snapshot | None,
    request_id: str,
    now: datetime,
) -> Plan:
    """A plan whose waves are drafts with their nodes. Raises `Invalid` (name, pools, direction,
    strategy, waves).
    """
    access.require(PlatformAct.CONVERT)
    strategy = Strategy.objects.filter(slug=wish.strategy).first() if wish.strategy else None
    kept = strategy.waves if strategy is not None else []
    waves = wish.waves or tuple(wish_from_json(one) for one in kept)
    pools = list(NodePool.objects.filter(slug__in=wish.pools).order_by("slug"))
    wrong = _wrong(wish, strategy, pools, waves, snapshot)
    if wrong:
        raise Invalid("The plan was not made.", fields=wrong)
    assert snapshot is not None
    direction = Direction(wish.direction)
    nodes, _ = candidates(pools, direction, snapshot)
    taken = _taken(pools)
    shares = shared_out(waves, [one for one in nodes if (one.pool.pk, one.uid) not in taken])
    if not any(chosen for _, chosen in shares):
        why = "No node of these pools belongs to the path that it is to leave"
        why += ", or all of them are in a plan already." if taken else "."
        raise Invalid("The plan was not made.", fields={"pools": why})
    plan = Plan.objects.create(
        name=wish.name.strip(),
        words=wish.words.strip(),
        strategy=strategy,
        direction=direction.value,
        made_by=access.user.person,
        made_at=now,
        request_id=request_id,
    )
    plan.pools.set(pools)
    # A share so small that nothing is left for it makes no wave.
    for position, (each, chosen) in enumerate((one for one in shares if one[1]), start=1):
        wave = Wave.objects.create(plan=plan, position=position, since=now, **each.fields())
        _put(wave, chosen)
        write_event(wave, "Made.", now=now, person=access.user.person)
    told(plan, "plan.made", access, request_id, now, pools=[pool.slug for pool in pools])
    return plan


@transaction.atomic
def change(
    wave: Wave,
    wish: WaveWish,
    *,
    revision: int,
    access: PlatformAccess,
    snapshot: Snapshot | None,
    request_id: str,
    now: datetime,
) -> Wave:
    """Changes a wave at the plan's `revision`: every approval of the plan is void, and says by
    which change. Raises `Invalid`, `Outdated`, `WaveRefused`.
    """
    access.require(PlatformAct.CONVERT)
    plan = Plan.objects.select_for_update().get(pk=wave.plan_id)
    wave = Wave.objects.select_for_update().get(pk=wave.pk)
    wave.plan = plan
    if plan.revision != revision:
        raise Outdated(
            "Somebody changed this plan meanwhile; look at it again.", revision=plan.revision
        )
    if Phase(wave.phase) in ENDED:
        raise WaveRefused(f"It is {wave.phase}: nothing of it can be changed any more.")
    if wrong := problems(wish):
        raise Invalid("The wave was not changed.", fields=wrong)
    had = list(wave.nodes.values_list("node", flat=True))
    named = list(wish.nodes) if wish.nodes else had
    if set(named) != set(had):
        _rechoose(wave, wish, snapshot)
        named = list(wave.nodes.values_list("node", flat=True))
    before = words_of(wish_of(wave, had), had)
    after = words_of(wish, named)
    if wave.name != wish.name.strip():
        before["name"], after["name"] = wave.name, wish.name.strip()
    changed = differences(before, after)
    if not changed:
        return wave
    fields = wish.fields()
    for name, value in fields.items():
        setattr(wave, name, value)
    wave.save(update_fields=list(fields))
    plan.revision += 1
    plan.changed = f"Wave {wave.position}: {'; '.join(changed)}"[:400]
    plan.save(update_fields=["revision", "changed"])
    write_event(wave, f"Changed: {'; '.join(changed)}", now=now, person=access.user.person)
    leave.void_all(plan, request_id=request_id, now=now)
    told(plan, "plan.changed", access, request_id, now, wave=wave.position, changed=changed)
    return wave


@transaction.atomic
def submit(
    wave: Wave,
    *,
    access: PlatformAccess,
    reason: str,
    snapshot: Snapshot | None,
    request_id: str,
    now: datetime,
) -> Wave:
    """Asks for the wave's approvals; with none needed it is approved at the next turn. Who submits
    last is whose rights the plan's waves use. Raises `WaveRefused`, `AlreadyAsked`.
    """
    access.require(PlatformAct.CONVERT)
    wave = Wave.objects.select_for_update(of=("self",)).select_related("plan").get(pk=wave.pk)
    if Phase(wave.phase) in ENDED:
        raise WaveRefused(f"It is {wave.phase}: there is nothing to approve.")
    Plan.objects.filter(pk=wave.plan_id).update(run_by=access.user.person)
    wave.plan.run_by = access.user.person
    leave.ask(wave, access=access, reason=reason, snapshot=snapshot, request_id=request_id, now=now)
    words = f"Submitted: {reason.strip()}" if reason.strip() else "Submitted."
    write_event(wave, words, now=now, person=access.user.person)
    told(wave.plan, "wave.submitted", access, request_id, now, wave=wave.position)
    wake(wave, now)
    return wave


def _wrong(
    wish: PlanWish,
    strategy: Strategy | None,
    pools: Sequence[NodePool],
    waves: Sequence[WaveWish],
    snapshot: Snapshot | None,
) -> dict[str, str]:
    wrong = {}
    if not 0 < len(wish.name.strip()) <= 80:
        wrong["name"] = "Give it a name, at most 80 characters."
    if wish.direction not in list(Direction):
        wrong["direction"] = f"One of {', '.join(Direction)}."
    if missing := sorted(set(wish.pools) - {pool.slug for pool in pools}):
        wrong["pools"] = f"There is no node pool {missing[0]}."
    elif not pools:
        wrong["pools"] = "Choose at least one node pool."
    elif snapshot is None:
        wrong["pools"] = "The cluster has not been seen yet, so nobody knows its nodes."
    if wish.strategy and strategy is None:
        wrong["strategy"] = "There is no such strategy."
    elif not waves:
        wrong["strategy"] = "Choose a strategy, or describe at least one wave."
    elif len(waves) > MOST_WAVES:
        wrong["waves"] = f"At most {MOST_WAVES} waves."
    for number, wave in enumerate(waves, start=1):
        for field, text in problems(wave).items():
            wrong.setdefault("waves", f"Wave {number}, {field}: {text}")
    return wrong


def _taken(pools: Sequence[NodePool]) -> set[tuple[int, str]]:
    """Nodes that an open wave of any plan has already."""
    open_waves = WaveNode.objects.filter(pool__in=pools).exclude(
        wave__phase__in=[Phase.DONE.value, Phase.ROLLED_BACK.value]
    )
    return set(open_waves.values_list("pool_id", "node_uid"))


def _put(wave: Wave, nodes: Sequence[Candidate]) -> None:
    WaveNode.objects.bulk_create(
        [
            WaveNode(wave=wave, pool=one.pool, node=one.node, node_uid=one.uid, position=position)
            for position, one in enumerate(nodes, start=1)
        ],
        batch_size=1000,
    )


def _rechoose(wave: Wave, wish: WaveWish, snapshot: Snapshot | None) -> None:
    """Gives a wave that has not begun exactly these nodes."""
    if Phase(wave.phase) not in NOT_BEGUN:
        raise WaveRefused("It has begun: leave nodes out one by one instead.")
    if snapshot is None:
        raise Invalid(
            "The wave was not changed.", fields={"nodes": "The cluster has not been seen yet."}
        )
    pools = list(wave.plan.pools.all())
    own = set(wave.nodes.values_list("pool_id", "node_uid"))
    free = {
        one.node: one
        for one in candidates(pools, Direction(wave.plan.direction), snapshot)[0]
        if (one.pool.pk, one.uid) not in _taken(pools) - own
    }
    if missing := [name for name in wish.nodes if name not in free]:
        raise Invalid(
            "The wave was not changed.",
            fields={"nodes": f"{missing[0]} is in no pool of the plan, or in another wave."},
        )
    wave.nodes.all().delete()
    _put(wave, [one for one in free.values() if one.node in wish.nodes])


def facts_of(wave: Wave) -> dict[str, Any]:
    """What an audit line says of a wave."""
    return {"plan": wave.plan.number, "wave": wave.position, "phase": wave.phase}

"""Isolation: what a scan proposes to close, and what people and an admin's policy wish about it.

Nothing here talks to the cluster; a turn does what is wished (`isolationturn`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from django.db import transaction
from django.urls import reverse

from devices.dra.codes import CODES
from devices.dra.isolation import Preparation, Rule, Suspect, recovered, suspected, suspects
from devices.dra.pools import pools
from devices.dra.snapshot import Snapshot
from devices.fleet.isolationroom import room_of
from devices.fleet.isolationwishes import (
    OWN_ACT,
    PROPOSED,
    End,
    State,
    Wish,
    subject,
    take_wish,
    wake,
    write,
)
from devices.fleet.preparations import note
from devices.models import Isolation, IsolationPolicy
from devices.models import Preparation as PreparationRow
from portal.alerts.raising import About, raise_alert
from portal.alerts.rules import Severity

#: Pods that an alert and a row name.
NAMED: Final = 20


def scan(snapshot: Snapshot, now: datetime) -> int:
    """Notes what was prepared, proposes what the rule suspects, and wishes what follows by itself:
    the end of what works again, and (where an admin's policy says so) closing and trying.

    Returns how many places are proposed or closed.
    """
    note(snapshot, now)
    policy = IsolationPolicy.current()
    rule = policy.rule()
    seen = preparations(now, rule)
    with transaction.atomic():
        rows = list(Isolation.objects.select_for_update().filter(ended_at=None))
        fresh = [
            row
            for suspect in suspects(_since_the_last_end(seen, now, rule), now, rule)
            for row in _proposals(suspect, rows, snapshot, now)
        ]
        for row in fresh:
            _propose(row, now)
        for row in rows:
            if not row.wish:
                _follow(row, policy, rule, seen, snapshot, now)
    return len(rows) + len(fresh)


def preparations(now: datetime, rule: Rule) -> list[Preparation]:
    """What was prepared within the rule's window, or failed to be; one query."""
    rows = PreparationRow.objects.filter(seen_at__gte=now - rule.window - rule.lasting)
    return [row.value() for row in rows.order_by("pk")]


def _since_the_last_end(
    seen: Sequence[Preparation], now: datetime, rule: Rule
) -> list[Preparation]:
    """Without failures from before somebody said no, or before the place was opened again."""
    ended = list(Isolation.objects.filter(ended_at__gte=now - rule.window - rule.lasting))
    return [
        one
        for one in seen
        if one.failed_at is None
        or not any(
            row.place.has(one) and row.ended_at is not None and one.failed_at <= row.ended_at
            for row in ended
        )
    ]


def _proposals(
    suspect: Suspect, rows: Iterable[Isolation], snapshot: Snapshot, now: datetime
) -> Iterable[Isolation]:
    """A row for each slice pool at the place that none covers yet."""
    place = suspect.place
    if place.device is not None:
        names = [place.device[1]]
    else:
        names = [
            pool.name
            for pool in pools(snapshot).values()
            if pool.driver == place.driver
            and {piece.reach.node_name for piece in pool.slices} == {place.node}
        ]
    device = place.device[2] if place.device else ""
    here = [row for row in rows if (row.driver, row.node) == (place.driver, place.node)]
    covered = {(row.pool, row.device) for row in here}
    node = snapshot.nodes.get(place.node)
    for name in names:
        if (name, "") in covered or (name, device) in covered:
            continue
        failed = PreparationRow.objects.filter(name__in=suspect.pods, driver=place.driver)
        yield Isolation(
            driver=place.driver,
            pool=name,
            node=place.node,
            node_uid=node.uid if node else "",
            device=device,
            device_class=failed.values_list("device_class", flat=True).first() or "",
            evidence={
                "failed": suspect.failed,
                "tried": suspect.tried,
                "others_failed": suspect.others_failed,
                "others_tried": suspect.others_tried,
                "chance": suspect.chance,
                "codes": dict(suspect.codes),
                "pods": list(suspect.pods[:NAMED]),
                "words": list(failed.values_list("text", flat=True).distinct()[:3]),
            },
            why=suspect.sentence,
            proposed_at=now,
            since=now,
            looking_since=now,
            request_id=OWN_ACT,
        )


def _propose(row: Isolation, now: datetime) -> None:
    row.save()
    wake(row, row.request_id, now)
    raise_alert(
        About(
            code=PROPOSED,
            subject=subject(row),
            title=f"{row.place}: devices cannot be got ready"[:200],
            severity=Severity.WARNING,
            failure_class=CODES[PROPOSED].class_.value,
            words=f"{row.why} {CODES[PROPOSED].next_step}",
            path=reverse("isolation", args=[row.public_id]),
            evidence=(
                ("Driver", row.driver),
                *(("Pod", name) for name in row.evidence["pods"][:5]),
                *(("The node's words", text) for text in row.evidence["words"][:1]),
            ),
        ),
        now=now,
    )
    write("isolation.proposed", row, now, why=row.why)


def _follow(
    row: Isolation,
    policy: IsolationPolicy,
    rule: Rule,
    seen: Sequence[Preparation],
    snapshot: Snapshot,
    now: datetime,
) -> None:
    """Wishes what nobody has to decide."""
    if row.state != State.APPLIED:
        if not suspected(row.place, seen, now, rule):
            take_wish(row, Wish.LIFT, now, why="It works again.", end=End.PASSED)
        elif (
            row.state == State.TRIED
            and policy.automatic
            and room_of(row, snapshot, policy.share / 100).allowed
        ):
            take_wish(row, Wish.APPLY, now, why="By the policy for isolation.")
        return
    if row.applied_at is not None and recovered(row.place, seen, row.applied_at, now, rule):
        why = "Pods became ready there again, and none fails."
        take_wish(row, Wish.LIFT, now, why=why, end=End.RECOVERED)
    elif policy.probe_every is not None and row.device_class:
        last = max(filter(None, (row.trial_at, row.applied_at)), default=now)
        if now - last >= policy.probe_every:
            take_wish(row, Wish.PROBE, now, why="By the policy for isolation.")

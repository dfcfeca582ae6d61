"""The book of who gives out which devices: written as the mirror shows it, asked as of any moment.

A conflict rings as soon as it is believed: both owners give the same hardware out, and Kubernetes
complains of nothing. It is written as seen, and believed once it stood for longer than the mirror's
two streams, of nodes and of slices, can be apart. The book only observes; conversions write why
something changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from devices.dra.atrisk import at_risk
from devices.dra.codes import CODES
from devices.dra.ownership import Owner, Ownership, ownership
from devices.dra.snapshot import Snapshot
from devices.dra.wording import some_of
from devices.models import OwnershipLine
from portal import news
from portal.alerts.raising import About, open_subjects, over, raise_alert
from portal.alerts.rules import Severity

TOPIC: Final = "ownership"
CONFLICT: Final = "OWNER_CONFLICT"
#: Names that an alert carries; the page has all of them.
NAMED: Final = 8
#: A node's plugin may be seen to come before its slices are seen to go.
BELIEVED_AFTER: Final = timedelta(seconds=5)


def scan(snapshot: Snapshot, now: datetime) -> int:
    """Ends lines that are so no longer, and writes those that are new; returns how many changed.

    Call it with a mirror that is heard: what is not seen is ended.
    """
    uids = {name: node.uid for name, node in snapshot.nodes.items()}
    found = {_key(one, uids): one for one in ownership(snapshot)}
    with transaction.atomic():
        lines = {
            (line.node, line.node_uid, line.type): line
            for line in OwnershipLine.objects.select_for_update().filter(until=None)
        }
        ended = [
            line for key, line in lines.items() if key not in found or _differs(line, found[key])
        ]
        OwnershipLine.objects.filter(pk__in=[line.pk for line in ended]).update(until=now)
        last = {(line.node, line.node_uid, line.type): line.owner for line in ended}
        written = [
            _line(key, one, last.get(key, ""), now)
            for key, one in found.items()
            if key not in lines or key in last
        ]
        OwnershipLine.objects.bulk_create(written, batch_size=1000)
        changed = len(ended) + len(written)
        stays = [line for key, line in lines.items() if key in found and key not in last]
        _ring(snapshot, found.values(), ended, [*stays, *written], now)
    if changed:
        news.publish([TOPIC], tenant=news.PLATFORM)
    return changed


def _key(one: Ownership, uids: dict[str, str]) -> tuple[str, str, str]:
    return one.node, uids.get(one.node, ""), one.type


def _differs(line: OwnershipLine, one: Ownership) -> bool:
    kept = (line.owner, line.plugin, line.published, line.hardware)
    return kept != (one.owner.value, one.plugin, one.published, one.hardware)


def _line(key: tuple[str, str, str], one: Ownership, before: str, now: datetime) -> OwnershipLine:
    return OwnershipLine(
        node=key[0],
        node_uid=key[1],
        type=key[2],
        owner=one.owner.value,
        before=before,
        plugin=one.plugin,
        published=one.published,
        hardware=one.hardware,
        since=now,
    )


def conflicting(line: OwnershipLine, now: datetime) -> bool:
    """Whether a line tells of two owners and is believed: streams that are apart show it too."""
    if line.owner != Owner.CONFLICT:
        return False
    stood = (line.until or now) - line.since
    return line.before == Owner.CONFLICT or stood >= BELIEVED_AFTER


def _ring(
    snapshot: Snapshot,
    owned: Iterable[Ownership],
    ended: list[OwnershipLine],
    open_lines: list[OwnershipLine],
    now: datetime,
) -> None:
    """Raises an alert for each conflict that came to be believed, and ends those that are over."""
    standing = {subject(one) for one in open_lines if one.owner == Owner.CONFLICT}
    for line in ended:
        if line.owner == Owner.CONFLICT and subject(line) not in standing:
            over(CONFLICT, subject(line), now=now)
    begun = {(one.node, one.type): one for one in open_lines if conflicting(one, now)}
    if begun:
        rung = open_subjects(CONFLICT)
        begun = {place: one for place, one in begun.items() if subject(one) not in rung}
    if not begun:
        return
    risks = at_risk(snapshot, owned)
    for place, line in begun.items():
        who = risks[place]
        raise_alert(
            About(
                code=CONFLICT,
                subject=subject(line),
                title=f"{line.type} on {line.node} has two owners",
                severity=Severity.CRITICAL,
                failure_class=CODES[CONFLICT].class_.value,
                words=f"{CODES[CONFLICT].words} {CODES[CONFLICT].next_step}",
                path=reverse("ownership-node", args=[line.node]),
                evidence=(
                    ("Offered by the plugin", str(line.plugin)),
                    ("Published by DRA", str(line.published)),
                    ("Pods by the plugin", _names(who.pods)),
                    ("Claims by DRA", _names(who.claims)),
                ),
            ),
            now=now,
        )


def _names(names: tuple[str, ...]) -> str:
    return some_of(names, NAMED) or "none"


def subject(line: OwnershipLine) -> str:
    """How alerts name a type of device on a node."""
    return f"{line.type} on node {line.node}"[:200]


def as_of(moment: datetime | None = None) -> QuerySet[OwnershipLine]:
    """The lines that stood at a moment; None is now."""
    if moment is None:
        return OwnershipLine.objects.filter(until=None)
    ended = Q(until=None) | Q(until__gt=moment)
    return OwnershipLine.objects.filter(ended, since__lte=moment)


def by_type(lines: QuerySet[OwnershipLine]) -> list[tuple[str, dict[str, int]]]:
    """Nodes per owner for each type of device, those with a conflict first; one query."""
    counted: dict[str, dict[str, int]] = {}
    for name, owner, nodes in (
        lines.order_by("type", "owner").values_list("type", "owner").annotate(Count("pk"))
    ):
        counted.setdefault(name, {})[owner] = nodes
    return sorted(counted.items(), key=lambda item: (Owner.CONFLICT not in item[1], item[0]))


def moment_of(text: str) -> tuple[datetime | None, str]:
    """A moment as browsers send it, in UTC, and what is wrong with it."""
    if not text.strip():
        return None, ""
    try:
        found = parse_datetime(text.strip())
    except ValueError:
        found = None
    if found is None:
        return None, "Give a moment such as 2026-11-30T14:00, in UTC."
    return found if timezone.is_aware(found) else found.replace(tzinfo=UTC), ""

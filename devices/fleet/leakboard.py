"""The leak board: what a scan finds stands there until it is gone; people keep it or clean it away.

A scan reads the mirror and changes nothing in the cluster. Cleaning is a wish of a person; a
worker's turn reads claim and Pods live, judges them (`dra.cleanup`), lets the API server try the
deletion, and deletes under preconditions. It may run twice and may die anywhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from django.db import transaction
from django.urls import reverse

from devices.cluster.gateway import ClusterError, Conflict, Gateway, Ref
from devices.dra.claims import Claim, read_claim
from devices.dra.cleanup import CLEANABLE, Deletion, Spared, cleanup
from devices.dra.codes import CODES, Class
from devices.dra.leaks import Leak, leaks
from devices.dra.pods import Pod, read_pod
from devices.dra.snapshot import Snapshot
from devices.models import LeakRow
from portal import news
from portal.alerts.raising import About, over, raise_alert
from portal.alerts.rules import Severity
from portal.audit.record import record
from portal.errors import Invalid, Refused
from portal.outbox import lines as outbox
from tenants.access import PlatformAccess
from tenants.models import TenantNamespace
from tenants.policy import PlatformAct

CLEAN: Final = "devices.tasks.clean_leak"
TOPIC: Final = "leaks"


class NotCleanable(Refused):
    """Deleting a claim would not mend this finding, or there is nothing to clean any more."""

    code = "NOT_CLEANABLE"


def scan(snapshot: Snapshot, now: datetime) -> int:
    """Compares what is found now with what stands on the board; returns how many are believed."""
    found = {
        digest(leak): leak for leak in leaks(snapshot) if leak.code.class_ is not Class.INFORMATION
    }
    with transaction.atomic():
        rows = {row.key: row for row in LeakRow.objects.select_for_update().filter(gone_at=None)}
        owners = _owners(leak for key, leak in found.items() if key not in rows)
        fresh = [
            _row(key, leak, snapshot, owners, now) for key, leak in found.items() if key not in rows
        ]
        # Two scans at the same time find the same: the second one's rows are left out.
        LeakRow.objects.bulk_create(fresh, ignore_conflicts=True)
        changed = bool(fresh)
        for row in rows.values():
            if row.key not in found:
                row.gone_at = now
                changed = True
                over(row.code, subject(row), now=now)
            else:
                row.seen_at = now
        LeakRow.objects.bulk_update(rows.values(), ["gone_at", "seen_at"], batch_size=500)
        changed |= _believe(now)
    if changed:
        news.publish([TOPIC], tenant=news.PLATFORM)
    return LeakRow.objects.filter(gone_at=None, believed_at__isnull=False).count()


def _believe(now: datetime) -> bool:
    """Calls leaks what has lasted as long as its code has patience, and rings for it."""
    waiting = LeakRow.objects.filter(gone_at=None, believed_at=None)
    lasting = [
        row
        for row in waiting
        if (patience := CODES[row.code].patience) is None or now - row.first_seen_at >= patience
    ]
    for row in lasting:
        row.believed_at = now
        raise_alert(
            About(
                code=row.code,
                subject=subject(row),
                title=CODES[row.code].words,
                severity=Severity.WARNING,
                failure_class=CODES[row.code].class_.value,
                words=CODES[row.code].next_step,
                path=reverse("leak", args=[row.public_id]),
                evidence=tuple(("Claim", name) for name in row.claims[:5]),
            ),
            now=now,
        )
    LeakRow.objects.bulk_update(lasting, ["believed_at"], batch_size=500)
    return bool(lasting)


def digest(leak: Leak) -> str:
    """The finding's key, short enough for an index."""
    return hashlib.sha256(leak.key.encode()).hexdigest()


def subject(row: LeakRow) -> str:
    """How alerts and audit lines name a finding."""
    return f"leak {row.public_id}"


def _row(
    key: str, leak: Leak, snapshot: Snapshot, owners: dict[str, str], now: datetime
) -> LeakRow:
    namespace, _, name = leak.claims[0].partition("/")
    claim = snapshot.claims.get((namespace, name))
    return LeakRow(
        key=key,
        code=leak.code.name,
        claims=list(leak.claims),
        uid=claim.meta.uid if claim is not None and len(leak.claims) == 1 else "",
        tenant=owners.get(namespace, ""),
        devices=["/".join(device) for device in leak.devices],
        proof=list(leak.proof),
        node=leak.node,
        since=leak.since,
        first_seen_at=now,
        seen_at=now,
    )


def _owners(found: Iterable[Leak]) -> dict[str, str]:
    names = {leak.claims[0].partition("/")[0] for leak in found}
    places = TenantNamespace.objects.filter(name__in=names)
    return dict(places.values_list("name", "tenant__slug"))


@transaction.atomic
def keep(
    row: LeakRow, *, access: PlatformAccess, why: str, request_id: str, now: datetime
) -> LeakRow:
    """Somebody looked and leaves it: it stays on the board, below the others, and rings no more.

    Raises `Invalid` (why).
    """
    access.require(PlatformAct.CLEAN_UP)
    if not why.strip():
        raise Invalid("It was not kept.", fields={"why": "Say why it may stay as it is."})
    row = LeakRow.objects.select_for_update().get(pk=row.pk)
    row.kept_by, row.kept_at, row.kept_why = access.user.person, now, why.strip()
    row.save(update_fields=["kept_by", "kept_at", "kept_why"])
    over(row.code, subject(row), now=now)
    _record("leak.kept", row, access, request_id, now, why=row.kept_why)
    return row


@transaction.atomic
def clean(
    row: LeakRow,
    *,
    access: PlatformAccess,
    reason: str,
    typed: str,
    request_id: str,
    now: datetime,
) -> LeakRow:
    """Wishes a finding's claim away; a worker looks again and does it, or says why not.

    ``typed`` are the last five characters of the claim's name, by hand. Asking twice is one wish.
    Raises `Invalid` (reason, typed) and `NotCleanable`.
    """
    access.require(PlatformAct.CLEAN_UP)
    row = LeakRow.objects.select_for_update().get(pk=row.pk)
    if row.code not in CLEANABLE or not row.uid:
        raise NotCleanable("Deleting a claim does not mend this; its page says what does.")
    if row.gone_at is not None:
        raise NotCleanable("It is gone already.")
    wrong = {}
    if not reason.strip():
        wrong["reason"] = "Say why, for the audit."
    if typed.strip() != row.claims[0][-5:]:
        wrong["typed"] = f"Type {row.claims[0][-5:]}, the end of the claim's name."
    if wrong:
        raise Invalid("Nothing was cleaned.", fields=wrong)
    if row.waits:
        return row
    row.wanted_by, row.wanted_at, row.reason = access.user.person, now, reason.strip()
    row.request_id = request_id
    row.save(update_fields=["wanted_by", "wanted_at", "reason", "request_id"])
    outbox.promise(CLEAN, row.public_id, request_id=request_id, now=now)
    _record("leak.cleanup_wished", row, access, request_id, now, reason=row.reason)
    return row


def look(row: LeakRow, gateway: Gateway) -> Deletion | Spared:
    """What a cleanup would do now, judged on the API server's own objects; changes nothing."""
    namespace, _, name = row.claims[0].partition("/")
    raw = gateway.get(Ref("ResourceClaim", name, namespace))
    claim: Claim | None = read_claim(raw)[0] if raw is not None else None
    pods: list[Pod] = [read_pod(one) for one in gateway.list("Pod", namespace=namespace).items]
    version = raw["metadata"]["resourceVersion"] if raw is not None else ""
    return cleanup(row.code, row.uid, claim, version, pods)


def turn(public_id: str, *, gateway: Gateway, now: datetime) -> None:
    """Carries one wish out, once: look, let the server try, delete, write down what came of it.

    Raises `ClusterError` with `retry` where asking again can help.
    """
    through = outbox.newest(CLEAN, public_id)
    row = LeakRow.objects.filter(public_id=public_id).first()
    if row is None or not row.waits:
        outbox.settle(CLEAN, public_id, through=through)
        return
    try:
        code, words = _carry_out(look(row, gateway), gateway)
    except Conflict as error:
        code, words = "CLEANUP_CHANGED", f"It changed just now, so nothing was done: {error}"
    except ClusterError as error:
        if error.retry:
            raise
        code, words = "CLEANUP_REFUSED", error.message
    with transaction.atomic():
        done = LeakRow.objects.filter(pk=row.pk, wanted_at=row.wanted_at).update(
            answer_code=code, answer=words, answered_at=now
        )
        if done:
            record(
                action="leak.cleaned" if code == "CLEANUP_DONE" else "leak.not_cleaned",
                subject=subject(row),
                request_id=row.request_id,
                at=now,
                person=row.wanted_by,
                tenant=row.tenant,
                facts={"claim": row.claims[0], "code": code, "reason": row.reason},
            )
        outbox.settle(CLEAN, public_id, through=through)
    news.publish([TOPIC, f"leak-{public_id}"], tenant=news.PLATFORM)


def _carry_out(judged: Deletion | Spared, gateway: Gateway) -> tuple[str, str]:
    if isinstance(judged, Spared):
        return judged.code, judged.words
    ref = Ref("ResourceClaim", judged.name, judged.namespace)
    for trying in (True, False):
        gateway.delete(ref, uid=judged.uid, version=judged.version, dry_run=trying)
    count = len(judged.frees)
    freed = f"{count} device{'s' if count != 1 else ''}" if count else "nothing that is held"
    return "CLEANUP_DONE", f"The claim is deleted; its controller frees {freed}."


def _record(
    action: str,
    row: LeakRow,
    access: PlatformAccess,
    request_id: str,
    now: datetime,
    **facts: Any,
) -> None:
    record(
        action=action,
        subject=subject(row),
        request_id=request_id,
        at=now,
        person=access.user.person,
        tenant=row.tenant,
        facts={"claim": row.claims[0], "code": row.code, **facts},
    )

"""The approvals of a wave: asked with what the approver must see, void when the plan changes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.urls import reverse

from devices.dra.snapshot import Snapshot
from devices.dra.wording import many, some_of
from migrationplan.models import CalendarFreeze, Plan, Wave
from migrationplan.models.plan import windows_from
from migrationplan.phases import Leave, Phase
from migrationplan.plans.choosing import candidates
from migrationplan.plans.rehearsals import rehearsal_check
from migrationplan.plans.story import TURN, told, wake, write_event
from migrationplan.plans.wishes import lines_of, wish_of
from migrationplan.steps import Direction
from migrationplan.windows import may_start, said
from portal.approvals import asks
from portal.approvals.models import Approval
from portal.approvals.rules import DecidedBy, Effect, Line, State, Verdict
from portal.errors import Invalid, NotPermitted
from tenants.access import PlatformAccess
from tenants.people import names_of
from tenants.policy import PlatformAct

KIND = "wave"
OPEN = [
    one.value for one in Phase if one not in (Phase.DONE, Phase.ROLLED_BACK, Phase.ROLLING_BACK)
]


def ask(
    wave: Wave,
    *,
    access: PlatformAccess,
    reason: str,
    snapshot: Snapshot | None,
    request_id: str,
    now: datetime,
) -> None:
    """Opens the approval of a wave as it is now, in the caller's transaction."""
    plan, nodes = wave.plan, list(wave.nodes.values_list("node", flat=True))
    approval = None
    if wave.approvals_needed:
        now_words = f"{plan.number}, revision {plan.revision}"
        before = _before(wave)
        if before.get("plan") == now_words:
            before = {}  # the same again, because a yes was taken back: all of it is to be read
        approval = asks.ask(
            kind=KIND,
            subject=f"wave {wave.public_id}",
            title=f"{plan.name}, wave {wave.position}: {wave.name}"[:200],
            lines=[
                Line("plan", before.get("plan"), now_words),
                Line("direction", before.get("direction"), plan.direction),
                *lines_of(wish_of(wave, nodes), nodes, before),
            ],
            effects=effects(wave, nodes, snapshot, now),
            by=DecidedBy(platform=frozenset({"approver"})),
            author=access.user.person,
            coauthors=[plan.made_by],
            reason=reason,
            needed=wave.approvals_needed,
            task=TURN,
            key=wave.public_id,
            request_id=request_id,
            now=now,
            address=reverse("plan-wave", args=[plan.public_id, wave.position]),
        )
    Wave.objects.filter(pk=wave.pk).update(
        submitted=True,
        approval=approval.pk if approval else None,
        withdrawn="",
        leave_words="",
    )


def _before(wave: Wave) -> dict[str, str]:
    """What was approved of this wave last, by label."""
    last = (
        Approval.objects.filter(
            kind=KIND, subject=f"wave {wave.public_id}", decisions__verdict=Verdict.APPROVE
        )
        .order_by("-pk")
        .first()
    )
    return {line.label: line.after for line in last.content() if line.after} if last else {}


def effects(
    wave: Wave, nodes: Sequence[str], snapshot: Snapshot | None, now: datetime
) -> list[Effect]:
    """What it would do, as the mirror has it: nodes and devices, Pods and tenants that it touches,
    what is left of the pools meanwhile, and what stands against it.
    """
    pools = list(wave.plan.pools.all())
    each = sum(
        (row.pool.devices_per_node or 0 for row in wave.nodes.select_related("pool")), start=0
    )
    at_once = max((pool.devices_per_node or 0 for pool in pools), default=0) * wave.concurrency
    facts = [
        Effect("capacity", "Nodes", str(len(nodes)), f"{each} devices, {wave.concurrency} at once"),
        Effect("capacity", "Closed to new work", f"{min(at_once, each)} devices", "at one time"),
        Effect(
            "capacity",
            "Pods that run",
            "retryable ones may be ended" if wave.evict_retryable else "all stay",
            "by the eviction API" if wave.evict_retryable else "nobody is evicted",
        ),
    ]
    if snapshot is not None:
        held = [
            one
            for one in candidates(pools, Direction(wave.plan.direction), snapshot)[0]
            if one.node in set(nodes)
        ]
        pods = [holder for one in held for holder in one.holders]
        spaces = sorted({holder.pod.split("/")[0] for holder in pods})
        free = sum(not one.holders for one in held)
        note = f"in {some_of(spaces, 4)}" if pods else "none holds one"
        facts += [
            Effect("capacity", "Waits for", many(len(pods), "Pod"), note),
            Effect("capacity", "Nodes that are free now", str(free)),
        ]
    return [*facts, *_checks(wave, now)]


def _checks(wave: Wave, now: datetime) -> list[Effect]:
    before = wave.plan.waves.filter(position__lt=wave.position).exclude(phase=Phase.DONE.value)
    calendar = [
        one.frozen()
        for one in CalendarFreeze.objects.to_come(now).of(
            wave.plan.pools.values_list("slug", flat=True)
        )
    ]
    windows = windows_from(wave.windows)
    starts = may_start(windows, calendar, now)
    first = said(starts, now, windows[0].zone if windows else "UTC") if starts else "never"
    checks = [
        Effect("check", "May start", first, state="done" if starts else "fail"),
        Effect(
            "check",
            "Freeze calendar",
            f"{len(calendar)} to come" if calendar else "nothing to come",
            state="held" if calendar else "done",
        ),
    ]
    if wave.rehearsed_days:
        checks.append(rehearsal_check(wave, now))
    if names := list(before.values_list("name", flat=True)[:3]):
        checks.append(Effect("check", "Starts after", ", ".join(names), state="held"))
    return checks


def approval_of(wave: Wave) -> Approval | None:
    """The newest approval that asked about the wave, with its decisions; at most two queries."""
    if wave.approval is None:
        return None
    return Approval.objects.prefetch_related("decisions").filter(pk=wave.approval).first()


def is_mine(approval: Approval | None, person: UUID) -> bool:
    """Whether this person said yes to it."""
    said = approval.decisions.all() if approval is not None else ()
    return any(one.person == person and one.verdict == Verdict.APPROVE for one in said)


def of(wave: Wave, approval: Approval | None) -> tuple[Leave, str]:
    """How the approvals of a wave stand, and that in words."""
    if not wave.submitted:
        return Leave.NOT_ASKED, wave.leave_words
    if wave.withdrawn:
        return Leave.REFUSED, wave.withdrawn
    if not wave.approvals_needed:
        return Leave.GIVEN, ""
    if approval is None:
        return Leave.NOT_ASKED, wave.leave_words
    if approval.state == State.APPROVED:
        return Leave.GIVEN, f"approved ({approval.number})"
    if approval.state == State.OPEN:
        yes = sum(one.verdict == Verdict.APPROVE for one in approval.decisions.all())
        return Leave.ASKED, f"{yes} of {approval.needed} approvals ({approval.number})"
    return Leave.REFUSED, f"{approval.number} is {approval.state}: {approval.ended_why}"


def void_all(plan: Plan, *, request_id: str, now: datetime) -> None:
    """The plan changed: no wave of it that has not ended is approved any more."""
    words = f"revision {plan.revision}: {plan.changed}"[:400]
    for wave in plan.waves.filter(submitted=True, phase__in=OPEN):
        if wave.approval:
            asks.void(approval_id=wave.approval, why=words[:300], request_id=request_id, now=now)
        Wave.objects.filter(pk=wave.pk).update(
            submitted=False, approval=None, withdrawn="", leave_words=f"void by {words}"[:400]
        )
        write_event(wave, f"Approvals void by {words}", now=now, code="APPROVALS_VOID")
        wake(wave, now)


@transaction.atomic
def withdraw(
    wave: Wave, *, access: PlatformAccess, reason: str, request_id: str, now: datetime
) -> Wave:
    """Somebody who approved takes it back: a wave under way pauses. Raises `NotPermitted` where
    they did not approve it, `Invalid` (reason).
    """
    access.require(PlatformAct.DECIDE)
    wave = Wave.objects.select_for_update(of=("self",)).select_related("plan").get(pk=wave.pk)
    if not reason.strip():
        raise Invalid("Nothing was taken back.", fields={"reason": "Say why; operators read it."})
    approval = approval_of(wave)
    given = approval is not None and approval.state == State.APPROVED
    if not given or wave.withdrawn or not is_mine(approval, access.user.person):
        raise NotPermitted(
            "You have no approval of this wave to take back.", code="NOT_YOUR_APPROVAL"
        )
    who = names_of([access.user.person])[access.user.person]
    words = f"{who} took the approval back: {reason.strip()}"[:300]
    Wave.objects.filter(pk=wave.pk).update(withdrawn=words)
    write_event(wave, words, now=now, person=access.user.person, loud=True)
    told(
        wave.plan, "wave.approval_withdrawn", access, request_id, now,
        wave=wave.position, reason=reason.strip(),
    )  # fmt: skip
    wake(wave, now)
    return wave

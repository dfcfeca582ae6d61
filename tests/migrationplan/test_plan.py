"""Plans in the database: made of strategies, changed, approved, paused; and their pages."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from devices.dra.snapshot import Snapshot
from devices.fleet.ownershipbook import scan
from devices.forecasts.warm import fresh
from devices.models import Freeze, NodePool, Offer
from devices.tenancy.freezes import end_for, lift
from migrationplan.models import CalendarFreeze, Drill, Plan, Strategy, Wave, WaveEvent, WaveNode
from migrationplan.phases import Audience, Decision, Leave, Phase, Rehearsal, Stand
from migrationplan.plans import calendar, leave, making, running, strategies
from migrationplan.plans.perform import perform
from migrationplan.plans.reading import length, length_text, windows, windows_text
from migrationplan.plans.rehearsals import rehearsals_of
from migrationplan.plans.wishes import PlanWish, WaveWish, wish_from_json, wish_of
from portal.approvals.decisions import decide
from portal.approvals.models import Approval
from portal.approvals.rules import Verdict
from portal.audit.models import AuditLine
from portal.errors import Invalid, NotPermitted, Outdated
from tenants.access import PlatformAccess, decider_of, platform_of
from tenants.models import PlatformRole
from tests.devices.demofleet import mirror
from tests.devices.test_nodepools import labelled
from tests.devices.test_ownershipbook import GPU, a_node, a_pod
from tests.factories import NOON, make_person

pytestmark = pytest.mark.django_db
NIGHTS = windows("Mon-Thu 22:00-04:00 Europe/Berlin")
THREE = (
    WaveWish("Canary", percent=10, soak=timedelta(hours=1)),
    WaveWish("Retryable", percent=50, audience=Audience.RETRYABLE, windows=NIGHTS),
    WaveWish("The rest", percent=100, approvals_needed=2),
)


def person(name: str, role: str) -> PlatformAccess:
    user = make_person(name)
    PlatformRole.objects.create(user=user, role=role)
    return platform_of(user)


@pytest.fixture
def operator() -> PlatformAccess:
    return person("olga", "operator")


@pytest.fixture
def approver() -> PlatformAccess:
    return person("pike", "approver")


@pytest.fixture
def pool(operator: PlatformAccess) -> NodePool:
    """Ten nodes of the plugin; on a1 runs what is not retryable, on a2 what is."""
    return a_pool(operator, 10)


def a_pool(operator: PlatformAccess, count: int) -> NodePool:
    nodes = [labelled(a_node(f"a{n}", 8), pool="h100") for n in range(1, count + 1)]
    pods = [a_pod("train", "a1"), a_pod("sweep", "a2")]
    pods[1]["metadata"]["labels"] = {"berth.dev/retryable": "true"}
    mirror([{"apiVersion": "v1", **one} for one in (*nodes, *pods)])
    scan(seen(), timezone.now())
    return NodePool.objects.create(
        slug="h100", name="H100", selector={"pool": "h100"}, resource=GPU,
        driver="gpu.nvidia.com", device_class="h100", plugin_label="p=on", driver_label="d=on",
        plugin_sets=["gpu/plugin"], driver_sets=["gpu/driver"], devices_per_node=8,
        made_by=operator.user.person, made_at=NOON,
    )  # fmt: skip


def seen() -> Snapshot:
    found = fresh()
    assert found is not None
    return found.now


def by(access: PlatformAccess, *, snapshot: bool = False) -> dict[str, Any]:
    common = {"access": access, "request_id": "request-1", "now": NOON}
    return {**common, "snapshot": seen()} if snapshot else common


def a_plan(operator: PlatformAccess, *waves: WaveWish) -> Plan:
    wish = PlanWish("H100 to DRA", ("h100",), "to DRA", waves=waves or THREE)
    return making.make(wish, **by(operator, snapshot=True))


def submitted(wave: Wave, operator: PlatformAccess) -> Approval:
    making.submit(wave, reason="Agreed", **by(operator, snapshot=True))
    wave.refresh_from_db()
    assert wave.approval is not None
    return Approval.objects.get(pk=wave.approval)


def approve(approval: Approval, who: PlatformAccess) -> None:
    decide(
        approval_id=approval.pk, decider=decider_of(who.user, NOON), verdict=Verdict.APPROVE,
        comment="", request_id="request-2", now=NOON,
    )  # fmt: skip


def nodes_of(plan: Plan) -> list[list[str]]:
    return [list(wave.nodes.values_list("node", flat=True)) for wave in plan.waves.all()]


def test_a_plan_shares_its_nodes_out_retryable_work_first(
    operator: PlatformAccess, pool: NodePool
) -> None:
    plan = a_plan(operator)
    shares = nodes_of(plan)
    assert [len(one) for one in shares] == [1, 5, 4]
    order = [name for share in shares for name in share]
    assert sorted(order) == sorted(f"a{n}" for n in range(1, 11))
    assert order[-1] == "a1", "what is not retryable and has no end comes last"
    assert order.index("a2") == 8, "retryable work comes after free nodes"
    assert AuditLine.objects.get(action="plan.made").facts["pools"] == ["h100"]


def test_a_share_too_small_for_a_node_makes_no_wave(operator: PlatformAccess) -> None:
    a_pool(operator, 2)
    plan = a_plan(operator)
    assert [len(one) for one in nodes_of(plan)] == [1, 1]


def test_a_node_is_in_one_open_plan_only(operator: PlatformAccess, pool: NodePool) -> None:
    a_plan(operator)
    with pytest.raises(Invalid) as refused:
        a_plan(operator)
    assert "in a plan already" in refused.value.fields["pools"]


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"name": " "}, "name"),
        ({"pools": ("none",)}, "pools"),
        ({"direction": "sideways"}, "direction"),
        ({"strategy": "none"}, "strategy"),
        ({"waves": ()}, "strategy"),
        ({"waves": (replace(THREE[0], percent=0),)}, "waves"),
        ({"waves": (replace(THREE[0], concurrency=0),)}, "waves"),
        (
            {"waves": (replace(THREE[1], windows=windows("daily 1:00-2:00 Mars/Base")),)},
            "waves",
        ),
    ],
)
def test_what_is_wrong_with_a_plan(
    operator: PlatformAccess, pool: NodePool, changed: dict[str, Any], field: str
) -> None:
    wish = replace(PlanWish("H100", ("h100",), "to DRA", waves=THREE), **changed)
    with pytest.raises(Invalid) as refused:
        making.make(wish, **by(operator, snapshot=True))
    assert field in refused.value.fields
    assert not Plan.objects.exists()


def test_a_strategy_makes_many_plans_and_says_what_it_said(operator: PlatformAccess) -> None:
    made = strategies.define("usual", name="Usual", words="", waves=THREE, **by(operator))
    assert tuple(wish_from_json(one) for one in made.waves) == THREE
    a_pool(operator, 10)
    wish = PlanWish("H100", ("h100",), "to DRA", strategy="usual")
    plan = making.make(wish, **by(operator, snapshot=True))
    assert [wish_of(wave) for wave in plan.waves.all()] == list(THREE)
    changed = strategies.change(
        made, name="Usual", words="slower", waves=THREE[:1], revision=1, **by(operator)
    )
    assert changed.revision == 2 and plan.waves.count() == 3
    with pytest.raises(Outdated):
        strategies.change(made, name="U", words="", waves=THREE, revision=1, **by(operator))
    strategies.remove(changed, **by(operator))
    plan.refresh_from_db()
    assert plan.strategy is None and not Strategy.objects.exists()


def test_approvers_see_the_difference_capacity_and_whom_it_touches(
    operator: PlatformAccess, approver: PlatformAccess, pool: NodePool
) -> None:
    wave = a_plan(operator).waves.get(position=3)
    approval = submitted(wave, operator)
    lines = {line.label: line.after for line in approval.content()}
    assert lines["nodes"] == "4: a8, a9, a2, a1" and lines["nodes at once"] == "1"
    effects = {one.label: (one.value, one.note) for one in approval.all_effects()}
    assert effects["Nodes"] == ("4", "32 devices, 1 at once")
    assert effects["Waits for"][0] == "2 Pods"
    assert effects["Starts after"][0] == "Canary, Retryable"
    assert approval.needed == 2 and leave.of(wave, approval)[0] is Leave.ASKED
    with pytest.raises(NotPermitted):
        approve(approval, operator)
    approve(approval, approver)
    approval.refresh_from_db()
    assert leave.of(wave, approval) == (Leave.ASKED, f"1 of 2 approvals ({approval.number})")
    approve(approval, person("wade", "approver"))
    approval.refresh_from_db()
    assert leave.of(wave, approval)[0] is Leave.GIVEN


def test_approvers_see_whether_the_rollback_was_rehearsed_as_lately_as_the_wave_asks(
    operator: PlatformAccess, pool: NodePool
) -> None:
    plan = a_plan(operator, WaveWish("All", rehearsed_days=30))
    wave = plan.waves.get()

    def told() -> tuple[str, str]:
        found = leave.effects(wave, ["a1"], None, NOON)
        (one,) = [effect for effect in found if effect.label == "Rollback rehearsed"]
        return one.state, one.note

    assert told() == ("fail", "the rollback is to be rehearsed within 30 days, and no rehearsal "
                      "ever passed on H100")  # fmt: skip
    for number, (kind, result) in enumerate(
        [
            ("rollback rehearsal", "passed"),
            ("node loss", "failed"),
            ("rollback rehearsal", "given up"),
        ]
    ):
        Drill.objects.create(
            pool=pool, kind=kind, node="a1", node_uid="uid-a1", result=result,
            begun_by=operator.user.person, begun_at=NOON, since=NOON, request_id="request-1",
            ended_at=NOON - timedelta(days=20 - number),
        )  # fmt: skip
    assert told() == ("done", "")
    assert rehearsals_of([pool]) == (Rehearsal("H100", NOON - timedelta(days=20)),)
    lines = {line.label: line.after for line in submitted(wave, operator).content()}
    assert lines["rollback rehearsed"] == "within 30 days"
    Drill.objects.create(
        pool=pool, kind="rollback rehearsal", node="a1", node_uid="uid-a1", result="failed",
        begun_by=operator.user.person, begun_at=NOON, since=NOON, request_id="request-1",
        ended_at=NOON,
    )  # fmt: skip
    assert told()[1].endswith("the last rehearsal on H100 failed")


def test_a_change_voids_every_approval_and_says_which_it_was(
    operator: PlatformAccess, approver: PlatformAccess, pool: NodePool
) -> None:
    plan = a_plan(operator)
    first, second, third = plan.waves.all()
    given, asked = submitted(first, operator), submitted(second, operator)
    approve(given, approver)
    making.change(
        third, replace(THREE[2], concurrency=2), revision=1, **by(operator, snapshot=True)
    )
    words = "revision 2: Wave 3: nodes at once 1 → 2"
    for wave in (first, second):
        wave.refresh_from_db()
        assert not wave.submitted and wave.leave_words == f"void by {words}"
    asked.refresh_from_db()
    assert (asked.state, asked.ended_why) == ("void", words)
    with pytest.raises(Outdated):
        making.change(third, THREE[2], revision=1, **by(operator, snapshot=True))
    again = submitted(first, operator)
    before = {line.label: (line.before, line.after) for line in again.content()}
    assert before["plan"] == (f"{plan.number}, revision 1", f"{plan.number}, revision 2")
    assert before["soak"] == ("60 min", "60 min"), "what was approved last stands beside it"


def test_a_wave_that_has_not_begun_may_get_other_nodes(
    operator: PlatformAccess, pool: NodePool
) -> None:
    wish = PlanWish("Half", ("h100",), "to DRA", waves=(THREE[0],))
    plan = making.make(wish, **by(operator, snapshot=True))
    wave = plan.waves.get()
    named = replace(wish_of(wave), nodes=("a5", "a7"))
    making.change(wave, named, revision=1, **by(operator, snapshot=True))
    assert nodes_of(plan) == [["a5", "a7"]]
    plan.refresh_from_db()
    Wave.objects.update(phase=Phase.RUNNING)
    wave.refresh_from_db()
    with pytest.raises(making.WaveRefused, match="has begun"):
        making.change(
            wave, replace(named, nodes=("a6",)), revision=2, **by(operator, snapshot=True)
        )
    with pytest.raises(Invalid):
        Wave.objects.update(phase=Phase.DRAFT)
        making.change(
            wave, replace(named, nodes=("zz",)), revision=2, **by(operator, snapshot=True)
        )


def test_wishes_are_written_and_only_where_they_make_sense(
    operator: PlatformAccess, approver: PlatformAccess, pool: NodePool
) -> None:
    wave = a_plan(operator).waves.get(position=1)
    with pytest.raises(making.WaveRefused, match="nothing is under way"):
        running.pause(wave, reason="why not", **by(operator))
    with pytest.raises(making.WaveRefused, match="not paused"):
        running.resume(wave, reason="on", **by(operator))
    with pytest.raises(Invalid):
        running.roll_back(wave, reason=" ", **by(operator))
    with pytest.raises(NotPermitted):
        running.roll_back(wave, reason="no", **by(approver))
    Wave.objects.filter(pk=wave.pk).update(
        phase=Phase.PAUSED, paused_from="soaking", code="GATE_INCONCLUSIVE",
        verdicts=[
            {"name": "Wait", "verdict": "inconclusive", "sentence": "11 of 30", "trial": False},
            {"name": "Useful", "verdict": "fail", "sentence": "70 %", "trial": True},
        ],
    )  # fmt: skip
    resumed = running.resume(wave, reason="enough for a canary", **by(operator))
    assert (resumed.wish_resume, resumed.waived) == ("enough for a canary", ["Wait"])
    loud = list(WaveEvent.objects.filter(wave=wave, loud=True).values_list("text", flat=True))
    assert loud == ["Wait let pass: 11 of 30", "Resumed by hand: enough for a canary"]


def test_a_node_is_left_out_with_a_reason_and_taken_in_again(
    operator: PlatformAccess, pool: NodePool
) -> None:
    wave = a_plan(operator).waves.get(position=1)
    name = wave.nodes.get().node
    running.skip(wave, name, reason="its fan is broken", **by(operator))
    assert wave.nodes.get().skipped == "its fan is broken"
    assert WaveEvent.objects.get(loud=True).text == "Left out: its fan is broken"
    running.take_in(wave, name, **by(operator))
    assert wave.nodes.get().skipped == ""
    WaveNode.objects.update(stand=Stand.MOVING)
    with pytest.raises(making.WaveRefused, match="turn it back first"):
        running.skip(wave, name, reason="too slow", **by(operator))


def test_who_approved_takes_it_back_and_nobody_else(
    operator: PlatformAccess, approver: PlatformAccess, pool: NodePool
) -> None:
    wave = a_plan(operator).waves.get(position=1)
    approval = submitted(wave, operator)
    approve(approval, approver)
    with pytest.raises(NotPermitted):
        leave.withdraw(wave, reason="no", **by(person("wade", "approver")))
    leave.withdraw(wave, reason="the driver leaks", **by(approver))
    wave.refresh_from_db()
    given, words = leave.of(wave, leave.approval_of(wave))
    assert given is Leave.REFUSED and words == "pike took the approval back: the driver leaks"
    again = submitted(wave, operator)
    assert all(line.before is None for line in again.content()), "all of it is to be read again"


class Nobody:
    """A cluster that nothing is asked of."""


def test_a_rollback_freezes_its_node_pools_and_drivers_once_and_only_while_it_lasts(
    operator: PlatformAccess, pool: NodePool
) -> None:
    Offer.objects.create(
        device_class="h100", counts={"plugin": {"resource": GPU}}, counted_at=NOON, seen_at=NOON
    )
    wave = a_plan(operator, WaveWish("All")).waves.get()
    goes_back = Decision("goes back", reroute=True)

    def turn() -> None:
        perform(
            wave, goes_back, access=operator, gateway=Nobody(),  # type: ignore[arg-type]
            picture=None, now=NOON,
        )  # fmt: skip

    turn()
    turn()
    found = Freeze.objects.order_by("scope")
    assert [(one.scope, one.target, one.path) for one in found] == [
        ("change", "h100", ""),
        ("pool", "h100", "dra"),
    ]
    reason = f"{wave.plan.number}, wave 1 rolls back"
    assert {one.reason for one in found} == {reason}
    lift(
        access=operator, public_id=found[1].public_id, request_id="request-l", now=NOON
    )  # fmt: skip
    turn()
    assert found.count() == 2, "who lifts it is not overruled"
    assert end_for(reason, request_id="request-e", now=NOON) == 1
    assert {one.end for one in found.all()} == {"lifted", "done"}


def test_the_calendar_keeps_what_was_entered(operator: PlatformAccess, pool: NodePool) -> None:
    later = NOON + timedelta(days=3)
    entry = calendar.enter(
        reason="Year's end", begins=NOON, ends=later, pools=["h100"], **by(operator)
    )
    assert list(CalendarFreeze.objects.to_come(NOON).of(["h100"])) == [entry]
    assert not CalendarFreeze.objects.to_come(NOON).of(["l40s"]).exists()
    with pytest.raises(Invalid):
        calendar.enter(reason="x", begins=later, ends=NOON, pools=[], **by(operator))
    calendar.remove(entry, **by(operator))
    calendar.remove(entry, **by(operator))
    assert not CalendarFreeze.objects.to_come(NOON).exists()
    assert AuditLine.objects.filter(action="calendar.removed").count() == 1


@pytest.mark.parametrize(
    "line",
    ["Mon-Thu 22:00-04:00 Europe/Berlin", "daily 00:00-06:00 UTC", "Sat,Sun 08:00-20:00 UTC"],
)
def test_a_window_is_read_as_it_is_written(line: str) -> None:
    assert windows_text(windows(line)) == line


@pytest.mark.parametrize("line", ["Mon 9-10 UTC", "Mo 09:00-10:00 UTC", "Mon 25:00-26:00 UTC"])
def test_what_is_no_window(line: str) -> None:
    with pytest.raises(ValueError, match=r"Write|There is no"):
        windows(line)


@pytest.mark.parametrize("words", ["90m", "24h", "7d", "0"])
def test_a_length_is_read_as_it_is_written(words: str) -> None:
    shown = length_text(length(words))
    assert shown == {"24h": "1d"}.get(words, words)

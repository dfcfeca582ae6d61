"""Readings of gates: how often, how many queries, written once; and who defines a gate."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from devices.models import Claim
from migrationplan.gates import Outcome, Rule, read
from migrationplan.gating import Subject, judge
from migrationplan.gating.definitions import STANDARD, Wish, change, retire, take_standard
from migrationplan.gating.judging import EVERY, LATER, kept, read_now
from migrationplan.measures import Measure
from migrationplan.models import Gate, Reading
from portal.audit.models import AuditLine
from portal.errors import Invalid, NotPermitted, Outdated
from tenants.access import PlatformAccess
from tests.factories import NOON
from tests.migrationplan.gating.rows import BEGAN, BOOK, a_cluster, a_gate, lines, reading, ways

pytestmark = pytest.mark.django_db
PASS, FAIL, INCONCLUSIVE = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE


def test_verdicts_for_a_wave_are_read_at_most_every_few_minutes(
    subject: Subject, operator: PlatformAccess, claim: Claim
) -> None:
    a_gate(operator, Measure.ALLOCATION, "allocation", name="Allocation success")
    a_gate(operator, Measure.WAIT, "wait", trial=True)
    ways(claim, 60, "m1")
    ways(claim, 60, "p1", path="plugin")
    slugs = ["allocation", "wait", "nobody-knows"]
    first = judge(subject, slugs, NOON)
    assert [(one.name, one.verdict, one.trial) for one in first] == [
        ("Allocation success", PASS, False),
        ("A gate", PASS, True),
        ("nobody-knows", Outcome.NONE, False),
    ]
    assert judge(subject, slugs, NOON + LATER / 2) == first
    assert Reading.objects.count() == 2
    judge(subject, slugs, NOON + LATER)
    assert Reading.objects.count() == 4
    soon = Subject(subject.pool, {"m1": NOON}, BEGAN, wave="w0")
    judge(soon, slugs, NOON)
    judge(soon, slugs, NOON + EVERY)
    assert Reading.objects.filter(wave="w0").count() == 4, "what has just moved is looked at often"
    unmoved = Subject(subject.pool, {}, BEGAN, wave="w1")
    assert {one.verdict for one in judge(unmoved, slugs, NOON)} == {Outcome.NONE}


def test_a_changed_gate_is_read_at_once(
    subject: Subject, operator: PlatformAccess, claim: Claim
) -> None:
    gate = a_gate(operator, Measure.ALLOCATION, least=70)
    ways(claim, 60, "m1")
    ways(claim, 60, "p1", path="plugin")
    assert judge(subject, ["gate"], NOON)[0].verdict is INCONCLUSIVE
    wish = Wish("A gate", Measure.ALLOCATION, least=30)
    change(gate, wish, revision=1, access=operator, request_id="r", now=NOON)
    assert judge(subject, ["gate"], NOON)[0].verdict is PASS


def test_however_many_gates_the_queries_stay(
    subject: Subject, operator: PlatformAccess, claim: Claim
) -> None:
    take_standard(access=operator, request_id="r", now=NOON)
    lines(*BOOK)
    ways(claim, 30, "m1")
    ways(claim, 30, "p1", path="plugin")
    every = list(Gate.objects.all())
    seen = a_cluster()

    def asked(gates: list[Gate], now: datetime) -> int:
        with CaptureQueriesContext(
            connection,
        ) as captured:
            read_now(subject, gates, now, picture=seen)
        return len(captured)

    few = asked([gate for gate in every if gate.slug in ("useful", "ready")], NOON)
    assert asked(every, NOON + timedelta(hours=1)) == few


def test_a_reading_is_written_once_and_can_be_judged_again(
    subject: Subject, operator: PlatformAccess, claim: Claim
) -> None:
    ways(claim, 30, "m1", prepare=40)
    ways(claim, 30, "p1", path="plugin")
    found = reading(subject, a_gate(operator, Measure.PREPARED))
    row = Reading.objects.get(pk=found.pk)
    names = ("margin", "tolerance", "slack", "least", "limit")
    rule = Rule(Measure(row.measure), **{name: row.settings[name] for name in names})
    again = read(rule, kept(row))
    assert (again.verdict, again.sentence) == (row.verdict, row.sentence)
    assert len(row.content["moved"]) == 30
    with pytest.raises(DatabaseError), transaction.atomic():
        Reading.objects.filter(pk=row.pk).update(verdict="pass")
    with pytest.raises(DatabaseError), transaction.atomic():
        row.delete()
    row.digest = "0" * 64
    with pytest.raises(ValueError, match="not those of its digest"):
        kept(row)


def test_gates_are_defined_changed_and_retired_by_operators(operator: PlatformAccess) -> None:
    gate = a_gate(operator, Measure.WEBHOOK, url="https://check.example/gate")
    assert gate.secret.startswith("whsec_")
    with pytest.raises(Invalid) as refused:
        a_gate(operator, Measure.READY, margin=0, tolerance=0.5, least=0, url="https://a.example")
    assert set(refused.value.fields) == {"slug", "margin", "tolerance", "least", "url"}
    with pytest.raises(Invalid) as refused:
        a_gate(operator, Measure.PROMETHEUS, "prom", url="nowhere")
    assert set(refused.value.fields) == {"url", "query"}
    wish = Wish("Named anew", Measure.WEBHOOK, url="https://check.example/gate")
    by: dict[str, Any] = {"access": operator, "request_id": "r", "now": NOON}
    assert change(gate, wish, revision=1, **by).revision == 2
    with pytest.raises(Outdated):
        change(gate, wish, revision=1, **by)
    with pytest.raises(NotPermitted):
        retire(gate, **(by | {"access": PlatformAccess(operator.user, frozenset({"auditor"}))}))
    assert retire(gate, **by).secret == ""
    assert take_standard(**by) == len(STANDARD)
    assert take_standard(**by) == 0
    actions = AuditLine.objects.values_list("action", flat=True)
    assert {"gate.defined", "gate.changed", "gate.retired"} <= set(actions)
    assert "whsec" not in json.dumps(list(AuditLine.objects.values_list("facts", flat=True)))

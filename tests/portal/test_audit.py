"""The audit in the database: found by what one knows, exported whole, and every harm is named."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta
from io import StringIO
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.utils import Error

from portal.audit.chain import digest
from portal.audit.export import texts
from portal.audit.models import AuditLine
from portal.audit.record import all_breaks, head, record, record_observed
from portal.audit.search import PAGE_SIZE, Search, chunks, found, page
from tests.factories import NOON

pytestmark = pytest.mark.django_db
ANN, BO = uuid4(), uuid4()


def a_line(number: int = 0, **changed: Any) -> AuditLine:
    told: dict[str, Any] = {
        "action": "claim.asked",
        "subject": f"claim c{number}",
        "request_id": f"request-{number:04}",
        "at": NOON + timedelta(minutes=number),
        "person": ANN,
        "tenant": "tidewater",
        "facts": {"count": number},
    }
    return record(**{**told, **changed})


def lines(count: int) -> None:
    for number in range(count):
        a_line(number)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_auditline SET action = 'nothing'",
        "DELETE FROM audit_auditline",
        "UPDATE audit_auditline SET source = 'cluster'",
    ],
)
def test_the_database_keeps_lines_as_they_are(statement: str) -> None:
    a_line()
    with pytest.raises(Error), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


HARMS = {
    "a changed line": (
        ["UPDATE audit_auditline SET facts = '{\"count\": 9}' WHERE number = 3"],
        ["line 3: its content was changed"],
    ),
    "a changed line with a digest that fits": (
        ["UPDATE audit_auditline SET action = 'x', digest = '{fits}' WHERE number = 3"],
        ["line 4: it does not follow the line before"],
    ),
    "a removed line": (
        ["DELETE FROM audit_auditline WHERE number = 3"],
        ["line 4: line 3 is missing"],
    ),
    "several removed lines": (
        ["DELETE FROM audit_auditline WHERE number IN (2, 3)"],
        ["line 4: lines 2 to 3 are missing"],
    ),
    "a removed beginning": (
        ["DELETE FROM audit_auditline WHERE number = 1"],
        ["line 2: line 1 is missing"],
    ),
    "a swapped pair": (
        [
            "UPDATE audit_auditline SET number = 0 WHERE number = 3",
            "UPDATE audit_auditline SET number = 3 WHERE number = 4",
            "UPDATE audit_auditline SET number = 4 WHERE number = 0",
        ],
        ["line 3: it was written as line 4", "line 4: it was written as line 3"],
    ),
    "a swapped pair that stood apart": (
        [
            "UPDATE audit_auditline SET number = 0 WHERE number = 2",
            "UPDATE audit_auditline SET number = 2 WHERE number = 5",
            "UPDATE audit_auditline SET number = 5 WHERE number = 0",
        ],
        ["line 2: it was written as line 5", "line 5: it was written as line 2"],
    ),
    "another time, another person": (
        [
            "UPDATE audit_auditline SET at = at - interval '1 hour' WHERE number = 2",
            f"UPDATE audit_auditline SET person = '{BO}' WHERE number = 5",
        ],
        ["line 2: its content was changed", "line 5: its content was changed"],
    ),
}


@pytest.mark.parametrize("harm", HARMS)
def test_verifyaudit_finds_and_names(harm: str) -> None:
    lines(6)
    out = StringIO()
    call_command("verifyaudit", stdout=out)
    assert out.getvalue().startswith("6 audit lines, each follows the one before")
    statements, named = HARMS[harm]
    changed = AuditLine.objects.get(number=3)
    changed.action = "x"
    fits = digest(changed.previous, changed.content())
    with connection.cursor() as cursor:
        # What only who owns the database can do.
        cursor.execute("ALTER TABLE audit_auditline DISABLE TRIGGER USER")
        for statement in statements:
            cursor.execute(statement.replace("{fits}", fits))
        cursor.execute("ALTER TABLE audit_auditline ENABLE TRIGGER USER")
    with pytest.raises(CommandError) as said:
        call_command("verifyaudit")
    assert str(said.value).splitlines() == ["the chain breaks", *named]


def test_an_end_that_was_cut_off_is_found_by_what_was_kept_elsewhere() -> None:
    lines(4)
    number, kept = head()
    call_command("verifyaudit", "--expect", f"{number}:{kept}", stdout=StringIO())
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE audit_auditline DISABLE TRIGGER USER")
        cursor.execute("DELETE FROM audit_auditline WHERE number = 4")
        cursor.execute("ALTER TABLE audit_auditline ENABLE TRIGGER USER")
    assert list(all_breaks()) == [], "the chain alone cannot know"
    with pytest.raises(CommandError, match="line 4: it is not the one that was kept elsewhere"):
        call_command("verifyaudit", "--expect", f"{number}:{kept}")


def test_what_was_seen_in_the_cluster_is_written_once_and_proves() -> None:
    lines(2)
    seen = {
        "action": "quota.changed",
        "subject": "namespace tidewater-train",
        "origin": "uid-1/4711/changed",
        "at": NOON,
        "tenant": "tidewater",
    }
    with transaction.atomic():
        first = record_observed(**seen)
        again = record_observed(**seen)
    assert first is not None and again is None
    assert (first.source, first.person) == ("cluster", None)
    a_line(9)
    assert list(all_breaks()) == []
    assert [line.number for line in found(Search(source="cluster"))] == [3]
    assert found(Search(source="berth")).count() == 3


SEARCHES: list[tuple[Search, list[int]]] = [
    (Search(), [6, 5, 4, 3, 2, 1]),
    (Search(tenant="tidewater"), [5, 4, 3, 2, 1]),
    (Search(tenant=""), [6]),
    (Search(person=BO), [4]),
    (Search(action="claim.asked"), [6, 4, 3, 2, 1]),
    (Search(action="claim"), [6, 5, 4, 3, 2, 1]),
    (Search(action="cla"), []),
    (Search(subject="claim c2"), [3]),
    (Search(subject="claim"), [6, 5, 4, 3, 2, 1]),
    (Search(request_id="request-0001"), [2]),
    (Search(since=NOON + timedelta(minutes=2)), [6, 5, 4, 3]),
    (Search(until=NOON + timedelta(minutes=2)), [2, 1]),
    (Search(since=NOON + timedelta(minutes=1), until=NOON + timedelta(minutes=3)), [3, 2]),
    (Search(since=NOON + timedelta(days=9)), []),
]


@pytest.mark.parametrize(("search", "numbers"), SEARCHES)
def test_searches(search: Search, numbers: list[int]) -> None:
    lines(3)
    a_line(3, person=BO)
    a_line(4, action="claim.released")
    a_line(5, tenant="")
    assert [line.number for line in found(search)] == numbers


def test_pages_lead_down_and_up_again() -> None:
    lines(2 * PAGE_SIZE + 3)
    first = page(Search())
    assert (first.lines[0].number, first.newer, first.older) == (103, None, 54)
    second = page(Search(), before=first.older)
    third = page(Search(), before=second.older)
    assert ([line.number for line in third.lines], third.older) == ([3, 2, 1], None)
    back = page(Search(), after=third.newer)
    assert [line.number for line in back.lines] == [line.number for line in second.lines]
    top = page(Search(), after=back.newer)
    assert (top.lines[0].number, top.newer) == (103, None)


def names(people: Any) -> dict[UUID | None, str]:
    return {person: "=ann" if person == ANN else "Berth" for person in people}


def test_json_lines_prove_by_themselves() -> None:
    lines(3)
    text = "".join(texts(chunks(Search()), "jsonl", names))
    rows = [json.loads(line) for line in text.splitlines()]
    assert [row["number"] for row in rows] == [1, 2, 3]
    assert [row["previous"] for row in rows[1:]] == [row["digest"] for row in rows[:-1]]
    assert rows[0]["name"] == "=ann"


def test_csv_runs_no_formula() -> None:
    a_line(1, facts={"note": 'says "yes", twice'})
    rows = list(csv.DictReader(io.StringIO("".join(texts(chunks(Search()), "csv", names)))))
    assert rows[0]["name"] == "'=ann"
    assert json.loads(rows[0]["facts"]) == {"note": 'says "yes", twice'}

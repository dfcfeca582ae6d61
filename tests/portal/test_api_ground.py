"""What every operation does beside its own work, proven on operations of all floors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings
from pytest_django.fixtures import DjangoCaptureOnCommitCallbacks

from devices.models import Claim
from portal.api import rates
from portal.api.models import KeptAnswer
from portal.audit.models import AuditLine
from portal.outbox.models import OutboxLine
from tenants.access import Access, tenant_for
from tenants.models import ApiToken
from tenants.tokens import make_token
from tests.factories import make_access, make_claim, make_person, make_version

pytestmark = pytest.mark.django_db
TENANT = "/api/v1/tenants/tidewater"
CLAIMS = f"{TENANT}/claims"
ASK = {"template": "gpu", "namespace": "tidewater-train", "name": "train", "values": {"count": 2}}

INVITED = {"role": "viewer", "note": "Tansy"}


class Program:
    """A program with a token."""

    def __init__(self, access: Access, *, dry_run_first: bool = False) -> None:
        now = timezone.now()
        made = make_token(
            access=access,
            name="test",
            scopes=["read", "request", "operate", "admin"],
            expires_at=now + timedelta(hours=1),
            now=now,
            request_id="request-0001",
            dry_run_first=dry_run_first,
        )
        self.row = made.row
        self.client = Client(headers={"Authorization": f"Bearer {made.text}"})

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> HttpResponse:
        data = "" if body is None else json.dumps(body)
        return self.client.generic(  # type: ignore[return-value]
            method, path, data, content_type="application/json", headers=headers
        )


def body_of(answer: HttpResponse) -> Any:
    return json.loads(answer.content)


@pytest.fixture
def access() -> Access:
    make_version()
    return make_access(role="owner")


@pytest.fixture
def program(access: Access) -> Program:
    return Program(access)


# --- Dry runs -------------------------------------------------------------------------------------
def written() -> tuple[int, ...]:
    kinds = (Claim, OutboxLine, AuditLine, KeptAnswer)
    return tuple(kind.objects.count() for kind in kinds)


def test_a_dry_run_answers_the_same_and_leaves_nothing(
    program: Program, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    before = written()
    with django_capture_on_commit_callbacks() as to_follow:
        tried = program.ask("POST", f"{CLAIMS}?dry_run=true", ASK, **{"Idempotency-Key": "a"})
    assert tried.status_code == 201
    assert tried["Berth-Dry-Run"] == "true"
    assert not tried.has_header("Location"), "there is nothing at such an address"
    assert to_follow == [], "no task and no news"
    assert written() == before
    done = program.ask("POST", CLAIMS, ASK, **{"Idempotency-Key": "a"})
    assert done.status_code == 201
    assert not done.has_header("Idempotency-Replayed")
    told, real = body_of(tried), body_of(done)
    same = set(real) - {"id", "object_name", "requested_at", "since", "request_id"}
    assert {name: told[name] for name in same} == {name: real[name] for name in same}


def test_a_dry_run_refuses_what_would_be_refused(program: Program) -> None:
    answer = program.ask("POST", f"{CLAIMS}?dry_run=true", {**ASK, "values": {"count": 99}})
    assert (answer.status_code, body_of(answer)["code"]) == (422, "INVALID")


def test_a_dry_run_is_said_with_true_or_false(program: Program) -> None:
    answer = program.ask("POST", f"{CLAIMS}?dry_run=yes", ASK)
    assert (answer.status_code, body_of(answer)["facts"]) == (
        422,
        {"fields": {"dry_run": "true or false."}},
    )
    assert Claim.objects.count() == 0


def test_an_operation_without_a_key_of_its_own_rehearses_too(program: Program) -> None:
    invited = program.ask("POST", f"{TENANT}/invitations?dry_run=true", INVITED)
    assert invited.status_code == 201
    assert body_of(program.ask("GET", f"{TENANT}/invitations"))["results"] == []


# --- Dry run first --------------------------------------------------------------------------------
def test_a_token_of_an_agent_acts_after_a_dry_run_of_the_same_only(access: Access) -> None:
    agent = Program(access, dry_run_first=True)
    refused = agent.ask("POST", CLAIMS, ASK)
    assert (refused.status_code, body_of(refused)["code"]) == (428, "DRY_RUN_FIRST")
    tried = agent.ask("POST", f"{CLAIMS}?dry_run=true", ASK)
    confirm = {"Berth-Confirm": tried["Berth-Confirm"]}
    other = agent.ask("POST", CLAIMS, {**ASK, "values": {"count": 3}}, **confirm)
    assert (other.status_code, body_of(other)["code"]) == (428, "DRY_RUN_FIRST")
    assert Claim.objects.count() == 0
    assert agent.ask("POST", CLAIMS, ASK, **confirm).status_code == 201


def test_reading_and_what_if_need_no_dry_run(access: Access) -> None:
    agent = Program(access, dry_run_first=True)
    assert agent.ask("GET", CLAIMS).status_code == 200
    assert agent.ask("POST", f"{TENANT}/what-if", {"template": "gpu"}).status_code == 200


# --- Idempotency ----------------------------------------------------------------------------------
def test_an_operation_that_never_heard_of_keys_is_done_once(program: Program) -> None:
    claim = make_claim(tenant_for(program.row.user, "tidewater"), make_version("other"))
    view = {"name": "Mine", "query": {"state": "open"}}
    key = {"Idempotency-Key": "view-1"}
    first = program.ask("POST", f"{TENANT}/views", view, **key)
    second = program.ask("POST", f"{TENANT}/views", view, **key)
    assert (first.status_code, second.status_code) == (201, 201), first.content
    assert body_of(first) == body_of(second)
    assert second["Idempotency-Replayed"] == "true"
    note = program.ask("PUT", f"{CLAIMS}/{claim.public_id}/note", {"note": "a"}, **key)
    assert (note.status_code, body_of(note)["code"]) == (422, "IDEMPOTENCY_KEY_REUSED")


def test_an_answer_without_a_body_is_kept_too(program: Program) -> None:
    program.ask("POST", f"{TENANT}/invitations", INVITED)
    prefix, key = program.row.tenant.invitations.get().prefix, {"Idempotency-Key": "gone"}
    path = f"{TENANT}/invitations/{prefix}"
    assert program.ask("DELETE", path, **key).status_code == 204
    again = program.ask("DELETE", path, **key)
    assert (again.status_code, again["Idempotency-Replayed"]) == (204, "true")


def test_a_secret_is_shown_once_and_never_kept(program: Program) -> None:
    key = {"Idempotency-Key": "invite-1"}
    first = program.ask("POST", f"{TENANT}/invitations", INVITED, **key)
    secret = body_of(first)["link"].partition("#")[2]
    second = program.ask("POST", f"{TENANT}/invitations", INVITED, **key)
    assert (second.status_code, body_of(second)["code"]) == (409, "SECRET_SHOWN_ONCE")
    assert len(body_of(program.ask("GET", f"{TENANT}/invitations"))["results"]) == 1
    assert secret not in json.dumps(list(KeptAnswer.objects.values()), default=str)


# --- If-Match -------------------------------------------------------------------------------------
def test_an_outdated_look_is_told_what_changed(program: Program) -> None:
    made = body_of(program.ask("POST", CLAIMS, ASK))
    path = f"{CLAIMS}/{made['id']}"
    looked = program.ask("GET", path)["ETag"]
    assert program.ask("PUT", f"{path}/note", {"note": "mine"}).status_code == 200
    late = program.ask("PUT", f"{path}/note", {"note": "yours"}, **{"If-Match": looked})
    assert (late.status_code, body_of(late)["code"]) == (412, "OUTDATED")
    facts = body_of(late)["facts"]
    assert facts["now"]["note"] == "mine"
    assert facts["difference"]["note"] == {"was": "", "is": "mine"}
    assert facts["etag"] == program.ask("GET", path)["ETag"]
    fresh = program.ask("PUT", f"{path}/note", {"note": "yours"}, **{"If-Match": facts["etag"]})
    assert fresh.status_code == 200


def test_a_thing_without_a_revision_is_compared_by_what_it_answers(program: Program) -> None:
    make_person("tim", program.row.tenant)
    path, owner = f"{TENANT}/members/tim", program
    looked = owner.ask("GET", path)["ETag"]
    assert owner.ask("GET", path)["ETag"] == looked
    first = owner.ask("PATCH", path, {"role": "viewer"}, **{"If-Match": looked})
    assert first.status_code == 200
    late = owner.ask("PATCH", path, {"role": "owner"}, **{"If-Match": looked})
    assert late.status_code == 412
    assert body_of(late)["facts"]["difference"]["role"] == {"was": "member", "is": "viewer"}
    assert owner.ask("PATCH", path, {"role": "owner"}, **{"If-Match": "*"}).status_code == 200


def test_what_nobody_remembers_is_said_to_be_unknown(program: Program) -> None:
    made = body_of(program.ask("POST", CLAIMS, ASK))
    path = f"{CLAIMS}/{made['id']}/release"
    late = program.ask("POST", path, **{"If-Match": '"77"'})
    assert late.status_code == 412
    assert body_of(late)["facts"]["difference"] is None
    assert Claim.objects.get().released_at is None


# --- Fields and rates -----------------------------------------------------------------------------
def test_only_some_fields(program: Program) -> None:
    made = body_of(program.ask("POST", CLAIMS, ASK))
    listed = body_of(program.ask("GET", f"{CLAIMS}?fields=id,state"))
    assert listed["results"] == [{"id": made["id"], "state": "requested"}]
    one = program.ask("GET", f"{CLAIMS}/{made['id']}?fields=id")
    assert body_of(one) == {"id": made["id"]}
    assert one["ETag"] == program.ask("GET", f"{CLAIMS}/{made['id']}")["ETag"]
    wrong = program.ask("GET", f"{CLAIMS}?fields=nonsense")
    assert (wrong.status_code, body_of(wrong)["code"]) == (422, "INVALID")


def test_each_token_has_a_rate_of_its_own(
    access: Access, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.API_RATES = {"reads": 2, "writes": 1}
    monkeypatch.setattr(rates.time, "time", lambda: 1_800_000_010.0)
    first, other = Program(access), Program(access)
    left = [first.ask("GET", CLAIMS)["RateLimit-Remaining"] for _ in range(2)]
    assert left == ["1", "0"]
    over = first.ask("GET", CLAIMS)
    assert (over.status_code, body_of(over)["code"]) == (429, "TOO_MANY_REQUESTS")
    assert (over["RateLimit-Limit"], over["RateLimit-Reset"]) == ("2", "50")
    assert 0 < int(over["Retry-After"]) <= 51
    assert other.ask("GET", CLAIMS).status_code == 200, "another token has its own"
    assert first.ask("POST", CLAIMS, ASK).status_code == 201, "writes are counted by themselves"
    monkeypatch.setattr(rates.time, "time", lambda: 1_800_000_060.0)
    assert first.ask("GET", CLAIMS).status_code == 200, "a new minute"


def test_without_valkey_nobody_is_counted_or_turned_away(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    import redis

    nobody = redis.Redis(port=1, socket_connect_timeout=0.2)
    monkeypatch.setattr(rates, "valkey", lambda: nobody)
    answer = program.ask("GET", CLAIMS)
    assert answer.status_code == 200
    assert not answer.has_header("RateLimit-Limit")


# --- What nothing can keep ------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("body", "field"),
    [
        pytest.param({**ASK, "name": "a\0b"}, "name", id="a NUL"),
        pytest.param({**ASK, "values": {"count": ["\0"]}}, "values.count.0", id="deep inside"),
        pytest.param({**ASK, "note": "\ud800"}, "note", id="half of a surrogate pair"),
        pytest.param({**ASK, "a\0b": 1}, "body", id="in a field's name"),
        pytest.param("\0", "body", id="the body itself"),
    ],
)
def test_texts_that_nothing_can_keep_are_refused_by_field(
    program: Program, body: Any, field: str
) -> None:
    answer = program.ask("POST", CLAIMS, body)
    assert (answer.status_code, body_of(answer)["code"]) == (422, "INVALID")
    assert set(body_of(answer)["facts"]["fields"]) == {field}
    assert Claim.objects.count() == 0


@pytest.mark.parametrize("depth", [200, 200_000])
def test_a_body_without_bottom_is_refused(program: Program, depth: int) -> None:
    text = "[" * depth + "]" * depth
    answer = program.client.post(CLAIMS, text, content_type="application/json")
    assert (answer.status_code, body_of(answer)["code"]) == (422, "INVALID")


def test_addresses_that_nothing_has_are_not_there_and_their_parameters_are_named(
    program: Program,
) -> None:
    assert program.ask("GET", f"{CLAIMS}/a%00b").status_code == 404
    assert program.ask("POST", f"{CLAIMS}/a%00b/release").status_code == 404
    for query in ("q=a%00b", "fields=%00", "cursor=%00", "unheard-of=%00"):
        answer = program.ask("GET", f"{CLAIMS}?{query}")
        assert answer.status_code == 422, query
        assert set(body_of(answer)["facts"]["fields"]) == {query.partition("=")[0]}


# --- Several, wait, changes, watch, snippets ------------------------------------------------------
def test_several_asks_name_those_that_are_refused(program: Program) -> None:
    asks = [ASK, {**ASK, "name": "b", "values": {"count": 99}}, {"name": "c"}, 7,
            {**ASK, "name": "e", "template": "none"}]  # fmt: skip
    answer = program.ask("POST", f"{CLAIMS}/several", {"claims": asks})
    assert answer.status_code == 207
    body = body_of(answer)
    assert (body["asked"], body["refused"]) == (1, 4)
    codes = [(one["index"], one["name"], one["code"]) for one in body["results"]]
    assert codes == [(0, "train", ""), (1, "b", "INVALID"), (2, "c", "INVALID"), (3, "", "INVALID"),
                     (4, "e", "INVALID")]  # fmt: skip
    assert set(body["results"][2]["facts"]["fields"]) == {"template", "namespace"}
    assert [claim.name for claim in Claim.objects.all()] == ["train"]
    assert program.ask("POST", f"{CLAIMS}/several", {"claims": [ASK]}).status_code == 201


def test_waiting_is_bounded_and_says_what_is_missing(program: Program) -> None:
    made = body_of(program.ask("POST", CLAIMS, ASK))
    path = f"{CLAIMS}/{made['id']}/wait"
    waiting = body_of(program.ask("GET", f"{path}?seconds=0"))
    assert (waiting["verdict"], waiting["claim"]["id"]) == ("retryable", made["id"])
    Claim.objects.update(state="applied", code="WAITING_FOR_POD")
    assert body_of(program.ask("GET", path))["verdict"] == "ready"
    program.ask("POST", f"{CLAIMS}/{made['id']}/release")
    assert body_of(program.ask("GET", f"{path}?until=running"))["verdict"] == "permanent"
    for query in ("seconds=61", "seconds=-1", "seconds=x", "until=never"):
        assert program.ask("GET", f"{path}?{query}").status_code == 422, query
    some = body_of(program.ask("GET", f"{path}?fields=code"))
    assert set(some) == {"code", "verdict"}, "what was waited for is told, whatever is asked"
    assert program.ask("OPTIONS", path).status_code == 200


def test_changes_since_a_look_leave_nothing_out(program: Program) -> None:
    first = body_of(program.ask("GET", f"{CLAIMS}/changes"))
    assert (first["whole"], first["rows"]) == (True, [])
    made = body_of(program.ask("POST", CLAIMS, ASK))
    then = body_of(program.ask("GET", f"{CLAIMS}/changes?since={first['seen']}"))
    assert (then["whole"], [row["id"] for row in then["rows"]]) == (False, [made["id"]])
    for since in ("", "nonsense", "9" * 25, "-1", str(10**17)):
        again = body_of(program.ask("GET", f"{CLAIMS}/changes?since={since}"))
        assert again["whole"] is True, since


def events(answer: Any) -> Iterator[tuple[str, Any, str]]:
    async def whole() -> bytes:
        return b"".join([part async for part in answer.streaming_content])

    for block in async_to_sync(whole)().decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines())
        if "event" in lines:
            yield lines["event"], json.loads(lines["data"]), lines.get("id", "")


def test_a_watch_begins_with_what_is_there_and_goes_on_from_an_id(program: Program) -> None:
    made = body_of(program.ask("POST", CLAIMS, ASK))
    first = program.ask("GET", f"{CLAIMS}/watch?seconds=0", Accept="text/event-stream")
    assert first["Content-Type"] == "text/event-stream", first.content
    (claim, row, _), (seen, _, number) = events(first)
    assert (claim, row["id"], seen) == ("claim", made["id"], "seen")
    assert number.isdecimal()
    again = program.ask("GET", f"{CLAIMS}/watch?seconds=0", **{"Last-Event-ID": number})
    assert "seen" in [name for name, _, _ in events(again)]


def test_a_snippet_names_the_claim(program: Program) -> None:
    made = body_of(program.ask("POST", CLAIMS, ASK))
    rows = body_of(program.ask("GET", f"{CLAIMS}/{made['id']}/snippets"))
    assert [row["key"] for row in rows] == ["pod", "job", "deployment", "parts"]
    assert all(made["object_name"] in row["text"] for row in rows)


def test_an_operation_costs_few_queries_more(program: Program) -> None:
    body_of(program.ask("GET", CLAIMS))
    with CaptureQueriesContext(connection) as queries:
        program.ask("GET", CLAIMS)
    assert len(queries) <= 3


def test_everybody_reads_what_agents_need_to_know(client: Client) -> None:
    answer = client.get("/llms.txt")
    assert answer["Content-Type"] == "text/markdown; charset=utf-8"
    text = answer.content.decode()
    assert text.startswith("# Berth\n")
    for word in ("dry_run=true", "Berth-Confirm", "openapi.json", "Idempotency-Key"):
        assert word in text
    assert "{" not in text


def test_a_person_marks_a_token_of_an_agent(access: Access, client: Client) -> None:
    client.force_login(access.user)
    asked = {"name": "agent", "tenant": "tidewater", "scopes": ["read", "request"], "life": "7",
             "dry_run_first": "on"}  # fmt: skip
    page = client.post("/account/tokens/", asked)
    assert page.status_code == 200
    assert ApiToken.objects.get(name="agent").dry_run_first
    assert "dry run first" in page.content.decode()

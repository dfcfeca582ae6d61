"""Alerts in the database: opened once, told on their routes, signed, tried again, silenced."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core import mail
from django.db import connection
from pytest_django import Settings
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from portal.alerts import bell, channels, raising, sending
from portal.alerts.guard import networks
from portal.alerts.models import Alert, Channel, Delivery
from portal.alerts.raising import About, over, raise_alert, take_on
from portal.alerts.rules import MOST_ATTEMPTS, Match, Medium, Severity
from portal.audit.models import AuditLine
from portal.errors import Invalid
from tests.factories import NOON

pytestmark = pytest.mark.django_db

ADMIN = uuid4()
LATER = NOON + timedelta(minutes=1)


def about(subject: str = "claim train-a", **changed: Any) -> About:
    said: dict[str, Any] = {
        "code": "PREPARE_FAILED",
        "subject": subject,
        "title": "A node cannot prepare train-a",
        "failure_class": "retryable",
        "tenant": "tidewater",
        "path": "/t/tidewater/claims/c1/",
        "evidence": (("Node", "h100-01"),),
    }
    return About(**{**said, **changed})


@dataclass
class Receiver:
    """A real web server on loopback, what it got, and what it answers."""

    url: str = ""
    status: int = 204
    got: list[tuple[dict[str, str], str]] = field(default_factory=list)


@pytest.fixture
def receiver(settings: Settings) -> Iterator[Receiver]:
    told = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["content-length"])).decode()
            told.got.append(({k.lower(): v for k, v in self.headers.items()}, text))
            self.send_response(told.status)
            if 300 <= told.status < 400:
                self.send_header("location", told.url)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            """Tests read what arrived, not a log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.url = f"http://127.0.0.1:{server.server_port}/hook?from=berth"
    settings.WEBHOOK_NETWORKS = networks(["127.0.0.0/8"])
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield told
    server.shutdown()
    thread.join()
    server.server_close()


def a_channel(url: str, name: str = "pager") -> Channel:
    return channels.add_channel(
        name=name, medium=Medium.WEBHOOK, address=url, person=ADMIN, request_id="r", now=NOON
    )


def a_route(channel: Channel, match: Match | None = None, **changed: Any) -> None:
    channels.add_route(
        match=match or Match(),
        channel=channel,
        then=changed.get("then"),
        after=changed.get("after"),
        tells_end=changed.get("tells_end", True),
        person=ADMIN,
        request_id="r",
        now=NOON,
    )


def deliver_due(now: datetime) -> int:
    due = Delivery.objects.filter(due_at__lte=now, arrived_at=None).order_by("due_at", "pk")
    return sum(
        sending.deliver(pk, now) is not None for pk in list(due.values_list("pk", flat=True))
    )


def test_saying_it_again_counts_and_tells_once(receiver: Receiver) -> None:
    a_route(a_channel(receiver.url))
    for minute in range(5):
        raise_alert(about(), now=NOON + timedelta(minutes=minute))
    alert = Alert.objects.get()
    assert (alert.times, alert.opened_at, alert.seen_at) == (5, NOON, NOON + timedelta(minutes=4))
    assert deliver_due(LATER) == 1 and len(receiver.got) == 1


def test_a_message_is_signed_and_says_everything(receiver: Receiver) -> None:
    channel = a_channel(receiver.url)
    a_route(channel)
    raise_alert(about(), now=NOON, request_id="request-9")
    deliver_due(LATER)
    ((head, text),) = receiver.got
    with pytest.raises(WebhookVerificationError, match="too"):
        Webhook(channel.secrets[0]).verify(text, head)  # NOON is long ago: replays are refused
    moment = datetime.fromtimestamp(int(head["webhook-timestamp"]), tz=NOON.tzinfo)
    expected = Webhook(channel.secrets[0]).sign(head["webhook-id"], moment, text)
    assert head["webhook-signature"] == expected
    message = json.loads(text)
    assert message["type"] == "alert.opened"
    data = message["data"]
    assert (data["code"], data["tenant"], data["severity"]) == (
        "PREPARE_FAILED",
        "tidewater",
        "warning",
    )
    assert data["link"].endswith("/t/tidewater/claims/c1/") and data["request_id"] == "request-9"
    evidence = {one["label"]: one["value"] for one in data["evidence"]}
    assert evidence["Node"] == "h100-01"
    assert evidence["What to do"].endswith("/help/codes/PREPARE_FAILED/")


def test_two_secrets_sign_for_a_day_after_a_change(receiver: Receiver) -> None:
    channel = a_channel(receiver.url)
    first = channel.secrets[0]
    second = channels.rotate(channel, person=ADMIN, request_id="r", now=NOON)
    assert sending.keys(channel, NOON + timedelta(hours=23)) == [second, first]
    assert sending.keys(channel, NOON + timedelta(hours=25)) == [second]


def test_what_fails_is_tried_again_with_the_same_id_and_then_given_up(receiver: Receiver) -> None:
    receiver.status = 503
    a_route(a_channel(receiver.url))
    raise_alert(about(), now=NOON)
    now = NOON
    for _ in range(MOST_ATTEMPTS + 3):
        now += timedelta(hours=5)
        deliver_due(now)
    delivery = Delivery.objects.get()
    assert delivery.attempts == MOST_ATTEMPTS and delivery.due_at is None
    assert not delivery.arrived_at and delivery.answer.startswith("503")
    assert len({head["webhook-id"] for head, _ in receiver.got}) == 1
    receiver.status = 200
    again = channels.tell_again(delivery, person=ADMIN, request_id="r", now=now)
    assert sending.deliver(again.pk, now) is True


@pytest.mark.parametrize(
    ("status", "settled"),
    [
        pytest.param(200, True, id="200 arrived"),
        pytest.param(302, False, id="a redirect is not followed and is no arrival"),
        pytest.param(410, True, id="410 wants no more"),
        pytest.param(500, False, id="500 is tried again"),
    ],
)
def test_what_an_answer_means(receiver: Receiver, status: int, settled: bool) -> None:
    receiver.status = status
    a_route(a_channel(receiver.url))
    raise_alert(about(), now=NOON)
    deliver_due(LATER)
    assert (Delivery.objects.get().due_at is None) is settled
    assert len(receiver.got) == 1


def test_a_closed_address_is_not_reached_even_if_it_was_stored(
    receiver: Receiver, settings: Settings
) -> None:
    a_route(a_channel(receiver.url))
    raise_alert(about(), now=NOON)
    settings.WEBHOOK_NETWORKS = []
    deliver_due(LATER)
    assert receiver.got == [] and "inside a network" in Delivery.objects.get().answer


@pytest.mark.django_db(transaction=True)
def test_two_workers_tell_it_once(receiver: Receiver) -> None:
    a_route(a_channel(receiver.url))
    raise_alert(about(), now=NOON)
    pk = Delivery.objects.get().pk
    answers: list[bool | None] = []

    def work() -> None:
        answers.append(sending.deliver(pk, LATER))
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers, key=str) == [None] * 5 + [True]
    assert len(receiver.got) == 1


@pytest.mark.django_db(transaction=True)
def test_many_say_it_at_once_and_one_alert_opens() -> None:
    def work() -> None:
        raise_alert(about(), now=NOON)
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Alert.objects.get().times == 8


def test_routes_by_tenant_and_severity_and_the_end_is_told(receiver: Receiver) -> None:
    pager = a_channel(receiver.url)
    a_route(pager, Match(tenant="tidewater", least=Severity.CRITICAL))
    raise_alert(about(), now=NOON)
    raise_alert(about("claim b", severity=Severity.CRITICAL, tenant="kelp"), now=NOON)
    assert Delivery.objects.count() == 0
    raise_alert(about("claim c", severity=Severity.CRITICAL), now=NOON)
    assert over("PREPARE_FAILED", "claim c", tenant="tidewater", now=LATER)
    assert not over("PREPARE_FAILED", "claim c", tenant="tidewater", now=LATER)
    assert deliver_due(LATER) == 2
    assert [json.loads(text)["type"] for _, text in receiver.got] == ["alert.opened", "alert.over"]


def test_after_its_end_the_same_is_a_new_alert() -> None:
    raise_alert(about(), now=NOON)
    over("PREPARE_FAILED", "claim train-a", tenant="tidewater", now=LATER)
    raise_alert(about(), now=LATER)
    assert Alert.objects.count() == 2


def test_what_was_said_to_one_person_ends_for_that_person_alone() -> None:
    one, other = uuid4(), uuid4()
    for person in (one, other):
        raise_alert(about("claim a", person=person), now=NOON)
    assert over("PREPARE_FAILED", "claim a", tenant="tidewater", person=one, now=LATER)
    assert not over("PREPARE_FAILED", "claim a", tenant="tidewater", now=LATER)
    assert [row.person for row in Alert.objects.filter(over_at=None)] == [other]


def test_silenced_is_not_told_but_stands_at_the_bell(receiver: Receiver) -> None:
    a_route(a_channel(receiver.url))
    channels.silence(
        match=Match(code="PREPARE_FAILED"),
        reason="The rack is being moved.",
        until=NOON + timedelta(hours=1),
        person=ADMIN,
        request_id="r",
        now=NOON,
    )
    raise_alert(about(), now=NOON)
    raise_alert(about("x", code="LEAKED"), now=NOON)
    assert Delivery.objects.get().alert.code == "LEAKED"
    assert Alert.objects.count() == 2


@pytest.mark.parametrize("taken", [True, False])
def test_what_nobody_took_on_in_time_goes_to_the_second_channel(
    receiver: Receiver, taken: bool
) -> None:
    first, second = a_channel(receiver.url), a_channel(receiver.url + "&boss", "boss")
    a_route(first, then=second, after=timedelta(minutes=15))
    alert = raise_alert(about(), now=NOON)
    assert deliver_due(NOON + timedelta(minutes=1)) == 1
    if taken:
        take_on(alert, ADMIN, now=NOON + timedelta(minutes=5))
    deliver_due(NOON + timedelta(minutes=16))
    told = [json.loads(text)["type"] for _, text in receiver.got]
    assert told == ["alert.opened"] + ([] if taken else ["alert.escalated"])


def test_graver_news_replace_the_words() -> None:
    raise_alert(about(), now=NOON)
    raise_alert(about(severity=Severity.CRITICAL, title="Three nodes cannot"), now=LATER)
    raise_alert(about(), now=LATER)
    alert = Alert.objects.get()
    assert (alert.severity, alert.title) == ("critical", "Three nodes cannot")


def test_mail_carries_code_and_link(settings: Settings) -> None:
    settings.EMAIL_CONFIGURED = True
    channel = channels.add_channel(
        name="oncall",
        medium=Medium.MAIL,
        address="oncall@example.org",
        person=ADMIN,
        request_id="r",
        now=NOON,
    )
    a_route(channel)
    raise_alert(about(title="Two\nlines"), now=NOON)
    deliver_due(LATER)
    (message,) = mail.outbox
    assert message.subject == "[Berth] Two lines" and message.to == ["oncall@example.org"]
    assert "PREPARE_FAILED" in message.body and "/t/tidewater/claims/c1/" in message.body


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        pytest.param({"name": " "}, "name", id="a channel has a name"),
        pytest.param({"address": "example.org"}, "address", id="a whole address"),
        pytest.param({"medium": Medium.MAIL}, "address", id="no mail without a mail server"),
    ],
)
def test_a_channel_says_what_is_wrong(changed: dict[str, Any], wrong: str) -> None:
    with pytest.raises(Invalid) as refused:
        channels.add_channel(
            **{
                "name": "pager",
                "medium": Medium.WEBHOOK,
                "address": "https://example.org/hook",
                "person": ADMIN,
                "request_id": "r",
                "now": NOON,
                **changed,
            }
        )
    assert set(refused.value.fields) == {wrong}


def test_a_removed_channel_hears_nothing_and_the_act_is_audited(receiver: Receiver) -> None:
    channel = a_channel(receiver.url)
    a_route(channel)
    raise_alert(about(), now=NOON)
    channels.remove_channel(channel, person=ADMIN, request_id="r", now=NOON)
    deliver_due(LATER)
    assert receiver.got == [] and Delivery.objects.get().answer == "the channel was removed"
    again = a_channel(receiver.url)
    channels.remove_channel(again, person=ADMIN, request_id="r", now=NOON)
    assert Channel.objects.filter(name=again.name).count() == 2, "a name may be given again"
    actions = set(AuditLine.objects.values_list("action", flat=True))
    assert {"alert.channel.made", "alert.route.made", "alert.channel.removed"} <= actions


def test_the_bell_shows_ones_own_tenants_and_persons() -> None:
    me, other = uuid4(), uuid4()
    raise_alert(about("claim a"), now=NOON)
    raise_alert(about("claim b", tenant="kelp"), now=NOON)
    raise_alert(about("pool c", tenant=""), now=NOON)
    raise_alert(about("for me", person=me), now=NOON)
    raise_alert(about("for another", person=other), now=NOON)

    def seen(person: UUID, *tenants: str, platform: bool = False) -> set[str]:
        rows = bell.visible_to(bell.Viewer(person, tenants, platform))
        return set(rows.values_list("subject", flat=True))

    assert seen(me, "tidewater") == {"claim a", "for me"}
    assert seen(uuid4(), platform=True) == {"claim a", "claim b", "pool c"}
    assert seen(uuid4()) == set()
    viewer = bell.Viewer(me, ["tidewater"], False)
    assert bell.ringing(viewer, LATER) == 2
    bell.looked(me, LATER)
    assert bell.ringing(viewer, LATER) == 0


def test_old_alerts_are_forgotten_after_their_end_only() -> None:
    raise_alert(about("claim a"), now=NOON)
    raise_alert(about("claim b"), now=NOON)
    over("PREPARE_FAILED", "claim b", tenant="tidewater", now=NOON)
    raising.forget(NOON + timedelta(days=91))
    assert Alert.objects.get().subject == "claim a"

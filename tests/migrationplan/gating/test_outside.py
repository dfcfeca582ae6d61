"""Gates that ask others: a signed webhook, Prometheus; what they answer and when they do not."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from socket import socket

import pytest
from pytest_django import Settings
from standardwebhooks.webhooks import Webhook

from devices.models import NodePool
from migrationplan.gates import Outcome
from migrationplan.gating import Subject
from migrationplan.gating.outside import answer, filled
from migrationplan.gating.promql import verdict
from migrationplan.measures import Measure
from migrationplan.models import Gate
from playground.building.go_tools import build_tool
from portal.alerts import webhooks
from portal.alerts.guard import networks
from tenants.access import PlatformAccess
from tests.devices.following import until
from tests.factories import NOON
from tests.listening import Listener, listening
from tests.migrationplan.gating.rows import a_gate, reading

pytestmark = pytest.mark.django_db
PASS, FAIL, INCONCLUSIVE = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE


@pytest.fixture
def listener(settings: Settings) -> Iterator[Listener]:
    settings.WEBHOOK_NETWORKS = networks(["127.0.0.0/8"])
    with listening() as server:
        yield server


def test_a_webhook_is_asked_signed_and_answers(
    subject: Subject, operator: PlatformAccess, listener: Listener
) -> None:
    url = f"{listener.address}/gate"
    gate = a_gate(operator, Measure.WEBHOOK, url=url)
    listener.said = (200, b'{"verdict": "fail", "sentence": "Error budget is spent."}')
    found = reading(subject, gate)
    assert (found.verdict, found.sentence) == (FAIL, "Error budget is spent.")
    ((_, head, body),) = listener.asked
    asked = Webhook(gate.secret).verify(body.decode(), _recent(head, gate, body))
    assert asked["data"]["nodes"] == ["m1", "m2"]
    listener.said = (500, b"")
    later = NOON + timedelta(hours=1)
    assert reading(subject, gate, later).sentence == "It answered 500, not 200."


def _recent(head: dict[str, str], gate: Gate, body: bytes) -> dict[str, str]:
    """Verifiers refuse what was signed long ago, as noon was: the same, signed now."""
    from django.utils import timezone

    from portal.alerts.webhooks import headers

    assert (
        head["webhook-signature"]
        == headers(head["webhook-id"], body.decode(), [gate.secret], NOON)["webhook-signature"]
    )
    return headers(head["webhook-id"], body.decode(), [gate.secret], timezone.now())


def test_nobody_there_or_not_allowed_is_inconclusive(
    subject: Subject, operator: PlatformAccess, settings: Settings
) -> None:
    settings.WEBHOOK_NETWORKS = networks(["127.0.0.0/8"])
    closed = a_gate(operator, Measure.WEBHOOK, url="http://127.0.0.1:9/gate")
    found = reading(subject, closed)
    assert found.verdict == INCONCLUSIVE
    assert found.sentence.startswith("It did not answer: ")
    settings.WEBHOOK_NETWORKS = []
    later = NOON + timedelta(hours=1)
    assert reading(subject, closed, later).sentence.startswith("It cannot be asked: 127.0.0.1 lies")


def test_a_query_is_sent_to_prometheus(
    subject: Subject, operator: PlatformAccess, listener: Listener
) -> None:
    url = f"{listener.address}/prom/"
    query = 'sum(rate(errors{node=~"$nodes"}[5m])) < bool 0.1'
    gate = a_gate(operator, Measure.PROMETHEUS, url=url, query=query)
    listener.said = (200, VECTOR.encode())
    assert reading(subject, gate).verdict == PASS
    path = listener.asked[0][0]
    assert path.startswith("/prom/api/v1/query?query=sum%28rate%28errors%7Bnode%3D~%22m1%7Cm2%22")
    assert "&time=1793620800.000" in path


@pytest.mark.long
def test_a_real_prometheus_is_asked(
    subject: Subject, operator: PlatformAccess, settings: Settings, tmp_path: Path
) -> None:
    settings.WEBHOOK_NETWORKS = networks(["127.0.0.0/8"])
    config = tmp_path / "prometheus.yml"
    config.write_text("scrape_configs: []\n")
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [
            str(build_tool("prometheus")), f"--config.file={config}",
            f"--storage.tsdb.path={tmp_path / 'data'}", f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until(lambda: _is_ready(url), what="Prometheus")
        for number, (query, outcome, words) in enumerate(
            [
                ("vector(2) > bool 1", PASS, "answered 1"),
                ("vector(2) < bool 1", FAIL, "answered 0"),
                ("scalar(vector(1))", PASS, "answered 1"),
                ('up{node=~"$nodes"} > bool 0', INCONCLUSIVE, "found nothing"),
                ("vector(0) / vector(0)", INCONCLUSIVE, "NaN"),
                ("vector(1)[5m:1m]", INCONCLUSIVE, "instant vector"),
                ("sum(up", INCONCLUSIVE, "parse error"),
            ]
        ):
            gate = a_gate(operator, Measure.PROMETHEUS, f"g{number}", url=url, query=query)
            found = reading(subject, gate)
            assert (found.verdict, words in found.sentence) == (outcome, True), found.sentence
    finally:
        process.terminate()
        process.wait(timeout=30)


def _is_ready(url: str) -> bool:
    allowed = networks(["127.0.0.0/8"])
    return webhooks.fetch("GET", f"{url}/-/ready", allowed, longest=64)[0] == 200


#: Answers to instant queries in the form that Prometheus' HTTP API documents; the real one is asked
#: in `test_a_real_prometheus_is_asked`.
VECTOR = (
    '{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":'
    '[1793620800,"1"]}]}}'
)
SCALAR = '{"status":"success","data":{"resultType":"scalar","result":[1793620800,"0"]}}'
EMPTY = '{"status":"success","data":{"resultType":"vector","result":[]}}'
NAN = VECTOR.replace('"1"', '"NaN"')
MATRIX = '{"status":"success","data":{"resultType":"matrix","result":[]}}'
TEXT = '{"status":"success","data":{"resultType":"string","result":[1793620800,"ok"]}}'
BAD = (
    '{"status":"error","errorType":"bad_data","error":"invalid parameter \\"query\\": 1:5: parse '
    'error: unclosed left parenthesis"}'
)
TWO = VECTOR.replace("]}}", ']},{"metric":{"node":"m2"},"value":[1793620800,"0"]}]}}', 1).replace(
    "]}]},{", "]},{", 1
)


@pytest.mark.parametrize(
    ("said", "outcome", "words"),
    [
        pytest.param(VECTOR, PASS, "answered 1", id="above zero"),
        pytest.param(SCALAR, FAIL, "answered 0", id="zero"),
        pytest.param(TWO, FAIL, "1 of 2 series", id="one of two series"),
        pytest.param(EMPTY, INCONCLUSIVE, "found nothing", id="no series"),
        pytest.param(NAN, INCONCLUSIVE, "NaN", id="nothing to divide by"),
        pytest.param(MATRIX, INCONCLUSIVE, "instant vector", id="a range"),
        pytest.param(TEXT, INCONCLUSIVE, "instant vector", id="a text"),
        pytest.param(BAD, INCONCLUSIVE, "unclosed left parenthesis", id="a wrong query"),
        pytest.param("<html>", INCONCLUSIVE, "no JSON", id="a login page"),
        pytest.param("[]", INCONCLUSIVE, "no reason", id="another shape"),
        pytest.param(
            VECTOR.replace('"1"', '"many"'), INCONCLUSIVE, "instant vector", id="no number"
        ),
    ],
)
def test_what_prometheus_answers(said: str, outcome: Outcome, words: str) -> None:
    found, sentence = verdict(said)
    assert found is outcome
    assert words in sentence


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ('{"verdict": "pass", "sentence": "All well."}', PASS),
        ('{"verdict": "inconclusive"}', INCONCLUSIVE),
        ('{"verdict": "none"}', INCONCLUSIVE),
        ('{"verdict": "PASS"}', INCONCLUSIVE),
        ('{"verdict": ["pass"]}', INCONCLUSIVE),
        ('["pass"]', INCONCLUSIVE),
        ("yes", INCONCLUSIVE),
        ("", INCONCLUSIVE),
    ],
)
def test_what_a_webhook_answers(said: str, outcome: Outcome) -> None:
    assert answer(said)[0] is outcome


def test_names_of_nodes_stand_in_a_query_as_they_are(pool: NodePool) -> None:
    subject = Subject(pool, {"b.example": NOON, "a": NOON}, NOON)
    query = filled('up{node=~"$nodes",pool="$pool",class="$class"}', subject)
    assert query == r'up{node=~"a|b\\.example",pool="rack",class="h100"}'

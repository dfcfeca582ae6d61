"""Traces: one tree from the request to the worker and its calls, with nothing of tenants in it."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.db import DataError, connection
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pytest_django import DjangoDbBlocker

from playground.running.ports import free_port
from portal import tracing
from portal.logs import with_trace
from portal.tracing import shape_of, statement
from tests.portal.apiserver import a_database, address_of, filled, serving
from tests.portal.collector import Collector, Told, collecting

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).parents[2]
REQUEST_ID = "asked-by-a-test-0001"
#: A caller's own trace, and what it tries to write into ours.
CALLERS = bytes.fromhex("0af7651916cd43dd8448eb211c80319c")
TRACEPARENT = f"00-{CALLERS.hex()}-b7ad6b7169203331-01"
TRACESTATE = "vendor=words-of-the-caller"
COLLECTORS_TOKEN, CLUSTERS_TOKEN = "for-the-collector", "for-the-api-server"
ASKED = "harbourmaster"
TURN = "devices.tasks.reconcile_claim"
#: What comes of a process that ends must be heard soon, else it is lost.
QUICK = {"OTEL_BSP_SCHEDULE_DELAY": "200"}


def run(code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "portal.settings", **environ},
        capture_output=True,
        text=True,
    )


@contextmanager
def process(*words: str, **environ: str) -> Iterator[subprocess.Popen[bytes]]:
    """One of Berth's; what it says goes to this process's own stderr."""
    command, env = [sys.executable, *words], {**os.environ, **environ}
    one = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL)
    try:
        yield one
    finally:
        one.terminate()
        one.wait(timeout=30)


def ask(address: str, token: str, name: str) -> dict[str, Any]:
    """An ask by the API, with words of the asker in address, headers and body."""
    request = urllib.request.Request(
        f"{address}/api/v1/tenants/tidewater/claims?note=query-of-the-asker",
        data=json.dumps({"template": "gpu", "namespace": "tidewater-train", "name": name}).encode(),
        headers={
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "X-Request-ID": REQUEST_ID,
            "traceparent": TRACEPARENT,
            "tracestate": TRACESTATE,
            "baggage": "who=words-of-the-caller",
        },
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        found: dict[str, Any] = json.loads(answer.read())
    return found


def a_kubeconfig(folder: Path) -> str:
    """Of a cluster that does not answer."""
    path = folder / "kubeconfig"
    cluster = {"server": f"http://127.0.0.1:{free_port()}"}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": CLUSTERS_TOKEN}}],
    }
    path.write_text(yaml.safe_dump(content))
    return str(path)


@pytest.fixture(scope="module")
def traced(
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Collector, dict[str, Any]]]:
    """All four processes, after one ask: what the collector heard, and the fill's values."""
    folder = tmp_path_factory.mktemp("traced")
    with ExitStack() as stack:
        stack.enter_context(django_db_blocker.unblock())
        collector = stack.enter_context(collecting())
        database = stack.enter_context(a_database("traced"))
        (folder / "headers").write_text(f"authorization=Bearer%20{COLLECTORS_TOKEN}\n")
        environ = {
            **QUICK,
            "DATABASE_URL": database,
            "VALKEY_URL": re.sub(r"/\d+$", "/7", os.environ["VALKEY_URL"]),
            "BERTH_KUBECONFIG": a_kubeconfig(folder),
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.address,
            "OTEL_EXPORTER_OTLP_HEADERS_FILE": str(folder / "headers"),
        }
        celery = ("-m", "celery", "--app=portal.celery")
        worker = (*celery, "worker", "--concurrency=1", "--without-gossip", "--without-mingle")
        beat = (*celery, "beat", "--pidfile=", f"--schedule={folder / 'schedule'}")
        watch = ("manage.py", "watchcluster", "--skip-checks")
        with ExitStack() as processes:
            started = [
                processes.enter_context(process(*words, **environ))
                for words in (worker, beat, watch)
            ]
            values = filled(database)
            # Its spans are sent when it ends, and not before.
            environ["OTEL_BSP_SCHEDULE_DELAY"] = "60000"
            web = processes.enter_context(serving(**environ, database=database))
            ask(web.address, values["tokens"]["tenant"], ASKED)
            # Its first turn, and the one after the cluster did not answer.
            collector.wait(lambda s: s.name == TURN and s.trace == CALLERS)
            collector.wait(lambda s: s.name == TURN and s.links == (CALLERS,))
            for service in ("berth-beat", "berth-watch"):
                collector.wait(lambda s, service=service: s.service == service)
            for one in started:  # together; each is waited for afterwards
                one.terminate()
        yield collector, values


OURS = (
    "portal.tracing",
    "opentelemetry.sdk.trace",
    "opentelemetry.exporter",
    "opentelemetry.proto",
)


def test_nothing_of_it_is_loaded_where_no_collector_is_named():
    """redis-py loads what it finds of metrics; that is not ours, and measures nothing."""
    done = run(
        "import sys, portal.asgi, portal.celery; from django.conf import settings\n"
        "from portal.management.commands import watchcluster\n"
        f"print([m for m in sys.modules if m.startswith({OURS})],"
        " [m for m in settings.MIDDLEWARE if 'trac' in m])"
    )
    assert done.stdout.strip() == "[] []", done.stderr


ABSENT = "import sys; sys.modules['opentelemetry'] = None; import portal.asgi"


def test_without_its_packages_berth_runs_and_says_what_is_missing_where_they_are_asked_for():
    assert run(ABSENT).returncode == 0
    done = run(ABSENT, OTEL_EXPORTER_OTLP_ENDPOINT="http://collector:4318")
    assert done.returncode == 1
    assert "opentelemetry is not installed: install the extra `tracing`" in done.stderr


BASE, WHOLE = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
WHERE: list[tuple[dict[str, str], str]] = [
    ({BASE: ""}, ""),
    ({BASE: "http://c:4318/"}, "http://c:4318/v1/traces"),
    ({BASE: "http://c:4318", WHOLE: "http://t/as-it-is"}, "http://t/as-it-is"),
    ({BASE: "http://c", "OTEL_SDK_DISABLED": "true"}, ""),
]


def test_where_spans_go_is_said_by_the_names_of_opentelemetry():
    done = run(
        "import importlib, os; from portal import settings\n"
        f"for environ in {[environ for environ, _ in WHERE]}:\n"
        "    os.environ.update(environ)\n"
        "    print(importlib.reload(settings).TRACES_ENDPOINT)"
    )
    assert done.stdout.splitlines() == [endpoint for _, endpoint in WHERE], done.stderr


def test_an_ask_is_one_tree_through_the_broker_to_the_worker_and_its_calls(traced):
    collector, _ = traced
    spans = collector.spans()
    request = next(s for s in spans if s.name == "POST /api/v1/tenants/<slug:slug>/claims")
    assert request.service == "berth-web"
    assert request.attributes == {
        "http.request.method": "POST",
        "http.route": "/api/v1/tenants/<slug:slug>/claims",
        "http.response.status_code": 201,
        "berth.request_id": REQUEST_ID,
    }
    assert request.trace == CALLERS, "the caller's trace goes on"
    tree = [s for s in spans if s.trace == request.trace]

    def below(parent: Told, name: str) -> Told:
        found = [s for s in tree if s.parent == parent.id and s.name == name]
        assert found, sorted((s.service, s.name) for s in tree)
        return found[0]

    inserted = [
        s for s in tree if 'INSERT INTO "devices_claim"' in s.attributes.get("db.query.text", "")
    ]
    assert [s.parent for s in inserted] == [request.id]
    sent = below(request, f"send {TURN}")
    turn = below(sent, TURN)
    assert (sent.service, turn.service) == ("berth-web", "berth-worker")
    assert turn.attributes["berth.request_id"] == REQUEST_ID
    assert turn.attributes["celery.state"] in ("SUCCESS", "RETRY")
    assert below(turn, "SELECT").service == "berth-worker"
    calls = [s for s in tree if s.parent == turn.id and "url.template" in s.attributes]
    assert calls, sorted((s.service, s.name) for s in tree)
    assert calls[0].attributes["error.type"] == "no answer"


def test_a_turn_that_is_tried_again_is_a_trace_of_its_own_linked_with_the_first(traced):
    turns = [s for s in traced[0].spans() if s.name == TURN]
    again = next(s for s in turns if s.links == (CALLERS,))
    assert (again.trace != CALLERS, again.parent) == (True, b"")
    assert again.attributes["berth.request_id"] == REQUEST_ID


def test_every_process_has_its_name_and_what_beat_and_watch_send_begins_a_trace(traced):
    spans = traced[0].spans()
    assert {s.service for s in spans} == {"berth-web", "berth-worker", "berth-beat", "berth-watch"}
    swept = [s for s in spans if s.service == "berth-beat" and s.name.startswith("send ")]
    assert swept and not [s for s in swept if s.parent]


def test_the_collector_gets_what_it_wants_to_be_told(traced):
    path, headers, _ = traced[0].listener.asked[0]
    assert path == "/v1/traces"
    assert headers["authorization"] == f"Bearer {COLLECTORS_TOKEN}"


def test_nothing_of_tenants_people_or_callers_is_in_what_was_sent(traced):
    collector, values = traced
    everything = b"".join(collector.bodies)
    secrets = [ASKED, "tidewater", "query-of-the-asker", "words-of-the-caller", CLUSTERS_TOKEN]
    secrets += [COLLECTORS_TOKEN, *values["tokens"].values()]
    assert [word for word in secrets if word.encode() in everything] == []
    for span in collector.spans():
        assert (span.events, span.status) == (0, ""), "words of exceptions"
        assert "'" not in span.attributes.get("db.query.text", ""), span


def test_of_an_exception_only_its_class_is_told(monkeypatch: pytest.MonkeyPatch):
    kept, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr(tracing, "tracer", provider.get_tracer("t"))
    with (
        provider.get_tracer("t").start_as_current_span("request"),
        pytest.raises(DataError, match="tidewater"),
        connection.execute_wrapper(tracing._executed),
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT %s::int", ["tidewater"])
    told = kept.get_finished_spans()[0]
    assert told.attributes == {
        "db.system.name": "postgresql",
        "db.query.text": "SELECT %s::int",
        "error.type": "DataError",
    }
    assert (told.events, told.status.description) == ((), None)


@contextmanager
def a_deaf_collector() -> Iterator[str]:
    """Takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@contextmanager
def no_collector() -> Iterator[str]:
    yield f"http://127.0.0.1:{free_port()}"


@pytest.mark.parametrize("away", [no_collector, a_deaf_collector])
def test_where_the_collector_is_away_nobody_waits_for_it(away):
    with away() as address:
        database = address_of(str(connection.settings_dict["NAME"]))
        with serving(database, **QUICK, OTEL_EXPORTER_OTLP_ENDPOINT=address) as web:
            took = []
            for _ in range(20):
                began = time.monotonic()
                with urllib.request.urlopen(f"{web.address}/account/login/", timeout=20) as page:
                    assert page.status == 200
                took.append(time.monotonic() - began)
            began = time.monotonic()
        assert time.monotonic() - began < 8, "it ended late"
    assert sorted(took)[10] < 2, took  # a collector is waited for ten seconds


def test_log_lines_name_the_trace_they_belong_to():
    assert with_trace(None, "info", {"event": "x"}) == {"event": "x"}
    with TracerProvider(shutdown_on_exit=False).get_tracer("t").start_as_current_span("s") as span:
        line = with_trace(None, "info", {"event": "x"})
    seen = span.get_span_context()
    assert line == {
        "event": "x",
        "trace_id": f"{seen.trace_id:032x}",
        "span_id": f"{seen.span_id:016x}",
    }


@pytest.mark.parametrize(
    "sql, sent",
    [
        pytest.param(
            "SELECT a\n  FROM t\n WHERE b = %s", "SELECT a FROM t WHERE b = %s", id="in one line"
        ),
        pytest.param("x = 'it''s %s' AND y = 7.5", "x = ? AND y = ?", id="values written out"),
        pytest.param(r"x = E'a\'b' AND y = 'c'", "x = ? AND y = ?", id="with escapes"),
        pytest.param(r"x LIKE '\' AND y = 'c'", "x LIKE ? AND y = ?", id="a lone backslash"),
        pytest.param("x = $a$it's$a$ AND y = 1", "x = ? AND y = ?", id="between dollars"),
        pytest.param("x = 'never ends", "x = ?", id="cut in a value"),
        pytest.param(
            'SELECT "T3"."a1" FROM t2 LIMIT 21', 'SELECT "T3"."a1" FROM t2 LIMIT ?', id="names stay"
        ),
        pytest.param("a IN (%s, %s, %s)", "a IN (%s, …)", id="a list once"),
        pytest.param("VALUES (%s, %s), (%s, %s), (%s, %s)", "VALUES (%s, …), …", id="rows once"),
    ],
)
def test_statements_are_told_without_values(sql: str, sent: str):
    assert statement(sql) == sent


def test_long_statements_are_cut():
    assert len(statement("SELECT " + "abc, " * 5000)) == 2000


@pytest.mark.parametrize(
    "path, shape",
    [
        ("/version", "/version"),
        ("/openapi/v3/apis/resource.k8s.io/v1", "/openapi"),
        ("/api/v1", "/api/v1"),
        ("/api/v1/pods?labelSelector=a", "/api/v1/pods"),
        ("/api/v1/nodes/n1", "/api/v1/nodes/{name}"),
        ("/api/v1/nodes/n1/proxy/pods/x", "/api/v1/nodes/{name}/proxy"),
        ("/api/v1/namespaces/apollo", "/api/v1/namespaces/{name}"),
        ("/api/v1/namespaces/apollo/status", "/api/v1/namespaces/{name}/status"),
        (
            "/apis/resource.k8s.io/v1/namespaces/apollo/resourceclaims/c1/status",
            "/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}/status",
        ),
        ("/anything/else/apollo", "/anything"),
    ],
)
def test_addresses_of_the_api_server_are_told_without_names(path: str, shape: str):
    assert shape_of(path) == shape

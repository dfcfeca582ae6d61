"""Traces for OpenTelemetry: from a request through the broker to a worker, SQL and the API server.

Imported only where a collector is named (`settings.TRACES_ENDPOINT`). A span carries what is put
on it here and nothing else: routes, statements, kinds, outcomes. Addresses, parameters, headers and
what exceptions say name tenants, so none of them is ever put there.
"""

from __future__ import annotations

import atexit
import os
import re
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from celery import signals
from django.conf import settings
from django.db.backends.signals import connection_created
from django.http import HttpRequest, HttpResponse
from opentelemetry import context, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.re import parse_env_headers

from devices.cluster import witness
from portal.celery import told_by_sender
from portal.scraping import METHODS

#: How long a process that ends waits for its last spans to be sent.
LAST_SECONDS = 2.0
#: So much of a statement is sent.
LONGEST_STATEMENT = 2000
#: In a message's headers: the span that it is part of, or (sent by a task) only came from.
PARENT, CAUSE = "traceparent", "tracecause"
REQUEST_ID: Final = "berth.request_id"
Application = Callable[[Any, Any, Any], Awaitable[None]]

tracer = trace.get_tracer("berth")
_w3c = TraceContextTextMapPropagator()
_in_task = context.create_key("berth-task")
_leaving, _left = threading.Event(), threading.Event()
_started = False


def install() -> None:
    """Connects spans with where things happen; twice is fine. They go nowhere before `start`."""
    connection_created.connect(_opened)
    witness.call(_asked)
    signals.before_task_publish.connect(_sends)
    signals.after_task_publish.connect(_sent)
    signals.task_prerun.connect(_begins)
    signals.task_postrun.connect(_ends)
    signals.worker_process_init.connect(_start_worker)
    signals.worker_process_shutdown.connect(_end_worker)
    signals.beat_init.connect(_start_beat)


def start(role: str) -> None:
    """Sends this process's spans from now on, as `berth-<role>`.

    Begins threads, so after a fork and never before it. Nobody ever waits for them: spans that the
    collector does not take in time are dropped.
    """
    global _started
    if _started:
        return
    _started = True
    process = Resource.create(
        {
            "service.name": f"berth-{role}",
            "host.name": socket.gethostname(),
            "process.pid": os.getpid(),
        }
    )
    provider = TracerProvider(resource=process, shutdown_on_exit=False)
    exporter = OTLPSpanExporter(
        endpoint=settings.TRACES_ENDPOINT,
        headers=parse_env_headers(settings.TRACES_HEADERS, liberal=True),
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)

    def leave() -> None:
        _leaving.wait()
        provider.shutdown()
        _left.set()

    # Begun now: an interpreter that ends begins no threads, and shutdown alone may take long.
    threading.Thread(target=leave, name="berth-tracing", daemon=True).start()
    atexit.register(end)


def end() -> None:
    """Sends what is left, for two seconds at most."""
    if _started:
        _leaving.set()
        _left.wait(LAST_SECONDS)


def until_the_end(application: Application) -> Application:
    """The same application, and `end` when its server is about to go (ASGI's lifespan)."""

    async def served(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            return await application(scope, receive, send)
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        end()
        await send({"type": "lifespan.shutdown.complete"})

    return served


def _start_worker(**more: Any) -> None:
    start("worker")


def _end_worker(**more: Any) -> None:
    end()


def _start_beat(**more: Any) -> None:
    start("beat")


@contextmanager
def _span(name: str, kind: SpanKind, **how: Any) -> Iterator[Span]:
    """The current span inside the block; of an exception only its class is told."""
    with tracer.start_as_current_span(
        name, kind=kind, record_exception=False, set_status_on_exception=False, **how
    ) as span:
        try:
            yield span
        except BaseException as error:
            _failed(span, type(error).__name__)
            raise


def _failed(span: Span, what: str) -> None:
    span.set_attribute("error.type", what)
    span.set_status(StatusCode.ERROR)


def _context_of(traceparent: object) -> context.Context:
    """Nothing else of what others send is taken over: `tracestate` and baggage are free text."""
    carrier = {PARENT: traceparent} if isinstance(traceparent, str) else {}
    return _w3c.extract(carrier, context.Context())


# --- Requests -------------------------------------------------------------------------------------


class TracingMiddleware:
    """One span for each request, named by its route; a caller's own trace is continued."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        method = request.method if request.method in METHODS else "_OTHER"
        caller = _context_of(request.headers.get("traceparent"))
        with _span(str(method), SpanKind.SERVER, context=caller) as span:
            response = self.get_response(request)
            span.set_attribute("http.request.method", str(method))
            span.set_attribute("http.response.status_code", response.status_code)
            span.set_attribute(REQUEST_ID, getattr(request, "request_id", ""))
            if request.resolver_match is not None:
                route = f"/{request.resolver_match.route}"
                span.update_name(f"{method} {route}")
                span.set_attribute("http.route", route)
            if response.status_code >= 500:
                _failed(span, str(response.status_code))
            return response


# --- SQL ------------------------------------------------------------------------------------------


def _opened(connection: Any, **more: Any) -> None:
    if _executed not in connection.execute_wrappers:
        connection.execute_wrappers.append(_executed)


def _executed(execute: Callable[..., Any], sql: Any, *how: Any) -> Any:
    """One statement, as part of a request or a task; others would be traces of one span."""
    if not trace.get_current_span().is_recording():
        return execute(sql, *how)
    text = statement(sql) if isinstance(sql, str) else "SQL"
    about = {"db.system.name": "postgresql", "db.query.text": text}
    with _span(text.partition(" ")[0], SpanKind.CLIENT, attributes=about):
        return execute(sql, *how)


_LITERAL = re.compile(
    r"""\bE'(?:[^'\\]|''|\\.)*(?:'|\Z)     # with escapes
    | '(?:[^']|'')*(?:'|\Z)                # as the standard has them, or cut
    | (\$[a-z_]*\$).*?(?:\1|\Z)            # between dollars
    | (?<![\w$%.])[0-9][0-9.]*\b           # numbers, but not those in names
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_LIST = re.compile(r"%s(?:, ?%s)+")
_ROWS = re.compile(r"(\([^()]*\))(?:, ?\1)+")


def statement(sql: str) -> str:
    """The statement without any value, in one line; lists of parameters are shown once.

    >>> statement("SELECT a FROM t WHERE b IN (%s, %s) AND c = 'O''Hara' LIMIT 21")
    'SELECT a FROM t WHERE b IN (%s, …) AND c = ? LIMIT ?'
    """
    text = " ".join(_LITERAL.sub("?", sql[: 4 * LONGEST_STATEMENT]).split())
    return _ROWS.sub(r"\1, …", _LIST.sub("%s, …", text))[:LONGEST_STATEMENT]


# --- The API server -------------------------------------------------------------------------------


def _asked(method: str, path: str, status: int, seconds: float) -> None:
    now = time.time_ns()
    shape = shape_of(path)
    if shape == "/readyz":
        return  # asked all the time, for no request and no task
    about: dict[str, str | int] = {"http.request.method": method, "url.template": shape}
    if status:
        about["http.response.status_code"] = status
    began = now - int(seconds * 1e9)
    span = tracer.start_span(
        f"{method} {shape}", kind=SpanKind.CLIENT, attributes=about, start_time=began
    )
    if not status or status >= 500:
        _failed(span, str(status) if status else "no answer")
    span.end(now)


def shape_of(path: str) -> str:
    """An address of the API server without the names in it.

    >>> shape_of("/api/v1/namespaces/apollo/pods/train-1/status")
    '/api/v1/namespaces/{namespace}/pods/{name}/status'
    """
    parts = path.partition("?")[0].strip("/").split("/")
    head = {"api": 2, "apis": 3}.get(parts[0], 1)
    shape, rest = parts[:head], parts[head:] if head > 1 else []
    if rest[:1] == ["namespaces"] and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        shape, rest = [*shape, "namespaces", "{namespace}"], rest[2:]
    if len(rest) > 1:
        rest = [rest[0], "{name}", *rest[2:3]]
    return "/" + "/".join([*shape, *rest])


# --- Tasks ----------------------------------------------------------------------------------------

_sending: ContextVar[Span | None] = ContextVar("sending", default=None)
# Of the task that this process is at, by its id.
_begun: dict[str, tuple[Span, Any]] = {}


def _sends(sender: Any = None, headers: dict[str, Any] | None = None, **more: Any) -> None:
    """What a task sends is another trace, linked with its own: turns wake turns for ever."""
    if headers is None:
        return
    span = tracer.start_span(
        f"send {sender}", kind=SpanKind.PRODUCER, attributes={"celery.task_name": str(sender)}
    )
    _sending.set(span)
    carrier: dict[str, str] = {}
    _w3c.inject(carrier, trace.set_span_in_context(span))
    for name in (PARENT, CAUSE):  # a task that is tried again brings its old ones
        headers.pop(name, None)
    if PARENT in carrier:
        headers[CAUSE if context.get_value(_in_task) else PARENT] = carrier[PARENT]


def _sent(**more: Any) -> None:
    span = _sending.get()
    if span is not None:
        span.end()
        _sending.set(None)


def _begins(task_id: str = "", task: Any = None, **more: Any) -> None:
    about = {"celery.task_name": task.name}
    if request_id := told_by_sender(task).get("request_id"):
        about[REQUEST_ID] = str(request_id)
    cause = trace.get_current_span(_context_of(getattr(task.request, CAUSE, None)))
    span = tracer.start_span(
        task.name,
        context=_context_of(getattr(task.request, PARENT, None)),
        kind=SpanKind.CONSUMER,
        attributes=about,
        links=[Link(cause.get_span_context())] if cause.get_span_context().is_valid else [],
    )
    inside = context.set_value(_in_task, True, trace.set_span_in_context(span))
    _begun[task_id] = (span, context.attach(inside))


def _ends(task_id: str = "", state: str | None = None, retval: Any = None, **more: Any) -> None:
    if task_id not in _begun:
        return
    span, token = _begun.pop(task_id)
    span.set_attribute("celery.state", state or "IGNORED")
    if state == "FAILURE":
        _failed(span, type(retval).__name__)
    context.detach(token)
    span.end()

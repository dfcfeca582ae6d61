"""The metrics' way out: `/metrics` of web, and a port of their own for watch and worker.

Every process tells what it counted. Figures from rows are told by web alone: each of its replicas
says the same, so rules and dashboards take the maximum over replicas, never the sum.
"""

from __future__ import annotations

import hmac
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import redis
from celery import signals
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest, start_http_server
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

import devices.figures
import migrationplan.figures
import portal.alerts.figures
import portal.outbox.figures
import tenants.figures
from devices.cluster import witness
from portal import metrics

#: Who reads rows, floor by floor.
READERS: Final[tuple[metrics.Reader, ...]] = (
    portal.outbox.figures.read,
    portal.alerts.figures.read,
    tenants.figures.read,
    devices.figures.read,
    migrationplan.figures.read,
)
#: Those that are told by name: a caller may send any word, and each would be a series for ever.
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
# Celery's own names in the broker: the list that waits, and the hash of what was handed out.
WAITING, TAKEN = "celery", "unacked"

log = logging.getLogger(__name__)


class Rows(Collector):
    """The figures, read when somebody asks. Where PostgreSQL is away, only that is told."""

    def describe(self) -> Iterable[Metric]:
        """Nothing may be asked of the database while a process is still starting."""
        return ()

    def collect(self) -> Iterator[Metric]:
        families: dict[str, GaugeMetricFamily] = {}
        for reading in _readings():
            figure = reading.figure
            family = families.setdefault(
                figure.name, GaugeMetricFamily(figure.name, figure.words, labels=figure.labels)
            )
            family.add_metric(reading.labels, reading.value)
        yield from families.values()


def _readings() -> Iterator[metrics.Reading]:
    yield from _broker()
    try:
        now = timezone.now()
        found = [one for read in READERS for one in read(now)]
    except DatabaseError as error:
        log.warning("No figures: %s", error)
        yield metrics.DATABASE_UP.at(0)
        return
    yield metrics.DATABASE_UP.at(1)
    yield from found


def _broker() -> Iterator[metrics.Reading]:
    try:
        with redis.Redis.from_url(
            settings.VALKEY_URL, socket_timeout=1, socket_connect_timeout=1
        ) as broker:
            waiting, taken = broker.llen(WAITING), broker.hlen(TAKEN)
    except redis.RedisError:
        yield metrics.BROKER_UP.at(0)
        return
    yield metrics.BROKER_UP.at(1)
    yield metrics.BROKER_MESSAGES.at(float(waiting), "waiting")
    yield metrics.BROKER_MESSAGES.at(float(taken), "taken")


def page() -> bytes:
    """What web tells: its counts, then the figures, in Prometheus' text format."""
    rows = CollectorRegistry()
    rows.register(Rows())
    return generate_latest(metrics.counted()) + generate_latest(rows)


class MetricsMiddleware:
    """Answers `/metrics` to who has the token, and counts every other answer.

    Before everything else, as the probes are: Prometheus asks by the Pod's address. Without
    `METRICS_TOKEN` there is no such page.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path == "/metrics" and settings.METRICS_TOKEN:
            return _scraped(request)
        began = time.monotonic()
        response = self.get_response(request)
        match = request.resolver_match
        route = match.route if match is not None else "none"
        metrics.HTTP_REQUESTS.labels(_method(request), route, str(response.status_code)).inc()
        metrics.HTTP_SECONDS.labels(route).observe(time.monotonic() - began)
        return response


def _scraped(request: HttpRequest) -> HttpResponse:
    given = request.META.get("HTTP_AUTHORIZATION", "")
    if not hmac.compare_digest(given.encode(), f"Bearer {settings.METRICS_TOKEN}".encode()):
        refused = HttpResponse("Metrics need their token.\n", status=401)
        refused["WWW-Authenticate"] = 'Bearer realm="metrics"'
        return refused
    return HttpResponse(page(), content_type=CONTENT_TYPE_LATEST)


def _method(request: HttpRequest) -> str:
    return request.method if request.method in METHODS else "other"


def listen() -> None:
    """Tells this process's counts on `METRICS_HOST:METRICS_PORT`; nothing without a port."""
    if settings.METRICS_PORT:
        start_http_server(settings.METRICS_PORT, settings.METRICS_HOST, registry=metrics.counted())
        log.info("Metrics on %s:%s", settings.METRICS_HOST, settings.METRICS_PORT)


def install() -> None:
    """Connects what is counted with where it happens; twice is fine."""
    witness.call(_asked)
    signals.task_prerun.connect(_began)
    signals.task_postrun.connect(_ended)
    signals.worker_init.connect(_listen_in_worker)


def _asked(method: str, path: str, status: int, seconds: float) -> None:
    metrics.CLUSTER_REQUESTS.labels(method, str(status) if status else "none").inc()
    metrics.CLUSTER_SECONDS.labels(method).observe(seconds)


# Of the task that this process is at: a worker's child does one at a time.
_begun: dict[str, float] = {}


def _began(task_id: str = "", **more: Any) -> None:
    _begun[task_id] = time.monotonic()


def _ended(task_id: str = "", task: Any = None, state: str | None = None, **more: Any) -> None:
    metrics.TURNS.labels(task.name, (state or "ignored").lower()).inc()
    began = _begun.pop(task_id, None)
    if began is not None:
        metrics.TURN_SECONDS.labels(task.name).observe(time.monotonic() - began)


def _listen_in_worker(**more: Any) -> None:
    """In the parent, which works on nothing: its children's counts reach it by files only."""
    if settings.METRICS_PORT and not os.environ.get(metrics.MULTIPROC):
        raise ImproperlyConfigured(
            f"METRICS_PORT without {metrics.MULTIPROC}: a worker counts in its children. "
            "Name an empty folder there."
        )
    listen()

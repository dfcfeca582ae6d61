"""Every metric that Berth has, by name: what processes count, and what rows say when asked.

Who counts imports the counter from here; who reads rows gives `Reading`s of a `Figure` from here.
`docs/metrics.md` lists the same names, and a test compares the two. No metric names a tenant or a
person: whoever may read metrics may not therefore read who asks for what.

With several processes behind one address (`uvicorn --workers`, Celery's children) set
`PROMETHEUS_MULTIPROC_DIR` to an empty folder: counts are then summed over all of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

MULTIPROC: Final = "PROMETHEUS_MULTIPROC_DIR"
if os.environ.get(MULTIPROC):
    # The client opens its files when the first metric is made, below.
    Path(os.environ[MULTIPROC]).mkdir(parents=True, exist_ok=True)

from prometheus_client import CollectorRegistry, Counter, Histogram  # noqa: E402
from prometheus_client.multiprocess import MultiProcessCollector  # noqa: E402

#: What this process counted.
COUNTED: Final = CollectorRegistry()

FAST = (0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.4, 0.6, 1.0, 2.5, 5.0, 10.0)
SLOW = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


def _counter(name: str, words: str, *labels: str) -> Counter:
    return Counter(name, words, labels, registry=COUNTED)


def _seconds(name: str, words: str, *labels: str, buckets: tuple[float, ...]) -> Histogram:
    return Histogram(name, words, labels, registry=COUNTED, buckets=buckets)


HTTP_REQUESTS = _counter(
    "berth_http_requests_total", "Answers, by route and status.", "method", "route", "status"
)
HTTP_SECONDS = _seconds(
    "berth_http_request_seconds",
    "Time to the answer's first byte, by route.",
    "route",
    buckets=FAST,
)
API_PROBLEMS = _counter(
    "berth_api_problems_total", "Errors that the API told, by their stable code.", "code"
)
TURNS = _counter(
    "berth_turns_total",
    "Tasks that a worker ended, by outcome: success, failure, retry, rejected, revoked or ignored.",
    "task",
    "outcome",
)
TURN_SECONDS = _seconds("berth_turn_seconds", "How long tasks took.", "task", buckets=SLOW)
CLUSTER_REQUESTS = _counter(
    "berth_cluster_requests_total",
    "Requests to the API server by its status; `none` is no answer.",
    "method",
    "status",
)
CLUSTER_SECONDS = _seconds(
    "berth_cluster_request_seconds",
    "Time to the first byte of the API server's answer.",
    "method",
    buckets=FAST,
)
WATCH_EVENTS = _counter(
    "berth_watch_events_total", "Lines of watches that were read.", "kind", "change"
)
WATCH_LISTS = _counter(
    "berth_watch_lists_total", "Whole lists that had to be read, by kind.", "kind"
)


@dataclass(frozen=True, slots=True)
class Figure:
    """A gauge that is read from rows when somebody asks."""

    name: str
    words: str
    labels: tuple[str, ...] = ()

    def at(self, value: float, *labels: str) -> Reading:
        """One sample; raises ValueError where labels are missing."""
        if len(labels) != len(self.labels):
            raise ValueError(f"{self.name} has the labels {', '.join(self.labels) or 'none'}.")
        return Reading(self, labels, value)


@dataclass(frozen=True, slots=True)
class Reading:
    """One sample of a figure."""

    figure: Figure
    labels: tuple[str, ...]
    value: float


#: A floor's way to its figures: a constant number of queries, whatever the number of rows.
Reader = Callable[[datetime], Iterable[Reading]]

FIGURES: Final[dict[str, Figure]] = {}


def _figure(name: str, words: str, *labels: str) -> Figure:
    FIGURES[name] = Figure(name, words, labels)
    return FIGURES[name]


DATABASE_UP = _figure("berth_database_up", "1 where the figures below could be read.")
CLUSTER_REACHABLE = _figure("berth_cluster_reachable", "1 while the API server answers.")
CLUSTER_CONTACT_AGE = _figure(
    "berth_cluster_contact_age_seconds", "Time since the API server last answered."
)
WATCH_LEADERS = _figure(
    "berth_watch_leaders", "Watch processes that hold the lease; 0 means that nobody watches."
)
MIRROR_ROWS = _figure("berth_mirror_rows", "Objects in the mirror.", "kind")
MIRROR_AGE = _figure(
    "berth_mirror_age_seconds", "Time since the mirror of a kind was known to be right.", "kind"
)
MIRROR_EVENT_AGE = _figure(
    "berth_mirror_event_age_seconds", "Time since the cluster last said anything of a kind.", "kind"
)
MIRROR_TROUBLED = _figure(
    "berth_mirror_troubled", "1 where a kind cannot be followed, whatever the reason.", "kind"
)
CLAIMS = _figure("berth_claims", "Asks that are not over, by state and code.", "state", "code")
HOLDS = _figure("berth_holds", "Asks that wait safely, by reason.", "code")
HOLD_AGE = _figure("berth_hold_oldest_seconds", "How long the longest of them waits.", "code")
LEAKS = _figure("berth_leaks", "Leaks that are believed, not kept and not gone.", "code")
FORECASTS = _figure(
    "berth_forecasts", "What-ifs of the last 30 days by what came of them.", "outcome"
)
FORECAST_HITS = _figure(
    "berth_forecast_hit_ratio", "Share of compared what-ifs that came true; absent without any."
)
DEVICES = _figure("berth_devices", "Devices of a class by state.", "device_class", "state")
OFFERS_AGE = _figure("berth_offers_age_seconds", "Time since the oldest class was counted.")
OUTBOX_LINES = _figure("berth_outbox_lines", "Promises that are not yet kept.", "task")
OUTBOX_AGE = _figure("berth_outbox_oldest_seconds", "Age of the oldest of them.", "task")
BROKER_UP = _figure("berth_broker_up", "1 where Valkey answers.")
BROKER_MESSAGES = _figure(
    "berth_broker_messages",
    "Messages that wait for a worker (`waiting`) or are being worked on (`taken`).",
    "where",
)
ALERTS = _figure("berth_alerts_open", "Alerts that are not over.", "code", "severity")
DELIVERIES = _figure("berth_deliveries_waiting", "Webhooks and mails that have not arrived.")
TENANTS = _figure("berth_tenants", "Tenants by state.", "state")
MOVES = _figure("berth_moves", "Nodes on their way between paths, by step.", "step")
MOVES_STUCK = _figure("berth_moves_stuck", "Nodes for which a person was called, by code.", "code")
LEDGER_NODES = _figure("berth_ledger_nodes", "Nodes by whether their ledger is safe.", "state")
LEDGER_DIFFERENCES = _figure(
    "berth_ledger_differences",
    "Amounts on which log, objects and Pod status differ, by what that means.",
    "verdict",
)
LEDGER_REFUSED = _figure(
    "berth_ledger_refused", "Lines of the node ledger that were refused so far.", "act"
)
LEDGER_AGE = _figure("berth_ledger_age_seconds", "Time since the ledger's last look.")
LEDGER_OFFERED = _figure(
    "berth_ledger_offered", "What all nodes offer, in cores or bytes.", "resource"
)
LEDGER_CHARGED = _figure(
    "berth_ledger_charged",
    "What is charged to all nodes, in cores or bytes: Pods' requests, mapping or overhead.",
    "resource",
    "stream",
)
LEDGER_MAPPING_AGE = _figure(
    "berth_ledger_mapping_age_seconds",
    "How long a node's mapping has not been believed: the longest of those now, else 0.",
)
LEDGER_WAITING = _figure(
    "berth_ledger_pods_waiting", "Pods with devices that wait for want of what is charged."
)
LEDGER_NUMA_REFUSED = _figure(
    "berth_ledger_numa_refused", "Pods that a kubelet refused because no NUMA zone fits."
)
DOCTOR_FINDINGS = _figure(
    "berth_doctor_findings", "Findings of the doctor's last look, by severity.", "severity"
)
DOCTOR_AGE = _figure("berth_doctor_age_seconds", "Time since the doctor last looked.")


def counted() -> CollectorRegistry:
    """What to scrape for counts: this process's, or those of every process of the server."""
    if not os.environ.get(MULTIPROC):
        return COUNTED
    all_of_them = CollectorRegistry()
    MultiProcessCollector(all_of_them)
    return all_of_them


def age(moment: datetime, now: datetime) -> float:
    """Seconds since `moment`; never negative, for clocks differ by a little."""
    return max(0.0, (now - moment).total_seconds())

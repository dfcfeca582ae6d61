"""Metrics: their names are documented, their values are true, and who may read them is asked."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from devices.models import Claim, ClusterState, Leadership, LeakRow, Observed, Offer, Sync
from portal import metrics, scraping
from portal.alerts.raising import About, raise_alert
from portal.outbox import lines
from portal.outbox.tasks import sweep_outbox
from tests.factories import make_access, make_claim, make_version

ROOT = Path(__file__).parents[2]
MONITORING = ROOT / "deploy" / "monitoring"
NAME = re.compile(r"\bberth_[a-z_]+")
Samples = dict[tuple[str, tuple[str, ...]], float]


def counts_in_code() -> dict[str, tuple[str, tuple[str, ...], str]]:
    """Name to kind, labels and words, of what processes count."""
    found = {}
    for family in metrics.COUNTED.collect():
        counter = metrics.COUNTED._names_to_collectors[family.name]
        name = f"{family.name}_total" if family.type == "counter" else family.name
        found[name] = (family.type, tuple(counter._labelnames), family.documentation)
    return found


def documented(section: str) -> dict[str, tuple[str, ...]]:
    """Name to the other cells of its row, in the table behind `<!-- section -->`."""
    text = (ROOT / "docs" / "metrics.md").read_text().split(f"<!-- {section} -->")[1]
    rows = re.match(r"\n(?:\|.*\n)+", text)
    assert rows is not None
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in rows[0].strip().splitlines()[2:]
    ]
    return {name.strip("`"): tuple(rest) for name, *rest in cells}


def labels_of(cell: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`([a-z_]+)`", cell))


def samples(text: str) -> Samples:
    """By name and the values of its labels, whose names stand in alphabetical order."""
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_docs_name_every_count_with_its_labels_and_words():
    written = {
        name: (kind, labels_of(labels), words)
        for name, (kind, labels, words) in documented("counts").items()
    }
    assert written == counts_in_code()


def test_the_docs_name_every_figure_with_its_labels_and_words():
    written = {
        name: (labels_of(labels), words) for name, (labels, words) in documented("figures").items()
    }
    assert written == {name: (one.labels, one.words) for name, one in metrics.FIGURES.items()}


@pytest.mark.parametrize("file", ["rules.yaml", "rules.test.yaml", "dashboard.json"])
def test_what_watches_over_berth_asks_for_names_that_exist(file: str):
    known = {*counts_in_code(), *metrics.FIGURES}
    asked = {
        re.sub(r"_(bucket|sum|count)$", "", name)
        for name in NAME.findall((MONITORING / file).read_text())
    }
    assert asked <= known, asked - known
    assert asked


def test_every_rule_says_what_is_so_and_what_to_do():
    groups = yaml.safe_load((MONITORING / "rules.yaml").read_text())["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert set(rule["annotations"]) == {"summary", "remedy"}, rule["alert"]
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}


def test_every_figure_is_drawn_somewhere():
    drawn = set(NAME.findall((MONITORING / "dashboard.json").read_text()))
    assert set(metrics.FIGURES) <= drawn
    panels = json.loads((MONITORING / "dashboard.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_no_metric_names_a_tenant_or_a_person():
    labels = {label for _, labels, _ in counts_in_code().values() for label in labels}
    labels |= {label for figure in metrics.FIGURES.values() for label in figure.labels}
    assert not labels & {"tenant", "person", "user", "namespace", "claim", "pod"}


def test_a_figure_without_one_of_its_labels_is_a_mistake():
    with pytest.raises(ValueError, match="state, code"):
        metrics.CLAIMS.at(1, "held")


def test_counts_of_several_processes_are_summed(tmp_path: Path):
    """As behind one address with `uvicorn --workers 2`."""

    def run(code: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", f"from portal import metrics\n{code}"],
            cwd=ROOT,
            env={**os.environ, metrics.MULTIPROC: str(tmp_path / "counts")},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    for times in (3, 4):
        run(f"metrics.TURNS.labels('t', 'success').inc({times})")
    said = run(
        "from prometheus_client import generate_latest\n"
        "print(generate_latest(metrics.counted()).decode())"
    )
    assert samples(said)["berth_turns_total", ("success", "t")] == 7


@pytest.mark.parametrize(
    "token, sent, status",
    [
        pytest.param("", "Bearer ", 404, id="nobody where no token is set"),
        pytest.param("s3cret", "", 401, id="nobody without it"),
        pytest.param("s3cret", "Bearer s3creT", 401, id="nobody with another"),
        pytest.param("s3cret", "Bearer s3cret", 200, id="whoever has it"),
    ],
)
@pytest.mark.django_db
def test_who_may_read_the_metrics_of_web(
    client: Client, settings: Settings, token: str, sent: str, status: int
):
    settings.METRICS_TOKEN = token
    assert client.get("/metrics", HTTP_AUTHORIZATION=sent).status_code == status


@pytest.mark.django_db
def test_every_answer_is_counted_by_its_route_never_by_its_address(client: Client):
    before = samples(scraping.page().decode())
    for slug in ("tidewater", "no-such"):
        client.get(f"/t/{slug}/")
    client.generic("BREW", "/no/such/place")
    after = samples(scraping.page().decode())
    route = ("GET", "t/<slug:slug>/", "302")
    name = "berth_http_requests_total"
    assert after[name, route] - before.get((name, route), 0) == 2
    assert after[name, ("other", "none", "404")] >= 1
    assert not [key for key in after if "tidewater" in key[1]]


@pytest.mark.django_db
def test_errors_of_the_api_are_counted_by_code(client: Client):
    before = metrics.API_PROBLEMS.labels("NOT_SIGNED_IN")._value.get()
    assert client.get("/api/v1/alerts").status_code == 401
    assert metrics.API_PROBLEMS.labels("NOT_SIGNED_IN")._value.get() == before + 1


@pytest.mark.django_db
def test_turns_are_counted_by_outcome_and_timed():
    name = sweep_outbox.name
    before = metrics.TURNS.labels(name, "success")._value.get()
    timed = metrics.TURN_SECONDS.labels(name)._sum.get()
    sweep_outbox.apply()
    assert metrics.TURNS.labels(name, "success")._value.get() == before + 1
    assert metrics.TURN_SECONDS.labels(name)._sum.get() > timed


def a_busy_day(count: int) -> None:
    """`count` rows of each thing that is told."""
    now = timezone.now()
    access, version = make_access(), make_version()
    for number in range(count):
        claim = make_claim(access, version, name=f"a{number}", now=now - timedelta(minutes=5))
        Claim.objects.filter(pk=claim.pk).update(
            state="held", code="FROZEN", since=now - timedelta(minutes=3)
        )
        LeakRow.objects.create(
            key=str(number),
            code="LEAK_UNRESERVED",
            claims=[f"n/c{number}"],
            first_seen_at=now,
            seen_at=now,
            believed_at=now,
        )
        Offer.objects.create(
            device_class=f"class-{number}",
            counts={"free": 3, "allocated": 2},
            counted_at=now - timedelta(seconds=40),
        )
        Observed.objects.create(
            uid=f"u{number}",
            kind="Pod",
            api_version="v1",
            name=f"p{number}",
            resource_version="1",
            raw=b"{}",
            seen_at=now,
        )
        raise_alert(About("LEAK_UNRESERVED", f"c{number}", "A leak"), now=now)
        lines.promise("a.task", str(number), request_id="r", now=now - timedelta(seconds=90))
    Sync.objects.create(
        kind="Pod", alive_at=now - timedelta(seconds=9), news_at=now - timedelta(seconds=700)
    )
    ClusterState.objects.create(reachable=True, contact_at=now - timedelta(seconds=4))
    Leadership.objects.create(name="watch", holder="a", expires=now + timedelta(seconds=5))


@pytest.mark.django_db
def test_figures_say_what_the_rows_say():
    a_busy_day(2)
    told = samples(scraping.page().decode())
    assert told["berth_database_up", ()] == told["berth_broker_up", ()] == 1
    assert told["berth_claims", ("FROZEN", "held")] == told["berth_holds", ("FROZEN",)] == 2
    assert 180 <= told["berth_hold_oldest_seconds", ("FROZEN",)] < 240
    assert told["berth_leaks", ("LEAK_UNRESERVED",)] == 2
    assert told["berth_devices", ("class-1", "free")] == 3
    assert told["berth_mirror_rows", ("Pod",)] == 2
    assert 9 <= told["berth_mirror_age_seconds", ("Pod",)] < 60
    assert 700 <= told["berth_mirror_event_age_seconds", ("Pod",)] < 760
    assert told["berth_alerts_open", ("LEAK_UNRESERVED", "warning")] == 2
    assert told["berth_outbox_lines", ("a.task",)] == 2
    assert 90 <= told["berth_outbox_oldest_seconds", ("a.task",)] < 150
    assert told["berth_watch_leaders", ()] == told["berth_cluster_reachable", ()] == 1
    assert told["berth_tenants", ("active",)] == 1
    assert ("berth_forecast_hit_ratio", ()) not in told, "nothing was compared yet"


@pytest.mark.django_db
def test_a_scrape_asks_the_database_as_often_however_much_there_is():
    with CaptureQueriesContext(connection) as empty:
        scraping.page()
    a_busy_day(5)
    with CaptureQueriesContext(connection) as busy:
        scraping.page()
    assert len(busy) == len(empty) <= 17


@pytest.mark.long
def test_where_the_database_is_away_only_that_is_told():
    """Ten seconds: so long a process waits for a connection."""
    said = subprocess.run(
        [
            sys.executable,
            "-c",
            "import django; django.setup()\n"
            "from portal import scraping; print(scraping.page().decode())",
        ],
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "portal.settings",
            "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
            "VALKEY_URL": "redis://127.0.0.1:1/0",
        },
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    told = samples(said)
    assert told["berth_database_up", ()] == told["berth_broker_up", ()] == 0
    assert not [name for name, _ in told if name.startswith(("berth_claims", "berth_mirror"))]

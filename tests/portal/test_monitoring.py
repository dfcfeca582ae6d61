"""Rules, dashboard and scrape by Prometheus' own programs: promtool, and a server that scrapes.

Long, because Prometheus is built once (minutes on two cores).
"""

from __future__ import annotations

import json
import re
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pytest_django import DjangoDbBlocker

from playground.building.go_tools import build_tool
from playground.running.ports import free_port
from tests.portal.apiserver import a_database, filled, serving

#: `django_db`, so that the test's own database is made, of which the serving Berth has a copy.
pytestmark = [pytest.mark.long, pytest.mark.django_db]
MONITORING = Path(__file__).parents[2] / "deploy" / "monitoring"
TOKEN = "the-metrics-token-of-this-test"
UP_WITHIN = 120.0


def promtool(*words: str) -> str:
    done = subprocess.run(
        [build_tool("promtool"), *words], cwd=MONITORING, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


def drawn() -> dict[str, str]:
    """Each expression of the dashboard by its panel, Grafana's own variable filled in."""
    panels = json.loads((MONITORING / "dashboard.json").read_text())["panels"]
    return {
        f"{panel['title']} {number}": target["expr"].replace("$__rate_interval", "1m")
        for panel in panels
        for number, target in enumerate(panel.get("targets", ()))
    }


def test_rules_are_right_and_do_what_their_tests_say() -> None:
    assert "SUCCESS" in promtool("check", "rules", "rules.yaml")
    assert "SUCCESS" in promtool("test", "rules", "rules.test.yaml")


def test_every_rule_has_a_test() -> None:
    groups = yaml.safe_load((MONITORING / "rules.yaml").read_text())["groups"]
    rules = {rule["alert"] for group in groups for rule in group["rules"]}
    tests = yaml.safe_load((MONITORING / "rules.test.yaml").read_text())["tests"]
    fired = {
        one["alertname"]
        for test in tests
        for one in test["alert_rule_test"]
        if one.get("exp_alerts")
    }
    assert rules - fired == set(), "a rule that nobody saw ring"


def test_the_dashboard_asks_what_prometheus_understands(tmp_path: Path) -> None:
    rules = [
        {"record": f"drawn:{number}", "expr": text} for number, text in enumerate(drawn().values())
    ]
    file = tmp_path / "drawn.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "drawn", "rules": rules}]}))
    assert f"{len(rules)} rules found" in promtool("check", "rules", str(file))


def config_for(web: str, folder: Path) -> Path:
    """deploy/monitoring/prometheus.yaml with this test's addresses, and a scrape with no token."""
    found = yaml.safe_load((MONITORING / "prometheus.yaml").read_text())
    job = found["scrape_configs"][0]
    assert job["job_name"] == "berth-web"
    (folder / "token").write_text(TOKEN)
    job["authorization"]["credentials_file"] = str(folder / "token")
    job["static_configs"] = [{"targets": [web]}]
    stranger = {"job_name": "stranger", "static_configs": [{"targets": [web]}]}
    found["scrape_configs"] = [job, stranger]
    found["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    found["rule_files"] = [str(MONITORING / name) for name in found["rule_files"]]
    file = folder / "prometheus.yaml"
    file.write_text(yaml.safe_dump(found))
    return file


class Prometheus:
    """A server that scrapes."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"

    def get(self, path: str) -> Any:
        try:
            with urllib.request.urlopen(f"{self.address}/api/v1/{path}", timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            pytest.fail(f"{path}: {error.read().decode()}", pytrace=False)

    def ask(self, query: str) -> list[tuple[dict[str, str], float]]:
        found = self.get(f"query?{urllib.parse.urlencode({'query': query})}")["result"]
        return [(one["metric"], float(one["value"][1])) for one in found]


@pytest.fixture(scope="module")
def prometheus(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: Any
) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("prometheus")
    program = build_tool("prometheus")
    with django_db_blocker.unblock(), a_database("scraped") as database:
        filled(database)
        with serving(database, METRICS_TOKEN=TOKEN) as berth:
            web = berth.address.removeprefix("http://")
            port = free_port()
            process = subprocess.Popen(
                [program, f"--config.file={config_for(web, folder)}",
                 f"--storage.tsdb.path={folder / 'data'}",
                 f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"],
                stdout=subprocess.DEVNULL,
            )  # fmt: skip
            try:
                server = Prometheus(port)
                end = time.monotonic() + UP_WITHIN
                while not scraped(server):
                    assert process.poll() is None, "Prometheus ended"
                    assert time.monotonic() < end, "nothing was scraped"
                    time.sleep(0.5)
                yield server
            finally:
                process.terminate()
                process.wait(timeout=30)


def scraped(server: Prometheus) -> bool:
    """Whether both jobs were tried, and the one with the token has figures."""
    try:
        tried = {metric["job"] for metric, _ in server.ask("count_over_time(up[1m]) >= 3")}
        return tried == {"berth-web", "stranger"} and bool(server.ask("berth_database_up"))
    except OSError:
        return False


def test_a_real_scrape_reads_what_web_tells_and_only_with_the_token(prometheus: Prometheus) -> None:
    up = {metric["job"]: value for metric, value in prometheus.ask("up")}
    assert up == {"berth-web": 1, "stranger": 0}
    assert [value for _, value in prometheus.ask("max(berth_database_up)")] == [1]
    assert [value for _, value in prometheus.ask("sum(berth_tenants) > bool 0")] == [1]


def test_every_expression_of_the_dashboard_is_answered(prometheus: Prometheus) -> None:
    for panel, text in drawn().items():
        for metric, value in prometheus.ask(text):
            assert re.fullmatch(r"-?[0-9.e+-]+|nan|inf", str(value)), f"{panel}: {metric}"


def test_every_rule_is_evaluated_and_none_rings_for_a_berth_that_is_up(
    prometheus: Prometheus,
) -> None:
    rules = [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]
    assert len(rules) >= 15
    assert {rule["name"]: rule.get("lastError") for rule in rules if rule["health"] == "err"} == {}
    assert "BerthDatabaseDown" not in {
        alert["labels"]["alertname"] for alert in prometheus.get("alerts")["alerts"]
    }

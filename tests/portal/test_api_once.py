"""Done once, whatever happens: requests at the same time, and a process that is killed in between.

Real web processes on a real database; a lock that the test holds keeps a request where it is.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from pytest_django import DjangoDbBlocker

from tests.portal.apiserver import a_database, filled, serving

#: So that the test's own database is made, of which these have a copy.
pytestmark = pytest.mark.django_db
CLAIMS = "/api/v1/tenants/tidewater/claims"
ASK = {"template": "gpu", "namespace": "tidewater-train", "name": "once"}
LOCKED = "SELECT 1 FROM tenants_tenant WHERE slug = 'tidewater' FOR UPDATE"
#: Sessions that wait for the lock of that row (or for whoever holds it).
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
COUNT = "SELECT count(*) FROM devices_claim WHERE name = %s"


@dataclass(frozen=True, slots=True)
class Ground:
    database: str
    token: str

    def ask(self, address: str, body: Any, key: str) -> tuple[int, Any, str]:
        """Status, body, and whether it was a replay; 0 where the line was cut."""
        request = urllib.request.Request(
            f"{address}{CLAIMS}",
            json.dumps(body).encode(),
            {"Authorization": f"Bearer {self.token}", "Idempotency-Key": key,
             "Content-Type": "application/json"},
        )  # fmt: skip
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                replayed = answer.headers.get("Idempotency-Replayed", "")
                return answer.status, json.load(answer), replayed
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error), ""
        except OSError:
            return 0, None, ""

    def count(self, name: str) -> int:
        with psycopg.connect(self.database, autocommit=True) as database:
            row = database.execute(COUNT, [name]).fetchone()
        assert row
        return int(row[0])


@pytest.fixture(scope="module")
def ground(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Ground]:
    with django_db_blocker.unblock(), a_database("api_once") as database:
        yield Ground(database, filled(database)["tokens"]["tenant"])


def until_somebody_waits(database: psycopg.Connection[Any]) -> None:
    """Returns once a request is stopped at the lock; the test's own timeout bounds it."""
    while database.execute(WAITING).fetchone() == (0,):
        pass


def test_what_comes_while_the_first_is_worked_on_is_told_so(ground: Ground) -> None:
    with (
        serving(ground.database) as berth,
        psycopg.connect(ground.database) as holding,
        psycopg.connect(ground.database, autocommit=True) as looking,
        ThreadPoolExecutor(9) as pool,
    ):
        holding.execute(LOCKED)
        first = pool.submit(ground.ask, berth.address, ASK, "once-1")
        until_somebody_waits(looking)
        others = [pool.submit(ground.ask, berth.address, ASK, "once-1") for _ in range(8)]
        said = [(one.result()[0], one.result()[1]["code"]) for one in others]
        assert said == [(409, "IN_PROGRESS")] * 8
        holding.rollback()
        status, made, replayed = first.result()
        assert (status, replayed) == (201, "")
        again = ground.ask(berth.address, ASK, "once-1")
        assert (again[0], again[1]["id"], again[2]) == (201, made["id"], "true")
        other = ground.ask(berth.address, {**ASK, "days": 3}, "once-1")
        assert (other[0], other[1]["code"]) == (422, "IDEMPOTENCY_KEY_REUSED")
    assert ground.count("once") == 1


def test_a_process_that_is_killed_has_done_nothing_and_the_next_does_it_once(
    ground: Ground,
) -> None:
    ask = {**ASK, "name": "killed"}
    with (
        serving(ground.database) as berth,
        psycopg.connect(ground.database) as holding,
        psycopg.connect(ground.database, autocommit=True) as looking,
        ThreadPoolExecutor(1) as pool,
    ):
        holding.execute(LOCKED)
        first = pool.submit(ground.ask, berth.address, ask, "killed-1")
        until_somebody_waits(looking)
        berth.process.kill()
        assert first.result()[0] == 0, "nobody answered"
        holding.rollback()
    with serving(ground.database) as berth:
        statuses = {0}
        while not statuses <= {201}:  # the server may not have noticed yet that its client is gone
            statuses = {ground.ask(berth.address, ask, "killed-1")[0]}
            assert statuses <= {201, 409}
        assert ground.ask(berth.address, ask, "killed-1")[2] == "true"
    assert ground.count("killed") == 1

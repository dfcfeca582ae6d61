"""kill -9 in mid-request, one process at a time: each ask ends in exactly one set of objects.

A client that asks with idempotency keys and tries again is all that is needed; nothing here knows
what was lost.
"""

from __future__ import annotations

import http.client
import os
import signal
import time
import urllib.error
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

from playground.running.supervisor import records
from tests.journeys.conftest import Demo, SignIn
from tests.journeys.test_first_device import call, until

pytestmark = [pytest.mark.cluster, pytest.mark.browser]

ASKS = 12
SETTLED_WITHIN = 90.0
NAMESPACE = "tidewater-eval"
CALLERS = 4
VICTIMS = ["web", "watch", "worker", "beat", "valkey", "postgres", "kube-apiserver"]
MOMENTS = [
    *((victim, "asking") for victim in VICTIMS),
    *((victim, "releasing") for victim in ("worker", "postgres", "kube-apiserver")),
]
Item = TypeVar("Item")
Result = TypeVar("Result")


@pytest.fixture(scope="module")
def token_cache() -> dict[str, str]:
    return {}


@pytest.fixture
def token(token_cache: dict[str, str], request: pytest.FixtureRequest) -> str:
    """A token of the tenant's owner, made once in the browser."""
    if "token" not in token_cache:
        sign_in: SignIn = request.getfixturevalue("sign_in")
        page = sign_in("avocet")
        page.goto("/account/tokens/")
        page.get_by_label("Name", exact=True).fill("crash")
        page.get_by_label("Ask and release").check()
        page.get_by_role("button", name="Make").click()
        token_cache["token"] = page.locator("#new-token").inner_text().strip()
    return token_cache["token"]


def pid_of(demo: Demo, victim: str) -> int:
    """The process that does the work, not one that merely watches over it."""
    if victim in demo.plane.pids():
        return demo.plane.pids()[victim]
    return next(record.pid for record in records(demo.folder) if record.name == victim)


@pytest.mark.parametrize(("victim", "moment"), MOMENTS)
def test_each_ask_ends_in_exactly_one_set_of_objects(
    demo: Demo, token: str, victim: str, moment: str
) -> None:
    claims = f"{demo.address}/api/v1/tenants/tidewater-vision/claims"

    def ask(number: int) -> str:
        return ask_until_taken(claims, token, f"{victim}-{moment}-{number}")

    def release(public_id: str) -> None:
        patiently(f"{claims}/{public_id}/release", token, {})

    def kill(when: str) -> Callable[[], None]:
        return lambda: os.kill(pid_of(demo, victim), signal.SIGKILL) if when == moment else None

    ids = all_at_once(ask, range(ASKS), half_way=kill("asking"))
    assert len(set(ids)) == ASKS, "every ask was accepted once"
    until(lambda: states(claims, token, ids) == {"applied"}, SETTLED_WITHIN)
    assert objects(demo, ids) == Counter(dict.fromkeys(ids, 1))

    all_at_once(release, ids, half_way=kill("releasing"))
    until(lambda: states(claims, token, ids) == {"released"}, SETTLED_WITHIN)
    assert objects(demo, ids) == Counter()


def all_at_once(
    act: Callable[[Item], Result], items: Iterable[Item], *, half_way: Callable[[], None]
) -> list[Result]:
    """Acts on all items by several callers; `half_way` is called while the others are at it."""
    with ThreadPoolExecutor(CALLERS) as callers:
        doing = [callers.submit(act, item) for item in items]
        doing[len(doing) // 3].result(SETTLED_WITHIN)
        half_way()
        return [done.result(SETTLED_WITHIN) for done in doing]


def ask_until_taken(claims: str, token: str, name: str) -> str:
    body = {
        "template": "gpu",
        "namespace": NAMESPACE,
        "name": name.removeprefix("kube-"),
        "values": {"memory": "10"},
    }
    key = {"Idempotency-Key": f"crash-{name}"}
    status, made = patiently(claims, token, body, key)
    assert status == 201, made
    return str(made["id"])


def patiently(
    url: str, token: str, body: object = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str]]:
    """Calls until there is an answer that is not a passing fault, nor "later" (409, 429)."""
    for pause in pauses():
        try:
            status, answer = call(url, token, body, headers)
        except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError):
            time.sleep(pause)
            continue
        if status < 500 and status not in (409, 429):
            return status, answer
        time.sleep(pause)
    raise AssertionError(f"no answer from {url}")


def pauses() -> Iterator[float]:
    end = time.monotonic() + SETTLED_WITHIN
    while time.monotonic() < end:
        yield 0.25


def states(claims: str, token: str, ids: list[str]) -> set[str]:
    return {patiently(f"{claims}/{public_id}", token)[1]["state"] for public_id in ids}


def objects(demo: Demo, ids: list[str]) -> Counter[str]:
    """How many objects each of these asks has in the cluster, whatever their kind."""
    found: Counter[str] = Counter()
    for kind in ("ResourceClaim", "ResourceClaimTemplate"):
        for obj in demo.gateway.list(kind, namespace=NAMESPACE, labels="berth.dev/claim").items:
            found[obj["metadata"]["labels"]["berth.dev/claim"]] += 1
    return Counter({public_id: found[public_id] for public_id in ids if found[public_id]})

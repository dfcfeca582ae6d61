"""People and Pods that come and go while things break, and what must hold when it is over."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

from devices.cluster.gateway import ClusterError, Ref, Rejected
from playground.demo.folder import secret_key
from playground.demo.programs import environment
from playground.running.services import Services
from tests.chaos.breaking import Breaker
from tests.journeys.conftest import ROOT, Demo
from tests.journeys.test_crash import patiently
from tests.journeys.test_first_device import until

NAMESPACE = "tidewater-eval"
KINDS = ("ResourceClaim", "ResourceClaimTemplate")
#: So many claims are open at once at most; the tenant may have 40 such devices.
MOST_OPEN = 24
#: So many Pods run at once at most: one that runs holds its device, released or not.
MOST_PODS = 10
CALLERS = 4
#: Everything is well again: how long until every request has come to rest.
SETTLED_WITHIN = 240.0
RESTING = frozenset({"applied", "pending", "allocated", "in use", "released"})
Answer = TypeVar("Answer")


@dataclass
class Story:
    """`requests` asks of one tenant, each with an idempotency key; some are used, some released."""

    demo: Demo
    seed: int
    requests: int
    accepted: dict[str, dict[str, Any]] = field(default_factory=dict)
    refused: list[Any] = field(default_factory=list)
    released: set[str] = field(default_factory=set)
    pods: dict[str, None] = field(default_factory=dict)  # the oldest first

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.lock = threading.Lock()
        self.token = self.count("token")["token"]
        self.claims = f"{self.demo.address}/api/v1/tenants/tidewater-vision/claims"

    def hold(self, breaker: Breaker) -> None:
        """Runs while things break, then checks all; says how to have it so again."""
        try:
            self.run(breaker)
            self.check(self.settle())
        finally:
            print(f"BERTH_CHAOS_SEED={self.seed} BERTH_CHAOS_REQUESTS={self.requests}")
            print(*breaker.log, sep="\n")

    def run(self, breaker: Breaker) -> None:
        """Asks, uses and releases until all requests are made; meanwhile the breaker breaks."""
        numbers = iter(range(self.requests))
        wrong: list[BaseException] = []

        def caller(random: Random) -> None:
            try:
                while (number := self._next(numbers)) is not None:
                    self._one(number, random)
            except BaseException as error:
                wrong.append(error)

        callers = [
            threading.Thread(target=caller, args=(Random(self.random.random()),))
            for _ in range(CALLERS)
        ]
        breaker.start()
        try:
            for one in callers:
                one.start()
            for one in callers:
                one.join()
        finally:
            breaker.stop()
        if wrong:
            raise wrong[0]

    def count(self, what: str) -> Any:
        """What `tests.chaos.counting` says about the demo's database."""
        services = Services(self.demo.folder)
        env = environment(
            self.demo.folder, self.demo.address, services.env, secret_key(self.demo.folder)
        )
        done = subprocess.run(
            [sys.executable, "-m", "tests.chaos.counting", what],
            env={**os.environ, **env},
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        )
        return json.loads(done.stdout)

    def _next(self, numbers: Any) -> int | None:
        with self.lock:
            return next(numbers, None)

    def _one(self, number: int, random: Random) -> None:
        body = {
            "template": "gpu",
            "namespace": NAMESPACE,
            "name": f"chaos-{self.seed}-{number}"[:40],
            "values": {"memory": "10"},
        }
        status, made = self._ask(body)
        if status != 201:
            self.refused.append(made)
            return
        public_id = str(made["id"])
        with self.lock:
            assert public_id not in self.accepted, "one request, one claim"
            self.accepted[public_id] = dict(made)
        if random.random() < 0.6:
            self._use(made, random)
        if random.random() < 0.7 or len(self.accepted) - len(self.released) > MOST_OPEN:
            self._release(public_id)

    def _ask(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Asks, and again while what others released is not given back: things are broken."""
        end = time.monotonic() + SETTLED_WITHIN
        for number in itertools.count():
            key = {"Idempotency-Key": f"{body['name']}-{self.token[-6:]}-{number}"}
            status, made = patiently(self.claims, self.token, body, key)
            if made.get("code") != "LIMIT_REACHED" or time.monotonic() > end:
                break
            time.sleep(1)
        return status, made

    def _use(self, made: dict[str, Any], random: Random) -> None:
        """A Pod with the claim's devices; half of them end soon."""
        name = f"pod-{made['id']}"
        uses = (
            "resourceClaimName" if made["kind"] == "ResourceClaim" else "resourceClaimTemplateName"
        )
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "labels": {"berth.dev/claim": made["id"]},
            },
            "spec": {
                "terminationGracePeriodSeconds": 1,
                "restartPolicy": "Never",
                "containers": [
                    {
                        "name": "main",
                        "image": "example/train",
                        "resources": {"claims": [{"name": "devices"}]},
                    }
                ],
                "resourceClaims": [{"name": "devices", uses: made["object_name"]}],
            },
        }
        with self.lock:
            self.pods[name] = None
            oldest = None
            if len(self.pods) > MOST_PODS:
                self.pods.pop(oldest := next(iter(self.pods)))
        persist(lambda: self.demo.gateway.create(pod))
        if oldest is not None:
            self._end(oldest)
        if random.random() < 0.5:
            time.sleep(random.uniform(0.0, 1.0))
            self._end(name)

    def _end(self, name: str) -> None:
        persist(lambda: self.demo.gateway.delete(Ref("Pod", name, NAMESPACE)))
        with self.lock:
            self.pods.pop(name, None)

    def _release(self, public_id: str) -> None:
        # The answer may be lost with the process that gives it, and is asked for again.
        key = {"Idempotency-Key": f"release-{public_id}"}
        status, answer = patiently(f"{self.claims}/{public_id}/release", self.token, {}, key)
        assert status == 202, answer
        self.released.add(public_id)

    def settle(self) -> dict[str, Any]:
        """Ends all Pods and waits until every request has come to rest; the facts then."""
        for name in sorted(self.pods):
            self._end(name)
        facts: dict[str, Any] = {}

        def restless() -> dict[str, Any]:
            nonlocal facts
            facts = self.count("facts")
            return {
                public_id: one
                for public_id in self.accepted
                if not _rests(one := facts["claims"][public_id])
            }

        try:
            until(lambda: not restless(), SETTLED_WITHIN)
        except AssertionError:
            raise AssertionError(f"not at rest: {restless()}") from None
        return facts

    def check(self, facts: dict[str, Any]) -> None:
        """Every promise, request by request and object by object."""
        claims = facts["claims"]
        for public_id in self.accepted:
            one = claims[public_id]
            about = f"{public_id}: {one}"
            assert one["legal"] and (one["state"] == "released") == (public_id in self.released), (
                about
            )
            assert one["states"].count("requested") == 1, about
            assert one["states"].count("released") == (public_id in self.released), about
            assert one["took"] == one["costs"], about
            assert one["budget"] and set(one["budget"]) == {public_id not in self.released}, about
        names = Counter(one["name"] for one in claims.values() if one["name"].startswith("chaos-"))
        doubled = [name for name, count in names.items() if count > 1]
        assert not doubled, f"asked once, made twice: {doubled}"
        self._check_objects(claims)
        assert facts["breaks"] == []
        asked = Counter(facts["asked"])
        for public_id, made in self.accepted.items():
            told = sum(n for subject, n in asked.items() if public_id in subject)
            assert told == 1, (
                f"{made['name']} ({public_id}): {told} audit lines say that it was asked"
            )

    def _check_objects(self, claims: dict[str, Any]) -> None:
        """Each wanted claim has exactly its own object; there is none besides."""
        found: dict[str, list[tuple[str, str]]] = {}
        for kind in KINDS:
            listed = self.demo.gateway.list(kind, namespace=NAMESPACE, labels="berth.dev/claim")
            for obj in listed.items:
                if obj["metadata"].get("ownerReferences"):
                    continue  # made for a Pod, and gone with it
                public_id = obj["metadata"]["labels"]["berth.dev/claim"]
                found.setdefault(public_id, []).append((kind, obj["metadata"]["uid"]))
        mine = {public_id: found.get(public_id, []) for public_id in self.accepted}
        wanted = {
            public_id: [(claims[public_id]["kind"], claims[public_id]["uid"])]
            if public_id not in self.released
            else []
            for public_id in self.accepted
        }
        assert mine == wanted
        orphans = set(found) - set(claims)
        assert not orphans, f"objects of claims that nobody knows: {orphans}"


def persist(act: Callable[[], Answer], seconds: float = 90.0) -> Answer | None:
    """Does it until the API server takes it; None where it is there already, or is refused."""
    end = time.monotonic() + seconds
    while True:
        try:
            return act()
        except Rejected:
            return None
        except ClusterError as error:
            if "AlreadyExists" in str(error) or "already exists" in str(error):
                return None
            if time.monotonic() > end:
                raise
            time.sleep(0.3)


def _rests(claim: dict[str, Any]) -> bool:
    """Whether nobody has anything left to do about a request."""
    return (
        claim["state"] in RESTING
        and not claim["promised"]
        and not claim["leased"]
        and claim["wanted"] == (claim["state"] != "released")
    )

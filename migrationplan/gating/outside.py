"""Gates that somebody else answers: a webhook that is asked, and a PromQL query.

Both go through the guard of the alerts' webhooks, and a webhook is signed as they are. Whoever does
not answer in time, or not as agreed, has said nothing: inconclusive.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from django.conf import settings

from migrationplan.gates import Outcome
from migrationplan.gates import Reading as Judged
from migrationplan.gating import promql
from migrationplan.gating.subjects import Subject
from migrationplan.measures import Measure
from migrationplan.models.reading import Gate
from portal.alerts import guard, webhooks

SECONDS: Final = 5.0
#: A longer answer is no verdict.
LONGEST: Final = 256 * 1024
#: The kind of message that a webhook gets.
ASKED: Final = "gate.asked"
ANSWERS: Final = {one.value: one for one in (Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE)}


def ask(gate: Gate, subject: Subject, now: datetime) -> Judged:
    """One question and its answer; whatever goes wrong on the way is inconclusive."""
    try:
        if gate.measure == Measure.WEBHOOK:
            outcome, sentence = _webhook(gate, subject, now)
        else:
            outcome, sentence = _prometheus(gate, subject, now)
    except guard.Unfit as error:
        outcome, sentence = Outcome.INCONCLUSIVE, f"It cannot be asked: {error}"
    return Judged(outcome, sentence)


def question(gate: Gate, subject: Subject) -> Mapping[str, Any]:
    """What a webhook is told."""
    return {
        "gate": gate.slug,
        "node_pool": subject.pool.slug,
        "device_class": subject.pool.device_class,
        "direction": subject.direction.value,
        "wave": subject.wave,
        "since": subject.since.isoformat(),
        "nodes": subject.nodes,
    }


def _webhook(gate: Gate, subject: Subject, now: datetime) -> promql.Answer:
    text = webhooks.body(ASKED, now, question(gate, subject))
    head = webhooks.headers(f"gate-{gate.slug}-{now.timestamp():.0f}", text, [gate.secret], now)
    status, said = webhooks.fetch(
        "POST", gate.url, settings.WEBHOOK_NETWORKS, text, head, seconds=SECONDS, longest=LONGEST
    )
    if status is None:
        return Outcome.INCONCLUSIVE, f"It did not answer: {said}"[:400]
    if status != 200:
        return Outcome.INCONCLUSIVE, f"It answered {status}, not 200."
    return answer(said)


def answer(text: str) -> promql.Answer:
    """What a webhook said: {"verdict": "pass|fail|inconclusive", "sentence": "…"}."""
    try:
        said = json.loads(text)
    except ValueError:
        return Outcome.INCONCLUSIVE, "The answer is no JSON."
    outcome = ANSWERS.get(str(said.get("verdict"))) if isinstance(said, dict) else None
    if outcome is None:
        return Outcome.INCONCLUSIVE, "The answer has no verdict of pass, fail or inconclusive."
    sentence = said.get("sentence")
    if not isinstance(sentence, str) or not sentence.strip():
        return outcome, "It gave no reason."
    return outcome, " ".join(sentence.split())[:400]


def _prometheus(gate: Gate, subject: Subject, now: datetime) -> promql.Answer:
    asked = urlencode({"query": filled(gate.query, subject), "time": f"{now.timestamp():.3f}"})
    place = f"{gate.url.rstrip('/')}/api/v1/query?{asked}"
    status, said = webhooks.fetch(
        "GET", place, settings.WEBHOOK_NETWORKS, seconds=SECONDS, longest=LONGEST
    )
    if status is None:
        return Outcome.INCONCLUSIVE, f"It did not answer: {said}"[:400]
    if status not in (200, 400, 422, 503):  # the last three say why in JSON
        return Outcome.INCONCLUSIVE, f"It answered {status}."
    return promql.verdict(said)


def filled(query: str, subject: Subject) -> str:
    """The query about these nodes: `$nodes` is a regular expression that matches their names,
    `$pool` and `$class` are names. Names of nodes have dots, and nothing else that must be escaped.
    """
    nodes = "|".join(node.replace(".", r"\\.") for node in subject.nodes)
    pairs = {"$nodes": nodes, "$pool": subject.pool.slug, "$class": subject.pool.device_class}
    for name, value in pairs.items():
        query = query.replace(name, value)
    return query

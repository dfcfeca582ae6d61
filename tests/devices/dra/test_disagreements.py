"""Disagreements with upstream that were found on random object sets, each with the right answer.

`make agreement` writes a new one here; it then fails until the rules are right.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from devices.dra.gates import Gates
from devices.dra.snapshot import read
from playground.agreement.comparison import question_of
from playground.agreement.objectsets import ObjectSet
from playground.agreement.rounds import our_pod, ours

FOLDER = Path(__file__).parent / "disagreements"
PATHS = sorted(FOLDER.glob("*.json"))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_what_was_once_answered_wrongly_is_answered_as_upstream_does(path):
    found = json.loads(path.read_text())
    if "expression" in found:
        pytest.fail(f"{found['expression']}: {found['ours']}, upstream {found['theirs']}")
    gates = Gates(found["release"], frozenset(found["gates"]))
    question = question_of(found)
    if path.stem.startswith("pod-"):
        one = ObjectSet(0, tuple(found["objects"]), (question,), frozenset())
        answer = our_pod(one, question, gates)
    else:
        answer = ours(read(found["objects"], gates=gates), question)
    assert answer.verdict == found["theirs"]["verdict"], answer.text
    assert [list(device) for device in answer.devices] == found["theirs"]["devices"]

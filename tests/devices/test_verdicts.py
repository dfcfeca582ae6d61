"""What a page says first about an ask, and whose job it is."""

from __future__ import annotations

import ast
from datetime import timedelta
from pathlib import Path

import pytest

from devices.asks.verdicts import OWN, Job, verdict
from devices.dra.codes import CODES
from devices.dra.lifecycle import State

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("code", "state", "job", "wrong"),
    [
        pytest.param("SENDING", "requested", Job.NOBODY, False, id="a code of Berth's own"),
        pytest.param("NOT_SCHEDULED_YET", "pending", Job.NOBODY, False, id="a usual wait"),
        pytest.param("NO_MATCHING_DEVICE_FREE", "pending", Job.NOBODY, False, id="taken now"),
        pytest.param("MORE_THAN_ANY_NODE_HAS", "pending", Job.TENANT, True, id="it never fits"),
        pytest.param("CLASS_MISSING", "pending", Job.PLATFORM, True, id="waiting does not help"),
        pytest.param("", "in use", Job.NOBODY, False, id="no reason is needed"),
        pytest.param("NEVER_HEARD_OF", "pending", Job.UNKNOWN, True, id="an unknown code"),
        pytest.param("", "pending", Job.UNKNOWN, True, id="a wait without a reason"),
    ],
)
def test_whose_job_it_is(code: str, state: str, job: Job, wrong: bool) -> None:
    said = verdict(code, state)
    assert (said.job, said.wrong) == (job, wrong)
    assert said.sentence


def test_what_lasts_too_long_is_the_platforms_job() -> None:
    patient = next(code for code in CODES.values() if code.patience is not None)
    assert patient.patience is not None
    late = verdict(patient.name, "pending", patient.patience + timedelta(seconds=1))
    assert (late.job, late.wrong) == (Job.PLATFORM, True)


@pytest.mark.parametrize("name", [*OWN, *CODES])
def test_a_verdict_is_one_sentence_that_a_person_would_say(name: str) -> None:
    said = verdict(name, State.PENDING)
    assert said.sentence.endswith(".")
    assert len(said.sentence) <= 110
    assert "_" not in said.sentence


def codes_given_by(path: str) -> set[str]:
    """Every UPPER_SNAKE text in a module that is given as somebody's `code`."""
    tree = ast.parse((ROOT / path).read_text())
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    return {
        text
        for text in texts
        if isinstance(text, str) and "_" in text and text.isupper() and text.isascii()
    }


def test_every_code_that_a_turn_writes_has_its_words() -> None:
    given = codes_given_by("devices/asks/reconcile.py") | codes_given_by("devices/dra/status.py")
    assert {"CLUSTER_UNREACHABLE", "IN_USE_UNTIL_PODS_END"} <= given
    for code in given:
        assert verdict(code, "").job is not Job.UNKNOWN, f"{code} has no words"

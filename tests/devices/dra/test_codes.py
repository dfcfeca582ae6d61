"""The closed list of codes: complete, unique, and worded for people."""

from __future__ import annotations

import re

import pytest

from devices.dra.codes import CODES, Class, Code, Who, code
from devices.dra.codes.kinds import table
from devices.dra.messages import TABLES, Row
from devices.dra.standing import FEATURE_OFF, INCOMPLETE, INVALID, NO_NODE, TAINTED

EVERY = list(CODES.values())


@pytest.mark.parametrize("found", EVERY, ids=str)
def test_a_code_is_worded_for_people(found: Code) -> None:
    assert re.fullmatch(r"[A-Z]+(_[A-Z0-9]+)*", found.name)
    assert found.words.endswith(".") and len(found.words) <= 100
    assert found.next_step.endswith(".")


def test_facts_stand_in_the_sentence_only_where_all_are_known() -> None:
    missing = code("CLASS_MISSING")
    assert missing.sentence({"class": "gpu.example.com"}) == (
        "The device class gpu.example.com does not exist."
    )
    assert missing.sentence({}) == missing.words


def test_two_codes_of_one_name_are_refused() -> None:
    one = Code("X", Class.UNKNOWN, Who.NOBODY, "", "")
    with pytest.raises(ValueError, match="two codes are called X"):
        table(one, one)


@pytest.mark.parametrize("row", [row for rows in TABLES.values() for row in rows], ids=str)
def test_every_message_means_a_code_that_exists(row: Row) -> None:
    assert row.code in CODES


@pytest.mark.parametrize("standing", [TAINTED, INCOMPLETE, INVALID, FEATURE_OFF, NO_NODE], ids=str)
def test_why_a_device_is_not_free_is_a_code(standing) -> None:
    assert standing.reason in CODES

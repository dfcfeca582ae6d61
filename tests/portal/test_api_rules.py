"""The API's ground without a database: fields, differences, verdicts, examples, confirmations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import get_resolver
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from rest_framework.serializers import (
    BooleanField,
    CharField,
    DictField,
    FloatField,
    IntegerField,
    ListField,
    Serializer,
)

from devices.asks.verdict import GOALS, Verdict, waited
from devices.dra.lifecycle import State
from portal.api.bodies import Body
from portal.api.confirming import confirmation, confirmed
from portal.api.examples import example_of
from portal.api.fields import only
from portal.api.standing import difference
from portal.errors import Invalid

CLAIM = {"id": "a", "state": "held", "devices": [{"node": "n1", "pool": "p"}], "explanation": None}
PAGE = {"next": "x", "previous": None, "results": [CLAIM]}


@pytest.mark.parametrize(
    ("data", "wanted", "left"),
    [
        (CLAIM, "id", {"id": "a"}),
        (CLAIM, " state , id ", {"state": "held", "id": "a"}),
        (CLAIM, "devices.node", {"devices": [{"node": "n1"}]}),
        (CLAIM, "devices.node,devices.pool,id", {"devices": CLAIM["devices"], "id": "a"}),
        (CLAIM, "devices", {"devices": CLAIM["devices"]}),
        (CLAIM, "explanation.code", {"explanation": None}),
        ([CLAIM, CLAIM], "id", [{"id": "a"}, {"id": "a"}]),
        (PAGE, "id", {"next": "x", "previous": None, "results": [{"id": "a"}]}),
        ([], "anything", []),
    ],
)
def test_only_what_was_asked_for_is_left(data: Any, wanted: str, left: Any) -> None:
    assert only(data, wanted) == left


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("nonsense", "No nonsense; there are: devices, explanation, id, state."),
        ("devices.nonsense", "No devices.nonsense; there are: node, pool."),
        ("id.nonsense", "id has no fields."),
        (",", "Name at least one field."),
    ],
)
def test_a_field_that_is_not_there_is_named(wanted: str, said: str) -> None:
    with pytest.raises(Invalid) as caught:
        only(CLAIM, wanted)
    assert caught.value.fields == {"fields": said}


def test_a_difference_names_what_was_and_what_is() -> None:
    assert difference({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 4, "d": 5}) == {
        "b": {"was": 2, "is": 4},
        "c": {"was": 3, "is": None},
        "d": {"was": None, "is": 5},
    }


@pytest.mark.parametrize(
    ("state", "code", "goal", "verdict", "who"),
    [
        ("requested", "SENDING", "usable", "retryable", "nobody"),
        ("applied", "WAITING_FOR_POD", "usable", "ready", "tenant"),
        ("applied", "WAITING_FOR_POD", "allocated", "retryable", "tenant"),
        ("allocated", "", "allocated", "ready", "nobody"),
        ("allocated", "", "running", "retryable", "nobody"),
        ("in use", "", "running", "ready", "nobody"),
        ("pending", "CLAIM_MISSING", "allocated", "permanent", "tenant"),
        ("pending", "NOT_SCHEDULED_YET", "allocated", "retryable", "nobody"),
        ("pending", "CLAIM_MISSING", "usable", "ready", "tenant"),
        ("held", "", "usable", "retryable", "nobody"),
        ("failed", "", "usable", "permanent", "nobody"),
        ("releasing", "", "running", "permanent", "nobody"),
        ("released", "", "usable", "permanent", "nobody"),
        ("releasing", "", "released", "retryable", "nobody"),
        ("released", "", "released", "ready", "nobody"),
    ],
)
def test_whoever_waits_is_told_to_go_on_to_wait_or_to_stop(
    state: str, code: str, goal: str, verdict: str, who: str
) -> None:
    found = waited(State(state), code, goal)
    assert (found.verdict.value, found.who) == (verdict, who)


@given(st.sampled_from(list(State)), st.sampled_from(list(GOALS)), st.text(max_size=5))
def test_every_state_has_a_verdict_and_only_waiting_says_when_to_ask_again(
    state: State, goal: str, code: str
) -> None:
    found = waited(state, code, goal)
    assert (found.retry_after is not None) == (found.verdict is Verdict.RETRYABLE)


SCHEMAS: dict[str, Any] = {
    "Claim": {
        "type": "object",
        "required": ["id", "state", "since", "devices", "parent"],
        "properties": {
            "id": {"type": "string"},
            "state": {"$ref": "#/components/schemas/State"},
            "since": {"type": "string", "format": "date-time"},
            "devices": {"type": "array", "items": {"$ref": "#/components/schemas/Device"}},
            "parent": {"oneOf": [{"$ref": "#/components/schemas/Claim"}, {"type": "null"}]},
        },
    },
    "State": {"enum": ["", "held", "applied"]},
    "Device": {
        "type": "object",
        "properties": {"node": {"type": ["string", "null"]}, "days": {"type": "integer"}},
    },
}


def test_an_example_tells_one_story_and_ends() -> None:
    made = example_of({"$ref": "#/components/schemas/Claim"}, SCHEMAS)
    assert (made["state"], made["devices"]) == ("held", [{"node": "node-7", "days": 7}])
    assert made["parent"] == {}, "a thing inside of itself is told once"


@pytest.mark.parametrize("name", ["State", "Device"])
def test_an_example_fits_its_schema(name: str) -> None:
    made = example_of(SCHEMAS[name], SCHEMAS)
    Draft202012Validator(SCHEMAS[name]).validate(made)


def test_a_confirmation_is_for_one_request() -> None:
    given = confirmation("token a POST x")
    assert confirmed(given, "token a POST x")
    assert not confirmed(given, "token b POST x")
    assert not confirmed(f"{given}x", "token a POST x")
    assert not confirmed("", "token a POST x")


def shapes(kind: type[Serializer]) -> Iterator[type[Serializer]]:
    yield kind
    for below in kind.__subclasses__():
        yield from shapes(below)


def test_every_body_is_judged_by_the_types_of_json() -> None:
    assert get_resolver().url_patterns  # so that every shape is known
    lenient = [
        f"{shape.__module__}.{shape.__name__}"
        for shape in set(shapes(Serializer))
        if shape.__name__.endswith("In") and not issubclass(shape, Body)
    ]
    assert lenient == [], "portal.api.bodies.Body"


class Inner(Body):
    text = CharField()


class Outer(Body):
    yes = BooleanField(required=False)
    count = IntegerField(required=False, min_value=1)
    share = FloatField(required=False)
    name = CharField(required=False, allow_null=True)
    names = ListField(child=CharField(), required=False)
    labels = DictField(child=CharField(), required=False)
    inner = Inner(required=False)
    inners = ListField(child=Inner(), required=False)


@pytest.mark.parametrize(
    "body",
    [
        {"yes": False, "count": 2, "share": 0.5, "name": "a"},
        {"count": 2.0, "share": 1, "name": None, "names": ["a"], "labels": {"a": "b"}},
        {"inner": {"text": "a"}, "inners": [{"text": "a"}]},
    ],
)
def test_what_the_document_says_is_taken(body: dict[str, Any]) -> None:
    asked = Outer(data=body)
    assert asked.is_valid(), asked.errors


@pytest.mark.parametrize(
    "body",
    [
        *({"yes": other} for other in (0, 1, "true", "no", "", [], 0.0)),
        *({"count": other} for other in ("2", True, "", [2])),
        *({"share": other} for other in ("0.5", False)),
        *({"name": other} for other in (0, 1.5, True, ["a"], {})),
        {"names": ["a", 1]},
        {"labels": {"a": True}},
        {"inner": {"text": 1}},
        {"inners": [{"text": "a"}, {"text": 1}]},
    ],
)
def test_what_is_only_like_it_is_refused_by_name(body: dict[str, Any]) -> None:
    asked = Outer(data=body)
    assert not asked.is_valid()
    assert set(asked.errors) == set(body)


def test_all_that_is_wrong_is_named_at_once() -> None:
    asked = Outer(data={"count": 0, "name": 7})
    assert not asked.is_valid()
    assert asked.errors["name"] == ["Give text, in quotes."]
    assert "greater than or equal to 1" in asked.errors["count"][0]

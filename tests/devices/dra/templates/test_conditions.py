"""Questions that depend on answers: which are shown, what they take, what they make."""

from __future__ import annotations

from typing import Any

import pytest

from devices.dra.templates import (
    BadValue,
    answers,
    build,
    plainly,
    questions,
    ranked,
    read_template,
    settle,
    summary,
)
from tests.devices.dra.templates.contents import EVERYTHING, one_question

EACH = read_template(EVERYTHING)
USUAL = {"network": "none", "clients": 2, "patient": False}


@pytest.mark.parametrize(
    ("sent", "taken"),
    [
        pytest.param({}, USUAL, id="what is not shown has no value, what is optional neither"),
        pytest.param(
            {"network": "rdma"},
            {**USUAL, "network": "rdma", "speed": "400"},
            id="an answer brings a question, which has its default",
        ),
        pytest.param(
            {"network": "tcp"},
            {**USUAL, "network": "tcp", "speed": "100"},
            id="a default that is not offered gives way to the first option that is",
        ),
        pytest.param(
            {"network": "old"},
            {**USUAL, "network": "tcp", "speed": "100"},
            id="an option out of use is redirected",
        ),
        pytest.param({"memory": 4}, {**USUAL, "memory": "4Gi"}, id="a number counts in the unit"),
        pytest.param({"memory": "1.5"}, {**USUAL, "memory": "1536Mi"}, id="so does half a unit"),
        pytest.param({"memory": "2048Mi"}, {**USUAL, "memory": "2Gi"}, id="a suffix is a suffix"),
        pytest.param({"memory": ""}, USUAL, id="what is optional may be sent empty"),
        pytest.param({"memory": None, "speed": None}, USUAL, id="null is no answer, shown or not"),
    ],
)
def test_what_is_taken(sent: dict[str, Any], taken: dict[str, Any]) -> None:
    assert answers(EACH, sent) == taken
    assert answers(EACH, taken) == taken, "what was taken is taken again as it is"


@pytest.mark.parametrize(
    ("sent", "wrong"),
    [
        pytest.param(
            {"speed": "100"},
            {"speed": "This is asked only where Network is RDMA or TCP; leave it out."},
            id="a value for a question that is not asked",
        ),
        pytest.param(
            {"network": "tcp", "speed": "400"},
            {"speed": "Choose one of 100 Gb/s (100)."},
            id="an option that another answer excludes",
        ),
        pytest.param(
            {"network": "gone"},
            {"network": "It broke. Choose one of None (none), TCP (tcp), RDMA (rdma)."},
            id="an option out of use says why",
        ),
        pytest.param(
            {"network": "rdma", "clients": 5},
            {"clients": "Give a whole number from 1 to 4."},
            id="a bound that another answer lowers",
        ),
        pytest.param(
            {"clients": 3},
            {"memory": "Give an amount from 1 to 64 GiB, in steps of 0.5."},
            id="what another answer makes necessary",
        ),
        pytest.param(
            {"memory": "0.7"},
            {"memory": "Give an amount from 1 to 64 GiB, in steps of 0.5."},
            id="below the minimum",
        ),
        pytest.param(
            {"memory": "1.7"},
            {"memory": "Give an amount from 1 to 64 GiB, in steps of 0.5."},
            id="between two steps",
        ),
        pytest.param(
            {"network": "carrier pigeon", "speed": "100"},
            {"network": "Choose one of None (none), TCP (tcp), RDMA (rdma)."},
            id="what hangs on a wrong answer is not blamed as well",
        ),
    ],
)
def test_what_is_refused(sent: dict[str, Any], wrong: dict[str, str]) -> None:
    with pytest.raises(BadValue) as bad:
        answers(EACH, sent)
    assert bad.value.fields == wrong


@pytest.mark.parametrize(
    ("tenant", "sent", "taken"),
    [
        pytest.param(
            "basalt",
            {},
            {
                "network": "rdma",
                "speed": "400",
                "clients": 4,
                "memory": "8Gi",
                "patient": False,
            },
            id="a tenant's defaults, within the bounds",
        ),
        pytest.param(
            "basalt",
            {"network": "none", "memory": ""},
            {"network": "none", "clients": 8, "patient": False},
            id="an answer counts more than a tenant's default",
        ),
        pytest.param("other", {}, USUAL, id="another tenant has the template's"),
    ],
)
def test_defaults_by_tenant(tenant: str, sent: dict[str, Any], taken: dict[str, Any]) -> None:
    assert settle(EACH, sent, tenant=tenant) == taken


def test_a_drawn_form_drops_what_is_not_shown_and_takes_the_default_for_what_is_wrong() -> None:
    sent = {"network": "none", "speed": "100", "clients": "many", "colour": "red"}
    assert settle(EACH, sent) == USUAL


def test_a_choice_without_a_default_wants_a_decision() -> None:
    parameter = {
        "kind": "choice",
        "name": "tier",
        "label": "Tier",
        "options": [{"value": "a", "label": "A"}, {"value": "b", "label": "B"}],
    }
    template = read_template(one_question(parameter))
    with pytest.raises(BadValue, match=r"Choose one of A \(a\), B \(b\)"):
        answers(template, {})
    assert answers(template, {"tier": "b"}) == {"tier": "b"}
    [(question, value, _)] = questions(template, {})
    assert question.required and value is None


def made(sent: dict[str, Any]) -> dict[str, Any]:
    """By request or alternative, what it asks for."""
    draft = build(EACH, answers(EACH, sent))
    return {
        f"{device.name}/{ask.name}" if device.alternatives else device.name: ask
        for device in draft.devices
        for ask in device.asks
    }


def test_a_request_is_made_only_where_its_condition_holds() -> None:
    assert list(made({})) == ["gpu/big", "gpu/small", "cores"]
    nic = made({"network": "rdma", "speed": "100"})["nic"]
    assert (nic.count, nic.selectors) == (2, ("rdma-expression", "slow-expression"))


def test_constraints_name_only_what_is_asked_for() -> None:
    matches = build(EACH, answers(EACH, {})).matches
    assert [(one.attribute, one.requests) for one in matches] == [("example.com/root", ("gpu",))]
    both = build(EACH, answers(EACH, {"network": "rdma"})).matches
    assert [(one.requests, one.distinct) for one in both] == [
        (("gpu", "nic"), False),
        (("gpu",), True),
    ]


def test_fragments_mean_all_alternatives_or_one() -> None:
    asks = made({"patient": True})
    assert list(asks)[:2] == ["gpu/small", "gpu/big"], "the order is the answer's"
    assert [one.key for one in asks["gpu/big"].tolerations] == ["worn"]
    assert [one.key for one in asks["gpu/small"].tolerations] == ["worn", "old"]
    assert asks["gpu/small"].selectors == ("small-base",)


def test_amounts_are_placed_as_values() -> None:
    cores = made({"memory": "1.5"})["cores"]
    assert dict(cores.capacity) == {
        "cpu.example.com/cores": "4",
        "cpu.example.com/memory": "1536Mi",
    }
    [config] = build(EACH, answers(EACH, {"clients": 2, "memory": 8})).configs
    assert config.parameters["sharing"] == {"clients": 2, "memory": "8Gi"}
    [config] = build(EACH, answers(EACH, {})).configs
    assert config.parameters["sharing"]["memory"] == "1Gi", "unanswered: as the author wrote it"
    assert EACH.config[0].parameters["sharing"]["clients"] == 1, "the template itself never changes"


def test_in_words() -> None:
    draft = build(EACH, answers(EACH, {"network": "rdma", "memory": 8, "patient": True}))
    assert summary(EACH, draft) == (
        "2 × A100, else 1 × H100, 2 × port, 1 × cores, RDMA, 400 Gb/s, 8 GiB, also worn cards"
    )
    assert ranked(EACH, draft) == (("2 × A100", "1 × H100"),)
    said = plainly(EACH, draft)
    assert said[0].startswith("2 × A100 of class a100, with small-base, also where it is marked")
    assert said[1].startswith("Where a node cannot give that: 1 × H100 of class h100")
    assert "GPU and port: all with the same root." in said
    assert "GPU: no two with the same card." in said
    assert "1 × cores of class cpu, 4 cores and 8 GiB of memory." in said

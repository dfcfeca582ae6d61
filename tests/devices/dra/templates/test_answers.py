"""Templates: what answers are taken, and what they do to the request."""

from __future__ import annotations

from typing import Any

import pytest

from devices.dra.objects import DeviceWish, MatchWish
from devices.dra.templates import (
    BadTemplate,
    BadValue,
    answers,
    build,
    read_template,
    summary,
)
from devices.dra.templates.words import LONGEST_SUMMARY

PAIR = read_template(
    {
        "requests": [
            {"name": "gpu", "device_class": "h100", "words": "GPU", "selectors": ["base"]},
            {"name": "nic", "device_class": "nic", "words": "NIC"},
        ],
        "parameters": [
            {
                "kind": "choice",
                "name": "memory",
                "label": "Memory",
                "default": "80",
                "options": [
                    {"value": "80", "label": "80 GB", "selectors": {"gpu": ["memory >= 80Gi"]}},
                    {"value": "141", "label": "141 GB", "device_class": {"gpu": "h200"}},
                ],
            },
            {"kind": "count", "name": "gpus", "label": "GPUs", "request": "gpu", "maximum": 4},
            {
                "kind": "switch",
                "name": "near",
                "label": "Same PCIe root",
                "constraints": [
                    {
                        "match_attribute": "resource.kubernetes.io/pcieRoot",
                        "requests": ["gpu", "nic"],
                    }
                ],
            },
        ],
    }
)
GPU = DeviceWish("gpu", "h100", 1, ("base", "memory >= 80Gi"))
NIC = DeviceWish("nic", "nic")
NEAR = MatchWish("resource.kubernetes.io/pcieRoot", ("gpu", "nic"))


@pytest.mark.parametrize(
    ("raw", "devices", "matches"),
    [
        pytest.param({}, (GPU, NIC), (), id="no answer takes every default"),
        pytest.param(
            {"memory": "141"},
            (DeviceWish("gpu", "h200", 1, ("base",)), NIC),
            (),
            id="an option may replace the class",
        ),
        pytest.param(
            {"memory": 141},
            (DeviceWish("gpu", "h200", 1, ("base",)), NIC),
            (),
            id="an option named by a number may be sent as one",
        ),
        pytest.param(
            {"gpus": "3", "near": "on"},
            (DeviceWish("gpu", "h100", 3, GPU.selectors), NIC),
            (NEAR,),
            id="what a browser sends counts like what a program sends",
        ),
        pytest.param(
            {"gpus": 4, "near": True},
            (DeviceWish("gpu", "h100", 4, GPU.selectors), NIC),
            (NEAR,),
            id="the maximum is allowed",
        ),
    ],
)
def test_answers_become_requests(
    raw: dict[str, Any], devices: tuple[DeviceWish, ...], matches: tuple[MatchWish, ...]
) -> None:
    draft = build(PAIR, answers(PAIR, raw))
    assert (draft.devices, draft.matches) == (devices, matches)


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        pytest.param({"memory": "40"}, "memory", id="an option that does not exist"),
        pytest.param({"gpus": 0}, "gpus", id="below the minimum"),
        pytest.param({"gpus": 5}, "gpus", id="above the maximum"),
        pytest.param({"gpus": 1.5}, "gpus", id="half a device"),
        pytest.param({"gpus": True}, "gpus", id="a truth value is no number"),
        pytest.param({"gpus": "two"}, "gpus", id="a word is no number"),
        pytest.param({"near": "maybe"}, "near", id="neither yes nor no"),
        pytest.param({"colour": "red"}, "colour", id="a parameter that does not exist"),
        pytest.param(
            {"memory": '80" || true'}, "memory", id="an expression is not an option's value"
        ),
    ],
)
def test_bad_answers_are_named(raw: dict[str, Any], field: str) -> None:
    with pytest.raises(BadValue) as bad:
        answers(PAIR, raw)
    assert set(bad.value.fields) == {field}


def test_every_bad_answer_is_named_at_once() -> None:
    with pytest.raises(BadValue) as bad:
        answers(PAIR, {"memory": "1", "gpus": 9, "near": "x"})
    assert set(bad.value.fields) == {"memory", "gpus", "near"}


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        pytest.param({}, "1 × GPU, 1 × NIC, 80 GB", id="a default is an answer too"),
        pytest.param({"gpus": 2, "memory": "141"}, "2 × GPU, 1 × NIC, 141 GB", id="a choice"),
        pytest.param(
            {"near": True}, "1 × GPU, 1 × NIC, 80 GB, same PCIe root", id="a switch that is on"
        ),
        pytest.param({"near": False}, "1 × GPU, 1 × NIC, 80 GB", id="a switch that is off"),
    ],
)
def test_the_summary_tells_asks_apart(raw: dict[str, Any], words: str) -> None:
    assert summary(PAIR, build(PAIR, answers(PAIR, raw))) == words


def test_a_summary_has_an_end() -> None:
    wordy = read_template(
        {
            "requests": [{"name": "gpu", "device_class": "gpu", "words": "GPU"}],
            "parameters": [{"kind": "switch", "name": "x", "label": "x" * 300}],
        }
    )
    words = summary(wordy, build(wordy, {"x": True}))
    assert len(words) == LONGEST_SUMMARY and words.endswith("x…")


def test_a_label_that_starts_with_capitals_keeps_them() -> None:
    zone = read_template(
        {
            "requests": [{"name": "cores", "device_class": "cpu", "words": "core"}],
            "parameters": [{"kind": "switch", "name": "one", "label": "NUMA zone alone"}],
        }
    )
    assert summary(zone, build(zone, {"one": True})) == "1 × core, NUMA zone alone"


def test_every_reachable_class_is_known() -> None:
    assert PAIR.device_classes == {"h100", "h200", "nic"}


@pytest.mark.parametrize(
    "content",
    [
        pytest.param({}, id="no requests"),
        pytest.param({"requests": [], "surprise": 1}, id="a field nobody knows"),
        pytest.param(
            {"requests": [], "parameters": [{"kind": "slider", "name": "x"}]},
            id="a kind of parameter nobody knows",
        ),
    ],
)
def test_what_is_no_template_is_refused(content: dict[str, Any]) -> None:
    with pytest.raises(BadTemplate):
        read_template(content)

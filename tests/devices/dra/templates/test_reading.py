"""What is wrong with a content: every problem at once, each with its path."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from devices.dra.templates import BadTemplate, read_template
from tests.devices.dra.templates.contents import EVERYTHING, one_question


def problems(content: Any) -> dict[str, str]:
    with pytest.raises(BadTemplate) as bad:
        read_template(content)
    return {problem.path: problem.text for problem in bad.value.problems}


def changed(*way: Any, to: Any) -> dict[str, Any]:
    """EVERYTHING with one value changed; `to` None takes it away."""
    content = deepcopy(EVERYTHING)
    spot: Any = content
    for step in way[:-1]:
        spot = spot[step]
    if to is None:
        del spot[way[-1]]
    else:
        spot[way[-1]] = to
    return content


def test_every_problem_is_told_with_its_path() -> None:
    content = deepcopy(EVERYTHING)
    content["requests"][1]["count"] = "two"
    content["parameters"][0]["options"][2]["selectors"] = {"nic": ["ok", 5]}
    content["parameters"][1]["colour"] = "red"
    content["parameters"].append({"kind": "slider", "name": "x"})
    content["parameters"].append({"kind": "count", "name": "y"})
    content["surprise"] = 1
    assert set(problems(content)) == {
        "requests[1].count",
        "parameters[0].options[2].selectors.nic[1]",
        "parameters[1].colour",
        "parameters[5].kind",
        "parameters[6].label",
        "parameters[6].maximum",
        "surprise",
    }


@pytest.mark.parametrize("content", [None, [], "text", 5, {"requests": {}}, {"parameters": []}])
def test_what_is_no_template_at_all(content: Any) -> None:
    assert problems(content)


@pytest.mark.parametrize(
    ("way", "to", "path"),
    [
        pytest.param(["requests", 0, "name"], "GPU one", "requests[0].name", id="a request's name"),
        pytest.param(
            ["requests", 0, "device_class"], "gpu", "requests[0].device_class", id="class and else"
        ),
        pytest.param(["requests", 1, "device_class"], "", "requests[1].device_class", id="neither"),
        pytest.param(["requests", 1, "name"], "gpu", "requests", id="two requests of one name"),
        pytest.param(
            ["requests", 2, "capacity"],
            {"cpu.example.com/cores": "four"},
            "requests[2].capacity.cpu.example.com/cores",
            id="an amount that is no quantity",
        ),
        pytest.param(
            ["constraints", 0, "match_attribute"],
            "root",
            "constraints[0].match_attribute",
            id="an attribute without its domain",
        ),
        pytest.param(
            ["constraints", 0, "requests"],
            ["gpu", "gpu/huge"],
            "constraints[0].requests[1]",
            id="an alternative that is none",
        ),
        pytest.param(
            ["constraints", 1, "distinct_attribute"], "", "constraints[1]", id="an empty constraint"
        ),
        pytest.param(
            ["config", 0, "values"],
            {"/sharing/speed": "clients"},
            "config[0].values./sharing/speed",
            id="a pointer that leads nowhere",
        ),
        pytest.param(
            ["config", 0, "values"],
            {"/sharing/clients": "network"},
            "config[0].values./sharing/clients",
            id="a choice's value is never placed",
        ),
        pytest.param(["parameters", 0, "default"], "huge", "parameters[0].default", id="a default"),
        pytest.param(
            ["parameters", 0, "options", 3, "instead"],
            "gone",
            "parameters[0].options[3].instead",
            id="redirected to what is gone too",
        ),
        pytest.param(
            ["parameters", 0, "options", 4, "because"],
            "",
            "parameters[0].options[4].because",
            id="hidden without a reason",
        ),
        pytest.param(
            ["parameters", 0, "options", 2, "selectors"],
            {"port": ["x"]},
            "parameters[0].options[2].selectors.port",
            id="a fragment for a request that is none",
        ),
        pytest.param(
            ["parameters", 1, "when"],
            {"clients": [2]},
            "parameters[1].when.clients",
            id="a condition on a question that comes later",
        ),
        pytest.param(
            ["parameters", 1, "when"],
            {"network": ["wifi"]},
            "parameters[1].when.network",
            id="a condition on a value that never is",
        ),
        pytest.param(
            ["parameters", 1, "when"],
            {"network": {"minimum": 2}},
            "parameters[1].when.network",
            id="bounds of what is no number",
        ),
        pytest.param(
            ["parameters", 2, "maximum"], 0, "parameters[2].maximum", id="bounds that cross"
        ),
        pytest.param(
            ["parameters", 2, "bounds", 0, "maximum"],
            0,
            "parameters[2].bounds[0]",
            id="conditional bounds that cross",
        ),
        pytest.param(["parameters", 3, "unit"], "GiB", "parameters[3].unit", id="a unit"),
        pytest.param(["parameters", 3, "step"], "0", "parameters[3].step", id="a step of nothing"),
        pytest.param(
            ["parameters", 3, "default"], "2Gi", "parameters[3].default", id="optional and default"
        ),
        pytest.param(
            ["parameters", 3, "request"],
            "cpu",
            "parameters[3].request",
            id="a request that is none",
        ),
        pytest.param(
            ["parameters", 4, "alternatives"],
            {"gpu": ["small", "huge"]},
            "parameters[4].alternatives.gpu",
            id="an order of what is none",
        ),
        pytest.param(
            ["tenant_defaults", "basalt", "network"],
            "wifi",
            "tenant_defaults.basalt.network",
            id="a tenant's default",
        ),
        pytest.param(["pods"], 4, "pods", id="a number of Pods for what is not shared"),
        pytest.param(["longest_days"], 0, "longest_days", id="no day at all"),
    ],
)
def test_what_is_wrong_between_parts(way: list[Any], to: Any, path: str) -> None:
    assert path in problems(changed(*way, to=to))


def test_the_same_name_twice() -> None:
    switch = {"kind": "switch", "name": "x", "label": "X"}
    content = one_question(switch)
    content["parameters"].append(dict(switch, label="Y"))
    assert problems(content) == {"parameters": "2 have the name x; each parameter needs its own."}

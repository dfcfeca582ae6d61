"""Selectors: the 59 cases checked against upstream, and what goes beyond them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from devices.dra.cel.evaluate import Unmodelled
from devices.dra.gates import gates
from devices.dra.selector import (
    LONGEST,
    Fault,
    SelectorError,
    compile_selector,
    why_refused,
)
from devices.dra.slicereader import SliceReader
from devices.dra.slices import Device

CASES = yaml.safe_load((Path(__file__).parents[2] / "cases" / "cel-cases.yaml").read_text())[
    "cases"
]


def a_device(**fields: object) -> Device:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d", "nodeName": "n", "pool": pool, "devices": [{"name": "x", **fields}]}
    return SliceReader().read({"metadata": {"name": "s"}, "spec": spec}).devices[0]


def answer(expression, device, driver="gpu.example.com", cluster=None):
    """true, false, runtime-error or compile-error, and the text of an error."""
    cluster = cluster or gates()
    try:
        outcome = compile_selector(expression, cluster).matches(device, driver)
    except SelectorError as error:
        return "compile-error", str(error)
    refusal = why_refused(expression, cluster)
    if refusal and not refusal.startswith("too complex"):
        return "compile-error", refusal
    if isinstance(outcome, Fault):
        return "runtime-error", outcome.why
    return str(outcome).lower(), ""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_selector_answers_as_the_scheduler_of_1_36_does(case):
    fields = ("attributes", "capacity", "allowMultipleAllocations")
    device = a_device(**{field: case[field] for field in fields if field in case})
    cluster = gates("1.36", {case["gate"]: True} if "gate" in case else None)
    got, why = answer(case["expression"], device, case["driver"], cluster)
    assert got == case["expect"], why
    if case.get("detail", "").startswith(("no such key", "attribute ")):
        assert why == case["detail"]


A = 'device.attributes["gpu.example.com"]'


@pytest.mark.parametrize(
    "expression, expect",
    [
        pytest.param(
            'cel.bind(d, device, d.driver == "gpu.example.com")',
            "true",
            id="device bound to a name",
        ),
        pytest.param('device["driver"] == "x"', "compile-error", id="device is no map"),
        pytest.param(
            "has(device.allowMultipleAllocations)", "true", id="a field of device is always there"
        ),
        pytest.param(
            'has(device.driver) && device.driver == "gpu.example.com"',
            "true",
            id="has on the driver",
        ),
        pytest.param(
            f'"has(device.driver)" == {A}.model', "false", id="has inside a text is left alone"
        ),
        pytest.param('has(device.attributes["no.such"].x)', "false", id="has in an unknown domain"),
        pytest.param(f"{A}.index / 0 == 1", "runtime-error", id="division by zero"),
        pytest.param(
            f"{A}.index == 3u && {A}.index == 3.0", "true", id="numbers are equal across types"
        ),
        pytest.param(f"{A}.index < 4u", "true", id="and have an order across types"),
        pytest.param(
            f'{A}.index + "1" == "31"', "runtime-error", id="no sum of a number and a text"
        ),
        pytest.param("-7 / 2 == -3 && -7 % 2 == -1", "true", id="division goes towards zero"),
        pytest.param("9223372036854775807 + 1 > 0", "runtime-error", id="overflow"),
        pytest.param(f"{A}.all(k, k != 'nope')", "true", id="all over names"),
        pytest.param(f"{A}.exists(k, {A}[k] == 3)", "true", id="a computed key"),
        pytest.param(f"{A}.exists_one(k, k == 'index')", "true", id="exists_one"),
        pytest.param(f"{A}.map(k, k).size() == 3", "true", id="map"),
        pytest.param(f"{A}.filter(k, k.startsWith('i')).size() == 1", "true", id="filter"),
        pytest.param(
            '[1, 2].exists(n, n == 2 || {}["x"] == 1)', "true", id="exists absorbs an error"
        ),
        pytest.param(f"{A}.?nope.optMap(v, v + 1).orValue(7) == 7", "true", id="optMap on nothing"),
        pytest.param(
            f"{A}.?index.optMap(v, v + 1).orValue(7) == 4", "true", id="optMap on something"
        ),
        pytest.param(f'{A}.?a.or({A}.?model).value() == "H100"', "true", id="or, value"),
        pytest.param(
            "device.attributes.size() == 1", "true", id="an unknown domain is not counted"
        ),
        pytest.param('[1, "a"].size() == 2', "compile-error", id="a list of mixed types"),
        pytest.param("[3, 1].isSorted() || [1, 3].sum() == 4", "true", id="lists"),
        pytest.param(f'{A}.model.find("[0-9]+") == "100"', "true", id="find"),
        pytest.param('"a,b".split(",").join("-") == "a-b"', "true", id="split and join"),
        pytest.param(f'{A}.model.substring(9) == ""', "runtime-error", id="substring out of range"),
        pytest.param("type(device.driver) == string", "true", id="type"),
        pytest.param(
            'quantity("1Gi").add(quantity("1Gi")).compareTo(quantity("2Gi")) == 0', "true", id="add"
        ),
        pytest.param('quantity("1").add(2).asInteger() == 3', "true", id="add an int"),
        pytest.param('quantity("1.5Gi").isInteger()', "false", id="Go holds 1.5Gi as a decimal"),
        pytest.param('sign(quantity("-5m")) == -1 && isQuantity("5 ") == false', "true", id="sign"),
        pytest.param(
            'semver("1.2.3").minor() == 2 && !isSemver("1.2")', "true", id="parts of a version"
        ),
        pytest.param('semver("1.2.3") == semver("1.2.3+b")', "true", id="build metadata in =="),
        pytest.param("sets.contains([1, 2], [2])", "true", id="sets"),
        pytest.param(
            "[1, 2].all(x, [3].all(x, x == 3) && x < 3)", "true", id="an inner x hides the outer"
        ),
        pytest.param('ip("10.0.0.1").family() == 4 && !isIP("1.2.3")', "true", id="addresses"),
        pytest.param(
            'ip("::ffff:1.2.3.4").family() == 6', "runtime-error", id="no IPv4 within IPv6"
        ),
        pytest.param(
            'cidr("10.0.0.0/8").containsIP("10.1.2.3") && !cidr("10.0.0.0/8").containsCIDR("::/0")',
            "true",
            id="networks",
        ),
        pytest.param(
            'cidr("10.1.2.3/8").masked() == cidr("10.0.0.0/8")', "true", id="a masked network"
        ),
        pytest.param('string(cidr("2001:DB8::/32")) == "2001:db8::/32"', "true", id="canonical"),
        pytest.param(
            'url("https://a.example:80/x y?k=1&k=2").getQuery()["k"] == ["1", "2"]',
            "true",
            id="a URL's query",
        ),
        pytest.param('url("https://[::1]:80/a b").getEscapedPath() == "/a%20b"', "true", id="path"),
        pytest.param('isURL("no url")', "false", id="no URL"),
        pytest.param(
            'format.dns1123Label().validate("Bad").hasValue() && !format.named("no").hasValue()',
            "true",
            id="named formats",
        ),
        pytest.param(
            '"%s of %d".format([device.driver, 3]) == "gpu.example.com of 3"', "true", id="a format"
        ),
        pytest.param('"%d".format(["3"]) == "3"', "compile-error", id="a format of other types"),
        pytest.param('"%d%%".format([3]) == "3%"', "true", id="a text with a number"),
        pytest.param(
            'timestamp("2026-01-02T03:04:05Z").getHours("Europe/Berlin") == 4', "true", id="zones"
        ),
        pytest.param(
            'timestamp("2026-01-02T00:00:00Z") - timestamp("2026-01-01T00:00:00Z")'
            ' == duration("24h")',
            "true",
            id="the time between two moments",
        ),
        pytest.param('duration("x") > duration("1h")', "compile-error", id="no duration"),
        pytest.param(
            'string(duration("1500ms")) == "1.5s" && duration("1h") < duration("61m")',
            "true",
            id="durations",
        ),
        pytest.param(
            'device.attributes.exists(domain, found, "model" in found)', "true", id="two variables"
        ),
        pytest.param(
            '[1, 2, 2].exists_one(i, v, v == 1 && i == 0) && "exists_one(" != ""',
            "true",
            id="exists_one with two variables",
        ),
        pytest.param(
            '{"a": 1}.transformMap(k, v, v + 1) == {"a": 2}'
            " && [1, 2].transformList(i, v, i > 0, v * 10) == [20]"
            ' && {"a": 1}.transformMapEntry(k, v, {v: k}) == {1: "a"}',
            "true",
            id="transforms",
        ),
        pytest.param(
            '["ccc", "a"].sortBy(x, size(x)) == ["a", "ccc"] && [2, 1].sort()[0] == 1',
            "true",
            id="sorted",
        ),
        pytest.param(
            "lists.range(3) == [0, 1, 2] && [4, 5].last().value() == 5", "true", id="ends"
        ),
        pytest.param(
            'base64.encode(b"x") == "eA=="', "compile-error", id="Kubernetes has no base64"
        ),
        pytest.param("true ? false : 1 / 0 == 1", "false", id="the other branch is not looked at"),
    ],
)
def test_cel_beyond_the_cases(expression, expect):
    device = a_device(
        attributes={"model": {"string": "H100"}, "index": {"int": 3}, "healthy": {"bool": True}}
    )
    got, why = answer(expression, device)
    assert got == expect, why


def test_list_attributes_break_no_selector_from_1_37_on():
    device = a_device(attributes={"roots": {"strings": ["a", "b"]}})
    assert answer('device.driver == "gpu.example.com"', device)[0] == "true"
    assert answer(f'"b" in {A}.roots', device)[0] == "true"


def test_what_nobody_knows_is_a_fault_for_every_selector():
    device = a_device(attributes={"odd": {"matrix": [[1]]}})
    assert answer("true", device) == ("runtime-error", "attribute odd: unsupported attribute value")


def test_what_is_not_modelled_is_named_and_not_called_wrong():
    built = 'google.protobuf.Duration{seconds: 3} == duration("3s")'
    with pytest.raises(Unmodelled, match=r"google\.protobuf\.Duration"):
        compile_selector(built)
    assert why_refused(built) is None


def test_a_long_expression_is_refused():
    assert "10240" in str(why_refused("true || " * 2000 + "true", gates()))
    assert len("true || " * 2000) > LONGEST


def test_loops_within_loops_are_refused_before_they_run():
    [case] = [case for case in CASES if case["name"] == "runtime-cost-limit"]
    assert str(why_refused(case["expression"])).startswith("too complex")
    inner = 'device.attributes["b.example.com"].exists(k, k == n)'
    once = f'device.attributes["a.example.com"].exists(n, {inner})'
    assert why_refused(once) is None


def test_a_field_behind_a_gate_is_refused_without_it():
    without = gates("1.37", {"DRAConsumableCapacity": False})
    assert why_refused("device.allowMultipleAllocations", without)
    assert not why_refused("device.allowMultipleAllocations", gates())


def test_equal_devices_are_evaluated_once():
    selector = compile_selector(f'{A}.model == "once"')
    one, other = (
        a_device(attributes={"model": {"string": "once"}, "uuid": {"string": uuid}})
        for uuid in "ab"
    )
    assert selector.matches(one, "gpu.example.com") is True
    assert selector.matches(other, "gpu.example.com") is True
    assert len(selector.answers) == 1


@pytest.mark.parametrize(
    "expression",
    [
        f'{A}.model == "m" && {A}["model"] != "n" && device.driver != "q"',
        f'"model" in {A} && {A}.?model.orValue("") == "m"',
        f'cel.bind(a, {A}, a.model == "m")',
        f'{A}.exists(k, k == "model")',
        'device.attributes.exists(d, device.attributes[d].exists(k, k == "model"))',
    ],
)
def test_an_answer_is_remembered_only_for_devices_that_differ_in_nothing_it_looks_at(expression):
    """Every device, asked of a selector that has seen all others, answers as if asked alone."""
    devices = [
        a_device(
            attributes={"model": {"string": model}, "n": {"int": n}} if model else {"n": {"int": n}}
        )
        for model in ("m", "x", "")
        for n in (1, 2)
    ]
    for driver in ("gpu.example.com", "other.example.com"):
        for device in devices:
            fresh = compile_selector(expression)
            alone = fresh._evaluate(device, driver)
            assert fresh.matches(device, driver) == alone

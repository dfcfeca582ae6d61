"""Selectors in plain words, and those that have none."""

from __future__ import annotations

import pytest

from devices.dra.restate import restate, restated, shown, spaced

A = 'device.attributes["gpu.example.com"]'
C = 'device.capacity["gpu.example.com"]'


@pytest.mark.parametrize(
    "expression, words",
    [
        ('device.driver == "gpu.example.com"', "driver gpu.example.com"),
        ('"gpu.example.com" == device.driver', "driver gpu.example.com"),
        (f'{A}.model == "H100"', "model is H100"),
        (f'{A}["productName"] != "L4"', "product name is not L4"),
        (f"{A}.index < 3", "index below 3"),
        (f"3 <= {A}.index", "index at least 3"),
        (f"{A}.healthy", "healthy"),
        (f"!{A}.healthy", "not healthy"),
        (f"{A}.healthy == false", "not healthy"),
        (f'{C}.memory.compareTo(quantity("40Gi")) >= 0', "memory at least 40 GiB"),
        (f'!({C}.memory.compareTo(quantity("40Gi")) >= 0)', "memory less than 40 GiB"),
        (f'{C}.memory.isGreaterThan(quantity("1024Mi"))', "memory more than 1 GiB"),
        (f'{C}.memory == quantity("80Gi")', "memory exactly 80 GiB"),
        (
            f'{A}.driverVersion.isGreaterThan(semver("535.0.0"))',
            "driver version newer than 535.0.0",
        ),
        (
            f'{A}.driverVersion.compareTo(semver("v550", true)) >= 0',
            "driver version at least version 550",
        ),
        (f'{A}.model in ["H100", "H200"]', "model is one of H100, H200"),
        (f'!({A}.model in ["H100"])', "model is none of H100"),
        (f'{A}.model.lowerAscii().startsWith("nvidia")', "model starts with nvidia"),
        (f'"model" in {A} && {A}.model == "H100"', "model is H100"),
        (f'has({A}.model) && {A}.model == "H100"', "model is H100"),
        (f"has({A}.model)", "model is published"),
        (f'{A}.?model.orValue("") == "H100"', "model is H100"),
        (f'cel.bind(a, {A}, a.model == "H100" && a.index > 0)', "model is H100 and index above 0"),
        (
            f'device.driver == "gpu.example.com" && ({A}.model == "a" || {A}.model == "b")',
            "driver gpu.example.com and (model is a or model is b)",
        ),
        ("device.allowMultipleAllocations", "shareable"),
        ("!device.allowMultipleAllocations", "not shareable"),
        ("device.attributes[device.driver].?healthy.orValue(false)", "healthy"),
        ("true", "any device"),
        (f"{A}.?index.orValue(9) < 3", "index below 3"),
        (f"{A}.?index.orValue(0) < 3", "index below 3 or not published"),
        (f"{A}.?healthy.orValue(true)", "healthy or not published"),
        (f"!{A}.?healthy.orValue(false)", "not healthy or not published"),
        (f'!{A}.model.contains("x")', "model does not contain x"),
    ],
)
def test_a_selector_in_words(expression, words):
    assert restate(expression) == words


@pytest.mark.parametrize(
    "expression",
    [
        f"{A}.exists(k, k.startsWith('nvlink'))",
        f"{A}.index % 2 == 1",
        f"{A}.model == {A}.other",
        "no such thing",
        'cidr("10.0.0.0/8").containsIP("10.0.0.1")',
    ],
)
def test_what_has_no_plain_form_is_not_guessed(expression):
    assert restate(expression) is None
    assert restated((expression, None)) == (expression, "an unknown kind of selector")


def test_names_and_quantities_for_people():
    assert spaced("resource.kubernetes.io/pcieRoot") == "pcie root"
    assert spaced("UUID") == "UUID"
    assert spaced("cudaComputeCapability") == "cuda compute capability"
    assert shown("81559Mi") == "81559 MiB"
    assert shown("500m") == "500m"
    assert shown("80GB") == "80GB"

"""Random CEL selectors and devices: mostly right, sometimes wrong as people get it wrong."""

from __future__ import annotations

import random
from typing import Any, Final

DRIVER: Final = "gpu.example.com"
_OWN: Final = "device.attributes[device.driver]"
_GPU: Final = f'device.attributes["{DRIVER}"]'
_SHARED: Final = 'device.attributes["example.com"]'
_MEMORY: Final = "device.capacity[device.driver].memory"

#: Selectors that hold for devices of any driver; none of them fails where attributes are missing.
SAFE: Final = (
    f'{_OWN}.?model.orValue("") == "h100"',
    f'{_OWN}.?model.orValue("") != "l4"',
    f"has({_OWN}.index) && {_OWN}.index < 3",
    f"{_OWN}.?index.orValue(9) % 2 == 0",
    f"{_OWN}.?healthy.orValue(false)",
    f'"root" in {_SHARED} && {_SHARED}.root == "pci1"',
    f"{_SHARED}.?numa.orValue(1) == 0",
    f'cel.bind(a, {_OWN}, has(a.model) && a.model.startsWith("h"))',
    f'{_OWN}.exists(name, name == "model")',
    'device.driver == "gpu.example.com"',
    "!device.allowMultipleAllocations",
    "true",
)
#: Selectors that fail on some device: what is missing ends the attempt.
RISKY: Final = (
    f'{_GPU}.model == "h100"',
    f'{_OWN}.model in ["a100", "h100"]',
    f"{_OWN}.healthy",
    f'{_OWN}.firmware.isGreaterThan(semver("1.9.0"))',
    f'{_OWN}.firmware.compareTo(semver("2.0.0")) < 0',
    f'{_MEMORY}.compareTo(quantity("40Gi")) >= 0',
    f'{_MEMORY}.isGreaterThan(quantity("50G"))',
    f'device.driver == "gpu.example.com" && {_GPU}.model.lowerAscii().contains("100")',
    f'{_OWN}.firmware == "1.2.3"',
    f"{_OWN}.model < 3",
    f'{_SHARED}.root.matches("pci[01]")',
)


def a_selector(dice: random.Random) -> str:
    """One selector: a safe one most of the time, two joined now and then."""
    pick = dice.choice(SAFE) if dice.random() < 0.75 else dice.choice(RISKY)
    if dice.random() < 0.2:
        other = dice.choice(SAFE + RISKY)
        return f"({pick}) {dice.choice(('&&', '||'))} ({other})"
    return pick


# Expressions of every kind, to hold the evaluator to upstream's

_VALUES: Final = (
    f"{_GPU}.model", f"{_GPU}.index", f"{_GPU}.healthy", f"{_GPU}.firmware", f"{_GPU}.nope",
    f'{_GPU}["model"]', f"{_GPU}.?index.orValue(4)", f"{_SHARED}.numa", f"{_SHARED}.root",
    "device.driver", '"h100"', '""', '"1.2.3"', "3", "0", "-1", "2u", "1.5", "3.0", "true", "false",
    'quantity("40Gi")', 'quantity("1k")', 'quantity("1.5Gi")', 'quantity("oops")',
    'semver("1.2.3")', 'semver("v2", true)', 'semver("2")', "[1, 2, 3]", '["h100", "l4"]', "[]",
    f"{_GPU}", "device.attributes", "device.capacity", f'device.capacity["{DRIVER}"].memory',
    f'device.capacity["{DRIVER}"].nope', "device.allowMultipleAllocations", f"{_GPU}.size()",
    'device.attributes["none.example.com"]', 'device.attributes["none.example.com"].x',
    '{"a": 1}', '{"a": 1}.a', '"aXb".split("X")', "dyn(3)", 'dyn("3")', "type(3)", "int", "null",
    "string(3)", 'int("7")', "double(3)", f"{_GPU}.model.size()", '"a,b".indexOf(",")',
)  # fmt: skip
_TESTS: Final = (
    "{a} == {b}", "{a} != {b}", "{a} < {b}", "{a} >= {b}", "{a} in {b}", "{a} + {b} == {a}",
    "{a}.startsWith({b})", "{a}.contains({b})", '{a}.matches("h[0-9]+")', "has({_p}.{n})",
    "{a}.compareTo({b}) == 0", "{a}.isGreaterThan({b})", "{a}.isLessThan({b})", "{a} - {b} == 0",
    "{a}.exists(x, x == {b})", "{a}.all(x, x != {b})", "{a}.map(x, x).size() > 0", "{a}[{b}] == 1",
    "{a}.filter(x, x == {b}).size() == 1", '"{n}" in {_p}', "{a}", "!{a}", "-{a} == {b}",
    "{a} ? {b} : true", "{a} * 2 == {b}", "{a} / {b} == 1", "{a} % 2 == {b}", "{a}.size() == 3",
    "{a}.lowerAscii() == {b}", "type({a}) == type({b})", "{_p}.?{n}.hasValue()",
    "{a}.includes({b})",
    "{_p}.?{n}.optMap(x, x == {b}).orValue(false)", "{a}.exists_one(x, x == {b})", "{a}.sum() == 6",
    "{a}.asInteger() == 3", "{a}.add({b}) == {a}", "{a}.major() == 1", "{a}.isSorted()",
    "{a}.substring(1) == {b}", "{a}.replace({b}, {a}) == {a}", "isQuantity({a})", "isSemver({a})",
    "{a}.max() == 3", "{a}.find({b}) == {a}", "{a}.join() == {b}", "sign({a}) == 1",
    "cel.bind(v, {a}, v == {b})", "{a}.trim() == {b}", "{a}.charAt(0) == {b}",
)  # fmt: skip
#: What is asked less often: addresses, URLs, times, formats, and loops with two variables.
_RARE_VALUES: Final = (
    'ip("10.1.2.3")', 'ip("2001:db8::1")', 'cidr("10.0.0.0/8")', 'cidr("10.1.2.3/16")',
    'url("https://a.example:80/p q?k=1&k=2")', 'url("/p")', 'duration("90m")', 'duration("-15ms")',
    'timestamp("2026-01-02T03:04:05Z")', 'timestamp("2026-01-02T03:04:05.25+01:00")',
    '"10.1.2.3"', '"10.0.0.0/8"', '"1h"', '"2026-01-02T03:04:05Z"', '"https://[::1]:80/x"', '"a.b"',
    "[3, 1, 2]", '["b", "a"]', "[[1], [2, 3]]", '{"a": 1, "b": 2}', "optional.of(1)", "4",
    f"{_GPU}.model", f"{_GPU}.index", f"{_GPU}",
)  # fmt: skip
_RARE_TESTS: Final = (
    "isIP({a})", "ip({a}).family() == 4", "{a}.isLoopback()", "{a}.isGlobalUnicast()",
    "ip.isCanonical({a})", "cidr({a}).containsIP({b})", "{a}.containsIP({b})", "isCIDR({a})",
    "{a}.containsCIDR({b})", "{a}.masked() == {b}", "{a}.prefixLength() == 8", "string({a}) == {b}",
    "isURL({a})", "url({a}).getHost() == {b}", "{a}.getPort() == {b}", "{a}.getQuery().size() == 1",
    "{a}.getEscapedPath() == {b}", "{a}.getHours() == 3", "{a}.getMilliseconds() == 250",
    '{a}.getDayOfYear("Europe/Berlin") == 1', '{a} - {b} == duration("1h")', "{a} + {b} > {a}",
    "duration({a}) < duration({b})", "timestamp({a}) < timestamp({b})", "int({a}) > 0",
    "{a}.exists(i, v, v == {b})", "{a}.all(i, v, v != {b})", "{a}.exists_one(i, v, v == {b})",
    "{a}.existsOne(i, v, v == {b})", "{a}.transformList(i, v, v) == {b}",
    "{a}.transformMap(k, v, v) == {b}", "{a}.transformMapEntry(k, v, {k: v}) == {b}",
    "{a}.sort() == {b}", "{a}.sortBy(x, x) == {b}", "{a}.distinct() == {b}", "{a}.flatten() == {b}",
    "{a}.reverse() == {b}", "{a}.slice(0, 1) == {b}", "lists.range({a}).size() == 4",
    "{a}.first().hasValue()", "{a}.last().value() == {b}", "sets.contains({a}, {b})",
    "sets.intersects({a}, {b})", '"%s".format([{a}]) == {b}', '"%d|%x".format([{a}, {a}]) == {b}',
    '"%.2f".format([{a}]) == {b}', "strings.quote({a}) == {b}", "type({a}) == type({b})",
    "format.dns1123Label().validate({a}).hasValue()", "format.uri().validate({a}).hasValue()",
    "format.datetime().validate({a}).hasValue()", 'format.named("uuid").hasValue()',
    "format.qualifiedName().validate({a}).value().size() == 1", "{a} == {b}", "{a} in {b}",
    "{a}.optFlatMap(x, optional.of(x)).hasValue()", "optional.unwrap([{a}]).size() == 1",
)  # fmt: skip
_NAMES: Final = ("model", "index", "healthy", "firmware", "nope", "root")
_MAPS: Final = (_GPU, _SHARED, "device.attributes", 'device.attributes["none.example.com"]')


def an_expression(dice: random.Random, depth: int = 0) -> str:
    """One expression of any kind, often ill-typed or failing."""
    rare = dice.random() < 0.25
    tests, values = (_RARE_TESTS, _RARE_VALUES) if rare else (_TESTS, _VALUES)
    test = dice.choice(tests)
    text = test.replace("{_p}", dice.choice(_MAPS)).replace("{n}", dice.choice(_NAMES))
    text = text.replace("{a}", dice.choice(values)).replace("{b}", dice.choice(values))
    if depth < 2 and dice.random() < 0.3:
        join = dice.choice(("{0} && {1}", "{0} || {1}", "!({0}) || {1}", "({0}) ? {1} : {1}"))
        return join.format(f"({text})", f"({an_expression(dice, depth + 1)})")
    return text


def a_device(dice: random.Random) -> dict[str, Any]:
    """A device that an expression is asked about."""
    attributes: dict[str, Any] = {
        "model": {"string": dice.choice(("h100", "l4", "H100 PCIe"))},
        "index": {"int": dice.randint(0, 3)},
        "healthy": {"bool": dice.random() < 0.7},
        "firmware": {"version": dice.choice(("1.2.3", "1.10.0", "2.0.0-rc.1", "1.2.3+b5"))},
        "example.com/numa": {"int": dice.randint(0, 1)},
        "example.com/root": {"string": "pci0"},
    }
    for name in list(attributes):
        if dice.random() < 0.15:
            del attributes[name]
    capacity = {"memory": {"value": dice.choice(("40Gi", "80Gi", "81559Mi", "1k"))}}
    return {
        "name": "d",
        "attributes": attributes,
        "capacity": capacity if dice.random() < 0.9 else {},
        "allowMultipleAllocations": dice.random() < 0.3,
    }

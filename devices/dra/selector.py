"""Selectors: CEL expressions over one device, compiled and evaluated as Kubernetes does.

The engine parses and checks types; evaluation is `cel.evaluate`.
Follows ``k8s.io/dynamic-resource-allocation/cel/compile.go``: the one variable is ``device`` with
``driver``, ``attributes``, ``capacity`` and ``allowMultipleAllocations``; a missing attribute is
an error that ends the whole scheduling attempt, not "no match".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_optional

from devices.dra.cel.checks import check
from devices.dra.cel.cost import worst_cost
from devices.dra.cel.declarations import EXTENSIONS, OVERLOADS, REPLACED
from devices.dra.cel.evaluate import Scope, Step, Unmodelled, compiled
from devices.dra.cel.paths import ATTRIBUTES, CAPACITY, Paths, paths_of
from devices.dra.cel.patterns import PatternNotModelled
from devices.dra.cel.syntax import Node as Tree
from devices.dra.cel.syntax import (
    read_checked,
)
from devices.dra.cel.values import CelError, Domains, type_name
from devices.dra.gates import Gates
from devices.dra.semver import SemverError
from devices.dra.semver import parse as parse_semver
from devices.dra.slices import LISTS, UNKNOWN, Attribute, Device

#: CELSelectorExpressionMaxLength and CELSelectorExpressionMaxCost of resource/v1.
LONGEST: Final = 10 * 1024
MOST_COST: Final = 1_000_000


class SelectorError(ValueError):
    """The expression does not compile; the API server refuses it, the message says why."""


@dataclass(frozen=True, slots=True)
class Fault:
    """An expression failed on a device: that ends the scheduling attempt of the whole Pod."""

    why: str


#: What a selector answers for one device.
Outcome = bool | Fault


@dataclass(frozen=True, slots=True, eq=False)
class Selector:
    """One compiled expression; it remembers its answers by the values it looks at.

    ``lists`` tells whether list attributes are supported: where they are not, every selector fails
    on a device that has one (through 1.36, and there for every cluster without the gate).
    """

    expression: str
    tree: Tree
    paths: Paths
    lists: bool
    run: Step = field(repr=False)
    answers: dict[Any, Outcome] = field(default_factory=dict, repr=False)

    def matches(self, device: Device, driver: str) -> Outcome:
        """Whether the device is selected, or the Fault that ends the scheduling attempt."""
        return self.on_slice((device,), driver)[0]

    def on_slice(self, devices: Sequence[Device], driver: str) -> tuple[Outcome, ...]:
        """The outcome for each device of one driver's slice.

        Devices that are equal in all that the expression looks at are evaluated once.
        """
        key_of = self._key_of(driver)
        answers = self.answers
        out = []
        for device in devices:
            key = key_of(device)
            answer = answers.get(key)
            if answer is None:
                answer = answers[key] = self._evaluate(device, driver)
            out.append(answer)
        return tuple(out)

    def names(self, driver: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What it looks at of a driver's device: names of attributes, and of capacities."""
        attributes, capacity = sorted(self.paths.attributes), sorted(self.paths.capacity)
        return (
            tuple(name for path in attributes for name in _spellings(path, driver)),
            tuple(name for path in capacity for name in _spellings(path, driver)),
        )

    def _key_of(self, driver: str) -> Callable[[Device], Any]:
        """What an answer depends on, as a function of the device."""
        paths = self.paths
        if paths.whole:
            return lambda device: (
                driver,
                device.shareable,
                frozenset(device.attributes.items()),
                frozenset((name, capacity.value) for name, capacity in device.capacity.items()),
            )
        names, amounts = self.names(driver)

        def key(device: Device) -> Any:
            attribute, capacity = device.attributes.get, device.capacity.get
            parts: list[Any] = [attribute(name) for name in names]
            parts += [capacity(name) for name in amounts]
            return (driver, device.shareable, device.odd_attributes, *parts)

        return key

    def _evaluate(self, device: Device, driver: str) -> Outcome:
        value = self.value(device, driver)
        if isinstance(value, bool | Fault):
            return value
        return Fault(f"CEL result of type {type_name(value)} could not be converted to bool")

    def value(self, device: Device, driver: str) -> Any:
        """What the expression yields for a device, of whatever type, or a Fault."""
        broken = _unsupported(device, self.lists)
        if broken:
            return Fault(broken)
        try:
            return self.run(Scope(variables(device, driver), MOST_COST))
        except SemverError as error:
            return Fault(f"parse semantic version: {error}")
        except CelError as error:
            return Fault(str(error))
        except RecursionError:
            return Fault("the expression is nested too deeply")


def compile_selector(expression: str, gates: Gates | None = None) -> Selector:
    """An expression as the scheduler runs it. Raises SelectorError, or Unmodelled where it uses a
    part of Kubernetes' CEL that is not modelled here.
    """
    gates = gates or Gates()
    lists = gates.at_least("1.37") or gates.lists
    return _compiled(expression, lists, lists)


def compile_derived(expression: str, gates: Gates) -> Selector:
    """An expression that derives an attribute: like a selector, but its result need not be bool."""
    lists = gates.at_least("1.37") or gates.lists
    return _compiled(expression, lists, lists, any_result=True)


def why_refused(expression: str, gates: Gates | None = None) -> str | None:
    """Why the API server would refuse the expression in a new object, or None.

    What it accepts depends on the gates. Its estimate of the worst cost is not reproduced exactly:
    what loops over loops is refused as it would be, a few odd expressions more are refused there.
    """
    gates = gates or Gates()
    if len(expression) > LONGEST:
        return f"the expression has {len(expression)} characters, {LONGEST} are allowed"
    try:
        compiled_ = _compiled(expression, gates.lists, gates.lists, includes=gates.lists)
    except SelectorError as error:
        return str(error)
    except Unmodelled:
        return None
    cost = worst_cost(compiled_.tree)
    if cost > MOST_COST:
        return f"too complex: up to {cost:,} steps, {MOST_COST:,} are allowed"
    if "DRAConsumableCapacity" not in gates and ".allowMultipleAllocations" in expression:
        return "undefined field 'allowMultipleAllocations'"
    return None


def variables(device: Device, driver: str) -> dict[str, Any]:
    """The variables of an evaluation; raises SemverError for a version that is none."""
    attributes: dict[str, dict[str, Any]] = {}
    for name, attribute in device.attributes.items():
        domain, _, short = name.rpartition("/")
        attributes.setdefault(domain or driver, {})[short] = _value(attribute)
    capacity: dict[str, dict[str, Any]] = {}
    for name, amount in device.capacity.items():
        domain, _, short = name.rpartition("/")
        capacity.setdefault(domain or driver, {})[short] = amount.value
    known = {
        "driver": driver,
        "allowMultipleAllocations": device.shareable,
        "attributes": Domains(attributes),
        "capacity": Domains(capacity),
    }
    return {"device": known, **{f"device.{name}": value for name, value in known.items()}}


def _value(attribute: Attribute) -> Any:
    if attribute.kind == "version":
        return parse_semver(attribute.value)
    if attribute.kind == "versions":
        return [parse_semver(text) for text in attribute.value]
    return list(attribute.value) if attribute.kind in LISTS else attribute.value


def _spellings(path: tuple[str, str], driver: str) -> tuple[str, ...]:
    """How a driver may have published an attribute: without a domain it is in the driver's own."""
    domain, name = path
    return (f"{domain}/{name}", name) if domain == driver else (f"{domain}/{name}",)


def _unsupported(device: Device, lists: bool) -> str:
    """The first attribute whose value no selector can be given, as upstream words it."""
    for name in device.odd_attributes:
        if not lists or device.attributes[name].kind == UNKNOWN:
            return f"attribute {name}: unsupported attribute value"
    return ""


# The engine: what may be written, and of which type it is

_T = cel.Type
_TYPES: Final[Mapping[str, cel.Type]] = {
    "quantity": _T.AbstractType("kubernetes.Quantity", []),
    "semver": _T.AbstractType("kubernetes.Semver", []),
    "string": _T.STRING,
    "bool": _T.BOOL,
    "int": _T.INT,
    "uint": _T.UINT,
    "double": _T.DOUBLE,
    "bytes": _T.BYTES,
    "dyn": _T.DYN,
    "strings": _T.List(_T.STRING),
    "list": _T.List(_T.DYN),
    "duration": _T.DURATION,
    "timestamp": _T.TIMESTAMP,
    "ip": _T.AbstractType("net.IP", []),
    "cidr": _T.AbstractType("net.CIDR", []),
    "url": _T.AbstractType("kubernetes.URL", []),
    "query": _T.Map(_T.STRING, _T.List(_T.STRING)),
    "format": _T.AbstractType("kubernetes.NamedFormat", []),
}
_TEXT: Final = r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
_HAS_FIELD: Final = re.compile(
    rf"{_TEXT}|\bhas\(\s*device\s*\.\s*(?:driver|attributes|capacity|allowMultipleAllocations)\s*\)"
)
_EXISTS_ONE: Final = re.compile(rf"{_TEXT}|\.\s*exists_one\(")


@lru_cache(maxsize=4)
def _engine(dynamic: bool, includes: bool) -> cel.Env:
    """The environment; with ``dynamic`` attribute values may be iterated (list attributes)."""
    value = _T.DYN if dynamic else _T("google.protobuf.Any")
    excluded = "".join(f"\n  - name: '{name}'" for name in REPLACED)
    parts = "".join(f"\n  - name: '{name}'" for name in EXTENSIONS)
    return cel.NewEnv(
        config=cel.NewEnvConfigFromYaml(
            f"name: device\nstdlib:\n  exclude_functions:{excluded}\nextensions:{parts}"
        ),
        variables={
            "device": _T.Map(_T.STRING, _T.DYN),
            "device.driver": _T.STRING,
            "device.allowMultipleAllocations": _T.BOOL,
            ATTRIBUTES: _T.Map(_T.STRING, _T.Map(_T.STRING, value)),
            "net.IP": _T.DYN,
            "net.CIDR": _T.DYN,
            CAPACITY: _T.Map(_T.STRING, _T.Map(_T.STRING, _TYPES["quantity"])),
        },
        extensions=[ext_bindings.ExtBindings(), ext_optional.ExtOptional()],
        functions=[
            cel.FunctionDecl(name, [_overload(name, text) for text in overloads])
            for name, overloads in OVERLOADS.items()
            if name != "includes" or includes
        ],
    )


def _type_of(word: str) -> cel.Type:
    element = re.fullmatch(r"list<(\w+)>", word)
    return _T.List(_TYPES[element.group(1)]) if element else _TYPES[word]


def _overload(name: str, text: str) -> cel.Overload:
    given, result = text.split(" -> ")
    words = given.removeprefix(". ").split()
    return cel.Overload(
        f"kubernetes_{name}_{'_'.join(words)}",
        return_type=_type_of(result),
        parameters=[_type_of(word) for word in words],
        is_member=given.startswith("."),
    )


@lru_cache(maxsize=2048)
def _compiled(
    expression: str,
    lists: bool,
    dynamic: bool,
    *,
    any_result: bool = False,
    includes: bool = True,
) -> Selector:
    engine = _engine(dynamic, includes)
    text = _HAS_FIELD.sub(lambda found: found.group(1) or "true", expression)
    try:
        checked = read_checked(_checked(engine, text))
    except RuntimeError as error:
        raise SelectorError(_first_line(str(error))) from error
    try:
        check(checked, dynamic, any_result)
    except PatternNotModelled as error:
        raise Unmodelled(str(error)) from error
    except CelError as error:
        raise SelectorError(str(error)) from error
    return Selector(expression, checked.root, paths_of(checked.root), lists, compiled(checked.root))


def _checked(engine: cel.Env, text: str) -> bytes:
    """The checked tree. Of a loop with two variables the engine knows one of the two spellings."""
    try:
        return bytes(engine.compile(text).serialize())
    except RuntimeError:
        other = _EXISTS_ONE.sub(lambda found: found.group(1) or ".existsOne(", text)
        if other == text:
            raise
        return bytes(engine.compile(other).serialize())


def _first_line(error: str) -> str:
    return error.removeprefix("INVALID_ARGUMENT: ").split("\n", 1)[0].replace("ERROR: <input>:", "")

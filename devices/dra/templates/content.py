"""What a template version's JSON holds, as frozen values: requests, questions, and what answers do.

A value that a tenant chooses never becomes CEL or YAML text. A choice carries its fragments, which
the template's author wrote; numbers and quantities are placed as values.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Literal

import msgspec

from devices.dra.quantity import NANO, parse

Value = str | int | bool


class _Content(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a template's JSON; a field that nobody knows is refused."""


class Between(_Content, frozen=True):
    """A condition on a count: at least and at most so many."""

    minimum: int | None = None
    maximum: int | None = None


Condition = dict[str, tuple[Value, ...] | Between]
"""By parameter, the values with which it holds. All must hold; an empty one always does."""


class TolerationPart(_Content, frozen=True):
    """A device taint that a request puts up with (resource/v1 DeviceToleration)."""

    key: str = ""
    operator: Literal["Exists", "Equal"] = "Equal"
    value: str = ""
    effect: Literal["", "NoSchedule", "NoExecute"] = ""
    seconds: int | None = None


class ConstraintPart(_Content, frozen=True):
    """All devices of `requests` (none named: of the claim) share one attribute's value, or differ
    in it. Exactly one of the two attributes is given.
    """

    match_attribute: str = ""
    distinct_attribute: str = ""
    requests: tuple[str, ...] = ()
    when: Condition = {}


class ConfigPart(_Content, frozen=True):
    """Opaque configuration for a driver: only the driver reads `parameters`.

    `values` places answers: JSON pointer into the parameters → name of a count, quantity or switch.
    """

    driver: str
    parameters: dict[str, Any]
    requests: tuple[str, ...] = ()
    values: dict[str, str] = {}
    when: Condition = {}


class Fragments(_Content, frozen=True):
    """What an answer does, by request name ("gpu": all its alternatives, "gpu/small": that one).

    Selectors, tolerations, constraints and config are added; class, count and capacity replace.
    `alternatives` says which of a request's alternatives are tried, and in which order.
    """

    selectors: dict[str, tuple[str, ...]] = {}
    device_class: dict[str, str] = {}
    count: dict[str, int] = {}
    capacity: dict[str, dict[str, str]] = {}
    tolerations: dict[str, tuple[TolerationPart, ...]] = {}
    constraints: tuple[ConstraintPart, ...] = ()
    config: tuple[ConfigPart, ...] = ()
    alternatives: dict[str, tuple[str, ...]] = {}


class Option(Fragments, kw_only=True, frozen=True):
    """One answer to a choice; offered only when `when` holds.

    What goes out of use is `hidden`, `because` of something, or redirected to the option `instead`;
    it is never removed, since there are those who hold it.
    """

    value: str
    label: str
    words: str = ""
    when: Condition = {}
    hidden: bool = False
    instead: str = ""
    because: str = ""

    @property
    def offered(self) -> bool:
        return not self.hidden and not self.instead


class Choice(_Content, frozen=True, tag="choice", tag_field="kind"):
    """One of several options, shown as radio cards. An `optional` one may stay unanswered."""

    name: str
    label: str
    options: tuple[Option, ...]
    default: str = ""
    help: str = ""
    when: Condition = {}
    optional: bool = False
    required_when: Condition = {}

    def option(self, value: Value) -> Option:
        """The option of that value; KeyError where there is none."""
        for option in self.options:
            if option.value == value:
                return option
        raise KeyError(value)

    def words(self, value: Value) -> str:
        return next((one.label for one in self.options if one.value == value), str(value))


class CountBounds(_Content, frozen=True):
    """Other bounds of a count while a condition holds; what is not given stays."""

    when: Condition
    minimum: int | None = None
    maximum: int | None = None


class Count(_Content, frozen=True, tag="count", tag_field="kind"):
    """A whole number: how many devices a request asks for, or only something to decide by."""

    name: str
    label: str
    maximum: int
    request: str = ""
    minimum: int = 1
    default: int = 1
    help: str = ""
    when: Condition = {}
    bounds: tuple[CountBounds, ...] = ()

    def words(self, value: Value) -> str:
        return str(value)


class AmountBounds(_Content, frozen=True):
    """Other bounds of a quantity while a condition holds; what is not given stays."""

    when: Condition
    minimum: str = ""
    maximum: str = ""


class Amount(_Content, frozen=True, tag="quantity", tag_field="kind"):
    """How much of a consumable capacity each device of a request gives (KEP-5075).

    Bounds, step and default are Kubernetes quantities. A bare number of a tenant counts in `unit`
    (a suffix of quantities, such as Gi); `unit_words` is how the unit reads. An `optional` one may
    stay unanswered: the device's own default decides then.
    """

    name: str
    label: str
    request: str
    capacity: str
    minimum: str
    maximum: str
    default: str = ""
    step: str = ""
    unit: str = ""
    unit_words: str = ""
    help: str = ""
    when: Condition = {}
    bounds: tuple[AmountBounds, ...] = ()
    optional: bool = False
    required_when: Condition = {}

    def words(self, value: Value) -> str:
        """ "40 GiB" for "40Gi"; what cannot be said in the unit stays as it is."""
        shown = in_unit(str(value), self.unit)
        unit = self.unit_words or self.unit
        if shown is None:
            return str(value)
        return f"{shown} {unit}" if unit else shown


class Switch(Fragments, kw_only=True, frozen=True, tag="switch", tag_field="kind"):
    """On or off; on does what its fragments say."""

    name: str
    label: str
    default: bool = False
    help: str = ""
    when: Condition = {}

    def words(self, value: Value) -> str:
        return "yes" if value else "no"


Parameter = Choice | Count | Amount | Switch


class Alternative(_Content, frozen=True):
    """One way to satisfy a request; the first that works on a node is taken (KEP-4816)."""

    name: str
    device_class: str
    words: str
    count: int = 1
    selectors: tuple[str, ...] = ()
    capacity: dict[str, str] = {}
    tolerations: tuple[TolerationPart, ...] = ()


Sharing = Literal["whole", "partition", "capacity"]


class Request(_Content, frozen=True):
    """A request before any answer acts on it: of one class, or alternatives in order.

    `sharing` says what a device of it is, for people and for the check before publication: a whole
    device, a partition of one, or a part of one's capacity beside others.
    """

    name: str
    words: str
    device_class: str = ""
    count: int = 1
    selectors: tuple[str, ...] = ()
    capacity: dict[str, str] = {}
    tolerations: tuple[TolerationPart, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    sharing: Sharing = "whole"
    when: Condition = {}

    @property
    def named(self) -> tuple[str, ...]:
        """The names by which fragments and constraints may mean it."""
        return (self.name, *(f"{self.name}/{one.name}" for one in self.alternatives))


class Template(_Content, frozen=True):
    """The parameters people answer and the requests made.

    `shared` is one claim for several Pods, at most `pods` of them at once (None: as many as
    Kubernetes takes, 256). `tenant_defaults` are other defaults, by tenant and parameter.
    `longest_days` is how many days ahead an ask may end at most (None: it need not end).
    """

    requests: tuple[Request, ...]
    parameters: tuple[Parameter, ...] = ()
    constraints: tuple[ConstraintPart, ...] = ()
    config: tuple[ConfigPart, ...] = ()
    tenant_defaults: dict[str, dict[str, Value]] = {}
    shared: bool = False
    pods: int | None = None
    longest_days: int | None = None

    @property
    def names(self) -> frozenset[str]:
        """Every name by which fragments and constraints may mean a request."""
        return frozenset(name for request in self.requests for name in request.named)

    @property
    def device_classes(self) -> frozenset[str]:
        """Every class that some answer can lead to."""
        classes = {
            one.device_class
            for request in self.requests
            for one in (request.alternatives or [request])
        }
        for _, fragments in self.fragments():
            classes.update(fragments.device_class.values())
        return frozenset(classes - {""})

    def fragments(self) -> Iterator[tuple[str, Fragments]]:
        """Every option and every switch with its path in the content."""
        for number, parameter in enumerate(self.parameters):
            path = f"parameters[{number}]"
            if isinstance(parameter, Switch):
                yield path, parameter
            elif isinstance(parameter, Choice):
                for index, option in enumerate(parameter.options):
                    yield f"{path}.options[{index}]", option


def in_unit(text: str, unit: str) -> str | None:
    """ "40Gi" in Gi is "40", "1536Mi" in Gi is "1.5"; None where that has no end.

    Raises QuantityError for what is no quantity.
    """
    amount = parse(text).fraction / parse(f"1{unit}").fraction
    rest = amount.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest != 1 or amount.denominator > NANO:
        return None
    return f"{Decimal(amount.numerator) / amount.denominator:f}"

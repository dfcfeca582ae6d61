"""What is wrong between the parts of a template: names that nothing has, bounds that cross. Pure.

Types are right already (`reading.py`); whether a cluster takes it is another question
(`publish.py`).
"""

from __future__ import annotations

from typing import Any, Final

from devices.dra.templates.content import Template
from devices.dra.templates.parameter_checks import of_parameters, of_tenant_defaults
from devices.dra.templates.part_checks import (
    Found,
    doubled,
    of_amounts,
    of_condition,
    of_config,
    of_constraints,
    of_label,
    of_tolerations,
)
from devices.dra.templates.problems import Problem

#: Kubernetes reserves a claim for so many Pods at most.
MOST_PODS: Final = 256


def problems_of(template: Template) -> Found:
    """Everything that is wrong, part by part."""
    yield from _requests(template)
    yield from of_parameters(template)
    later = {parameter.name: parameter for parameter in template.parameters}
    names = template.names
    for number, request in enumerate(template.requests):
        yield from of_condition(request.when, later, f"requests[{number}].when")
    yield from of_constraints(template.constraints, names, later, "constraints")
    yield from of_config(template.config, names, later, "config")
    yield from of_tenant_defaults(template, later)
    if template.pods is not None and not template.shared:
        yield Problem("pods", "Only one claim that is shared has a number of Pods.")
    if template.pods is not None and not 1 <= template.pods <= MOST_PODS:
        yield Problem("pods", f"Give a whole number from 1 to {MOST_PODS}.")
    if template.longest_days is not None and template.longest_days < 1:
        yield Problem("longest_days", "Give a whole number from 1 on.")


# --- requests -------------------------------------------------------------------------------------


def _requests(template: Template) -> Found:
    if not template.requests:
        yield Problem("requests", "A template asks for at least one device.")
    yield from doubled([one.name for one in template.requests], "requests", "request")
    for number, request in enumerate(template.requests):
        path = f"requests[{number}]"
        yield from of_label(request.name, f"{path}.name")
        if bool(request.device_class) == bool(request.alternatives):
            yield Problem(
                f"{path}.device_class", "Give a class, or alternatives in order; one of the two."
            )
        if request.alternatives:
            for field in ("selectors", "capacity", "tolerations"):
                if getattr(request, field):
                    text = "Alternatives each have their own; move it there."
                    yield Problem(f"{path}.{field}", text)
        else:
            yield from _ask(request, path)
        yield from doubled(
            [one.name for one in request.alternatives], f"{path}.alternatives", "alternative"
        )
        for index, one in enumerate(request.alternatives):
            where = f"{path}.alternatives[{index}]"
            yield from of_label(one.name, f"{where}.name")
            if not one.device_class:
                yield Problem(f"{where}.device_class", "Give a class.")
            yield from _ask(one, where)


def _ask(ask: Any, path: str) -> Found:
    if ask.count < 1:
        yield Problem(f"{path}.count", "Give a whole number from 1 on.")
    yield from of_amounts(ask.capacity, f"{path}.capacity")
    yield from of_tolerations(ask.tolerations, f"{path}.tolerations")

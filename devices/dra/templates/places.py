"""Where in a template's content something stands: expressions, classes, amounts, by path."""

from __future__ import annotations

from collections.abc import Iterator

from devices.dra.templates.content import Alternative, Amount, Request, Template


def asks(template: Template) -> Iterator[tuple[str, Request | Alternative]]:
    """Every request that is one, and every alternative, with its path."""
    for number, request in enumerate(template.requests):
        path = f"requests[{number}]"
        if not request.alternatives:
            yield path, request
        for index, one in enumerate(request.alternatives):
            yield f"{path}.alternatives[{index}]", one


def selectors(template: Template) -> dict[str, str]:
    """Every CEL expression, with the path at which it stands first."""
    found: dict[str, str] = {}
    for path, ask in asks(template):
        for number, text in enumerate(ask.selectors):
            found.setdefault(text, f"{path}.selectors[{number}]")
    for path, part in template.fragments():
        for name, texts in part.selectors.items():
            for number, text in enumerate(texts):
                found.setdefault(text, f"{path}.selectors.{name}[{number}]")
    return found


def classes(template: Template) -> dict[str, str]:
    """Every device class, with the path at which it stands first."""
    found: dict[str, str] = {}
    for path, ask in asks(template):
        found.setdefault(ask.device_class, f"{path}.device_class")
    for path, part in template.fragments():
        for name, device_class in part.device_class.items():
            found.setdefault(device_class, f"{path}.device_class.{name}")
    return found


def capacities(template: Template) -> dict[str, str]:
    """Every capacity that is asked for, with the path at which it stands first."""
    found: dict[str, str] = {}
    for number, parameter in enumerate(template.parameters):
        if isinstance(parameter, Amount):
            found.setdefault(parameter.capacity, f"parameters[{number}].capacity")
    for path, ask in asks(template):
        for name in ask.capacity:
            found.setdefault(name, f"{path}.capacity.{name}")
    for path, part in template.fragments():
        for request, amounts in part.capacity.items():
            for name in amounts:
                found.setdefault(name, f"{path}.capacity.{request}.{name}")
    return found


def constraints(template: Template) -> dict[str, str]:
    """Every attribute of a constraint, with the path at which it stands first."""
    parts = [("constraints", template.constraints)]
    parts += [(f"{path}.constraints", part.constraints) for path, part in template.fragments()]
    found: dict[str, str] = {}
    for path, some in parts:
        for number, one in enumerate(some):
            field = "distinct_attribute" if one.distinct_attribute else "match_attribute"
            found.setdefault(getattr(one, field), f"{path}[{number}].{field}")
    return found


def drivers(template: Template) -> dict[str, str]:
    """Every driver that is handed settings, with the path at which it stands first."""
    parts = [("config", template.config)]
    parts += [(f"{path}.config", part.config) for path, part in template.fragments()]
    found: dict[str, str] = {}
    for path, some in parts:
        for number, one in enumerate(some):
            found.setdefault(one.driver, f"{path}[{number}].driver")
    return found

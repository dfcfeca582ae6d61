"""Which operation takes what another one answers: the links of the OpenAPI document.

From the addresses alone: what stands below a collection takes the name of one of its things, which
the collection's answers tell. Nobody has to write a link, and none can be forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from portal.api.fields import PAGE

Found = dict[str, Any]

_PARAMETER = re.compile(r"\{(\w+)\}")


def add_links(document: Found, methods: tuple[str, ...]) -> None:
    """Writes into each collection's answers what can be done with the things in them."""
    paths, schemas = document["paths"], document["components"]["schemas"]

    def targets(collection: str) -> Iterator[tuple[tuple[str, ...], str]]:
        for path, operations in paths.items():
            if names := _below(collection, path):
                for method in methods:
                    if method in operations:
                        yield names, operations[method]["operationId"]

    for path, operations in paths.items():
        for operation in operations.values():
            for status, response in operation.get("responses", {}).items():
                content = response.get("content", {}).get("application/json")
                if not content or not status.startswith("2"):
                    continue
                where, thing = _thing(content["schema"], schemas)
                links = dict(_links(path, targets(path), where, thing))
                # What a thing holds, such as the waves of a plan.
                for word, held in thing.get("properties", {}).items():
                    if held.get("type") == "array":
                        inner = _resolved(held["items"], schemas)
                        inside = targets(f"{path}/{word}")
                        links |= _links(path, inside, f"{where}/{word}/0", inner)
                if links:
                    response["links"] = links


def _below(collection: str, path: str) -> tuple[str, ...]:
    """The parameters that name one thing of a collection, where the path is of one or below it."""
    if not path.startswith(f"{collection}/{{"):
        return ()
    parts = path[len(collection) + 1 :].split("/")
    named = [_PARAMETER.fullmatch(part) for part in parts]
    first = next((n for n, one in enumerate(named) if one is None), len(parts))
    # A thing of a thing is named by an answer that is nearer to it.
    return () if any(named[first:]) else tuple(one[1] for one in named[:first] if one)


def _thing(schema: Found, schemas: Mapping[str, Found]) -> tuple[str, Found]:
    """Where in an answer one thing is (a JSON pointer), and its shape."""
    schema = _resolved(schema, schemas)
    if schema.get("properties", {}).keys() >= PAGE:
        where, schema = "/results/0", schema["properties"]["results"]
    elif schema.get("type") == "array":
        where = "/0"
    else:
        return "", schema
    return where, _resolved(schema["items"], schemas)


def _links(
    path: str, targets: Iterable[tuple[tuple[str, ...], str]], where: str, thing: Found
) -> Iterator[tuple[str, Found]]:
    told = thing.get("properties", {})
    singular = path.rpartition("/")[2].removesuffix("s")
    own = {name: f"$request.path.{name}" for name in _PARAMETER.findall(path)}
    for names, target in targets:
        # Several names together are told by their own; one alone may be called otherwise.
        others = (singular, "id", "slug") if len(names) == 1 else ()
        fields = [next((f for f in (name, *others) if f in told), None) for name in names]
        if all(fields):
            taken = {
                name: f"$response.body#{where}/{field}"
                for name, field in zip(names, fields, strict=True)
            }
            yield target, {"operationId": target, "parameters": own | taken}


def _resolved(schema: Found, schemas: Mapping[str, Found]) -> Found:
    while "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    return schema

"""How the OpenAPI document is made: every operation says how it fails."""

from __future__ import annotations

from typing import Any

from drf_spectacular.openapi import AutoSchema

PROBLEM: dict[str, Any] = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "code", "facts", "request_id"],
    "properties": {
        "type": {"type": "string", "example": "urn:berth:problem:not-permitted"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "A sentence for people."},
        "code": {"type": "string", "description": "Stable, for programs."},
        "facts": {"type": "object", "additionalProperties": True},
        "request_id": {"type": "string"},
    },
}
ALWAYS = {"401": "Not signed in", "403": "Not permitted", "404": "Nothing here that you may see",
          "406": "Only JSON is served"}  # fmt: skip
WRITING = {"400": "Not JSON", "409": "In progress", "412": "Changed meanwhile",
           "415": "Only JSON is read", "422": "Refused"}  # fmt: skip


class BerthSchema(AutoSchema):
    """Operation ids and tags from the view's own words."""

    def get_tags(self) -> list[str]:
        return [getattr(self.view, "noun", "berth")]


def document_problems(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Adds the problem answers to each operation (spectacular post-processing hook)."""
    result.setdefault("components", {}).setdefault("schemas", {})["Problem"] = PROBLEM
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for path in result["paths"].values():
        for method, operation in path.items():
            if method not in {"get", "post", "put", "patch", "delete"}:
                continue
            answers = ALWAYS if method == "get" else ALWAYS | WRITING
            for status, words in answers.items():
                operation["responses"].setdefault(
                    status, {"description": words, "content": content}
                )
    return result

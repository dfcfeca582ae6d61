"""What a Prometheus-compatible endpoint answers to an instant query, as a verdict. Pure.

The query itself decides: a result above zero is a pass and zero is a fail, as in
`bool` comparisons of PromQL (`… < bool 0.01`). No result, several that differ, or NaN say nothing.
"""

from __future__ import annotations

import json
from math import isnan
from typing import Any

from migrationplan.gates import Outcome

Answer = tuple[Outcome, str]


def verdict(text: str) -> Answer:
    """The verdict of the JSON of `/api/v1/query`, and why."""
    try:
        said = json.loads(text)
    except ValueError:
        return Outcome.INCONCLUSIVE, "The answer is no JSON."
    if not isinstance(said, dict) or said.get("status") != "success":
        why = said.get("error") if isinstance(said, dict) else ""
        return Outcome.INCONCLUSIVE, f"The query failed: {why or 'no reason was given'}."
    data = said.get("data")
    values = _values(data if isinstance(data, dict) else {})
    if values is None:
        return Outcome.INCONCLUSIVE, "Only a scalar or an instant vector can be judged."
    if not values:
        return Outcome.INCONCLUSIVE, "The query found nothing."
    if any(isnan(value) for value in values):
        return Outcome.INCONCLUSIVE, "The query answered NaN: there was nothing to divide by."
    shown = ", ".join(f"{value:g}" for value in values[:3])
    if all(value > 0 for value in values):
        return Outcome.PASS, f"The query answered {shown}."
    bad = sum(1 for value in values if value <= 0)
    more = f": {bad} of {len(values)} series are not above 0" if len(values) > 1 else ""
    return Outcome.FAIL, f"The query answered {shown}{more}."


def _values(data: dict[str, Any]) -> list[float] | None:
    kind, result = data.get("resultType"), data.get("result")
    if not isinstance(result, list):
        return None
    pairs: list[Any]
    match kind:
        case "scalar":
            pairs = [result]
        case "vector":
            pairs = [one.get("value") if isinstance(one, dict) else None for one in result]
        case _:
            return None
    values = []
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2:
            return None
        try:
            values.append(float(pair[1]))
        except (TypeError, ValueError):
            return None
    return values

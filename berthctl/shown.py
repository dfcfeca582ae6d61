"""How answers look on a terminal: tables with columns as wide as needed, and few words. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns with two spaces between; the last one is not filled up."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = []
    for row in (head, *rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def age(then: str, now: datetime) -> str:
    """`4m`, `3h`, `12d` since a moment of the API."""
    seconds = max(0, int((now - datetime.fromisoformat(then)).total_seconds()))
    for size, letter in ((86_400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{letter}"
    return f"{seconds}s"


def claims(rows: Sequence[dict[str, Any]], now: datetime) -> str:
    """A list of claims."""
    if not rows:
        return "No claims. Ask for devices with: berth request"
    head = ("ID", "NAME", "NAMESPACE", "STATE", "FOR", "WHAT", "CODE")
    return table(
        head,
        [
            (
                one["id"],
                one["name"],
                one["namespace"],
                one["state"],
                age(one["since"], now),
                one["words"],
                one["code"],
            )
            for one in rows
        ],
    )


def claim(one: dict[str, Any], now: datetime) -> str:
    """One claim with its devices and Pods."""
    lines = [
        f"{one['name']} ({one['id']}) in {one['namespace']}: {one['words']}",
        f"  {one['state']} for {age(one['since'], now)}"
        + (f", {one['code']}: {one['why']}" if one["code"] else ""),
    ]
    lines += [
        f"  device {held['driver']}/{held['pool']}/{held['device']}"
        + (f" on {held['node']}" if held["node"] else "")
        for held in one["devices"]
    ]
    lines += [f"  pod {pod['name']}: {pod['phase']}" for pod in one["pods"]]
    if one["expires_at"]:
        lines.append(f"  ends {one['expires_at']}")
    return "\n".join(lines)


def outlook(found: dict[str, Any] | None) -> str:
    """Why, who acts, and where the devices went."""
    if found is None:
        return "  Nobody knows: the cluster was not seen yet."
    lines = [f"  {found['sentence']} ({found['code']})" if found["code"] else found["sentence"]]
    if found["next_step"]:
        lines.append(f"  → {found['next_step']} ({found['who']})")
    for funnel in found["funnels"]:
        lines.append(f"  {funnel['request']} of {funnel['device_class']}:")
        lines += [f"    {step['left']:>4} {step['what']}" for step in funnel["steps"]]
    return "\n".join(lines)


def what_if(found: dict[str, Any]) -> str:
    """The outlook of an ask, and what would fit instead."""
    lines = [outlook(found["outlook"])]
    lines += [f"  instead: {one['words']}" for one in found["alternatives"]]
    return "\n".join(lines)

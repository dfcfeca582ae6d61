"""Offers as cards and as a table: the same figures, nobody's zero, and nothing old in full ink."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.template import Context, Template
from django.utils.html import strip_tags

from devices.catalogue.classes import Offered, free_notes

NOON = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)
BY_DRA = {
    "free": 31,
    "allocated": 4,
    "shared": 2,
    "fragmented": 0,
    "unavailable": 1,
    "unknown": 0,
    "total": 38,
    "unavailable_reasons": {"NODE_CLOSED": 1},
    "unknown_reasons": {},
    "problem": "",
    "path": ["dra"],
    "plugin": None,
    "groups": [
        {"words": "H100", "free": 31, "total": 38},
        {"words": "H200", "free": 0, "total": 0},
    ],
}
NOTHING = {
    "free": 0, "allocated": 0, "shared": 0, "fragmented": 0, "unavailable": 0, "unknown": 0,
    "total": 0,
}  # fmt: skip
BY_PLUGIN = {
    **BY_DRA,
    **NOTHING,
    "unavailable_reasons": {},
    "groups": [],
    "path": ["plugin"],
    "plugin": {"resource": "nvidia.com/gpu", "allocatable": 16, "requested": 11},
}


def offered(counts: dict[str, Any]) -> Offered:
    return Offered("class", "Class", "", "device", counts, NOON, NOON, ())


def shown(template: str, counts: dict[str, Any], state: str) -> str:
    """The fragment for one offer, while the cluster is live or in another state."""
    cluster = SimpleNamespace(state=state, as_of=NOON, window=timedelta(seconds=45))
    offer = offered(counts)
    viewer = SimpleNamespace(url=lambda name, *args: f"/{name}/")
    page = {"now": NOON, "cluster": cluster, "offer": offer, "offers": [offer], "viewer": viewer}
    return Template(f"{{% include 'devices/{template}.html' %}}").render(Context(page))


def cells(counts: dict[str, Any], state: str) -> list[str]:
    """Free, Allocated, Fragmented, Unavailable, Unknown and Total in the table's one row."""
    html = shown("_offer_table", counts, state)
    row = re.findall(r'<td class="num"[^>]*>(.*?)</td>', html.partition("<tbody>")[2])
    return [strip_tags(re.sub(r'<span class="sr">.*?</span>', "", cell)) for cell in row[:6]]


@pytest.mark.parametrize(
    ("counts", "state", "figures"),
    [
        pytest.param(BY_DRA, "live", ["31", "6", "0", "1", "0", "38"], id="by DRA"),
        pytest.param(BY_PLUGIN, "live", ["5", "11", "–", "–", "–", "16"], id="by plugin alone"),
        pytest.param(BY_DRA, "unreachable", ["?"] * 6, id="the cluster is away"),
        pytest.param(BY_DRA, "stale", ["?"] * 6, id="news are late"),
        pytest.param(BY_PLUGIN, "stale", ["?", "?", "–", "–", "–", "?"], id="by plugin and late"),
    ],
)
def test_figures_of_the_table(counts: dict[str, Any], state: str, figures: list[str]) -> None:
    assert cells(counts, state) == figures


@pytest.mark.parametrize("state", ["stale", "unreachable"])
def test_a_card_says_was_to_every_old_figure(state: str) -> None:
    said = " ".join(strip_tags(shown("_offer", BY_DRA, state)).split())
    assert "free of ?" in said
    assert "was 31 free of 38" in said and "Was unavailable" in said
    assert not re.search(r"(?<!was )\b31 free", said)
    assert "free of 38" in strip_tags(shown("_offer", BY_DRA, "live"))


def test_a_form_knows_no_old_figures() -> None:
    assert free_notes([offered(BY_DRA)], old=False) == {"class": "31 free"}
    assert free_notes([offered(BY_DRA)], old=True) == {"class": "free: unknown"}


def test_an_overdrawn_plugin_draws_no_negative_part() -> None:
    over = {**BY_PLUGIN, "plugin": {"resource": "x", "allocatable": 4, "requested": 6}}
    html = shown("_offer_table", over, "live")
    assert 'width="-' not in html
    assert cells(over, "live")[0] == "-2"

"""Receipts prove themselves: whatever is changed afterwards is found and named."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from devices.dra.receipt import faults, sealed

ITEMS = [
    {"kind": "ResourceClaim", "namespace": "tide", "name": "train-1", "at": "2026-11-02T12:00"},
    {"kind": "ResourceQuota", "namespace": "tide", "name": "berth", "at": "2026-11-02T12:01"},
    {"kind": "Namespace", "name": "tide", "what": "berth.dev/tenant=tide, 1 °C", "at": "…"},
]


def a_receipt() -> dict[str, Any]:
    return sealed({"receipt": "bcdfghjk", "tenant": {"slug": "tide", "name": "Tïde"}}, ITEMS)


def test_a_receipt_proves_and_so_does_its_json() -> None:
    receipt = a_receipt()
    assert faults(receipt) == []
    assert faults(json.loads(json.dumps(receipt))) == []
    assert a_receipt() == receipt, "the same facts have the same digest"


def rename(receipt: dict[str, Any]) -> None:
    receipt["items"][1]["name"] = "other"


def drop(receipt: dict[str, Any]) -> None:
    del receipt["items"][0]


def swap(receipt: dict[str, Any]) -> None:
    receipt["items"][0], receipt["items"][1] = receipt["items"][1], receipt["items"][0]


def head(receipt: dict[str, Any]) -> None:
    receipt["tenant"]["slug"] = "ebb"


def form(receipt: dict[str, Any]) -> None:
    receipt["form"] = 99


def nothing(receipt: dict[str, Any]) -> None:
    receipt["items"] = "none"


WHOLE = "the receipt as a whole was changed, or an item added, dropped or moved"


@pytest.mark.parametrize(
    ("change", "found"),
    [
        pytest.param(
            rename,
            ["item 2 (ResourceQuota tide/other) was changed", WHOLE],
            id="an item was renamed",
        ),
        pytest.param(drop, [WHOLE], id="an item was dropped"),
        pytest.param(swap, [WHOLE], id="two items changed places"),
        pytest.param(head, [WHOLE], id="it is made out to somebody else"),
        pytest.param(form, ["form 99 is not known here; only 1 is"], id="a form of the future"),
        pytest.param(nothing, ["it has no list of items"], id="its items are no list"),
    ],
)
def test_what_was_changed_is_named(
    change: Callable[[dict[str, Any]], None], found: list[str]
) -> None:
    receipt = copy.deepcopy(a_receipt())
    change(receipt)
    assert faults(receipt) == found

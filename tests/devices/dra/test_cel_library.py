"""Kubernetes' own parts of CEL: addresses, URLs, formats, times, lists, loops with two variables.

Each line of cel_library.txt is an expression and what upstream 1.37.2 answered about one device.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from devices.dra.cel.evaluate import Unmodelled
from devices.dra.cel.formats import FORMATS
from devices.dra.gates import gates
from devices.dra.selector import Fault, SelectorError, compile_selector
from devices.dra.slicereader import SliceReader

LINES = (Path(__file__).parent / "cel_library.txt").read_text().splitlines()
DEVICE = {
    "name": "x",
    "attributes": {"model": {"string": "h100"}, "index": {"int": 3}},
    "capacity": {"memory": {"value": "40Gi"}},
}


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.partition(" ")[2].strip()[:60])
def test_an_expression_answers_as_upstream_did(line):
    expected, _, expression = line.partition(" ")
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": "n", "pool": pool, "devices": [DEVICE]}
    [device] = SliceReader().read({"metadata": {"name": "s"}, "spec": spec}).devices
    try:
        outcome = compile_selector(expression.strip(), gates("1.37")).matches(
            device, "gpu.example.com"
        )
    except SelectorError as error:
        assert expected == "compile-error", str(error)
        return
    if isinstance(outcome, Fault):
        assert expected == "runtime-error", outcome.why
    else:
        assert expected == str(outcome).lower()


def test_every_named_format_is_there():
    text = " ".join(LINES)
    assert [name for name in FORMATS if f"format.{name}()" not in text] == []
    assert len(FORMATS) == 13


def test_what_could_search_for_ever_is_not_searched():
    for text in ("(a+)+$", "(a|a)*b", "((a?)b*){2,}"):
        with pytest.raises(Unmodelled):
            compile_selector(f'"{"a" * 64}!".find("{text}") == ""', gates("1.37"))

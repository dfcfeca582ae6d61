"""Bars, berths and funnels: true to their numbers, readable without colour, free of styles."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from portal.ui import drawings
from portal.ui.drawings import Cell, FunnelStep


def rects(svg: str) -> list[tuple[float, float, str]]:
    """(start, width, how it is filled) of each part of a bar, in per cent."""
    return [
        (
            float(rect.attrib["x"].rstrip("%")),
            float(rect.attrib["width"].rstrip("%")),
            rect.attrib.get("class") or rect.attrib["fill"],
        )
        for rect in ElementTree.fromstring(svg)
    ]


@pytest.mark.parametrize(
    ("total", "parts", "widths"),
    [
        pytest.param(
            20, {"idle": 2, "allocated": 14, "unavailable": 4}, [10, 70, 20], id="parts of a whole"
        ),
        pytest.param(
            20, {"idle": 5, "allocated": 5}, [25, 25, 50], id="what nobody claims is unknown"
        ),
        pytest.param(4, {"used": 6}, [100], id="more than there is fills the bar"),
        pytest.param(0, {"idle": 0}, [], id="nothing at all"),
        pytest.param(None, {"idle": 3}, [100], id="a total that nobody knows"),
    ],
)
def test_a_bar_is_true(total: int | None, parts: dict[str, int | None], widths: list[int]) -> None:
    drawn = rects(drawings.bar("H100", total, parts))
    assert [round(width) for _, width, _ in drawn] == widths
    ends = [start + width for start, width, _ in drawn]
    assert [start for start, _, _ in drawn[1:]] == pytest.approx(ends[:-1], abs=0.1)


def test_a_bar_says_every_part_in_its_label() -> None:
    svg = drawings.bar("H100 <x>", 1024, {"idle": 412, "allocated": 588, "unavailable": 24})
    label = ElementTree.fromstring(svg).attrib["aria-label"]
    assert label == "H100 <x>: 412 idle, 588 allocated, 24 unavailable of 1,024"


def test_unknown_parts_are_hatched_and_said() -> None:
    svg = drawings.bar("FPGA", None, {"idle": 3})
    assert rects(svg)[0][2] == "url(#pat-hatch)"
    assert "not known of ?" in svg


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        pytest.param({"idle": 2, "held": 0}, "2 idle", id="parts of nothing are left out"),
        pytest.param({"idle": None, "used": 4}, "? idle, 4 used", id="unknown says so"),
        pytest.param(
            {"idle": None, "used": None, "unknown": 6}, "6 unknown", id="unknown once is enough"
        ),
        pytest.param({"idle": 0}, "nothing", id="nothing"),
    ],
)
def test_parts_in_words(parts: dict[str, int | None], said: str) -> None:
    assert drawings.parts_in_words(parts) == said


def test_every_kind_of_part_has_a_pattern_or_colour_of_its_own() -> None:
    defined = set(re.findall(r'id="(pat-\w+)"', drawings.PATTERNS))
    asked = set(re.findall(r"#(pat-\w+)", " ".join(drawings.FILLS.values())))
    assert asked == defined


def test_berths_have_one_cell_a_device() -> None:
    svg = drawings.berths("2 allocated, 1 idle", [Cell("allocated", "gpu-0"), Cell("idle")])
    cells = [part for part in ElementTree.fromstring(svg) if part.tag == "rect"]
    assert len(cells) == 2
    assert [cell.findtext("title") for cell in cells] == ["gpu-0", None]


def test_a_funnel_names_what_was_lost_and_why() -> None:
    drawn = drawings.funnel(
        [FunnelStep(48, "published", "are taken", "state == free"), FunnelStep(0, "free <now>")]
    )
    assert "<b>−48</b> are taken" in drawn
    assert "state == free" in drawn
    assert "free &lt;now&gt;" in drawn
    assert 'class="empty-step"' in drawn


def test_snippets_are_escaped_and_lit_by_line() -> None:
    drawn = drawings.text_with_lights("# <b>yours</b>\nname: pair\nkind: Pod", ["pair", ""])
    assert drawn.split("\n") == [
        '<span class="c"># &lt;b&gt;yours&lt;/b&gt;</span>',
        '<span class="h">name: pair</span>',
        "kind: Pod",
    ]

"""The parts as templates use them, and the promises that hold for every template and style."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.template import Context, Template
from django.template.loader import get_template

from devices.dra.lifecycle import State
from devices.models import ClaimTemplate, TemplateVersion
from portal.ui import drawings, icons
from portal.ui.statuses import STATUSES, Tone, shapes, status_of

ROOT = Path(__file__).parents[2]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
CSS = (ROOT / "static" / "berth.css").read_text()
NOON = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)


def drawn(source: str, **context: object) -> str:
    return Template(source).render(Context({"now": NOON, **context}))


def each_template() -> list[object]:
    return [pytest.param(path, id=str(path.relative_to(ROOT / "templates"))) for path in TEMPLATES]


# --- the vocabulary -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "state", [*State, *TemplateVersion.State.values, "live", "stale", "unreachable", "building"]
)
def test_every_state_that_is_stored_has_a_word_and_a_shape(state: str) -> None:
    key = state.replace(" ", "_")
    assert key in STATUSES
    assert STATUSES[key].word
    assert STATUSES[key].icon in icons.symbols()


@pytest.mark.parametrize("state", [state for state in State if state != State.RELEASED])
def test_every_state_of_a_claim_says_what_enters_and_what_ends_it(state: State) -> None:
    assert status_of(state).enters.endswith(".")
    assert status_of(state).ends.endswith(".")


def test_words_and_shapes_tell_states_apart_without_colour() -> None:
    seen = [(status.word, status.icon) for key, status in STATUSES.items() if key in set(State)]
    assert len(seen) == len(set(seen))


def test_a_state_that_nobody_knows_is_shown_with_its_own_text() -> None:
    assert status_of("WhoKnows").word == "WhoKnows"
    assert status_of("WhoKnows").tone is Tone.NONE
    assert status_of("").word == "Unknown"


@pytest.mark.parametrize("tone", Tone)
def test_every_tone_has_its_colours(tone: Tone) -> None:
    assert re.search(rf"\.st-{tone} {{ --st: .*--st-ink: .*--st-tint: ", CSS)


def test_every_fill_is_coloured_by_the_stylesheet() -> None:
    for fill in drawings.FILLS.values():
        if fill.startswith("class="):
            assert f".{fill[7:-1]} {{ fill:" in CSS


# --- the parts ------------------------------------------------------------------------------------


def test_a_status_is_a_word_with_a_decorative_icon() -> None:
    assert drawn('{% status "in use" %}') == (
        '<span class="st st-ok"><svg class="i" viewBox="0 0 16 16" aria-hidden="true" '
        'focusable="false"><use href="#i-ok"/></svg>Running</span>'
    )


def test_a_pill_can_explain_itself() -> None:
    html = drawn('{% pill "held" explain="tip" %}')
    assert 'popovertarget="tip"' in html
    assert 'id="tip" popover' in html
    assert "It resumes by itself" in html
    assert "popover" not in drawn('{% pill "none" explain="tip" %}')


@pytest.mark.parametrize(
    ("seconds", "options", "classes", "text"),
    [
        pytest.param(2, "", "age", "2 s", id="fresh"),
        pytest.param(840, "", "age age-old", "14 min", id="beyond the window"),
        pytest.param(840, "window=900", "age", "14 min", id="within its own window"),
        pytest.param(9, "lost=True", "age age-lost", "9 s", id="the source is gone"),
        pytest.param(9, 'before="looked" after="ago"', "age", "looked 9 s ago", id="in a sentence"),
    ],
)
def test_an_age(seconds: int, options: str, classes: str, text: str) -> None:
    html = drawn(f"{{% age when {options} %}}", when=NOON - timedelta(seconds=seconds))
    assert f'class="{classes}"' in html
    assert html.endswith(f">{text}</time>")
    assert html == drawn(f"{{% age when {options} %}}", when=timedelta(seconds=seconds))


def test_no_news_yet_is_no_age() -> None:
    assert "no news yet" in drawn("{% age when %}", when=None)
    away = SimpleNamespace(state="unreachable", as_of=NOON, window=timedelta(seconds=45))
    assert "age-lost" in drawn("{% age_of cluster %}", cluster=away)


def test_unknown_quantities_are_hatched() -> None:
    assert 'class="unk"' in drawn("{% quantity n %}", n=None)
    assert 'class="unk"' in drawn("{% duration n %}", n=None)
    assert 'class="unk"' not in drawn("{% quantity n %}", n=0)
    assert drawn("{% quantity 79.6 'Gi' %}").count("unit") == 1


def test_what_lasts_grows_on_an_open_page_and_what_is_over_does_not() -> None:
    lasting = drawn("{% since when %}", when=NOON - timedelta(minutes=26))
    assert lasting == (
        '<time class="grows nowrap" datetime="2026-11-24T11:34:00+00:00">'
        '26&nbsp;<span class="unit">min</span></time>'
    )
    assert "<time" not in drawn("{% since when True %}", when=NOON - timedelta(minutes=26))
    stages = [
        {"state": "here", "word": "Sent", "since": NOON},
        {"state": "todo", "word": "Running"},
    ]
    steps = drawn("{% include 'portal/_steps.html' %}", stages=stages)
    assert steps.count('<time class="grows') == 1 and "</time> so far" in steps


def test_old_quantities_are_hatched_and_keep_their_last_figure_in_the_title() -> None:
    html = drawn("{% quantity n old=True %}", n=1024)
    assert 'class="unk"' in html and 'title="not known now; 1,024 when last seen"' in html


def test_a_strip_says_what_is_left() -> None:
    html = drawn("{% strip 'H100' 8 used=4 held=2 %}")
    assert '<b>2</b> <span class="unit">free of 8</span>' in html
    assert "4 used, 2 held" in html
    assert "<b>?</b>" in drawn("{% strip 'H100' total used=4 %}", total=None)


def test_a_long_name_is_whole_in_its_title() -> None:
    name = "tidewater-train-distributed-vision-transformer-pretrain-a-x7k2p"
    html = drawn("{% name n %}", n=name)
    assert f'title="{name}"' in html
    assert "<span>-x7k2p</span>" in html


def test_names_from_outside_are_escaped() -> None:
    for part in ("name", "code", "status", "pill"):
        assert "<script>" not in drawn(f"{{% {part} evil %}}", evil="<script>alert(1)</script>")


def test_a_page_defines_the_icons_that_it_used_once() -> None:
    html = drawn('{% icon "edit" %}{% icon "edit" %}{% icon_defs %}')
    assert html.count('id="i-edit"') == 1
    assert 'id="i-menu"' not in html
    assert 'id="pat-hatch"' in html


@pytest.mark.parametrize(
    ("name", "icon"),
    [
        pytest.param("gpu.nvidia.com", "gpu", id="a driver of GPUs"),
        pytest.param("a100-mig-1g", "mig", id="a part before its whole"),
        pytest.param("nic-rdma", "nic", id="a network card"),
        pytest.param("dra.cpu", "cpu", id="cores"),
        pytest.param("something.example", "device", id="anything else"),
    ],
)
def test_the_icon_of_a_device_is_guessed(name: str, icon: str) -> None:
    assert icons.kind_of_device(name) == icon


# --- promises for every template ------------------------------------------------------------------


@pytest.mark.parametrize("path", each_template())
def test_a_template_compiles(path: Path) -> None:
    get_template(str(path.relative_to(ROOT / "templates")))


@pytest.mark.parametrize("path", each_template())
def test_a_template_has_no_inline_style_or_script(path: Path) -> None:
    source = path.read_text()
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:|hx-on", source)
    for tag in re.findall(r"<script[^>]*>", source):
        assert "src=" in tag


@pytest.mark.parametrize("path", each_template())
def test_a_template_names_only_icons_and_classes_that_exist(path: Path) -> None:
    source = path.read_text()
    for name in re.findall(r'{% icon "([a-z-]+)" %}', source):
        assert name in icons.symbols(), f"no icon {name}"
    known = {*re.findall(r"\.([a-z][a-z0-9-]*)", CSS), *Tone, "st-"}  # st-{% if %}ok{% endif %}
    for classes in re.findall(r'class="([^"]*)"', re.sub(r"{[%{].*?[%}]}", " ", source)):
        for name in classes.split():
            assert name in known, f"no rule for .{name}"


@pytest.mark.parametrize(
    "path", [path for path in TEMPLATES if path.name.startswith("_claim") or "_offer" in path.name]
)
def test_a_fragment_needs_no_icon_that_an_open_page_may_lack(path: Path) -> None:
    always = icons.ALWAYS | shapes()
    static = {"down", "grid", "list"}  # on the pages that hold these fragments, whatever they show
    for name in re.findall(r'{% icon "([a-z-]+)" %}', path.read_text()):
        assert name in always | static


def test_icons_chosen_in_data_fall_back_to_the_plain_device() -> None:
    default = ClaimTemplate._meta.get_field("icon").default
    assert default in icons.symbols()
    assert drawn("{% icon chosen|known_icon %}", chosen="no such icon").count("#i-device") == 1


def test_the_stylesheet_keeps_its_own_rules() -> None:
    assert "!important" not in re.sub(r"/\*.*?\*/", "", CSS, flags=re.S)
    layers = re.search(r"@layer ([a-z, ]+);", CSS)
    assert layers and layers[1].split(", ") == [
        "tokens",
        "base",
        "shell",
        "layout",
        "parts",
        "pages",
        "modes",
    ]
    assert not re.search(r"#[0-9a-f]{3,8}\b", CSS), "colours are tokens in oklch"

"""Forms in Berth's look: labels, hints and errors are wired for everybody who reads them."""

from __future__ import annotations

import re

from django import forms

from portal.ui.forms import Card, RadioCards, Stepper, Switch


class Ask(forms.Form):
    """One field of each kind."""

    name = forms.CharField(label="Name", help_text="Lower case.")
    gpus = forms.IntegerField(label="GPUs", min_value=1, max_value=8, widget=Stepper)
    memory = forms.ChoiceField(
        label="Memory",
        widget=RadioCards,
        choices=[("80", Card("80 GB", "H100", "2 free")), ("141", Card("141 GB", off="no limit"))],
    )
    near = forms.BooleanField(label="Near the NIC", required=False, widget=Switch)
    note = forms.CharField(label="Note", required=False)


def test_an_error_joins_the_hint_and_replaces_nothing() -> None:
    html = str(Ask({"gpus": "2", "memory": "80"})["name"].as_field_group())
    assert 'aria-invalid="true"' in html
    described = re.search(r'aria-describedby="([^"]+)"', html)
    assert described
    for name in described[1].split():
        assert f'id="{name}"' in html
    assert "Lower case." in html and "This field is required." in html


def test_a_count_can_be_typed_or_stepped() -> None:
    html = str(Ask()["gpus"].as_field_group())
    assert 'min="1" max="8"' in html
    assert html.count('aria-controls="id_gpus"') == 2
    assert "One fewer" in html and "One more" in html


def test_what_cannot_be_chosen_stays_and_says_why() -> None:
    html = str(Ask({"memory": "141"})["memory"].as_field_group())
    unfit = html[html.index("141 GB") - 400 : html.index("no limit") + 20]
    assert "disabled" in unfit
    assert "2 free" in html and "<legend" in html
    assert html.count("checked") == 0


def test_a_switch_carries_its_label_once() -> None:
    html = str(Ask()["near"].as_field_group())
    assert html.count("Near the NIC") == 1
    assert html.count("<label") == 1


def test_optional_fields_say_so() -> None:
    assert "optional" in str(Ask()["note"].as_field_group())
    assert "optional" not in str(Ask()["name"].as_field_group())

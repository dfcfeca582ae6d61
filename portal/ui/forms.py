"""Django forms in Berth's look: the renderer, and the widgets that plain HTML lacks.

Fields wire their own hints and errors (`aria-describedby`, `aria-invalid`); the template of a field
only places them: label above, hint below, and an error beside the hint, never instead of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.forms.renderers import TemplatesSetting


class BerthRenderer(TemplatesSetting):
    """Fields by `portal/forms/field.html`, whole forms by `portal/forms/form.html`."""

    form_template_name = "portal/forms/form.html"
    field_template_name = "portal/forms/field.html"
    formset_template_name = "django/forms/formsets/div.html"


@dataclass(frozen=True, slots=True)
class Card:
    """The label of one radio card.

    `words` is one line on what it is, `note` what is free now. `off` is the reason why it cannot be
    chosen: what does not fit stays on the page, disabled, and says why.
    """

    title: str
    words: str = ""
    note: str = ""
    off: str = ""

    def __str__(self) -> str:
        return self.title


class RadioCards(forms.RadioSelect):
    """A choice shown as cards; choices are pairs of a value and a `Card` (or plain text)."""

    template_name = "portal/forms/radio_cards.html"
    option_template_name = "portal/forms/radio_card.html"

    def create_option(
        self,
        name: str,
        value: Any,
        label: Any,
        selected: bool,
        index: int,
        subindex: int | None = None,
        attrs: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        option = super().create_option(name, value, label, selected, index, subindex, attrs)
        card = label if isinstance(label, Card) else Card(str(label))
        option["card"] = card
        if card.off:
            option["attrs"]["disabled"] = True
            option["attrs"].pop("checked", None)
        return option


class Stepper(forms.NumberInput):
    """A whole number with one-fewer and one-more buttons; typing it works as well."""

    template_name = "portal/forms/stepper.html"


class AmountInput(Stepper):
    """An amount with its unit beside it; the buttons go by the field's own steps."""

    template_name = "portal/forms/amount.html"

    def __init__(self, attrs: dict[str, Any] | None = None, *, unit: str = "") -> None:
        super().__init__(attrs)
        self.unit = unit

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        context["widget"]["unit"] = self.unit
        return context


class Switch(forms.CheckboxInput):
    """A yes or no, with its label beside it."""

    template_name = "portal/forms/switch.html"
    beside = True  # tells the field's template that the widget carries its own label


def blame(form: forms.BaseForm, wrong: Mapping[str, Any]) -> None:
    """Shows what a verb refused: each sentence at its field, else above the form."""
    for name, text in wrong.items():
        form.add_error(name if name in form.fields else None, text)

"""The form of an author: a version's text and the words around it."""

from __future__ import annotations

from typing import Any, Final

from django import forms

from devices.authoring.drafts import Draft
from devices.models import Offer, TemplateVersion

ICONS: Final = ("device", "gpu", "mig", "nic", "fpga", "cpu")
FIRST_TEXT: Final = """\
# What is asked for. `words` is how people call it.
requests:
  - name: gpu
    words: GPU
    device_class: {device_class}

# The questions, in order. Kinds: choice, count, quantity, switch.
parameters:
  - kind: count
    name: gpus
    label: GPUs per Pod
    request: gpu
    maximum: 8
"""


def first_text() -> str:
    """What a new template starts with: a text that explains itself, for a class that there is."""
    known = Offer.objects.order_by("device_class").values_list("device_class", flat=True)
    return FIRST_TEXT.format(device_class=known.first() or "gpu.example.com")


class AuthorForm(forms.Form):
    """What an author writes. The verb checks all of it again and alone decides."""

    slug = forms.CharField(
        label="Short name",
        max_length=63,
        help_text="Stands in addresses and never changes.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    name = forms.CharField(label="Name", max_length=80)
    words = forms.CharField(label="In a sentence", max_length=240)
    icon = forms.ChoiceField(label="Icon", choices=[(one, one) for one in ICONS])
    note = forms.CharField(
        label="What is new",
        max_length=240,
        required=False,
        help_text="Whoever holds an earlier version reads it.",
    )
    text = forms.CharField(
        label="Template",
        strip=False,
        help_text="YAML or JSON; comments are kept.",
        widget=forms.Textarea(
            attrs={
                "class": "mono",
                "rows": 26,
                "spellcheck": "false",
                "autocomplete": "off",
                "wrap": "off",
            }
        ),
    )
    reason = forms.CharField(
        label="For the approver",
        max_length=2000,
        required=False,
        help_text="Why it is wanted; for the review only.",
    )

    def __init__(self, *args: Any, version: TemplateVersion, **options: Any) -> None:
        super().__init__(*args, **options)
        if version.pk:
            del self.fields["slug"]
        if version.number == 1:
            del self.fields["note"]

    def draft(self) -> Draft:
        """What was typed, whether it is right or not."""
        typed = {**self.initial, **dict(self.data.items())} if self.is_bound else self.initial
        read = {
            name: str(typed.get(name, "")).strip() for name in ("name", "words", "icon", "note")
        }
        return Draft(**read, text=str(typed.get("text", "")).replace("\r\n", "\n"))

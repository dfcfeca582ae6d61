"""The form of a template, made from its parameters; the verb checks again and alone decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms

from devices.claims import LONGEST_NAME, MOST_AT_ONCE
from devices.dra.template import Choice, Count, Parameter, Switch, Template
from portal.ui.forms import Card, RadioCards, Stepper
from portal.ui.forms import Switch as SwitchInput
from tenants.models import Grant, Tenant

PARAMETER = "p-"
"""Prefix of a parameter's field, so that no template can shadow `name` or `namespace`."""


class AskForm(forms.Form):
    """Name, namespace and the template's own questions."""

    name = forms.CharField(
        max_length=LONGEST_NAME,
        label="Name",
        help_text="How you will find it again. Lower-case letters, digits and '-'.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    namespace = forms.ChoiceField(
        label="Namespace", help_text="Pods can use it only in the same namespace."
    )

    at_once = forms.IntegerField(
        label="Pods at the same time",
        help_text="Each gets devices of its own, so it counts that often.",
        min_value=1,
        max_value=MOST_AT_ONCE,
        initial=1,
        required=False,
        widget=Stepper,
    )
    grant = forms.ChoiceField(
        label="Counts against",
        required=False,
        help_text="A grant is for one namespace and one class.",
    )

    def __init__(
        self,
        *args: Any,
        tenant: Tenant,
        template: Template,
        free: dict[str, str],
        grants: Sequence[Grant] = (),
        **kwargs: Any,
    ) -> None:
        """`free` gives a note per device class, such as "12 free"; `grants` are those that may be
        used for this template.
        """
        super().__init__(*args, **kwargs)
        if template.shared:
            del self.fields["at_once"]
        self.fields["grant"].choices = [("", "Our own limit"), *map(_grant_choice, grants)]  # type: ignore[attr-defined]
        if not grants:
            self.fields["grant"].widget = forms.HiddenInput()
        names = list(tenant.namespaces.values_list("name", flat=True))
        self.fields["namespace"].choices = [(name, name) for name in names]  # type: ignore[attr-defined]
        self.template = template
        for parameter in template.parameters:
            self.fields[PARAMETER + parameter.name] = _field(parameter, free)

    def parameter_fields(self) -> list[forms.BoundField]:
        """The template's questions, in its own order."""
        return [self[PARAMETER + parameter.name] for parameter in self.template.parameters]

    def values(self) -> dict[str, Any]:
        """The answers by parameter, as the verb wants them."""
        return {
            parameter.name: self.cleaned_data[PARAMETER + parameter.name]
            for parameter in self.template.parameters
            if PARAMETER + parameter.name in self.cleaned_data
        }

    def offered(self) -> dict[str, Any]:
        """The answers that the form starts with: those of a link or of an earlier ask."""
        return {
            parameter.name: self.initial[PARAMETER + parameter.name]
            for parameter in self.template.parameters
            if PARAMETER + parameter.name in self.initial
        }

    def take(self, wrong: dict[str, str]) -> None:
        """Puts the verb's refusals beside the fields they are about."""
        for name, text in wrong.items():
            field = name.replace("values.", PARAMETER)
            self.add_error(field if field in self.fields else None, text)


def _field(parameter: Parameter, free: dict[str, str]) -> forms.Field:
    match parameter:
        case Choice():
            return forms.ChoiceField(
                label=parameter.label,
                help_text=parameter.help,
                initial=parameter.default,
                choices=[(option.value, _card(option, free)) for option in parameter.options],
                widget=RadioCards,
            )
        case Count():
            return forms.IntegerField(
                label=parameter.label,
                help_text=parameter.help or f"From {parameter.minimum} to {parameter.maximum}.",
                initial=parameter.default,
                min_value=parameter.minimum,
                max_value=parameter.maximum,
                error_messages=dict.fromkeys(
                    ("required", "invalid", "min_value", "max_value"), parameter.bounds
                ),
                widget=Stepper,
            )
        case Switch():
            return forms.BooleanField(
                label=parameter.label,
                help_text=parameter.help,
                initial=parameter.default,
                required=False,
                widget=SwitchInput,
            )


def _grant_choice(grant: Grant) -> tuple[str, str]:
    return grant.public_id, f"{grant.giver.name}: {grant.count} × {grant.device_class}"


def _card(option: Any, free: dict[str, str]) -> Card:
    notes = [free[name] for name in option.device_class.values() if name in free]
    return Card(option.label, words=option.words, note=", ".join(notes))

"""The form of an ask: a template's own questions, and what every ask says; the verb checks again
and alone decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms

from devices.asks.claims import LONGEST_NAME, LONGEST_NOTE, MOST_AT_ONCE
from devices.asks.question_form import PARAMETER, QuestionForm
from devices.dra.templates import Template
from portal.ui.forms import Stepper
from tenants.models import Grant, Tenant


class AskForm(QuestionForm):
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
    days = forms.IntegerField(
        label="Keep for days",
        min_value=1,
        required=False,
        widget=Stepper,
    )
    note = forms.CharField(
        max_length=LONGEST_NOTE,
        required=False,
        label="What it is for",
        help_text="Whoever looks after the claims of this tenant reads it.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def __init__(
        self,
        *args: Any,
        tenant: Tenant,
        template: Template,
        free: Mapping[str, str],
        grants: Sequence[Grant] = (),
        longest: int | None = None,
        said: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        """`grants` are those that may be used for this template; `longest` is how many days it may
        be kept at most (None: without an end); `said` is a sentence more by parameter.
        """
        super().__init__(*args, template=template, tenant=tenant.slug, free=free, **kwargs)
        for parameter, text in (said or {}).items():
            field = self.fields[PARAMETER + parameter]
            field.help_text = f"{field.help_text} {text}".strip()
        if template.shared:
            del self.fields["at_once"]
        self.fields["grant"].choices = [("", "Our own limit"), *map(_grant_choice, grants)]  # type: ignore[attr-defined]
        if not grants:
            self.fields["grant"].widget = forms.HiddenInput()
        names = list(tenant.namespaces.filter(leaving_at=None).values_list("name", flat=True))
        self.fields["namespace"].choices = [(name, name) for name in names]  # type: ignore[attr-defined]
        self.fields["days"].help_text = (
            "Empty: until somebody releases it."
            if longest is None
            else f"At most {longest}; you can extend it later. Empty: {longest}."
        )

    def take(self, wrong: dict[str, str]) -> None:
        """Puts the verb's refusals beside the fields they are about."""
        for name, text in wrong.items():
            field = name.replace("values.", PARAMETER)
            self.add_error(field if field in self.fields else None, text)


def _grant_choice(grant: Grant) -> tuple[str, str]:
    return grant.public_id, f"{grant.giver.name}: {grant.count} × {grant.device_class}"

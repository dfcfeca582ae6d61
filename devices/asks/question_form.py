"""A template's own questions as fields, drawn from what was answered so far; the rules decide.

Which questions are shown, which options are offered and which bounds hold depends on the answers
before. So a form carries what it asked (`asked`): a switch that was not on the page is not "off",
and a question that came up afterwards has not been seen by anybody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from django import forms

from devices.dra.quantity import Quantity
from devices.dra.templates import (
    Amount,
    Choice,
    Count,
    Option,
    Question,
    Switch,
    Template,
    Value,
    in_words,
    questions,
)
from devices.dra.templates.content import in_unit
from portal.ui.forms import AmountInput, Card, RadioCards, Stepper
from portal.ui.forms import Switch as SwitchInput
from portal.ui.htmx import mark_of

PARAMETER: Final = "p-"
"""Prefix of a parameter's field, so that no template can shadow `name` or `namespace`."""
ASKED: Final = "asked"
DRAWN: Final = "drawn"


class QuestionForm(forms.Form):
    """The questions of a template as one tenant sees them. `free` gives a note per device class,
    such as "12 free".
    """

    def __init__(
        self,
        *args: Any,
        template: Template,
        tenant: str,
        free: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.template = template
        raw = _sent(self.data, template) if self.is_bound else _offered(self.initial, template)
        self._found = list(questions(template, raw, tenant=tenant))
        self._parameters = {one.name: one for one in template.parameters}
        for question, value, _ in self._found:
            self.fields[PARAMETER + question.name] = self._field(question, value, free or {})
            self.initial[PARAMETER + question.name] = _shown(question, value)
        if self.is_bound:
            self.data = self._completed()

    def _completed(self) -> dict[str, Any]:
        """What was sent, with the defaults of questions that came up since, and with what an option
        was redirected to.
        """
        data = dict(self.data.items())
        for question, value, wrong in self._found:
            name = PARAMETER + question.name
            redirected = isinstance(question.parameter, Choice) and name in data and not wrong
            if value not in (None, False) and (redirected or name in self.unseen):
                data[name] = "on" if value is True else str(_shown(question, value))
        return data

    def clean(self) -> dict[str, Any]:
        """Puts what is not right beside the fields; the rules' own sentences."""
        for question, _, wrong in self._found:
            name = PARAMETER + question.name
            if wrong and name not in self.errors:
                self.add_error(name, wrong)
        return self.cleaned_data

    def parameter_fields(self) -> list[forms.BoundField]:
        """The questions that are shown, in the template's own order."""
        return [self[PARAMETER + question.name] for question, _, _ in self._found]

    def values(self) -> dict[str, Any]:
        """The answers by parameter, as the verb wants them; an unanswered one is empty."""
        return {question.name: "" if value is None else value for question, value, _ in self._found}

    @property
    def wrong(self) -> dict[str, str]:
        """What is not right with the answers, by parameter."""
        return {question.name: wrong for question, _, wrong in self._found if wrong}

    @property
    def mistakes(self) -> list[tuple[str, str]]:
        """The same for people: by the question's label."""
        return [(one.parameter.label, wrong) for one, _, wrong in self._found if wrong]

    @property
    def asked(self) -> str:
        """The names of the questions on this page, for the next one."""
        return " ".join(question.name for question, _, _ in self._found)

    @property
    def drawn(self) -> str:
        """Changes whenever the questions have to be drawn anew: other ones, options or bounds."""
        form = [
            (one.name, [option.value for option in one.options], one.bounds, one.required)
            for one, _, _ in self._found
        ]
        return mark_of(form)

    @property
    def redrawn(self) -> bool:
        """Whether the page from which this came shows other questions than it should now."""
        return self.is_bound and self.data.get(DRAWN, self.drawn) != self.drawn

    @property
    def unseen(self) -> list[str]:
        """Fields of questions that came up by the answers themselves: nobody has seen them yet."""
        before = self.data.get(ASKED) if self.is_bound else None
        if before is None:
            return []
        seen = before.split()
        return [PARAMETER + one.name for one, _, _ in self._found if one.name not in seen]

    @property
    def changed(self) -> list[str]:
        """What could not be taken over from a link or an earlier ask, in sentences."""
        return [
            f"{one.parameter.label}: what you had cannot be had any more."
            for one, _, wrong in self._found
            if wrong and not self.is_bound
        ]

    def _field(
        self, question: Question, value: Value | None, free: Mapping[str, str]
    ) -> forms.Field:
        parameter = question.parameter
        said: dict[str, Any] = {"label": parameter.label, "help_text": parameter.help}
        match parameter:
            case Choice():
                cards = [(option.value, card) for option, card in self._cards(question, free)]
                if not question.required:
                    cards.insert(0, ("", Card("No preference", words="Whatever is there.")))
                return forms.ChoiceField(
                    **said, required=False, choices=cards, widget=RadioCards, initial=value or ""
                )
            case Count():
                field = forms.CharField(
                    **{**said, "help_text": parameter.help or _from_to(question)},
                    widget=Stepper(attrs={"min": question.minimum, "max": question.maximum}),
                )
                field.error_messages["required"] = question.bounds
                return field
            case Amount():
                field = forms.CharField(
                    **{**said, "help_text": parameter.help or question.bounds},
                    required=question.required,
                    widget=_amount_input(question, parameter),
                )
                field.error_messages["required"] = question.bounds
                return field
            case Switch():
                return forms.BooleanField(**said, required=False, widget=SwitchInput)

    def _cards(self, question: Question, free: Mapping[str, str]) -> Iterator[tuple[Option, Card]]:
        """What cannot be chosen now stays on the page and says why; what is gone does not."""
        assert isinstance(question.parameter, Choice)
        for option in question.parameter.options:
            if not option.offered:
                continue
            notes = [free[name] for name in option.device_class.values() if name in free]
            off = ""
            if option not in question.options:
                off = f"only where {in_words(option.when, self._parameters)}"
            yield option, Card(option.label, words=option.words, note=", ".join(notes), off=off)


def _sent(data: Mapping[str, Any], template: Template) -> dict[str, Any]:
    """What a browser sent, by parameter. A switch that is off is not sent at all."""
    asked = data[ASKED].split() if ASKED in data else None
    raw: dict[str, Any] = {}
    for parameter in template.parameters:
        name = PARAMETER + parameter.name
        if name in data:
            raw[parameter.name] = str(data[name]).replace("\x00", "").strip()
        elif isinstance(parameter, Switch) and (asked is None or parameter.name in asked):
            raw[parameter.name] = False
    return raw


def _offered(initial: Mapping[str, Any], template: Template) -> dict[str, Any]:
    """The answers that the form starts with: those of a link or of an earlier ask."""
    return {
        parameter.name: initial[PARAMETER + parameter.name]
        for parameter in template.parameters
        if PARAMETER + parameter.name in initial
    }


def _shown(question: Question, value: Value | None) -> Any:
    """A value as its field shows it: an amount in the unit that stands beside the field."""
    if isinstance(question.parameter, Amount) and value is not None:
        return in_unit(str(value), question.parameter.unit) or value
    return value


def _amount_input(question: Question, amount: Amount) -> AmountInput:
    ends: dict[str, Any] = {}
    for name, end in (("min", question.minimum), ("max", question.maximum), ("step", amount.step)):
        text = in_unit(str(end), amount.unit) if end or isinstance(end, Quantity) else None
        if text is not None:
            ends[name] = text
    return AmountInput(unit=amount.unit_words or amount.unit, attrs={"step": "any", **ends})


def _from_to(question: Question) -> str:
    return f"From {question.minimum} to {question.maximum}."

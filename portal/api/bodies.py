"""Bodies of requests: each value is of the JSON type that the OpenAPI document says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

#: (fields, the JSON type as Python reads it, what to say); the first that fits counts.
_TYPES: Final[tuple[tuple[tuple[type, ...], tuple[type, ...], str], ...]] = (
    ((serializers.BooleanField,), (bool,), "Give true or false, without quotes."),
    (
        (serializers.IntegerField, serializers.FloatField),
        (int, float),
        "Give a number, without quotes.",
    ),
    ((serializers.CharField, serializers.DurationField), (str,), "Give text, in quotes."),
)


class Body(serializers.Serializer[Any]):
    """The base of every shape that a request brings.

    REST framework's own fields guess: `"no"` and `0` pass for false, `7` for a text, `"7"` for a
    number, so that a program's mistake would do what nobody meant. Here it is refused by name.
    """

    def to_internal_value(self, data: Any) -> Any:
        """As REST framework's; `ValidationError` names fields of another type beside all others."""
        wrong = {}
        if isinstance(data, Mapping):
            for name, field in self.fields.items():
                if name in data and (why := _misfit(field, data[name])):
                    wrong[name] = [why]
        try:
            found = super().to_internal_value(data)
        except ValidationError as error:
            detail = error.detail if isinstance(error.detail, dict) else {}
            raise ValidationError({**detail, **wrong}) from None
        if wrong:
            raise ValidationError(wrong)
        return found


def _misfit(field: serializers.Field[Any, Any, Any, Any], value: Any) -> str:
    """What to give instead of a value of another JSON type; empty where it fits.

    null, and lists that are none, are for the field itself to judge.
    """
    if isinstance(field, serializers.ListField) and isinstance(value, list):
        return next(filter(None, (_misfit(field.child, one) for one in value)), "")
    if isinstance(field, serializers.DictField) and isinstance(value, Mapping):
        return next(filter(None, (_misfit(field.child, one) for one in value.values())), "")
    for fields, types, words in _TYPES:
        if isinstance(field, fields) and value is not None:
            # The very type: Python takes true for a number as well.
            return "" if type(value) in types else words
    return ""

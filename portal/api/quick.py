"""Shapes that are told quickly: how to read a field is found out once a page, not once a row.

The answer is the one that REST framework gives, to the letter (a test compares).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import cached_property
from typing import Any

from django.utils import timezone
from rest_framework.fields import DateTimeField, Field
from rest_framework.relations import RelatedField, SlugRelatedField
from rest_framework.serializers import BaseSerializer

Act = Callable[[Any], Any]


class QuickOut(BaseSerializer[Any]):
    """Stands before `Serializer` among the bases of a shape that only goes out."""

    @cached_property
    def _plain(self) -> list[tuple[str, Act, Act]] | None:
        """Name, reading and telling of each field; None where one has ways of its own."""
        fields: list[Field] = list(self._readable_fields)  # type: ignore[attr-defined]
        if not all(_is_plain(field) for field in fields):
            return None
        return [(str(field.field_name), _reading(field), _telling(field)) for field in fields]

    def to_representation(self, instance: Any) -> Any:
        """What `Serializer` answers; where a thing lacks a field, it says what comes of that."""
        if self._plain is None:
            return super().to_representation(instance)
        told = {}
        try:
            for name, read, tell in self._plain:
                value = read(instance)
                told[name] = None if value is None else tell(value)
        except (AttributeError, KeyError):
            return super().to_representation(instance)
        return told


def _is_plain(field: Field) -> bool:
    if isinstance(field, SlugRelatedField):
        return type(field).get_attribute is RelatedField.get_attribute
    return type(field).get_attribute is Field.get_attribute


def _reading(field: Field) -> Act:
    names = field.source_attrs

    def read(thing: Any) -> Any:
        for name in names:
            thing = thing[name] if isinstance(thing, Mapping) else getattr(thing, name)
            if callable(thing):
                raise AttributeError(name)  # `Serializer` knows what to call
        return thing

    return read


def _telling(field: Field) -> Act:
    tell: Act = field.to_representation
    if type(field) is not DateTimeField or vars(field).keys() & {"format", "timezone"}:
        return tell
    if timezone.get_current_timezone_name() != "UTC":
        return tell
    nothing = timedelta()

    def moment(value: Any) -> Any:
        if isinstance(value, str) or value.utcoffset() != nothing:
            return tell(value)
        return f"{value.replace(tzinfo=None).isoformat()}Z"

    return moment

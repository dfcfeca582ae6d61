"""What is told quickly is what REST framework tells."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from django.urls import get_resolver
from django.utils import timezone as current
from rest_framework import serializers

from devices.api.shapes import ClaimOut
from devices.models import Claim
from portal.api.quick import QuickOut, plan_of
from tenants.access import tenant_for
from tests.factories import make_claim, make_person, make_tenant

NOON = datetime(2026, 11, 2, 12, 0, 0, 5, tzinfo=UTC)


class PartOut(QuickOut, serializers.Serializer):
    name = serializers.CharField()
    node = serializers.CharField(default="nowhere")


class ThingOut(QuickOut, serializers.Serializer):
    name = serializers.CharField(source="about.name")
    at = serializers.DateTimeField()
    count = serializers.IntegerField(allow_null=True)
    parts = PartOut(many=True)
    length = serializers.SerializerMethodField()

    def get_length(self, thing: Any) -> int:
        return len(thing.about.name)


def thing(**given: Any) -> SimpleNamespace:
    usual = {"about": SimpleNamespace(name="a"), "at": NOON, "count": 1, "parts": []}
    return SimpleNamespace(**{**usual, **given})


def slowly(shape: Any, one: Any) -> Any:
    """As REST framework does it."""
    return serializers.Serializer.to_representation(shape, one)


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(thing(), id="plain"),
        pytest.param(thing(count=None, at=None), id="nothing in it"),
        pytest.param(thing(at=NOON.astimezone(timezone(timedelta(hours=2)))), id="another zone"),
        pytest.param(thing(at="2026-11-02"), id="a moment that is a text"),
        pytest.param(thing(count="7"), id="a text for a number"),
        pytest.param(thing(count=lambda: 3), id="something to call"),
        pytest.param(thing(parts=[{"name": "p", "node": "n"}]), id="a part"),
        pytest.param(thing(parts=[{"name": "p"}, {"name": "q", "node": ""}]), id="a default"),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_it_is_the_same_to_the_letter(one: Any, zone: str) -> None:
    with current.override(zone):
        assert ThingOut(one).data == slowly(ThingOut(), one)


def test_what_is_missing_is_missed_as_ever() -> None:
    with pytest.raises(AttributeError, match="ThingOut"):
        ThingOut(SimpleNamespace(name="a")).data  # noqa: B018


def shapes(kind: type[QuickOut]) -> Iterator[type[QuickOut]]:
    for below in kind.__subclasses__():
        yield below
        yield from shapes(below)


def test_every_quick_shape_of_the_api_has_plain_fields() -> None:
    assert get_resolver().url_patterns  # so that every shape is known
    slow = [shape.__name__ for shape in set(shapes(QuickOut)) if plan_of(shape, "UTC") is None]
    assert slow == [], "QuickOut does nothing for them"


@pytest.mark.django_db
def test_a_claim_of_a_list_is_told_whole_without_another_query(
    django_assert_num_queries: Any,
) -> None:
    tenant = make_tenant()
    made = make_claim(tenant_for(make_person("rosa", tenant, "member"), tenant.slug))
    device = {"claim": "c", "request": "r", "driver": "d", "pool": "p", "device": "g", "node": "n"}
    pod = {"name": "p", "phase": "Running", "node": "n", "ready": True, "message": ""}
    Claim.objects.update(placed=[device], pods=[pod, pod], code="NO_MATCHING_DEVICE_FREE")
    with django_assert_num_queries(1):
        (listed,) = Claim.objects.filter(pk=made.pk).listed()
        told = ClaimOut(listed).data
    assert told == slowly(ClaimOut(), Claim.objects.get(pk=made.pk))

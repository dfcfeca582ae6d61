"""An operation that is to go says so on every answer and in the document, long enough before."""

from __future__ import annotations

from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from types import SimpleNamespace
from typing import Any

import pytest
from django.urls import path
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory, force_authenticate

from portal.api.endings import Ending
from portal.api.operations import Operation
from portal.errors import Invalid

ENDING = Ending(date(2026, 11, 2), date(2027, 6, 30), "/api/v1/new")


class Old(Operation):
    """An operation whose GET is to go, and whose POST stays."""

    endings = {"get": ENDING}

    def caller(self) -> str:
        return "somebody"

    @extend_schema(operation_id="get_old", responses={200: dict})
    def get(self, request: Request) -> Response:
        """What was."""
        if "odd" in request.query_params:
            raise Invalid("No.", fields={"odd": "Leave it out."})
        return Response({"old": True})

    @extend_schema(operation_id="make_old", request=None, responses={200: dict})
    def post(self, request: Request) -> Response:
        """Stays."""
        return Response({"made": True})


urlpatterns = [path("api/v1/old", Old.as_view())]


def asked(method: str, address: str = "/api/v1/old") -> Any:
    request = getattr(APIRequestFactory(), method)(address)
    request.request_id = "request-0001"
    force_authenticate(request, SimpleNamespace(is_authenticated=True, pk=1, person="p"))
    return Old.as_view()(request)


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["/api/v1/old", "/api/v1/old?odd=1"])
def test_every_answer_says_since_when_until_when_and_what_instead(address: str) -> None:
    answer = asked("get", address)
    since = datetime.fromtimestamp(int(answer["Deprecation"].removeprefix("@")), UTC)
    assert since == datetime(2026, 11, 2, tzinfo=UTC)
    assert parsedate_to_datetime(answer["Sunset"]) == datetime(2027, 6, 30, 23, 59, 59, tzinfo=UTC)
    assert answer["Link"] == '</api/v1/new>; rel="successor-version"'


@pytest.mark.django_db
def test_what_stays_says_nothing() -> None:
    answer = asked("post")
    assert answer.status_code == 200
    assert not answer.has_header("Deprecation") and not answer.has_header("Sunset")


def test_the_document_marks_it() -> None:
    found = SchemaGenerator(urlconf=__name__).get_schema(request=None, public=True)
    operations = found["paths"]["/api/v1/old"]
    assert operations["get"]["deprecated"] is True
    assert "answers until 2027-06-30. Use /api/v1/new instead." in operations["get"]["description"]
    assert "deprecated" not in operations["post"]


def test_nobody_gets_less_than_half_a_year() -> None:
    with pytest.raises(ValueError, match="183 days"):
        Ending(date(2026, 11, 2), date(2027, 5, 3))


def test_where_nothing_takes_its_place_no_link_is_given() -> None:
    alone = Ending(date(2026, 11, 2), date(2027, 6, 30))
    assert "Link" not in alone.headers()
    assert alone.words().endswith("Nothing takes its place.")

"""The demo's example people and templates."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import call_command

from devices.models import TemplateVersion
from tenants.models import Membership, PlatformRole, User

pytestmark = pytest.mark.django_db


def seeded() -> dict[str, object]:
    out = StringIO()
    call_command("seeddemo", "--json", stdout=out)
    return dict(json.loads(out.getvalue()))


def test_every_role_has_somebody_and_seeding_twice_changes_nothing() -> None:
    first = seeded()
    assert seeded() == first
    roles = Membership.objects.values_list("tenant__slug", "role")
    assert sorted(roles) == [
        (slug, role)
        for slug in ("basalt-genomics", "tidewater-vision")
        for role in ("member", "owner", "viewer")
    ]
    assert set(PlatformRole.objects.values_list("role", flat=True)) == set(PlatformRole.Role)
    assert User.objects.count() == 10


def test_every_template_reads_and_can_be_asked_for() -> None:
    seeded()
    versions = list(TemplateVersion.objects.all())
    assert len(versions) == 4
    assert all(version.read().requests for version in versions)
    assert {version.state for version in versions} == {"approved"}

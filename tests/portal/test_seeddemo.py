"""The demo's example people and templates."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import call_command

from devices.models import TemplateVersion
from portal.management.demo_templates import TEMPLATES
from tenants.models import Grant, Limit, Membership, PlatformRole, User

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


def test_every_tenant_has_limits_and_one_lends_the_other() -> None:
    seeded()
    before = list(Limit.objects.order_by("pk").values_list("tenant__slug", "device_class"))
    seeded()
    again = list(Limit.objects.order_by("pk").values_list("tenant__slug", "device_class"))
    assert again == before and len({slug for slug, _ in before}) == 2
    grant = Grant.objects.get()
    assert (grant.state, grant.namespace) == ("accepted", "basalt-pipelines")


def test_every_class_that_a_template_leads_to_is_allowed_to_somebody() -> None:
    seeded()
    allowed = set(Limit.objects.values_list("device_class", flat=True))
    for version in TemplateVersion.objects.all():
        assert version.read().device_classes <= allowed


def test_every_template_reads_and_can_be_asked_for() -> None:
    seeded()
    versions = list(TemplateVersion.objects.all())
    assert len(versions) == len(TEMPLATES)
    assert all(version.read().requests for version in versions)
    assert {version.state for version in versions} == {"approved"}

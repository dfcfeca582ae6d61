"""What is known of a person is handed out, and erased without touching the audit's chain."""

from __future__ import annotations

import json
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.core.management import CommandError, call_command
from django.test import Client

from devices.models import Claim
from portal.audit.models import AuditLine
from portal.audit.record import all_breaks
from tenants.access import tenant_for
from tenants.erasure import StillNeeded, erase, known_of
from tenants.models import Membership, PlatformRole, User
from tenants.people import GONE, names_of
from tenants.roles import LastAdmin
from tests.factories import NOON, PASSWORD, make_claim, make_person, make_tenant

pytestmark = pytest.mark.django_db
ERASED: dict[str, Any] = {"by": "a test", "now": NOON}


@pytest.fixture
def tess() -> User:
    """A member who asked for a device, and has a second factor."""
    tenant = make_tenant()
    make_person("otto", tenant, role="owner")
    tess = make_person("tess", tenant)
    tess.display_name = "Tess Tern"
    tess.save()
    make_claim(tenant_for(tess, tenant.slug))
    Authenticator.objects.create(user=tess, type="totp", data={"secret": "JBSWY3DP"})
    return tess


def test_everything_that_names_a_person_is_handed_out_without_secrets(tess: User):
    known = known_of(tess)
    assert known["tenants.User"][0]["email"] == "tess@example.com"
    assert known["tenants.Membership"] and known["devices.Claim"] and known["audit.AuditLine"]
    assert {line["person"] for line in known["audit.AuditLine"]} == {str(tess.person)}
    text = json.dumps(known)
    assert "JBSWY3DP" not in text
    assert tess.password not in text
    assert "otto" not in json.dumps(known["tenants.User"])


def test_after_erasing_no_name_leads_to_the_id_and_the_chain_still_proves(tess: User):
    before = list(AuditLine.objects.order_by("number").values_list("digest", flat=True))
    erase(tess, **ERASED)
    after = list(AuditLine.objects.order_by("number").values_list("digest", flat=True))
    assert after[: len(before)] == before
    assert list(all_breaks()) == []
    assert names_of([tess.person])[tess.person] == GONE
    assert Claim.objects.get().asked_by == tess.person, "what was asked for stays"
    text = json.dumps(known_of(User.objects.get(pk=tess.pk)))
    for word in ("tess", "Tess", "Tern", "example.com"):
        assert word not in text
    assert not Authenticator.objects.exists()
    assert not Membership.objects.filter(user=tess).exists()


def test_who_was_erased_cannot_sign_in_and_erasing_again_changes_nothing(tess: User):
    client = Client()
    client.force_login(tess)
    assert client.get("/t/tidewater/").status_code == 200
    erase(tess, **ERASED)
    assert client.get("/t/tidewater/").status_code in (302, 404)
    assert not Client().login(username="tess", password=PASSWORD)
    lines = AuditLine.objects.count()
    erase(tess, **ERASED)
    assert AuditLine.objects.count() == lines


def test_the_only_owner_of_a_tenant_and_the_last_admin_stay():
    owner = make_person("otto", make_tenant(), role="owner")
    with pytest.raises(StillNeeded, match="only owner of tidewater"):
        erase(owner, **ERASED)
    admin = make_person("asp")
    PlatformRole.objects.create(user=admin, role="admin")
    with pytest.raises(LastAdmin):
        erase(admin, **ERASED)
    assert {"otto", "asp"} <= set(User.objects.values_list("username", flat=True))


def test_the_commands(tess: User, capsys, monkeypatch):
    call_command("exportperson", "tess")
    assert json.loads(capsys.readouterr().out)["tenants.User"][0]["username"] == "tess"
    monkeypatch.setattr("builtins.input", lambda prompt: "tes")
    with pytest.raises(CommandError, match="Nothing was erased"):
        call_command("eraseperson", "tess")
    call_command("eraseperson", "tess", "--yes")
    assert not User.objects.filter(username="tess").exists()
    with pytest.raises(CommandError, match="nobody is called"):
        call_command("exportperson", "tess")

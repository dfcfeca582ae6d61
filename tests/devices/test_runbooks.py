"""Every failure code has a runbook, every runbook a code, and pages, API and alerts lead there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from devices.asks import alerting
from devices.asks.verdicts import OWN
from devices.dra.codes import CODES
from devices.dra.lifecycle import State
from devices.models import Claim
from devices.runbooks import (
    Runbook,
    address_of,
    failures,
    families,
    line_of,
    read,
)
from devices.templatetags.runbooks import told
from portal.alerts.models import Alert
from tenants.access import tenant_for
from tests.devices.pages import client_of, text
from tests.factories import NOON, make_claim, make_person, make_tenant, make_version

EVERY = [one for family in families() for one in family.runbooks]


def test_every_failure_code_has_a_runbook() -> None:
    lacking = failures() - {one.code for one in EVERY}
    assert not lacking, f"write a section of docs/runbooks/ for {', '.join(sorted(lacking))}"


def test_every_runbook_has_a_code_and_there_is_one_a_code() -> None:
    names = [one.code for one in EVERY]
    assert sorted(set(names)) == sorted(names)
    assert set(names) <= set(CODES) | set(OWN)


@pytest.mark.parametrize("found", EVERY, ids=lambda one: one.code)
def test_a_runbook_says_what_the_table_of_codes_says(found: Runbook) -> None:
    assert found.line == line_of(found.code), "write this line below the heading"


@pytest.mark.parametrize("found", EVERY, ids=lambda one: one.code)
def test_a_runbook_is_complete_and_names_codes_that_exist(found: Runbook) -> None:
    parts = (found.seen, found.why, found.act, found.over)
    assert all(part.endswith((".", "?", ")")) for part in parts)
    named = {name for part in parts for name in re.findall(r"\b[A-Z]{3,}(?:_[A-Z]+)+\b", part)}
    assert named <= set(CODES) | set(OWN)


def test_a_section_without_its_parts_is_named(tmp_path: Path) -> None:
    file = tmp_path / "some.md"
    file.write_text("# Some\n\nWords.\n\n## A_CODE\n\n*x*\n\n- **Why.** Because.\n")
    with pytest.raises(ValueError, match=r"some\.md, A_CODE: it needs What people see"):
        read(file)


def test_text_is_escaped_and_leads_on() -> None:
    assert told("<b> `kubectl get` QUOTA_EXCEEDED NONE_SUCH") == (
        '&lt;b&gt; <span class="name">kubectl get</span>'
        ' <a href="/help/codes/QUOTA_EXCEEDED/">QUOTA_EXCEEDED</a>'
        ' <span class="name">NONE_SUCH</span>'
    )


@pytest.mark.django_db
def test_pages_api_and_alerts_lead_to_it() -> None:
    access = tenant_for(make_person("avocet", make_tenant()), "tidewater")
    claim = make_claim(access, make_version())
    own, page = client_of(access.user), f"/t/tidewater/claims/{claim.public_id}/"
    for state in (State.APPLIED, State.PENDING):
        Claim.objects.update(state=state)
    Claim.objects.update(code="PREPARE_CONFIG_REFUSED", why="bad")
    claim.refresh_from_db()
    address = address_of("PREPARE_CONFIG_REFUSED")
    assert address == "/help/codes/PREPARE_CONFIG_REFUSED/"
    assert f'href="{address}"' in text(own.get(page))
    answer = own.get(f"/api/v1/tenants/tidewater/claims/{claim.public_id}").json()
    assert answer["runbook"] == address
    alerting.ring(claim, NOON)
    alert = Alert.objects.get()
    assert {"label": "What to do", "value": f"http://localhost:8000{address}"} in alert.evidence
    assert f'href="{address}"' in text(own.get(f"/alerts/{alert.public_id}/"))
    assert "does not take the settings" in text(own.get(address))


@pytest.mark.django_db
def test_codes_are_found_by_their_words() -> None:
    own = client_of(make_person("avocet", make_tenant()))
    page = text(own.get("/help/codes/?q=finalizer"))
    assert "No code fits that" not in page or "LEAK_FINALIZER" in page
    assert "LEAK_FINALIZER" in page and "QUOTA_EXCEEDED" not in page
    assert "No code fits that" in text(own.get("/help/codes/?q=%00zzz"))
    assert own.get("/help/codes/NO_SUCH/").status_code == 404
    assert own.get("/help/codes/QUOTA_EXCEEDED/picture/").status_code in {200, 404}

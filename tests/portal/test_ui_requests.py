"""Page or fragment, refusals, and sign-in in the middle of a fragment; asked over HTTP."""

from __future__ import annotations

import json
import re

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory

from portal.errors import NotPermitted, Refused
from portal.ui.htmx import wants_partial
from portal.ui.refusals import RefusalMiddleware, broken, refusal
from tests.factories import make_person, make_tenant

FRAGMENT = {"HX-Request": "true"}


@pytest.mark.parametrize(
    ("headers", "partial"),
    [
        pytest.param({}, False, id="a browser loads a page"),
        pytest.param({"HX-Request": "true"}, True, id="htmx fetches a fragment"),
        pytest.param({"HX-Request": "true", "HX-Boosted": "true"}, False, id="a boosted link"),
        pytest.param(
            {"HX-Request": "true", "HX-History-Restore-Request": "true"}, False, id="back"
        ),
    ],
)
def test_who_wants_a_fragment(headers: dict[str, str], partial: bool) -> None:
    assert wants_partial(RequestFactory().get("/", headers=headers)) is partial


@pytest.fixture
def owner(client: Client) -> Client:
    client.force_login(make_person("avocet", make_tenant(), "owner"))
    return client


@pytest.mark.django_db
def test_one_address_gives_page_and_fragment(owner: Client) -> None:
    page = owner.get("/t/tidewater/claims/")
    fragment = owner.get("/t/tidewater/claims/", headers=FRAGMENT)
    assert "<html" in page.text and 'id="claims-list"' in page.text
    assert "<html" not in fragment.text and 'id="claims-list"' in fragment.text
    assert "HX-Request" in page["Vary"]
    assert "HX-Request" in fragment["Vary"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/t/tidewater/claims/?state=all&", id="claims"),
        pytest.param("/t/tidewater/catalogue/?", id="catalogue"),
        pytest.param("/api/v1/tenants/tidewater/offers?", id="offers by the API"),
    ],
)
def test_a_search_may_hold_any_text(owner: Client, path: str) -> None:
    for text in ("%F0%9F%9A%A2", "%FF", "%25%5C'"):
        assert owner.get(f"{path}q={text}").status_code == 200, text
    for text in ("%00", "a%00b"):  # what no database keeps: pages leave it out, the API says so
        expected = 422 if path.startswith("/api/") else 200
        assert owner.get(f"{path}q={text}").status_code == expected, text


@pytest.mark.django_db
def test_a_fragment_of_somebody_who_was_signed_out_sends_the_whole_page_to_sign_in(
    client: Client,
) -> None:
    answer = client.get("/t/tidewater/claims/", headers=FRAGMENT)
    assert (answer.status_code, answer["HX-Refresh"], answer.text) == (204, "true", "")
    assert client.get("/t/tidewater/claims/").status_code == 302


@pytest.mark.django_db
def test_what_is_not_yours_looks_like_what_is_not_there(owner: Client) -> None:
    make_tenant("basalt", ("basalt-dev",))
    foreign = owner.get("/t/basalt/")
    missing = owner.get("/t/no-such-tenant/")
    assert foreign.status_code == missing.status_code == 404
    own = r'csrfmiddlewaretoken" value="[^"]+"|data-now="[^"]+"'  # differs between any two answers
    same = {
        re.sub(own, "", page.text.replace(page["X-Request-ID"], "")) for page in (foreign, missing)
    }
    assert len(same) == 1
    assert "NOT_FOUND" in foreign.text


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/api/v1/no-such-thing", id="an operation that does not exist"),
        pytest.param("/api/v1/tenants/tidewater/claims/", id="a slash too many"),
        pytest.param("/api/v2/", id="a version that does not exist"),
    ],
)
def test_an_unknown_address_of_the_api_answers_a_problem(client: Client, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")
    body = json.loads(answer.content)
    assert (body["code"], body["request_id"]) == ("NOT_FOUND", answer["X-Request-ID"])


@pytest.mark.django_db
def test_the_console_of_the_api_is_a_page_for_people(client: Client, owner: Client) -> None:
    page = owner.get("/api/")
    assert page.status_code == 200 and "<style" not in page.text
    assert owner.get("/api/?script=")["Content-Type"] == "application/javascript"
    client.logout()
    assert client.get("/api/")["Location"] == "/account/login/?next=/api/"


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path",
    [
        pytest.param("signup/", id="registration"),
        pytest.param("password/reset/", id="reset by mail"),
        pytest.param("email/", id="mail addresses"),
        pytest.param("confirm-email/", id="confirming one"),
    ],
)
def test_an_account_has_no_page_that_would_need_mail(owner: Client, path: str) -> None:
    assert owner.get(f"/account/{path}").status_code == 404


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "says"),
    [
        pytest.param("password/change/", "Change your password", id="password"),
        pytest.param("sessions/", "Where you are signed in", id="sessions"),
        pytest.param("logout/", "Sign out?", id="sign out"),
        pytest.param("2fa/", "/account/2fa/totp/activate/", id="second factor"),
        pytest.param("inactive/", "This account is closed", id="closed account"),
    ],
)
def test_the_pages_that_an_account_has(owner: Client, path: str, says: str) -> None:
    assert says in owner.get(f"/account/{path}").text


@pytest.mark.django_db
def test_what_guards_the_account_asks_for_the_password_again(owner: Client) -> None:
    page = owner.get("/account/2fa/totp/activate/", follow=True)
    assert page.redirect_chain[-1][0].startswith("/account/reauthenticate/")
    assert "Confirm that it is you" in page.text and "Your password" in page.text


@pytest.mark.django_db
def test_a_closed_account_is_told_so_only_with_its_password(client: Client) -> None:
    person = make_person("avocet", make_tenant(), "owner")
    person.is_active = False
    person.set_password("berth-test-2026")
    person.save()
    given = {"login": "avocet", "password": "berth-test-2026"}
    answer = client.post("/account/login/", given, follow=True)
    assert "This account is closed" in answer.text
    wrong = client.post("/account/login/", given | {"password": "wrong"}, follow=True)
    assert "This account is closed" not in wrong.text


def asked(owner: Client, headers: dict[str, str]) -> HttpRequest:
    """A request as a view sees it, with person and session."""
    return owner.get("/t/tidewater/", headers=headers).wsgi_request


@pytest.mark.django_db
def test_a_refusal_is_a_page_or_a_notice_with_its_own_status(owner: Client) -> None:
    refused = NotPermitted("Only <owners> may do this.", role="member")
    page = refusal(asked(owner, {}), refused)
    assert page.status_code == 403
    assert "Only &lt;owners&gt; may do this." in page.text and "NOT_PERMITTED" in page.text
    notice = refusal(asked(owner, FRAGMENT), refused)
    assert (notice.status_code, notice["HX-Retarget"]) == (403, "#notices")
    assert 'role="alert"' in notice.text and "<html" not in notice.text


@pytest.mark.django_db
def test_only_refusals_are_caught(owner: Client) -> None:
    middleware = RefusalMiddleware(lambda request: HttpResponse())
    request = asked(owner, {})
    answer = middleware.process_exception(request, Refused("No."))
    assert answer is not None and answer.status_code == 422
    assert middleware.process_exception(request, RuntimeError("a bug")) is None


def test_a_bug_is_a_page_without_context_and_below_the_api_a_problem() -> None:
    page = broken(RequestFactory().get("/t/tidewater/"))
    assert page.status_code == 500
    assert b"Something broke on our side" in page.content
    request = RequestFactory().get("/api/v1/tenants/tidewater/claims")
    request.request_id = "request-0001"  # type: ignore[attr-defined]
    answer = broken(request)
    assert (answer.status_code, answer["Content-Type"]) == (500, "application/problem+json")
    assert json.loads(answer.content)["code"] == "INTERNAL"


@pytest.mark.django_db
def test_pages_forbid_inline_code(owner: Client) -> None:
    policy = owner.get("/t/tidewater/")["Content-Security-Policy"]
    assert "script-src 'self'" in policy and "style-src 'self'" in policy
    assert "unsafe" not in policy


@pytest.mark.django_db
def test_parts_are_for_developers_only(owner: Client) -> None:
    assert owner.get("/parts/").status_code == 404


@pytest.mark.django_db
def test_the_cluster_line_keeps_listening_after_it_was_swapped(owner: Client) -> None:
    line = owner.get("/cluster/", headers=FRAGMENT).text
    assert 'hx-trigger="sse:cluster' in line and "data-live" in line
    assert 'id="cluster-banner" hx-swap-oob="true"' in line


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        pytest.param("/t/tidewater/members/a%00b/remove/", {}, 404, id="a name in the address"),
        pytest.param("/t/tidewater/members/avocet/role/", {"role": "a\x00"}, 422, id="a field"),
        pytest.param("/t/tidewater/members/avocet/role/", {"a\x00": "b"}, 422, id="a field's name"),
        pytest.param("/approvals/", {"borrower": "a\x00", "days": "3"}, 422, id="a form's field"),
    ],
)
def test_what_nothing_can_keep_is_refused_before_any_page(
    owner: Client, path: str, body: dict[str, str], status: int
) -> None:
    """PostgreSQL keeps no NUL; what reaches it anyhow is a fault of ours (500)."""
    answer = owner.post(path, body)
    assert answer.status_code == status


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path", ["/t/tidewater/limits/one/?measure=devices&class=%00", "/find/?t=%00"]
)
def test_what_nothing_can_keep_is_not_looked_for(owner: Client, path: str) -> None:
    """A page that did not think of it refuses it; one that did answers as it likes."""
    assert owner.get(path).status_code < 500

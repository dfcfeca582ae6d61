"""Pages of people's accounts: who there is, making and mending them, and the link to a password."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from portal.errors import Invalid
from portal.request_ids import request_id_of
from portal.ui.forms import blame
from tenants.access import PlatformAccess, platform_access
from tenants.localaccounts import (
    NewLink,
    accounts,
    close_account,
    find_link,
    link_still_good,
    make_link,
    make_person,
    open_account,
    reset_second_factor,
    set_password,
)
from tenants.models import AccountLink
from tenants.policy import PlatformAct

PAGE_SIZE = 50
PROVED = "password-link"
"""Where a session keeps the number of the link that it has proved."""


class PersonForm(forms.Form):
    """Who gets an account."""

    username = forms.CharField(label="User name", max_length=150)
    display_name = forms.CharField(label="Name", max_length=120, required=False)
    email = forms.EmailField(label="Mail address", required=False)


class LinkForm(forms.Form):
    """The text of a link, for browsers that run no script."""

    code = forms.CharField(
        label="Link",
        max_length=120,
        help_text="The part of the link after the #.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )


class PasswordForm(forms.Form):
    """A password, twice."""

    password = forms.CharField(
        label="New password",
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    again = forms.CharField(
        label="The same again",
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        if given.get("password") != given.get("again"):
            self.add_error("again", "The two differ; write the same password twice.")
        return given


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def people(request: HttpRequest) -> HttpResponse:
    """Everybody who has an account; a POST makes one, and shows its link in this answer only."""
    access = platform_access(request.user)
    form = PersonForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            made = make_person(
                access=access, now=timezone.now(), request_id=request_id_of(request),
                **form.cleaned_data,
            )  # fmt: skip
        except Invalid as refused:
            _take(form, refused)
        else:
            return _person(request, access, made.row.user.username, made)
    searched = request.GET.get("q", "").strip()[:150]
    fits = Q(username__icontains=searched) | Q(display_name__icontains=searched)
    page = Paginator(accounts(timezone.now()).filter(fits), PAGE_SIZE).get_page(
        request.GET.get("page")
    )
    why_not = access.why_not(PlatformAct.RUN_ACCOUNTS)
    context = {"page": page, "searched": searched, "form": form, "why_not": why_not}
    return render(request, "tenants/people.html", context, status=_status(request))


@require_http_methods(["GET", "HEAD"])
@login_required
def person(request: HttpRequest, username: str) -> HttpResponse:
    """One account and what can be done with it."""
    return _person(request, platform_access(request.user), username)


@require_POST
@login_required
def link(request: HttpRequest, username: str) -> HttpResponse:
    """Makes a link to a new password, and shows it in this answer only."""
    access = platform_access(request.user)
    made = make_link(
        access=access, username=username, now=timezone.now(), request_id=request_id_of(request)
    )
    return _person(request, access, username, made)


@require_POST
@login_required
def close(request: HttpRequest, username: str) -> HttpResponse:
    """Lets somebody sign in no more."""
    orphaned = close_account(
        access=platform_access(request.user),
        username=username,
        now=timezone.now(),
        request_id=request_id_of(request),
    )
    if orphaned:
        words = ", ".join(orphaned)
        messages.warning(request, f"{username} is signed out. No owner is left in: {words}.")
    else:
        messages.success(request, f"{username} is signed out everywhere, and stays so.")
    return redirect("platform-person", username)


@require_POST
@login_required
def reopen(request: HttpRequest, username: str) -> HttpResponse:
    """Lets somebody sign in again."""
    open_account(
        access=platform_access(request.user),
        username=username,
        now=timezone.now(),
        request_id=request_id_of(request),
    )
    messages.success(request, f"{username} may sign in again.")
    return redirect("platform-person", username)


@require_POST
@login_required
def second_factor(request: HttpRequest, username: str) -> HttpResponse:
    """Removes the second factor of somebody who lost it."""
    reset_second_factor(
        access=platform_access(request.user),
        username=username,
        now=timezone.now(),
        request_id=request_id_of(request),
    )
    messages.success(request, f"{username} signs in with the password alone until they set it up.")
    return redirect("platform-person", username)


@require_http_methods(["GET", "HEAD", "POST"])
def password(request: HttpRequest) -> HttpResponse:
    """Where a link leads: proves its text, then takes a password.

    As with invitations the secret is behind the #, and the session keeps only the link's number.
    """
    now = timezone.now()
    form = LinkForm(request.POST if "code" in request.POST else None)
    if "code" in request.POST and form.is_valid():
        found = find_link(form.cleaned_data["code"], now)
        if found is not None:
            request.session[PROVED] = found.pk
            return redirect("account-link")
        form.add_error("code", "It was used, taken back, or is too old; ask an admin for another.")
    proved = request.session.get(PROVED)
    row = link_still_good(proved, now) if proved else None
    choice = PasswordForm(request.POST if row and "password" in request.POST else None)
    if row is not None and choice.is_valid() and _set(request, row, choice):
        return redirect("account_login")
    page = {"form": form, "link": row, "choice": choice}
    response = render(request, "tenants/password.html", page, status=_status(request))
    response["Cache-Control"] = "no-store"
    return response


def _set(request: HttpRequest, row: AccountLink, form: PasswordForm) -> bool:
    """Whether the password was taken; else the form says why not."""
    try:
        user = set_password(
            link_id=row.pk,
            password=form.cleaned_data["password"],
            now=timezone.now(),
            request_id=request_id_of(request),
        )
    except Invalid as refused:
        _take(form, refused)
        return False
    del request.session[PROVED]
    messages.success(request, f"Your password is set. Sign in as {user.username}.")
    return True


def _person(
    request: HttpRequest, access: PlatformAccess, username: str, made: NewLink | None = None
) -> HttpResponse:
    shown = accounts(timezone.now()).filter(username=username).first()
    if shown is None:
        raise Http404
    context = {
        "person": shown,
        "itself": shown.pk == access.user.pk,
        "roles": sorted(shown.platform_roles.values_list("role", flat=True)),
        "memberships": shown.memberships.select_related("tenant").order_by("tenant__name"),
        "why_not": access.why_not(PlatformAct.RUN_ACCOUNTS),
        "made": made,
        "link": f"{settings.PUBLIC_URL}{reverse('account-link')}#{made.text}" if made else "",
    }
    response = render(request, "tenants/person.html", context)
    response["Cache-Control"] = "no-store"
    return response


def _status(request: HttpRequest) -> int:
    return 422 if request.method == "POST" else 200


def _take(form: forms.Form, refused: Invalid) -> None:
    blame(form, refused.fields)

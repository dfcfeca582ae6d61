"""Members of a tenant: who they are, inviting, changing, removing; and taking an invitation up."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from portal.errors import Invalid
from portal.request_ids import request_id_of
from portal.ui.forms import blame
from tenants.access import Access, tenant_for
from tenants.members import (
    NewInvitation,
    accept,
    change_role,
    find_invitation,
    invite,
    remove,
    revoke_invitation,
    still_good,
)
from tenants.models import Invitation, Membership, User
from tenants.policy import Act

PAGE_SIZE = 100
LIVES = {1: "a day", 3: "3 days", 7: "7 days", 30: "30 days"}
INVITED = "invitation"
"""Where a session keeps the number of the invitation that it has proved."""


class InviteForm(forms.Form):
    """For whom an invitation is, what it makes of them, and how long it is good."""

    note = forms.CharField(
        label="For", max_length=80, help_text="A name, so that you know it again."
    )
    role = forms.ChoiceField(choices=Membership.Role.choices, initial=Membership.Role.MEMBER)
    life = forms.TypedChoiceField(
        label="Good for", coerce=int, choices=list(LIVES.items()), initial=3
    )


class JoinForm(forms.Form):
    """The text of an invitation, for browsers that run no script."""

    code = forms.CharField(
        label="Invitation",
        max_length=120,
        help_text="The part of the link after the #.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def members(request: HttpRequest, slug: str) -> HttpResponse:
    """Everybody with their role; a POST invites, and shows the link in this answer only."""
    access = tenant_for(request.user, slug)
    form = InviteForm(request.POST or None)
    made = None
    if request.method == "POST" and form.is_valid():
        try:
            made = _invite(request, access, form)
            form = InviteForm()
        except Invalid as refused:
            blame(form, refused.fields)
    response = render(request, "tenants/members.html", _page(request, access, form, made))
    response["Cache-Control"] = "no-store"
    return response


@require_POST
@login_required
def role(request: HttpRequest, slug: str, username: str) -> HttpResponse:
    """Gives a member another role."""
    membership = change_role(
        access=tenant_for(request.user, slug),
        username=username,
        role=request.POST.get("role", ""),
        now=timezone.now(),
        request_id=request_id_of(request),
    )
    messages.success(request, f"{membership.user.words} is {membership.role} now.")
    return redirect("members", slug)


@require_POST
@login_required
def remove_member(request: HttpRequest, slug: str, username: str) -> HttpResponse:
    """Removes a member, or oneself."""
    access = tenant_for(request.user, slug)
    remove(access=access, username=username, now=timezone.now(), request_id=request_id_of(request))
    messages.success(request, f"{username} is no member of {access.tenant.name} any more.")
    return redirect("home") if username == access.user.username else redirect("members", slug)


@require_POST
@login_required
def revoke(request: HttpRequest, slug: str, prefix: str) -> HttpResponse:
    """Takes an open invitation back."""
    revoke_invitation(
        access=tenant_for(request.user, slug),
        prefix=prefix,
        now=timezone.now(),
        request_id=request_id_of(request),
    )
    return redirect("members", slug)


@require_http_methods(["GET", "HEAD", "POST"])
def join(request: HttpRequest) -> HttpResponse:
    """Where an invitation's link leads: proves its text, then asks whoever is signed in.

    The secret is behind the #, so browsers send it to nobody; the page's script puts it into the
    form. The session keeps only the invitation's number, so the secret appears in no log.
    """
    now = timezone.now()
    form = JoinForm(request.POST if "code" in request.POST else None)
    if request.method == "POST" and "code" in request.POST and form.is_valid():
        found = find_invitation(form.cleaned_data["code"], now)
        if found is not None:
            request.session[INVITED] = found.pk
            return redirect("join")
        form.add_error("code", "It was used, taken back, or is too old; ask for a new one.")
    proved = request.session.get(INVITED)
    invitation = still_good(proved, now) if proved else None
    if request.method == "POST" and "code" not in request.POST and invitation is not None:
        return _accepted(request, invitation)
    page = {"form": form, "invitation": invitation}
    status = 422 if request.method == "POST" else 200
    return render(request, "tenants/join.html", page, status=status)


def _accepted(request: HttpRequest, invitation: Invitation) -> HttpResponse:
    if not isinstance(request.user, User):
        return redirect(f"{reverse('account_login')}?next={reverse('join')}")
    membership = accept(
        user=request.user,
        invitation_id=invitation.pk,
        now=timezone.now(),
        request_id=request_id_of(request),
    )
    del request.session[INVITED]
    messages.success(request, f"You are {membership.role} of {membership.tenant.name} now.")
    return redirect("tenant-home", membership.tenant.slug)


def _invite(request: HttpRequest, access: Access, form: InviteForm) -> NewInvitation:
    return invite(
        access=access,
        role=form.cleaned_data["role"],
        note=form.cleaned_data["note"],
        lasts=timedelta(days=form.cleaned_data["life"]),
        now=timezone.now(),
        request_id=request_id_of(request),
    )


def _page(
    request: HttpRequest, access: Access, form: InviteForm, made: NewInvitation | None
) -> dict[str, Any]:
    now = timezone.now()
    rows = access.tenant.memberships.select_related("user").order_by("user__username")
    manages = access.may(Act.MANAGE_MEMBERS)
    invitations = access.tenant.invitations.filter(
        accepted_at=None, revoked_at=None, expires_at__gt=now
    ).select_related("made_by")
    return {
        "access": access,
        "page": Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page")),
        "groups": set(
            User.objects.filter(held_by_groups__tenant=access.tenant).values_list("pk", flat=True)
        ),
        "roles": Membership.Role.choices,
        "invitations": invitations if manages else [],
        "why_not": access.why_not(Act.MANAGE_MEMBERS),
        "form": form,
        "made": made,
        "link": f"{settings.PUBLIC_URL}{reverse('join')}#{made.text}" if made else "",
        "now": now,
    }

"""Pages about oneself: API tokens."""

from __future__ import annotations

from datetime import timedelta

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from portal.errors import Invalid
from portal.request_ids import request_id_of
from portal.ui.forms import blame
from tenants.access import Access, PlatformAccess, platform_of, tenant_for, tenants_of
from tenants.models import ApiToken, User
from tenants.policy import Act
from tenants.tokens import OF_PLATFORM, NewToken, make_token, revoke_token

LIVES = {7: "7 days", 30: "30 days", 90: "90 days", 365: "a year"}
PLATFORM = "the-platform."
"""No slug ends with a dot, so this choice can never be a tenant's."""


class TokenForm(forms.Form):
    """A new token's name, tenant, rights, addresses and life."""

    name = forms.CharField(max_length=80, help_text="Where it will be used, such as nightly-ci.")
    tenant = forms.ChoiceField(label="For")
    scopes = forms.MultipleChoiceField(
        label="May",
        choices=ApiToken.Scope.choices,
        initial=[ApiToken.Scope.READ],
        widget=forms.CheckboxSelectMultiple,
        help_text="Never more than you may yourself.",
    )
    networks = forms.CharField(
        label="Only from",
        required=False,
        help_text="Address ranges such as 10.20.0.0/16, with spaces between; empty is everywhere.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    dry_run_first = forms.BooleanField(
        label="Dry run first",
        required=False,
        help_text="For agents: it changes nothing that it has not tried by a dry run before.",
    )
    life = forms.TypedChoiceField(
        label="Ends after", coerce=int, choices=list(LIVES.items()), initial=30
    )

    def __init__(
        self, *args: object, scopes: list[Access], platform: PlatformAccess, **kwargs: object
    ) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        choices = [(one.tenant.slug, one.tenant.name) for one in scopes if one.may(Act.MAKE_TOKEN)]
        if platform.roles:
            choices.append((PLATFORM, f"The platform, as {platform.words}"))
        self.fields["tenant"].choices = choices  # type: ignore[attr-defined]
        if [name for name, _ in choices] == [PLATFORM]:
            self.fields["scopes"].choices = [  # type: ignore[attr-defined]
                (one, text) for one, text in ApiToken.Scope.choices if one in OF_PLATFORM
            ]


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def tokens(request: HttpRequest) -> HttpResponse:
    """One's own tokens, and the form for a new one; the new token's text is in this answer only."""
    user = request.user
    assert isinstance(user, User)
    scopes, platform = tenants_of(user), platform_of(user)
    form = TokenForm(request.POST or None, scopes=scopes, platform=platform)
    made = None
    if request.method == "POST" and form.is_valid():
        try:
            made = _make(request, form, platform)
            form = TokenForm(scopes=scopes, platform=platform)
        except Invalid as refused:
            blame(form, refused.fields)
    rows = ApiToken.objects.filter(user=user).select_related("tenant")
    page = {"form": form, "made": made, "tokens": rows, "now": timezone.now()}
    response = render(request, "tenants/tokens.html", page)
    response["Cache-Control"] = "no-store"
    return response


@require_POST
@login_required
def revoke(request: HttpRequest, prefix: str) -> HttpResponse:
    """Ends one of one's own tokens."""
    assert isinstance(request.user, User)
    revoke_token(
        user=request.user, prefix=prefix, now=timezone.now(), request_id=request_id_of(request)
    )
    return redirect("tokens")


def _make(request: HttpRequest, form: TokenForm, platform: PlatformAccess) -> NewToken:
    asked, now = form.cleaned_data, timezone.now()
    on_platform = asked["tenant"] == PLATFORM
    return make_token(
        access=platform if on_platform else tenant_for(platform.user, asked["tenant"]),
        name=asked["name"],
        scopes=asked["scopes"],
        networks=asked["networks"].replace(",", " ").split(),
        dry_run_first=asked["dry_run_first"],
        expires_at=now + timedelta(days=asked["life"]),
        now=now,
        request_id=request_id_of(request),
    )

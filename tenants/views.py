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
from tenants.access import Access, tenant_for, tenants_of
from tenants.models import ApiToken, User
from tenants.policy import Act
from tenants.tokens import make_token, revoke_token

LIVES = {7: "7 days", 30: "30 days", 90: "90 days", 365: "a year"}


class TokenForm(forms.Form):
    """A new token's name, tenant, rights and life."""

    name = forms.CharField(max_length=80, help_text="Where it will be used, such as nightly-ci.")
    tenant = forms.ChoiceField()
    scopes = forms.MultipleChoiceField(
        label="May",
        choices=ApiToken.Scope.choices,
        initial=[ApiToken.Scope.READ],
        widget=forms.CheckboxSelectMultiple,
    )
    life = forms.TypedChoiceField(
        label="Ends after", coerce=int, choices=list(LIVES.items()), initial=30
    )

    def __init__(self, *args: object, scopes: list[Access], **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        choices = [(one.tenant.slug, one.tenant.name) for one in scopes if one.may(Act.MAKE_TOKEN)]
        self.fields["tenant"].choices = choices  # type: ignore[attr-defined]


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def tokens(request: HttpRequest) -> HttpResponse:
    """One's own tokens, and the form for a new one; the new token's text is in this answer only."""
    user = request.user
    assert isinstance(user, User)
    form = TokenForm(request.POST or None, scopes=tenants_of(user))
    made = None
    if request.method == "POST" and form.is_valid():
        now = timezone.now()
        try:
            made = make_token(
                access=tenant_for(user, form.cleaned_data["tenant"]),
                name=form.cleaned_data["name"],
                scopes=form.cleaned_data["scopes"],
                expires_at=now + timedelta(days=form.cleaned_data["life"]),
                now=now,
                request_id=request_id_of(request),
            )
            form = TokenForm(scopes=tenants_of(user))
        except Invalid as refused:
            for name, text in refused.fields.items():
                form.add_error(name if name in form.fields else None, text)
    rows = ApiToken.objects.filter(user=user).select_related("tenant")
    page = {"form": form, "made": made, "tokens": rows, "now": timezone.now()}
    response = render(request, "tenants/tokens.html", page)
    response["Cache-Control"] = "no-store"
    return response


@require_POST
@login_required
def revoke(request: HttpRequest, slug: str, prefix: str) -> HttpResponse:
    """Ends one of one's own tokens."""
    revoke_token(
        access=tenant_for(request.user, slug),
        prefix=prefix,
        now=timezone.now(),
        request_id=request_id_of(request),
    )
    return redirect("tokens")

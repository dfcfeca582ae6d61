"""Pages of one's own account that allauth lacks: ending one session, and the company's accounts."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from allauth.account import views as account
from allauth.usersessions.models import UserSession
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from portal.errors import Refused
from tenants.models import User

View = Callable[..., HttpResponse]


def local_account(view: View) -> View:
    """Refuses pages about passwords and second factors to whom the company signs in."""

    @wraps(view)
    def only_local(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if isinstance(request.user, User) and not request.user.has_usable_password():
            raise Refused(
                "You sign in with the company's account; your password and second factor are kept "
                "there, not here.",
                code="COMPANY_ACCOUNT",
            )
        return view(request, *args, **kwargs)

    return only_local


password_change = local_account(account.password_change)


@require_POST
@login_required
def end_session(request: HttpRequest, pk: int) -> HttpResponse:
    """Signs out one of one's own browsers; it learns that with its next click."""
    session = UserSession.objects.filter(user_id=request.user.pk, pk=pk).first()
    if session is None:
        raise Http404
    session.end()
    messages.success(request, "That browser is signed out.")
    return redirect("usersessions_list")

"""What codes mean and what to do about them: the text of `docs/runbooks/`, without internet."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from devices.asks.searches import search_of
from devices.runbooks import families, runbooks, words_of


@require_safe
@login_required
def codes(request: HttpRequest) -> HttpResponse:
    """Every code by family; `?q=` narrows by code and words."""
    query = search_of(request.GET).lower()
    shown = []
    for family in families():
        rows = [(one, words_of(one.code)) for one in family.runbooks]
        fitting = [
            (one, said)
            for one, said in rows
            if query in one.code.lower() or query in said.sentence.lower()
        ]
        if fitting:
            shown.append((family, fitting))
    return render(
        request, "devices/codes.html", {"families": shown, "query": search_of(request.GET)}
    )


@require_safe
@login_required
def code(request: HttpRequest, code: str) -> HttpResponse:
    """One code: its words, what people see, why, what to do, and how to tell it is over."""
    found = runbooks().get(code)
    if found is None:
        raise Http404
    family = next(one for one in families() if one.name == found.family)
    context = {"found": found, "said": words_of(code), "family": family}
    return render(request, "devices/code.html", context)


@require_safe
@login_required
def picture(request: HttpRequest, code: str) -> HttpResponse:
    """What it looks like, where a test of Berth's could make it happen."""
    found = runbooks().get(code)
    if found is None or not found.picture:
        raise Http404
    file = settings.BASE_DIR / "docs" / "runbooks" / "pictures" / found.picture
    return HttpResponse(file.read_bytes(), content_type="image/jpeg")

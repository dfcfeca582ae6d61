"""Page or fragment: one view serves both, and htmx is never handed the wrong one."""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import resolve_url
from django.utils.cache import patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme

GetResponse = Callable[[HttpRequest], HttpResponse]


def wants_partial(request: HttpRequest) -> bool:
    """Whether this request wants the fragment: from htmx, not boosted, no history restore.

    Both of those replace the whole page, so they get the whole page.
    """
    headers = request.headers
    return (
        headers.get("HX-Request") == "true"
        and headers.get("HX-Boosted") != "true"
        and headers.get("HX-History-Restore-Request") != "true"
    )


def mark_of(drawn: object) -> str:
    """A short mark of what is drawn, by its `repr`. A page sends it back, and is sent that part
    anew only where the mark is another one, so that nobody's choice or half a word is lost.
    """
    return f"{crc32(repr(drawn).encode()):08x}"


class FragmentMiddleware:
    """Keeps caches and sign-in right where one address answers with a page or a fragment.

    - Every answer varies on HX-Request, so that Back never shows a bare fragment.
    - A fragment that would be redirected to sign in makes the whole page go there instead: htmx
      would follow the redirect silently and put the sign-in page into a card.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        patch_vary_headers(response, ("HX-Request",))
        if response.status_code == 302 and wants_partial(request) and _to_sign_in(response):
            elsewhere = HttpResponse(status=204)
            elsewhere["HX-Refresh"] = "true"
            return elsewhere
        return response


def _to_sign_in(response: HttpResponse) -> bool:
    target = response.get("Location", "")
    return url_has_allowed_host_and_scheme(target, None) and target.startswith(
        resolve_url(settings.LOGIN_URL)
    )

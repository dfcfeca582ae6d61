"""Every code with which the API says no, by status; the OpenAPI document lists them."""

from __future__ import annotations

import pkgutil
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from inspect import getdoc
from pathlib import Path

from django.apps import apps
from django.conf import settings

from portal.api.problems import CODES
from portal.errors import Refused

#: Codes of REST framework's and Django's own refusals.
GENERAL = {
    "NOT_SIGNED_IN": "Send a token, or sign in.",
    "TOKEN_INVALID": "The token is unknown, expired, revoked, or not for this address.",
    "NOT_PERMITTED": "You may not do this; the sentence says who may.",
    "NOT_FOUND": "There is nothing here that you may see.",
    "METHOD_NOT_ALLOWED": "There is no such operation at this address.",
    "NOT_ACCEPTABLE": "Only JSON is served.",
    "UNSUPPORTED_MEDIA_TYPE": "Only JSON is read.",
    "NOT_JSON": "The body is no JSON document.",
    "TOO_MANY_REQUESTS": "The minute's requests are used up; Retry-After says when to go on.",
    "TOO_LARGE": "The body is larger than this operation reads.",
    "LIMIT_REACHED": "It would go beyond a limit; facts.limits says which, and by how much.",
    "CLASS_NOT_ALLOWED": "No limit of the tenant names this class, so it may not be used.",
}
#: Codes that are given where something is refused, not by a class of its own: status and sentence.
GIVEN = {
    "LIMIT_REACHED": 422,
    "CLASS_NOT_ALLOWED": 422,
    "TOO_LARGE": 413,
}
SPOKEN: dict[str, tuple[int, str]] = {
    "INVITATION_GONE": (422, "The invitation is used, withdrawn or too old."),
    "VIEWING_ONLY": (403, "You view the portal as a tenant; nothing can be changed like that."),
    "COMPANY_ACCOUNT": (422, "The company's sign-in keeps this account."),
    "ACCOUNT_CLOSED": (422, "The account is closed; open it first."),
    "LINK_GONE": (422, "The link is used or too old."),
    "GIVER_LIMIT_REACHED": (422, "It would go beyond a limit of whoever gave the grant."),
    "NOT_YOUR_REQUEST": (403, "Only its author can withdraw it."),
    "NOT_YOUR_APPROVAL": (403, "You gave no approval here that you could take back."),
    "OWN_TENANT": (403, "Nobody decides about their own tenant; somebody else does."),
    "APPROVAL_NOT_OPEN": (422, "It is decided already."),
    "DATABASE_AWAY": (
        503,
        "Berth's database does not answer; ask again in a moment.",
    ),
}


@cache
def _import_every_floor() -> None:
    """A refusal counts wherever it is defined, whatever this process has had to do with so far."""
    for app in apps.get_app_configs():
        if not Path(app.path).is_relative_to(settings.BASE_DIR / app.name.partition(".")[0]):
            continue
        for one in pkgutil.walk_packages([app.path], f"{app.name}."):
            if not {"migrations", "management"} & set(one.name.split(".")):
                import_module(one.name)


def codes_by_status() -> dict[int, dict[str, str]]:
    """{422: {"INVALID": "what it means", …}, …}, codes in the order of the alphabet."""
    _import_every_floor()
    found: defaultdict[int, dict[str, str]] = defaultdict(dict)
    for code, status in CODES.values():
        found[int(status)][code] = GENERAL[code]
    for code, status in GIVEN.items():
        found[status][code] = GENERAL[code]
    for code, (status, words) in SPOKEN.items():
        found[status][code] = words
    for kind in _below(Refused):
        if kind.code != Refused.code:
            words = (getdoc(kind) or kind.code).partition("\n\n")[0].replace("\n", " ")
            found[int(kind.http_status)].setdefault(kind.code, words)
    return {status: dict(sorted(codes.items())) for status, codes in sorted(found.items())}


def _below(kind: type[Refused]) -> Iterator[type[Refused]]:
    for one in sorted(kind.__subclasses__(), key=lambda found: (found.__module__, found.__name__)):
        if not one.__module__.startswith("tests."):
            yield one
            yield from _below(one)

"""Verbs on API tokens: make, find, revoke. The token itself is shown once and never stored."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from portal.audit.record import record
from portal.errors import Invalid
from tenants.access import Access
from tenants.models import ApiToken
from tenants.policy import Act

SCHEME = "berth"
LONGEST_LIFE = timedelta(days=366)
USED_STAMP_EVERY = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class NewToken:
    """A fresh token and, this one time, its secret text."""

    row: ApiToken
    text: str


@transaction.atomic
def make_token(
    *,
    access: Access,
    name: str,
    scopes: list[str],
    expires_at: datetime,
    now: datetime,
    request_id: str,
) -> NewToken:
    """Makes a token for one tenant. Raises `Invalid` (name, scopes, expires_at), `NotPermitted`."""
    access.require(Act.MAKE_TOKEN)
    wrong = {}
    if not name.strip():
        wrong["name"] = "Give it a name that tells where it will be used."
    if not scopes or not set(scopes) <= set(ApiToken.Scope.values):
        wrong["scopes"] = f"Choose from {', '.join(ApiToken.Scope.values)}."
    if not now < expires_at <= now + LONGEST_LIFE:
        wrong["expires_at"] = f"Choose a time in the next {LONGEST_LIFE.days} days."
    if wrong:
        raise Invalid("The token was not made.", fields=wrong)
    prefix, secret = secrets.token_hex(5), secrets.token_urlsafe(32)
    row = ApiToken.objects.create(
        tenant=access.tenant,
        user=access.user,
        name=name.strip(),
        prefix=prefix,
        digest=_digest(secret),
        scopes=sorted(set(scopes)),
        created_at=now,
        expires_at=expires_at,
    )
    record(
        action="token.made",
        subject=f"token {prefix}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        tenant=access.tenant.slug,
        facts={"scopes": row.scopes, "expires_at": expires_at.isoformat()},
    )
    return NewToken(row, f"{SCHEME}_{prefix}_{secret}")


def find_token(text: str, now: datetime) -> ApiToken | None:
    """The live token for this text, or None: unknown, expired and revoked look the same."""
    scheme, _, rest = text.partition("_")
    prefix, _, secret = rest.partition("_")
    if scheme != SCHEME or not prefix or not secret:
        return None
    token = ApiToken.objects.select_related("tenant", "user").filter(prefix=prefix).first()
    # Compared even when the prefix is unknown, so that timing tells nothing.
    same = hmac.compare_digest(token.digest if token else _digest(""), _digest(secret))
    if token is None or not same or token.revoked_at or token.expires_at <= now:
        return None
    if not token.user.is_active:
        return None
    if token.last_used_at is None or now - token.last_used_at > USED_STAMP_EVERY:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token


@transaction.atomic
def revoke_token(*, access: Access, prefix: str, now: datetime, request_id: str) -> None:
    """The token stops working at once; doing it twice is fine. Only one's own tokens are found."""
    changed = ApiToken.objects.filter(
        tenant=access.tenant, user=access.user, prefix=prefix, revoked_at=None
    ).update(revoked_at=now)
    if changed:
        record(
            action="token.revoked",
            subject=f"token {prefix}",
            request_id=request_id,
            at=now,
            person=access.user.person,
            tenant=access.tenant.slug,
        )


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()

"""Verbs on API tokens: make, find, revoke. The token itself is shown once and never stored."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from portal.addresses import networks as read_networks
from portal.addresses import within
from portal.audit.record import record
from portal.errors import Invalid, NotPermitted
from tenants.access import Access, PlatformAccess
from tenants.models import ApiToken, Tenant, User
from tenants.policy import Act, Scope

SCHEME = "berth"
LONGEST_LIFE = timedelta(days=366)
USED_STAMP_EVERY = timedelta(minutes=1)
MOST_NETWORKS = 20
OF_TENANTS = frozenset({Scope.READ, Scope.REQUEST, Scope.OPERATE, Scope.ADMIN, Scope.SIGNAL})
OF_PLATFORM = frozenset({Scope.READ, Scope.OPERATE, Scope.ADMIN, Scope.SIGNAL})


@dataclass(frozen=True, slots=True)
class NewToken:
    """A fresh token and, this one time, its secret text."""

    row: ApiToken
    text: str


@transaction.atomic
def make_token(
    *,
    access: Access | PlatformAccess,
    name: str,
    scopes: Sequence[str],
    expires_at: datetime,
    now: datetime,
    request_id: str,
    networks: Sequence[str] = (),
    dry_run_first: bool = False,
) -> NewToken:
    """Makes a token for one tenant, or for the platform.

    It acts for its person: what they may not do, it may not either, now and later. With
    `dry_run_first` it does nothing that it has not rehearsed. Raises `Invalid` (name, scopes,
    networks, expires_at) and `NotPermitted`.
    """
    tenant = access.tenant if isinstance(access, Access) else None
    if isinstance(access, Access):
        access.require(Act.MAKE_TOKEN)
    elif not access.roles:
        raise NotPermitted("You have no role on the platform; its admins give them.")
    elif access.scopes is not None:
        raise NotPermitted("No token may make tokens; sign in and do it yourself.")
    known = OF_TENANTS if tenant else OF_PLATFORM
    wrong = {}
    if not name.strip():
        wrong["name"] = "Give it a name that tells where it will be used."
    if not scopes or not set(scopes) <= known:
        listed = "; ".join(f"{one.label} ({one})" for one in ApiToken.Scope if one in known)
        wrong["scopes"] = f"A token for {'a tenant' if tenant else 'the platform'} may: {listed}."
    if not now < expires_at <= now + LONGEST_LIFE:
        wrong["expires_at"] = f"Choose a time in the next {LONGEST_LIFE.days} days."
    ranges: list[str] = []
    try:
        ranges = sorted({str(network) for network in read_networks(networks)})
    except ValueError as bad:
        wrong["networks"] = f"{bad} is no address range; write it like 10.20.0.0/16."
    if len(ranges) > MOST_NETWORKS:
        wrong["networks"] = f"At most {MOST_NETWORKS} ranges."
    if wrong:
        raise Invalid("The token was not made.", fields=wrong)
    prefix, secret = secrets.token_hex(5), secrets.token_urlsafe(32)
    row = ApiToken.objects.create(
        tenant=tenant,
        user=access.user,
        name=name.strip(),
        prefix=prefix,
        digest=digest_of(secret),
        scopes=sorted(set(scopes)),
        networks=ranges,
        dry_run_first=dry_run_first,
        created_at=now,
        expires_at=expires_at,
    )
    record(
        action="token.made",
        subject=f"token {prefix}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        tenant=tenant.slug if tenant else "",
        facts={
            "scopes": row.scopes,
            "networks": ranges,
            "dry_run_first": dry_run_first,
            "expires_at": expires_at.isoformat(),
        },
    )
    return NewToken(row, f"{SCHEME}_{prefix}_{secret}")


def find_token(
    text: str, now: datetime, *, address: str = "", request_id: str = ""
) -> ApiToken | None:
    """The live token for this text, or None.

    Unknown, expired, revoked, and used from elsewhere all look the same to the caller; only the
    last leaves an audit line (at most one a minute), for it means that the secret got about.
    """
    scheme, _, rest = text.partition("_")
    prefix, _, secret = rest.partition("_")
    if scheme != SCHEME or not prefix or not secret:
        return None
    token = ApiToken.objects.select_related("tenant", "user").filter(prefix=prefix).first()
    # Compared even when the prefix is unknown, so that timing tells nothing.
    same = hmac.compare_digest(token.digest if token else digest_of(""), digest_of(secret))
    if token is None or not same or token.revoked_at or token.expires_at <= now:
        return None
    if not token.user.is_active:
        return None
    if token.networks and not within(address, token.networks):
        _refused_from(token, address, now, request_id)
        return None
    if (
        token.last_used_at is None
        or now - token.last_used_at > USED_STAMP_EVERY
        or token.last_used_from != (address or None)
    ):
        ApiToken.objects.filter(pk=token.pk).update(
            last_used_at=now, last_used_from=address or None
        )
    return token


@transaction.atomic
def revoke_token(*, user: User, prefix: str, now: datetime, request_id: str) -> None:
    """The token stops working at once; doing it twice is fine. Only one's own tokens are found."""
    mine = ApiToken.objects.filter(user=user, prefix=prefix, revoked_at=None)
    token = mine.select_related("tenant").first()
    if token is not None and mine.update(revoked_at=now):
        record(
            action="token.revoked",
            subject=f"token {prefix}",
            request_id=request_id,
            at=now,
            person=user.person,
            tenant=token.tenant.slug if token.tenant else "",
        )


@transaction.atomic
def revoke_all(tenant: Tenant, *, now: datetime, request_id: str) -> list[str]:
    """Revokes every token for a tenant that is closed; returns their prefixes."""
    live = ApiToken.objects.filter(tenant=tenant, revoked_at=None)
    prefixes = list(live.order_by("prefix").values_list("prefix", flat=True))
    ApiToken.objects.filter(prefix__in=prefixes, revoked_at=None).update(revoked_at=now)
    for prefix in prefixes:
        record(
            action="token.revoked",
            subject=f"token {prefix}",
            request_id=request_id,
            at=now,
            tenant=tenant.slug,
        )
    return prefixes


def digest_of(secret: str) -> str:
    """What is kept of a secret: 32 random bytes need no salt and no slow hash."""
    return hashlib.sha256(secret.encode()).hexdigest()


@transaction.atomic
def _refused_from(token: ApiToken, address: str, now: datetime, request_id: str) -> None:
    seldom = Q(last_refused_at=None) | Q(last_refused_at__lt=now - USED_STAMP_EVERY)
    first = ApiToken.objects.filter(seldom, pk=token.pk).update(last_refused_at=now)
    if first:
        record(
            action="token.refused",
            subject=f"token {token.prefix}",
            request_id=request_id,
            at=now,
            person=token.user.person,
            tenant=token.tenant.slug if token.tenant else "",
            facts={"address": address or "unknown", "networks": token.networks},
        )

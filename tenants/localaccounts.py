"""Verbs on accounts: made for a person, given a link to a password, closed and opened again.

An admin never knows a password: the link lets the person choose one, once.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.http import Http404

from portal.audit.record import record
from portal.errors import Invalid, Refused
from tenants.access import PlatformAccess
from tenants.models import AccountLink, Membership, PlatformRole, User
from tenants.policy import PlatformAct
from tenants.roles import LastAdmin, is_last_admin, locked_roles
from tenants.secondfactor import remove_second_factor
from tenants.tokens import digest_of

LINK_LASTS = timedelta(days=3)


class OwnAccount(Refused):
    """Nobody does this to themselves: one's own pages ask for the password first."""

    code = "OWN_ACCOUNT"


@dataclass(frozen=True, slots=True)
class NewLink:
    """A fresh link and, this one time, the text that proves it."""

    row: AccountLink
    text: str


def accounts(now: datetime) -> QuerySet[User]:
    """All accounts by name, each with how it signs in and whether a link to a password waits."""
    waits = AccountLink.objects.filter(
        user=OuterRef("pk"), used_at=None, revoked_at=None, expires_at__gt=now
    )
    return User.objects.annotate(
        by_company=Exists(SocialAccount.objects.filter(user=OuterRef("pk"))),
        second_factor=Exists(Authenticator.objects.filter(user=OuterRef("pk"))),
        link_waits=Exists(waits),
    ).order_by("username")


@transaction.atomic
def make_person(
    *,
    access: PlatformAccess,
    username: str,
    display_name: str,
    email: str,
    now: datetime,
    request_id: str,
) -> NewLink:
    """Makes a local account without a password, and the link to one.

    Raises `NotPermitted`, `Invalid` (username, display_name, email).
    """
    access.require(PlatformAct.RUN_ACCOUNTS)
    username, email, name = username.strip(), email.strip(), display_name.strip()
    if wrong := _wrong(username, name, email):
        raise Invalid("Nobody was added.", fields=wrong)
    user = User(username=username, email=email, display_name=name)
    user.set_unusable_password()
    user.save()
    made = _link(user, access.user, now)
    _record("account.made", user, access.user, now, request_id, username=username)
    return made


@transaction.atomic
def make_link(*, access: PlatformAccess, username: str, now: datetime, request_id: str) -> NewLink:
    """Makes a link to a new password; older links end, the password of now goes on until then.

    Raises `NotPermitted`, `OwnAccount`, `Refused` (COMPANY_ACCOUNT, ACCOUNT_CLOSED), 404.
    """
    user = _somebody_else(access, username)
    if SocialAccount.objects.filter(user=user).exists():
        raise Refused(
            f"{user.words} signs in with the company's account, which keeps the password.",
            code="COMPANY_ACCOUNT",
        )
    if not user.is_active:
        raise Refused(
            f"{user.words} may not sign in; open the account first.", code="ACCOUNT_CLOSED"
        )
    made = _link(user, access.user, now)
    _record("account.link_made", user, access.user, now, request_id)
    return made


def find_link(text: str, now: datetime) -> AccountLink | None:
    """The link that this text proves and that is good now; unknown, used, old look the same."""
    prefix, _, secret = text.strip().partition(".")
    found = AccountLink.objects.filter(prefix=prefix).first()
    same = hmac.compare_digest(found.digest if found else digest_of(""), digest_of(secret))
    return link_still_good(found.pk, now) if found is not None and same else None


def link_still_good(link_id: int, now: datetime) -> AccountLink | None:
    """The link, where it can still be used."""
    good = AccountLink.objects.select_related("user", "made_by")
    return good.filter(
        pk=link_id, used_at=None, revoked_at=None, expires_at__gt=now, user__is_active=True
    ).first()


@transaction.atomic
def set_password(*, link_id: int, password: str, now: datetime, request_id: str) -> User:
    """Gives the link's person this password, uses the link up, and signs out every browser.

    Raises `Refused` (LINK_GONE), `Invalid` (password).
    """
    AccountLink.objects.select_for_update().filter(pk=link_id).first()
    row = link_still_good(link_id, now)
    if row is None:
        raise Refused(
            "This link was used, taken back, or is too old; ask an admin for a new one.",
            code="LINK_GONE",
        )
    user = row.user
    try:
        validate_password(password, user)
    except ValidationError as error:
        words = " ".join(error.messages)
        raise Invalid("The password was not set.", fields={"password": words}) from error
    user.set_password(password)
    user.save(update_fields=["password"])
    row.used_at = now
    row.save(update_fields=["used_at"])
    _sign_out(user)
    _record("account.password_set", user, user, now, request_id)
    return user


@transaction.atomic
def close_account(
    *, access: PlatformAccess, username: str, now: datetime, request_id: str
) -> list[str]:
    """Lets somebody sign in no more, at once and everywhere; twice is fine.

    What they asked for stays, their tokens reach nothing. Returns the slugs of tenants that have no
    owner now who can sign in. Raises `NotPermitted`, `OwnAccount`, `LastAdmin`, 404.
    """
    user = _somebody_else(access, username)
    admin = locked_roles().filter(user=user, role=PlatformRole.Role.ADMIN).exists()
    if admin and is_last_admin(user):
        raise LastAdmin(f"{user.words} is the last admin; give the role to somebody first.")
    _sign_out(user)
    AccountLink.objects.filter(user=user, used_at=None, revoked_at=None).update(revoked_at=now)
    orphaned = _without_owner(user)
    if user.is_active:
        user.is_active = False
        user.save(update_fields=["is_active"])
        _record("account.closed", user, access.user, now, request_id, without_owner=orphaned)
    return orphaned


@transaction.atomic
def open_account(*, access: PlatformAccess, username: str, now: datetime, request_id: str) -> None:
    """Lets somebody sign in again, with the roles and the password of before; twice is fine.

    Raises `NotPermitted`, 404.
    """
    access.require(PlatformAct.RUN_ACCOUNTS)
    user = _find(username)
    if not user.is_active:
        user.is_active = True
        user.save(update_fields=["is_active"])
        _record("account.opened", user, access.user, now, request_id)


@transaction.atomic
def reset_second_factor(
    *, access: PlatformAccess, username: str, now: datetime, request_id: str
) -> None:
    """Removes somebody's second factor and signs them out; twice is fine.

    Raises `NotPermitted`, `OwnAccount`, 404.
    """
    user = _somebody_else(access, username)
    if remove_second_factor(user, by=access.user, now=now, request_id=request_id):
        _sign_out(user)


def _wrong(username: str, name: str, email: str) -> dict[str, str]:
    """What is wrong with a new account's fields."""
    wrong = {}
    try:
        User._meta.get_field("username").run_validators(username)
        UnicodeUsernameValidator()(username)
    except ValidationError:
        wrong["username"] = "1 to 150 letters, digits, and @ . + - _, without spaces."
    if not username:
        wrong["username"] = "Give a name to sign in with."
    elif User.objects.filter(username__iexact=username).exists():
        wrong["username"] = "Somebody is called that already; choose another name."
    if len(name) > 120:
        wrong["display_name"] = "At most 120 characters."
    if email:
        try:
            validate_email(email)
        except ValidationError:
            wrong["email"] = "This is no mail address; write name@host, or leave it empty."
        if User.objects.filter(email__iexact=email).exists():
            wrong["email"] = "Another account has this address; use another, or leave it empty."
    return wrong


def _link(user: User, by: User, now: datetime) -> NewLink:
    AccountLink.objects.filter(user=user, used_at=None, revoked_at=None).update(revoked_at=now)
    prefix, secret = secrets.token_hex(5), secrets.token_urlsafe(24)
    row = AccountLink.objects.create(
        user=user,
        prefix=prefix,
        digest=digest_of(secret),
        made_by=by,
        made_at=now,
        expires_at=now + LINK_LASTS,
    )
    return NewLink(row, f"{prefix}.{secret}")


def _find(username: str) -> User:
    user = User.objects.select_for_update().filter(username=username).first()
    if user is None:
        raise Http404
    return user


def _somebody_else(access: PlatformAccess, username: str) -> User:
    access.require(PlatformAct.RUN_ACCOUNTS)
    user = _find(username)
    if user == access.user:
        raise OwnAccount(
            "This is your own account: use the pages in your menu, or ask another admin."
        )
    return user


def _without_owner(user: User) -> list[str]:
    """Tenants of which this person is the only owner who can sign in."""
    owners = Membership.objects.filter(role=Membership.Role.OWNER)
    others = owners.filter(user__is_active=True).exclude(user=user).values("tenant_id")
    mine = owners.filter(user=user).exclude(tenant_id__in=others)
    return list(mine.order_by("tenant__slug").values_list("tenant__slug", flat=True))


def _sign_out(user: User) -> None:
    for session in UserSession.objects.filter(user=user):
        session.end()


def _record(
    action: str, user: User, by: User, now: datetime, request_id: str, **facts: object
) -> None:
    record(
        action=action,
        subject=f"person {user.person}",
        request_id=request_id,
        at=now,
        person=by.person,
        facts=facts,
    )

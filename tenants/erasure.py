"""What Berth knows of a person: handed out on request, and erased.

The audit names people by an opaque id, and so does all that they asked for; names stand in the
accounts' table alone. Erasing empties that row and deletes what only the person had. The chain of
the audit stays as it is, and proves as before.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any
from uuid import UUID

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.db import models, transaction

from portal.audit.record import record
from portal.errors import Refused
from tenants.models import (
    AccountLink,
    ApiToken,
    Membership,
    PlatformRole,
    User,
)
from tenants.people import GONE
from tenants.roles import LastAdmin, is_last_admin, locked_roles

#: Never handed out: whoever reads the export could use them.
SECRETS = frozenset({"password", "digest", "data", "session_key", "secret", "token"})


class StillNeeded(Refused):
    """Something would be left that only this person may do."""

    code = "STILL_NEEDED"
    http_status = 409


def known_of(user: User) -> dict[str, list[dict[str, Any]]]:
    """Every row that is the person's or names them, by table. No secrets.

    Found by the shape of the tables, so that a new one cannot be forgotten: foreign keys to the
    account, and ids that equal the person's.
    """
    found = {}
    for model in sorted(apps.get_models(), key=lambda model: model._meta.label):
        rows = [_row(one) for one in _rows_of(model, user)]
        if rows:
            found[model._meta.label] = rows
    return found


def _rows_of(model: type[models.Model], user: User) -> models.QuerySet[models.Model]:
    about = models.Q()
    for field in model._meta.get_fields():
        if isinstance(field, models.ForeignKey) and field.related_model is User:
            about |= models.Q(**{field.attname: user.pk})
        elif isinstance(field, models.UUIDField) and not field.primary_key:
            about |= models.Q(**{field.name: user.person})
        elif isinstance(field, ArrayField) and isinstance(field.base_field, models.UUIDField):
            about |= models.Q(**{f"{field.name}__contains": [user.person]})
    if model is User:
        about = models.Q(pk=user.pk)
    rows = model._base_manager
    return rows.filter(about).order_by("pk") if about else rows.none()


def _row(row: models.Model) -> dict[str, Any]:
    return {
        field.attname: _plain(getattr(row, field.attname))
        for field in row._meta.concrete_fields
        if field.name not in SECRETS and not isinstance(field, models.BinaryField)
    }


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date | UUID):
        return str(value)
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value if isinstance(value, str | int | float | bool | dict | None) else str(value)


@transaction.atomic
def erase(user: User, *, by: str, now: datetime) -> None:
    """Makes somebody nobody: they cannot sign in, and no name leads to their id. Twice is fine.

    Raises `LastAdmin`, and `StillNeeded` where a tenant would have no owner left.
    """
    user = User.objects.select_for_update().get(pk=user.pk)
    admin = locked_roles().filter(user=user, role=PlatformRole.Role.ADMIN).exists()
    if admin and is_last_admin(user):
        raise LastAdmin(f"{user.words} is the last admin; give the role to somebody first.")
    orphaned = sorted(_tenants_without(user))
    if orphaned:
        raise StillNeeded(
            f"They are the only owner of {', '.join(orphaned)}; make somebody else an owner first.",
            tenants=orphaned,
        )
    for session in UserSession.objects.filter(user=user):
        session.end()
    for model in (
        ApiToken, AccountLink, Membership, PlatformRole, Authenticator, EmailAddress, SocialAccount,
    ):  # fmt: skip
        model.objects.filter(user=user).delete()
    user.held_by_groups.all().delete()
    erased = f"gone-{uuid.uuid5(uuid.NAMESPACE_OID, str(user.person)).hex[:12]}"
    if user.username == erased:
        return
    user.username = erased
    user.display_name = GONE
    user.email = user.first_name = user.last_name = ""
    user.is_active = user.is_staff = user.is_superuser = False
    user.last_login = None
    user.set_unusable_password()
    user.save()
    record(
        action="person.erased",
        subject=f"person {user.person}",
        request_id=f"command-{uuid.uuid4()}",
        at=now,
        facts={"by": by},
    )


def _tenants_without(user: User) -> Iterator[str]:
    """Open tenants whose only owner who can sign in is this person."""
    owners = Membership.objects.filter(role=Membership.Role.OWNER).exclude(tenant__state="closed")
    others = owners.filter(user__is_active=True).exclude(user=user).values("tenant_id")
    yield from (
        owners.filter(user=user)
        .exclude(tenant_id__in=others)
        .values_list("tenant__slug", flat=True)
    )

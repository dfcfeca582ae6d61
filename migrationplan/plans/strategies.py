"""Verbs about strategies: define one, change it, forget it. Plans that were made of it stay."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from django.db import IntegrityError, transaction

from migrationplan.models import Strategy
from migrationplan.plans.wishes import MOST_WAVES, WaveWish, problems
from portal.audit.record import record
from portal.errors import Invalid, Outdated
from tenants.access import PlatformAccess
from tenants.policy import PlatformAct


@transaction.atomic
def define(
    slug: str,
    *,
    name: str,
    words: str,
    waves: Sequence[WaveWish],
    access: PlatformAccess,
    request_id: str,
    now: datetime,
) -> Strategy:
    """A new strategy. Raises `Invalid` (slug, name, waves)."""
    access.require(PlatformAct.CONVERT)
    wrong = _wrong(name, waves)
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", slug):
        wrong["slug"] = "Lower-case letters, digits and '-'; it stands in addresses."
    if wrong:
        raise Invalid("The strategy was not made.", fields=wrong)
    try:
        with transaction.atomic():
            made = Strategy.objects.create(
                slug=slug,
                name=name.strip(),
                words=words.strip(),
                waves=[one.as_json() for one in waves],
                made_by=access.user.person,
                made_at=now,
            )
    except IntegrityError as error:
        wrong = {"slug": "There is one of that name; take another."}
        raise Invalid("The strategy was not made.", fields=wrong) from error
    _record("strategy.defined", made, access, request_id, now)
    return made


@transaction.atomic
def change(
    strategy: Strategy,
    *,
    name: str,
    words: str,
    waves: Sequence[WaveWish],
    revision: int,
    access: PlatformAccess,
    request_id: str,
    now: datetime,
) -> Strategy:
    """Changes it for plans to come. Raises `Invalid`, `Outdated`."""
    access.require(PlatformAct.CONVERT)
    strategy = Strategy.objects.select_for_update().get(pk=strategy.pk)
    if strategy.revision != revision:
        raise Outdated(
            "Somebody changed this strategy meanwhile; look at it again.",
            revision=strategy.revision,
        )
    if wrong := _wrong(name, waves):
        raise Invalid("The strategy was not changed.", fields=wrong)
    strategy.name, strategy.words = name.strip(), words.strip()
    strategy.waves = [one.as_json() for one in waves]
    strategy.revision += 1
    strategy.save(update_fields=["name", "words", "waves", "revision"])
    _record("strategy.changed", strategy, access, request_id, now)
    return strategy


@transaction.atomic
def remove(strategy: Strategy, *, access: PlatformAccess, request_id: str, now: datetime) -> None:
    """Forgets it; plans keep their waves."""
    access.require(PlatformAct.CONVERT)
    _record("strategy.removed", strategy, access, request_id, now)
    strategy.delete()


def _wrong(name: str, waves: Sequence[WaveWish]) -> dict[str, str]:
    wrong = {}
    if not 0 < len(name.strip()) <= 80:
        wrong["name"] = "Give it a name, at most 80 characters."
    if not 0 < len(waves) <= MOST_WAVES:
        wrong["waves"] = f"From 1 to {MOST_WAVES} waves."
    for number, wave in enumerate(waves, start=1):
        for field, text in problems(wave).items():
            wrong.setdefault("waves", f"Wave {number}, {field}: {text}")
    return wrong


def _record(
    action: str, strategy: Strategy, access: PlatformAccess, request_id: str, now: datetime
) -> None:
    record(
        action=action,
        subject=f"strategy {strategy.slug}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        facts={"name": strategy.name, "revision": strategy.revision, "waves": strategy.waves},
    )

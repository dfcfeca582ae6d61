"""Builders for tests about the life of templates."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from devices.authoring import drafts, reviews
from devices.authoring.drafts import Draft
from devices.authoring.reviews import standings
from devices.dra.written import write
from devices.models import TemplateVersion
from portal.approvals.decisions import decide
from portal.approvals.models import Approval
from portal.approvals.rules import Verdict
from portal.audit.models import AuditLine
from tenants.access import PlatformAccess, decider_of, platform_of
from tenants.models import PlatformRole, User
from tests.factories import GPU_CONTENT, NOON, make_person

HOUR = timedelta(hours=1)
REQUEST = "request-t"


def somebody(name: str, *roles: str) -> PlatformAccess:
    """Somebody with these roles on the platform; the same name is the same person."""
    person = User.objects.filter(username=name).first() or make_person(name)
    for role in roles:
        PlatformRole.objects.get_or_create(user=person, role=role)
    return platform_of(person)


def author() -> PlatformAccess:
    return somebody("ada", "operator")


def a_draft(content: Any = None, **given: Any) -> Draft:
    """A template for GPUs, or the one of `content` (JSON) or `text`."""
    text = given.pop("text", None) or write(content or GPU_CONTENT)
    words = {"name": "GPU", "words": "One or more GPUs.", "icon": "gpu", "note": ""}
    return Draft(**{**words, **given}, text=text)


def begin(slug: str = "gpu", access: PlatformAccess | None = None, **given: Any) -> TemplateVersion:
    return drafts.begin(
        access=access or author(), slug=slug, draft=a_draft(**given), request_id=REQUEST, now=NOON
    )


def copy(slug: str = "gpu") -> TemplateVersion:
    return drafts.begin_version(access=author(), slug=slug, request_id=REQUEST, now=NOON)


def change(
    version: TemplateVersion,
    access: PlatformAccess | None = None,
    revision: int | None = None,
    **given: Any,
) -> TemplateVersion:
    return drafts.change(
        access=access or author(),
        slug=version.template.slug,
        number=version.number,
        draft=a_draft(**given),
        revision=revision,
        request_id=REQUEST,
        now=NOON + HOUR,
    )


def submit(version: TemplateVersion, access: PlatformAccess | None = None) -> Approval:
    return reviews.submit(
        access=access or author(),
        slug=version.template.slug,
        number=version.number,
        revision=None,
        reason="for the new rack",
        request_id=REQUEST,
        now=NOON,
    )


def say(
    approval: Approval, name: str = "petra", verdict: Verdict = Verdict.APPROVE, comment: str = ""
) -> Approval:
    """An approver's yes or no."""
    return decide(
        approval_id=approval.pk,
        decider=decider_of(somebody(name, "approver").user, NOON),
        verdict=verdict,
        comment=comment,
        request_id=REQUEST,
        now=NOON,
    )


def approved(slug: str = "gpu", now: datetime = NOON, **given: Any) -> TemplateVersion:
    """A version that went the whole way: begun or copied, written, reviewed, published."""
    known = TemplateVersion.objects.filter(template__slug=slug).exists()
    version = (
        change(copy(slug), **{"note": "More of it.", **given}) if known else begin(slug, **given)
    )
    say(submit(version))
    reviews.publish(version.pk, now=now)
    version.refresh_from_db()
    return version


def retire(slug: str = "gpu", successor: str = "", words: str = "The cards are old.") -> Any:
    return reviews.retire(
        access=author(),
        slug=slug,
        successor=successor,
        words=words,
        request_id=REQUEST,
        now=NOON + HOUR,
    )


def more(most: int) -> dict[str, Any]:
    """The usual content with another bound."""
    (count,) = GPU_CONTENT["parameters"]
    return {**GPU_CONTENT, "parameters": [{**count, "maximum": most}]}


def state_of(version: TemplateVersion) -> str:
    version.refresh_from_db()
    return standings([version])[version.pk].state


def actions() -> list[str]:
    lines = AuditLine.objects.filter(action__startswith="template")
    return list(lines.values_list("action", flat=True))

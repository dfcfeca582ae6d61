"""Verbs of those who write templates: begin, change, throw away, copy as a new version.

A version is a draft until it is put to review (`devices.authoring.reviews`); what was approved
never changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.http import Http404

from devices.dra.names import is_dns_label
from devices.dra.templates import BadTemplate, Template, read_template
from devices.dra.versiondiff import Side, seal
from devices.dra.written import Unreadable, read, write
from devices.models import ClaimTemplate, TemplateVersion
from portal import news
from portal.approvals import asks
from portal.approvals.models import Approval
from portal.approvals.rules import State as ApprovalState
from portal.audit.record import record
from portal.errors import Invalid, Outdated, Refused
from portal.ui.icons import symbols
from tenants.access import PlatformAccess
from tenants.people import names_of
from tenants.policy import PlatformAct

KIND: Final = "template"
LONGEST_NAME: Final = 80
LONGEST_WORDS: Final = 240
State = TemplateVersion.State


class DraftExists(Refused):
    """There is a draft already, or a version in review; facts name its number."""

    code = "DRAFT_EXISTS"
    http_status = 409


class NotADraft(Refused):
    """What was approved or retired does not change; a change is a new version."""

    code = "NOT_A_DRAFT"
    http_status = 409


class BeingPublished(Refused):
    """Enough people said yes; in a moment it is what tenants ask for."""

    code = "BEING_PUBLISHED"
    http_status = 409


@dataclass(frozen=True, slots=True)
class Draft:
    """What an author gives: the words around a version, and its content as text.

    `note` says what is new, for those who hold an older version.
    """

    name: str
    words: str
    icon: str
    text: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong with a text: where in the content, on which line, and what."""

    path: str
    line: int
    text: str


@transaction.atomic
def begin(
    *, access: PlatformAccess, slug: str, draft: Draft, request_id: str, now: datetime
) -> TemplateVersion:
    """A new template with a draft as its first version; nobody can ask for it yet.

    Raises `NotPermitted`, and `Invalid` with `slug`, `name`, `words`, `icon`, `note`, and `text` or
    `content.<path>`.
    """
    access.require(PlatformAct.WRITE_TEMPLATES)
    content, wrong = _checked(draft)
    if not is_dns_label(slug) or slug == "new":
        wrong["slug"] = "Use lower-case letters, digits and '-', at most 63; it never changes."
    elif ClaimTemplate.objects.filter(slug=slug).exists():
        wrong["slug"] = "A template is called so already; open it and begin a new version."
    if wrong:
        raise Invalid("Nothing was written down; some answers are not right.", fields=wrong)
    template = ClaimTemplate.objects.create(
        slug=slug, name=draft.name, words=draft.words, icon=draft.icon
    )
    return _written(template, 1, draft, content, access.user.person, request_id, now)


@transaction.atomic
def begin_version(
    *, access: PlatformAccess, slug: str, request_id: str, now: datetime
) -> TemplateVersion:
    """A new version as a copy of the approved one, or of the newest where none is approved.

    Raises `NotPermitted`, `DraftExists`; 404 for an unknown template.
    """
    access.require(PlatformAct.WRITE_TEMPLATES)
    template = locked(slug)
    versions = list(template.versions.all())
    for version in versions:
        if version.state in TemplateVersion.OPEN:
            raise DraftExists(
                f"Version {version.number} of {template} is {version.state}; go on with that one.",
                version=version.number,
            )
    source = next((one for one in versions if one.state == State.APPROVED), versions[0])
    draft = draft_of(source)
    number = versions[0].number + 1
    copied = Draft(draft.name, draft.words, draft.icon, draft.text)
    return _written(
        template, number, copied, source.content, access.user.person, request_id, now,
        copy_of=source.number,
    )  # fmt: skip


@transaction.atomic
def change(
    *,
    access: PlatformAccess,
    slug: str,
    number: int,
    draft: Draft,
    revision: int | None,
    request_id: str,
    now: datetime,
) -> TemplateVersion:
    """Writes a draft anew. One that is in review becomes a draft again, and its approval is void.

    `revision` is the one that the author looked at (None: whatever it is). The same once more
    changes nothing. Raises `NotPermitted`, `Outdated` (who changed it meanwhile), `NotADraft`,
    `BeingPublished`, and `Invalid` as `begin`.
    """
    access.require(PlatformAct.WRITE_TEMPLATES)
    content, wrong = _checked(draft)
    if wrong:
        raise Invalid("Nothing was saved; some answers are not right.", fields=wrong)
    version = locked_version(slug, number)
    check_revision(version, revision)
    if version.state not in TemplateVersion.OPEN:
        raise NotADraft(
            f"{version} is {version.state} and stays as it is; begin a new version instead."
        )
    if draft == draft_of(version):
        return version
    back_to_draft(version, request_id=request_id, now=now)
    before = seal(version.content)
    person = access.user.person
    version.name, version.words, version.icon = draft.name, draft.words, draft.icon
    version.note, version.text, version.content = draft.note, draft.text, content
    version.authors = list(dict.fromkeys([*version.authors, person]))
    _stamp(version, person, now)
    version.save()
    _record("template.changed", version, person, request_id, now, before=before)
    tell(version.template)
    return version


@transaction.atomic
def discard(
    *,
    access: PlatformAccess,
    slug: str,
    number: int,
    revision: int | None,
    request_id: str,
    now: datetime,
) -> None:
    """Throws a draft away, and its template with it where that has no other version. What it said
    stays in the audit as a digest; its number may be given again.

    Raises `NotPermitted`, `NotADraft` (in review, approved, retired), `Outdated`; 404 for an
    unknown version.
    """
    access.require(PlatformAct.WRITE_TEMPLATES)
    version = locked_version(slug, number)
    check_revision(version, revision)
    if version.state != State.DRAFT:
        raise NotADraft(
            f"{version} is {version.state} and stays; only a draft can be thrown away. "
            "Take it back first if it is in review."
        )
    template = version.template
    _record("template.discarded", version, access.user.person, request_id, now)
    version.delete()
    if not template.versions.exists():
        template.delete()
    tell(template)


# --- reading what authors write -------------------------------------------------------------------


def read_text(text: str) -> tuple[dict[str, Any], Template]:
    """An author's text → its JSON and what it means. Raises `Unreadable` and `BadTemplate`."""
    content = read(text).content
    return content, read_template(content)


def mistakes(text: str) -> list[Mistake]:
    """Everything that is wrong with a text, by line; empty where it is a template."""
    try:
        written = read(text)
        read_template(written.content)
    except Unreadable as error:
        return [Mistake("", error.line, error.text)]
    except BadTemplate as error:
        found = [Mistake(one.path, written.line_of(one.path), one.text) for one in error.problems]
        return sorted(found, key=lambda one: one.line)
    return []


def draft_of(version: TemplateVersion) -> Draft:
    """What a version holds, as its author would give it."""
    template = version.template
    return Draft(
        name=version.name or template.name,
        words=version.words or template.words,
        icon=version.icon or template.icon,
        text=version.text or write(version.content),
        note=version.note,
    )


def side_of(version: TemplateVersion) -> Side:
    """A version as one side of a comparison."""
    draft = draft_of(version)
    return Side(draft.name, draft.words, draft.icon, version.content, version.read())


# --- shared with reviews --------------------------------------------------------------------------


def locked(slug: str) -> ClaimTemplate:
    """The template, its row locked: verbs on it and on its versions wait for each other here."""
    template = ClaimTemplate.objects.select_for_update().filter(slug=slug).first()
    if template is None:
        raise Http404
    return template


def locked_version(slug: str, number: int) -> TemplateVersion:
    """One version, under the lock of its template; 404 where there is none."""
    template = locked(slug)
    version = template.versions.filter(number=number).first()
    if version is None:
        raise Http404
    version.template = template
    return version


def check_revision(version: TemplateVersion, revision: int | None) -> None:
    """Raises `Outdated`, with who changed it and when, where the author looked at another one."""
    if revision is None or revision == version.revision:
        return
    who = names_of([version.changed_by])[version.changed_by]
    when = f"{version.changed_at:%-d %b %H:%M} UTC" if version.changed_at else "meanwhile"
    raise Outdated(
        f"{who} changed {version} at {when}, after you opened it; nothing of yours was saved yet.",
        changed_by=who,
        changed_at=version.changed_at.isoformat() if version.changed_at else None,
        etag=f'"{version.revision}"',
        now={"revision": version.revision, "state": version.state, "text": draft_of(version).text},
    )


def back_to_draft(version: TemplateVersion, *, request_id: str, now: datetime) -> None:
    """A version in review is a draft again, and its approval is void; saved by the caller.

    Raises `BeingPublished` where enough people said yes already.
    """
    if version.state != State.IN_REVIEW:
        return
    approval = Approval.objects.filter(pk=version.approval or 0).first()
    if approval is not None and approval.state == ApprovalState.APPROVED:
        raise BeingPublished(f"{version} was approved a moment ago; begin a new version instead.")
    if approval is not None:
        voided = asks.refresh(
            kind=KIND, subject=approval.subject, digest="", request_id=request_id, now=now
        )
        approval = Approval.objects.get(pk=approval.pk)
        if voided is None and approval.state == ApprovalState.APPROVED:
            raise BeingPublished(f"{version} was approved a moment ago; begin a new version.")
    version.state = State.DRAFT


def tell(template: ClaimTemplate) -> None:
    """News for open pages of the platform, once the transaction is through."""
    topics = ["templates", f"template-{template.slug}"]
    transaction.on_commit(lambda: news.publish(topics, tenant=news.PLATFORM), robust=True)


def _checked(draft: Draft) -> tuple[Any, dict[str, str]]:
    """The content, and what is wrong by field."""
    wrong: dict[str, str] = {}
    if not 0 < len(draft.name.strip()) <= LONGEST_NAME:
        wrong["name"] = f"Give it a name of at most {LONGEST_NAME} characters."
    if not 0 < len(draft.words.strip()) <= LONGEST_WORDS:
        wrong["words"] = f"Say in one sentence what it is, in at most {LONGEST_WORDS} characters."
    for name in ("name", "words", "note"):
        if not getattr(draft, name).isprintable():
            wrong[name] = "A character that nobody can see stands here; remove it."
    if draft.icon not in symbols():
        wrong["icon"] = "There is no such icon; take device, gpu, mig, nic, fpga or cpu."
    if len(draft.note) > LONGEST_WORDS:
        wrong["note"] = f"At most {LONGEST_WORDS} characters."
    found = mistakes(draft.text)
    for one in found:
        key = f"content.{one.path}" if one.path else "text"
        wrong.setdefault(key, f"Line {one.line}: {one.text}")
    return (None if found else read(draft.text).content), wrong


def _written(
    template: ClaimTemplate,
    number: int,
    draft: Draft,
    content: Mapping[str, Any],
    person: UUID,
    request_id: str,
    now: datetime,
    **facts: Any,
) -> TemplateVersion:
    version = TemplateVersion(
        template=template,
        number=number,
        name=draft.name,
        words=draft.words,
        icon=draft.icon,
        note=draft.note,
        text=draft.text,
        content=dict(content),
        authors=[person],
        revision=0,
    )
    _stamp(version, person, now)
    version.save()
    _record("template.begun", version, person, request_id, now, **facts)
    tell(template)
    return version


def _stamp(version: TemplateVersion, person: UUID, now: datetime) -> None:
    version.revision += 1
    version.changed_by, version.changed_at = person, now


def _record(
    action: str,
    version: TemplateVersion,
    person: UUID,
    request_id: str,
    now: datetime,
    **facts: Any,
) -> None:
    record(
        action=action,
        subject=f"template {version.template.slug}",
        request_id=request_id,
        at=now,
        person=person,
        facts={"version": version.number, "content": seal(version.content), **facts},
    )

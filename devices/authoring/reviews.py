"""From draft to approved to retired: the verbs that lead a version through its life.

Whoever wrote in a version never approves it. The last yes promises `publish`, which makes it what
tenants ask for and retires the one before; holders keep what they have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from django.conf import settings
from django.db import transaction
from django.urls import reverse

from devices.authoring.drafts import (
    KIND,
    LONGEST_WORDS,
    BeingPublished,
    NotADraft,
    back_to_draft,
    check_revision,
    locked,
    locked_version,
    side_of,
    tell,
)
from devices.authoring.drafts import State as VersionState
from devices.authoring.holders import Holders, holders_of
from devices.dra.templates import read_template
from devices.dra.templates.findings import Finding, Report, Severity
from devices.dra.templates.publish import publish_check
from devices.dra.versiondiff import compare, removed
from devices.forecasts import warm
from devices.models import ClaimTemplate, TemplateVersion
from portal import news
from portal.approvals import asks
from portal.approvals.models import Approval
from portal.approvals.rules import DecidedBy, Effect, Line
from portal.approvals.rules import State as ApprovalState
from portal.audit.record import record
from portal.errors import Invalid, Refused
from portal.outbox import lines as outbox
from tenants.access import PlatformAccess
from tenants.policy import PlatformAct

PUBLISH: Final = "devices.tasks.publish_template"
DECIDERS: Final = frozenset({"approver"})
VALUE_REMOVED: Final = "VALUE_REMOVED"
_SHOWN_AS: Final = {Severity.ERROR: "fail", Severity.WARNING: "look", Severity.NOTE: "info"}


class CheckFailed(Refused):
    """The check before publication found what must not be published; facts list it."""

    code = "CHECK_FAILED"


class NotOffered(Refused):
    """It has no approved version, so there is nothing to retire."""

    code = "NOT_OFFERED"
    http_status = 409


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a version stands for people: its state, or how its review ended without a yes."""

    state: str
    approval: Approval | None = None
    why: str = ""

    @property
    def open(self) -> bool:
        """Whether it can be put to review now."""
        return self.state in {"draft", "denied"}


def standing_of(version: TemplateVersion, approval: Approval | None) -> Standing:
    """The stored state, told with the approval: what was sent back can be written again."""
    if version.state != VersionState.IN_REVIEW or approval is None:
        return Standing(version.state)
    match approval.state:
        case ApprovalState.OPEN | ApprovalState.APPROVED:
            return Standing("in review", approval)
        case ApprovalState.DENIED:
            said = [one.comment for one in approval.decisions.all() if one.comment]
            return Standing("denied", approval, said[-1] if said else approval.ended_why)
    return Standing("draft", approval, approval.ended_why)


def standings(versions: Iterable[TemplateVersion]) -> dict[int, Standing]:
    """By version (primary key); two queries, however many there are."""
    found = list(versions)
    numbers = {one.approval or 0 for one in found if one.state == VersionState.IN_REVIEW}
    approvals = {
        approval.pk: approval
        for approval in Approval.objects.filter(pk__in=numbers).prefetch_related("decisions")
    }
    return {one.pk: standing_of(one, approvals.get(one.approval or 0)) for one in found}


# --- the check ------------------------------------------------------------------------------------


def check(version: TemplateVersion, content: Mapping[str, object] | None = None) -> Report:
    """The check before publication against the cluster as the mirror shows it, and what a version
    must not lack that the one before had. `content` is tried in the place of the version's own.
    """
    template = version.read() if content is None else read_template(content)
    picture = warm.warm()
    report = publish_check(template, picture.now if picture else None)
    before = offered(version.template)
    if before is None or before.pk == version.pk:
        return report
    missing = [
        Finding(VALUE_REMOVED, Severity.ERROR, one.text, "", one.path)
        for one in removed(before.read(), template)
    ]
    return replace(report, findings=(*missing, *report.findings)) if missing else report


def offered(template: ClaimTemplate) -> TemplateVersion | None:
    """What tenants ask for now; nothing of a template that is not saved yet."""
    if template.pk is None:
        return None
    version = template.versions.filter(state=VersionState.APPROVED).first()
    if version is not None:
        version.template = template
    return version


# --- the verbs ------------------------------------------------------------------------------------


def submit(
    *,
    access: PlatformAccess,
    slug: str,
    number: int,
    revision: int | None,
    reason: str,
    request_id: str,
    now: datetime,
) -> Approval:
    """Puts a draft to review. The approver sees what changes, what it does and what was checked.

    Raises `NotPermitted`, `CheckFailed`, `Outdated`, `AlreadyAsked`, and `Invalid`: `note` where
    holders of an earlier version would not learn what is new, `lines` where nothing is.
    """
    access.require(PlatformAct.WRITE_TEMPLATES)
    seen = TemplateVersion.objects.select_related("template").filter(
        template__slug=slug, number=number
    )
    looked_at = seen.first()
    report = check(looked_at) if looked_at is not None else None
    with transaction.atomic():
        version = locked_version(slug, number)
        check_revision(version, revision)
        if report is None or looked_at is None or looked_at.revision != version.revision:
            report = check(version)  # somebody saved while it was checked
        _may_submit(version, report)
        before = offered(version.template)
        approval = asks.ask(
            kind=KIND,
            subject=f"template {slug} version {number}",
            title=f"{version.title}, version {number}",
            lines=_lines(before, version),
            effects=_effects(before, version, report),
            by=DecidedBy(platform=DECIDERS),
            author=access.user.person,
            coauthors=version.authors,
            reason=reason or version.note,
            task=PUBLISH,
            key=str(version.pk),
            needed=settings.TEMPLATE_APPROVALS,
            request_id=request_id,
            now=now,
            address=reverse("template-version", args=[slug, number]),
        )
        version.state, version.approval = VersionState.IN_REVIEW, approval.pk
        version.revision += 1
        version.save(update_fields=["state", "approval", "revision"])
        tell(version.template)
        return approval


@transaction.atomic
def withdraw(
    *, access: PlatformAccess, slug: str, number: int, request_id: str, now: datetime
) -> TemplateVersion:
    """Takes a version back from review; it is a draft again. Twice is fine.

    Raises `NotPermitted`, `BeingPublished`; 404 for an unknown version.
    """
    access.require(PlatformAct.WRITE_TEMPLATES)
    version = locked_version(slug, number)
    if version.state != VersionState.IN_REVIEW:
        return version
    back_to_draft(version, request_id=request_id, now=now)
    version.revision += 1
    version.save(update_fields=["state", "revision"])
    record(
        action="template.withdrawn",
        subject=f"template {slug}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        facts={"version": number},
    )
    tell(version.template)
    return version


def publish(version_id: int, *, now: datetime) -> bool:
    """Makes an approved version what tenants ask for, once; returns whether it did so now."""
    through = outbox.newest(PUBLISH, str(version_id))
    with transaction.atomic():
        row = TemplateVersion.objects.select_related("template").get(pk=version_id)
        version = locked_version(row.template.slug, row.number)
        approved = Approval.objects.filter(
            pk=version.approval or 0, state=ApprovalState.APPROVED
        ).first()
        done = version.state == VersionState.IN_REVIEW and approved is not None
        if done and approved is not None:
            _publish(version, approved, now)
        outbox.settle(PUBLISH, str(version_id), through=through)
    return done


@transaction.atomic
def retire(
    *,
    access: PlatformAccess,
    slug: str,
    successor: str,
    words: str,
    request_id: str,
    now: datetime,
) -> TemplateVersion:
    """Offers a template no more. Holders keep what they have and read `words`.

    `successor` is the template to ask for instead; empty where nothing takes its place. Raises
    `NotPermitted`, `NotOffered`, `Invalid` (successor, words); 404 for an unknown template.
    """
    access.require(PlatformAct.WRITE_TEMPLATES)
    template = locked(slug)
    version = offered(template)
    if version is None:
        raise NotOffered(f"{template} has no approved version; there is nothing to retire.")
    wrong: dict[str, str] = {}
    after = ClaimTemplate.objects.filter(slug=successor).first() if successor else None
    if successor and (after is None or after == template or offered(after) is None):
        wrong["successor"] = "Choose another template that can be asked for now."
    if not 0 < len(words.strip()) <= LONGEST_WORDS:
        wrong["words"] = f"Say why, in at most {LONGEST_WORDS} characters: every holder reads it."
    if wrong:
        raise Invalid("Nothing was retired.", fields=wrong)
    version.state, version.successor = VersionState.RETIRED, after
    version.retired_words, version.retired_at = words.strip(), now
    version.retired_by = access.user.person
    version.revision += 1
    version.save()
    record(
        action="template.retired",
        subject=f"template {slug}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        facts={"version": version.number, "successor": successor, "words": version.retired_words},
    )
    _tell_everybody(template)
    return version


def _may_submit(version: TemplateVersion, report: Report) -> None:
    if version.state not in TemplateVersion.OPEN:
        raise NotADraft(f"{version} is {version.state}; begin a new version to change it.")
    approval = Approval.objects.filter(pk=version.approval or 0).first()
    if version.state == VersionState.IN_REVIEW and approval is not None:
        if approval.state == ApprovalState.APPROVED:
            raise BeingPublished(f"{version} was approved a moment ago.")
        if approval.state == ApprovalState.OPEN:
            raise asks.AlreadyAsked(
                f"{approval.number} asks for it already; decide or withdraw it first.",
                approval=approval.number,
            )
    if not report.may_publish:
        errors = [one for one in report.findings if one.severity == Severity.ERROR]
        raise CheckFailed(
            f"{errors[0].sentence} {errors[0].remedy}".strip(),
            findings=[
                {"code": one.code, "path": one.path, "sentence": one.sentence, "remedy": one.remedy}
                for one in errors
            ],
        )
    if version.number > 1 and not version.note.strip():
        wrong = {"note": "Say what is new; whoever holds an earlier version reads it."}
        raise Invalid("It was not put to review.", fields=wrong)


def _publish(version: TemplateVersion, approved: Approval, now: datetime) -> None:
    template, before = version.template, offered(version.template)
    if before is not None:
        before.state, before.successor = VersionState.RETIRED, template
        before.retired_words, before.retired_at = version.note, now
        before.revision += 1
        before.save()
    version.state, version.approved_at = VersionState.APPROVED, now
    version.revision += 1
    version.save(update_fields=["state", "approved_at", "revision"])
    template.name = version.name or template.name
    template.words = version.words or template.words
    template.icon = version.icon or template.icon
    template.save(update_fields=["name", "words", "icon"])
    record(
        action="template.published",
        subject=f"template {template.slug}",
        request_id=approved.request_id,
        at=now,
        facts={
            "version": version.number,
            "approval": approved.number,
            "replaces": before.number if before else None,
        },
    )
    _tell_everybody(template)


def _tell_everybody(template: ClaimTemplate) -> None:
    """What can be asked for changed: every open page hears of it."""
    tell(template)
    transaction.on_commit(lambda: news.publish(["offers", "claims"]), robust=True)


# --- what the approver sees -----------------------------------------------------------------------


def _lines(before: TemplateVersion | None, after: TemplateVersion) -> list[Line]:
    old = side_of(before) if before else None
    return [
        Line(part.label, part.before, part.after, part.group)
        for part in compare(old, side_of(after))
    ]


def _effects(
    before: TemplateVersion | None, after: TemplateVersion, report: Report
) -> list[Effect]:
    holders = holders_of(after.template)
    old = before.read().device_classes if before else frozenset()
    new = after.read().device_classes
    audience = ClaimTemplate.Audience(after.template.audience).label
    found = [
        _held(holders),
        Effect("capacity", "Classes that become reachable", _names(new - old)),
        Effect("capacity", "Classes no longer reachable", _names(old - new)),
        Effect("capacity", "Who sees it", audience),
        _fits(report),
    ]
    tried = f"{report.tried} sets of answers" if report.tried != 1 else "one set of answers"
    note = "" if report.complete else "There are more; those nearest to the usual ones were tried."
    found.append(Effect("check", "Checked", tried, note, "done" if report.complete else "info"))
    return [*found, *map(_checked, report.findings)]


def _held(holders: Holders) -> Effect:
    if not holders.claims:
        return Effect("holders", "Holders of earlier versions", "nobody")
    claims = "1 claim" if holders.claims == 1 else f"{holders.claims} claims"
    tenants = "1 tenant" if holders.tenants == 1 else f"{holders.tenants} tenants"
    return Effect(
        "holders", "Holders of earlier versions", claims, f"of {tenants}; they keep what they have"
    )


def _fits(report: Report) -> Effect:
    if report.fits is None:
        return Effect("capacity", "Fits now", "unknown", "nobody could look at the devices")
    nodes = "1 node" if len(report.fits) == 1 else f"{len(report.fits)} nodes"
    return Effect("capacity", "Fits now", f"on {nodes}", "with the answers it starts with")


def _checked(finding: Finding) -> Effect:
    return Effect("check", finding.sentence, "", finding.remedy, _SHOWN_AS[finding.severity])


def _names(classes: Iterable[str]) -> str:
    return ", ".join(sorted(classes)) or "none"

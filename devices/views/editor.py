"""The editor of a version: the text, the form as a tenant would see it, and what it makes."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import unified_diff
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from devices.asks.question_form import QuestionForm
from devices.asks.snippets import manifest_yaml
from devices.authoring import dryruns
from devices.authoring.author_form import AuthorForm, first_text
from devices.authoring.drafts import Draft, begin, change, discard, draft_of, mistakes, side_of
from devices.authoring.reviews import CheckFailed, standing_of, submit, withdraw
from devices.authoring.tryout import dry_run, made, tenants, tried
from devices.catalogue.classes import free_notes, offers_for
from devices.cluster_link import cluster_link
from devices.dra.versiondiff import SEAL, Part, compare
from devices.models import ClaimTemplate, TemplateVersion
from devices.views.templates import framed
from portal.approvals.models import Approval
from portal.errors import Invalid, Outdated
from portal.request_ids import request_id_of
from portal.ui.htmx import wants_partial
from tenants.access import PlatformAccess, platform_access
from tenants.models import Tenant
from tenants.people import names_of
from tenants.policy import PlatformAct


@dataclass(slots=True)
class Outcome:
    """What came of sending the form; `status` is the answer's."""

    status: int = 200
    outdated: Outdated | None = None
    failed: CheckFailed | None = None
    saved: TemplateVersion | None = None
    submitted: Approval | None = None


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def template_new(request: HttpRequest) -> HttpResponse:
    """A new template; a POST writes its first draft."""
    access = platform_access(request.user)
    access.require(PlatformAct.WRITE_TEMPLATES)
    return _editor(request, access, _unwritten())


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def template_version(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """One version: its editor, or where it no longer changes what it is."""
    access = platform_access(request.user)
    access.require(PlatformAct.SEE)
    return _editor(request, access, find(slug, number))


@require_POST
@login_required
def template_try(request: HttpRequest, slug: str = "", number: int = 1) -> HttpResponse:
    """The pane beside the text, for what was typed so far; nothing is saved."""
    access = platform_access(request.user)
    access.require(PlatformAct.SEE)
    version = find(slug, number) if slug else _unwritten()
    form = AuthorForm(request.POST, version=version)
    page = {**_pane(request, version, form), **framed(access)}
    return render(request, "devices/_template_pane.html", page)


@require_POST
@login_required
def template_withdraw(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Takes it back from review."""
    withdraw(
        access=platform_access(request.user),
        slug=slug,
        number=number,
        request_id=request_id_of(request),
        now=timezone.now(),
    )
    messages.success(request, "It is a draft again.")
    return redirect("template-version", slug, number)


@require_POST
@login_required
def template_discard(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Throws a draft away."""
    discard(
        access=platform_access(request.user),
        slug=slug,
        number=number,
        revision=int(request.POST.get("revision") or 0) or None,
        request_id=request_id_of(request),
        now=timezone.now(),
    )
    messages.success(request, f"The draft of version {number} is thrown away.")
    return redirect("templates")


@require_POST
@login_required
def template_dry_run(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Asks the API server about what was typed and chosen; the answer comes by the event stream."""
    access = platform_access(request.user)
    access.require(PlatformAct.WRITE_TEMPLATES)
    version = find(slug, number)
    typed = AuthorForm(request.POST, version=version).draft()
    found = tried(version, typed.text)
    context: dict[str, Any] = {**framed(access)}
    try:
        if found.template is None:
            raise Invalid("Nothing was tried.", fields={"text": "Mend the text first."})
        tenant = _tenant(request)
        questions = _questions(request, found.template, tenant)
        context["row"] = dry_run(
            version,
            template=found.template,
            values=questions.values(),
            tenant=tenant,
            person=access.user.person,
            request_id=request_id_of(request),
            now=timezone.now(),
        )
    except Invalid as refused:
        context["wrong"] = list(refused.fields.values())
    if not wants_partial(request) and "row" in context:
        return redirect("dry-run", context["row"].public_id)
    return render(request, "devices/_dry_run.html", context)


@require_safe
@login_required
def dry_run_answer(request: HttpRequest, public_id: str) -> HttpResponse:
    """One's own dry run and its answer; as a fragment, the answer alone."""
    access = platform_access(request.user)
    row = dryruns.find(public_id, access.user.person)
    if row is None:
        raise Http404
    context = {**framed(access), "row": row, "objects": _yaml(row.objects_json)}
    fragment = wants_partial(request)
    return render(request, "devices/_dry_run.html" if fragment else "devices/dry_run.html", context)


def find(slug: str, number: int) -> TemplateVersion:
    """One version; 404 where there is none."""
    rows = TemplateVersion.objects.select_related("template", "successor")
    version = rows.filter(template__slug=slug, number=number).first()
    if version is None:
        raise Http404
    return version


def _editor(request: HttpRequest, access: PlatformAccess, version: TemplateVersion) -> HttpResponse:
    form = AuthorForm(request.POST or None, version=version, initial=_initial(version))
    outcome = _send(request, access, version, form) if request.method == "POST" else Outcome()
    if outcome.submitted is not None:
        messages.success(request, f"{outcome.submitted.number} asks for a yes.")
        return redirect("approval", outcome.submitted.number)
    if outcome.saved is not None and outcome.failed is None and outcome.status == 200:
        messages.success(request, "Saved.")
        return redirect("template-version", outcome.saved.template.slug, outcome.saved.number)
    version = outcome.saved or version
    page = {
        **framed(access),
        "outcome": outcome,
        **_frame(access, version),
        **_pane(request, version, form),
        "theirs": _against(outcome.outdated, form.draft()) if outcome.outdated else (),
        "revision": outcome.outdated.facts["now"]["revision"]  # type: ignore[index]
        if outcome.outdated
        else version.revision,
    }
    return render(request, "devices/template_version.html", page, status=outcome.status)


def _send(
    request: HttpRequest, access: PlatformAccess, version: TemplateVersion, form: AuthorForm
) -> Outcome:
    """Saves, and submits where that button was pressed; nothing with the button that only tries."""
    if "try" in request.POST:
        return Outcome()
    form.is_valid()
    sent: Any = {"request_id": request_id_of(request), "now": timezone.now()}
    outcome = Outcome(status=422)
    try:
        draft = form.draft()
        if not version.pk:
            slug = request.POST.get("slug", "").strip()
            outcome.saved = begin(access=access, slug=slug, draft=draft, **sent)
        else:
            outcome.saved = change(
                access=access,
                slug=version.template.slug,
                number=version.number,
                draft=draft,
                revision=_revision(request),
                **sent,
            )
        if "submit" in request.POST:
            outcome.submitted = submit(
                access=access,
                slug=outcome.saved.template.slug,
                number=outcome.saved.number,
                revision=outcome.saved.revision,
                reason=request.POST.get("reason", "").strip(),
                **sent,
            )
        outcome.status = 200
    except Invalid as refused:
        _beside(form, refused)
    except CheckFailed as refused:
        outcome.failed = refused
    except Outdated as refused:
        outcome.outdated, outcome.status = refused, refused.http_status
    return outcome


def _frame(access: PlatformAccess, version: TemplateVersion) -> dict[str, Any]:
    """What stands round the text: state, people, what differs from what is offered."""
    approval = Approval.objects.filter(pk=version.approval or 0).prefetch_related("decisions")
    standing = standing_of(version, approval.first())
    names = names_of([*version.authors, version.changed_by])
    return {
        "version": version,
        "template": version.template,
        "standing": standing,
        "authors": [names[person] for person in version.authors],
        "changed_by": names[version.changed_by],
        "why_not": access.why_not(PlatformAct.WRITE_TEMPLATES),
        "writable": not version.pk or version.state in TemplateVersion.OPEN,
        "differs": _differs(version),
        "discardable": bool(version.pk)
        and version.state == TemplateVersion.State.DRAFT
        and not access.why_not(PlatformAct.WRITE_TEMPLATES),
        "alone": bool(version.pk) and version.template.versions.count() == 1,
    }


def _pane(request: HttpRequest, version: TemplateVersion, form: AuthorForm) -> dict[str, Any]:
    """The pane beside the text: mistakes, or the form, what it makes, and the check."""
    text, tenant = form.draft().text, _tenant(request)
    found = tried(version, text)
    page: dict[str, Any] = {
        "version": version,
        "form": form,
        "tenants": list(tenants()),
        "tenant": tenant,
        "tried": found,
        "mistakes": _quoted(text),
    }
    if found.template is not None:
        questions = _questions(request, found.template, tenant)
        questions.is_valid()
        what = made(found.template, questions.values(), tenant)
        page |= {
            "questions": questions,
            "sentences": what.sentences,
            "yaml": _yaml(what.objects),
        }
    return page


def _questions(request: HttpRequest, template: Any, tenant: Tenant | None) -> QuestionForm:
    return QuestionForm(
        request.POST if request.POST.get("asked") is not None else None,
        template=template,
        tenant=tenant.slug if tenant else "",
        free=free_notes(offers_for(), old=not cluster_link().live),
    )


def _tenant(request: HttpRequest) -> Tenant | None:
    """As whom it is tried: the chosen one, else the first that has a namespace."""
    slug = request.POST.get("tenant") or request.GET.get("tenant") or ""
    rows = tenants()
    return (
        rows.filter(slug=slug).first()
        or rows.filter(namespaces__isnull=False).first()
        or rows.first()
    )


def _initial(version: TemplateVersion) -> dict[str, Any]:
    draft = draft_of(version)
    return {
        "name": draft.name,
        "words": draft.words,
        "icon": draft.icon,
        "note": draft.note,
        "text": draft.text,
    }


def _unwritten() -> TemplateVersion:
    template = ClaimTemplate(slug="", name="", words="", icon="device")
    return TemplateVersion(template=template, number=1, text=first_text(), content={}, revision=0)


def _revision(request: HttpRequest) -> int | None:
    given = request.POST.get("revision", "")
    return int(given) if given.isdecimal() and len(given) < 10 else None


def _beside(form: AuthorForm, refused: Invalid) -> None:
    """The verb's refusals at their fields; those of the text stand in the list of its mistakes."""
    named = {
        name: text
        for name, text in refused.fields.items()
        if name in form.fields and name not in form.errors
    }
    for name, text in named.items():
        form.add_error(name, text)
    if "lines" in refused.fields:
        form.add_error("text", "It is what is offered already; nothing would change.")


def _quoted(text: str) -> list[tuple[Any, str]]:
    """Each mistake with the line on which it is."""
    lines = text.splitlines()
    return [
        (one, lines[one.line - 1].strip()[:120] if 0 < one.line <= len(lines) else "")
        for one in mistakes(text)
    ]


def _against(outdated: Outdated, mine: Draft) -> list[tuple[str, str]]:
    """(kind, line) of what stands there now against what was typed here."""
    theirs = str(outdated.facts["now"]["text"])  # type: ignore[index]
    lines = list(unified_diff(theirs.splitlines(), mine.text.splitlines(), n=2, lineterm=""))[2:]
    kinds = {"+": "add", "-": "del", "@": "hunk"}
    return [(kinds.get(line[:1], ""), line) for line in lines[:200]]


def _differs(version: TemplateVersion) -> list[Part]:
    """What differs from what is offered, or for a retired one from nothing."""
    if not version.pk or version.state == TemplateVersion.State.RETIRED:
        return []
    rows = version.template.versions.filter(number__lt=version.number)
    before = rows.exclude(state=TemplateVersion.State.DRAFT).first()
    if before is None:
        return []
    before.template = version.template
    return [one for one in compare(side_of(before), side_of(version)) if one.group != SEAL]


def _yaml(objects: Any) -> str:
    return "---\n".join(manifest_yaml(obj) for obj in objects)

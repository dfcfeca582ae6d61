"""Pages of a tenant's closing: beginning it, how far it is, its receipt; for the platform and for
the tenant itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from devices.dra.closing import Phase
from devices.models import Closure
from devices.tenancy import closures
from devices.tenancy.receipts import proved
from devices.views.platform_tenants import status, take
from portal.errors import Invalid
from portal.request_ids import request_id_of
from tenants.access import (
    closed_tenant_for,
    closed_tenants_of,
    platform_access,
    platform_of,
    tenant_for,
)
from tenants.models import Tenant, User
from tenants.people import names_of
from tenants.policy import Act, PlatformAct

#: The steps in their order: phase, word, what it means, and the moment that ends it.
STEPS: Final = (
    (Phase.STOPPING, "Stop", "nothing new in Berth and in the cluster", "shut_at"),
    (Phase.WAITING, "Wait", "for Pods that use devices", "empty_at"),
    (Phase.RECLAIMING, "Reclaim", "claims and templates", "reclaimed_at"),
    (Phase.LETTING_GO, "Let go", "quotas and labels", "ended_at"),
    (Phase.CLOSED, "Receipt", "what was reclaimed", "ended_at"),
)
OF_PODS: Final = frozenset({"POD_RUNNING", "POD_LEAVING"})
WAITS_FOR_PEOPLE: Final = frozenset({"FINALIZER", "RIGHTS_MISSING", "REFUSED_BY_CLUSTER"})


class AskForm(forms.Form):
    """Why, and the short name once more."""

    reason = forms.CharField(
        label="Why", max_length=closures.LONGEST_REASON, help_text="The receipt says it."
    )
    typed = forms.CharField(
        label="Short name of the tenant",
        max_length=63,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )

    def __init__(self, *args: Any, tenant: Tenant, **options: Any) -> None:
        super().__init__(*args, **options)
        said = f"Type {tenant.slug} to say that this is the right one."
        self.fields["typed"].help_text = said


class BeginForm(AskForm):
    """As an admin begins it."""

    deadline = forms.DateTimeField(
        required=False,
        help_text="In UTC. It only alerts people: nothing is ended by it.",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )


@dataclass(frozen=True, slots=True)
class Stage:
    """One step as the page shows it (portal/_steps.html)."""

    state: str
    word: str
    note: str
    since: datetime | None = None
    tone: str = ""


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def closing(request: HttpRequest, slug: str) -> HttpResponse:
    """How far a closing is, or the form that begins one; a POST begins it.

    Approvals lead everybody here: the tenant's own people go on to their page of it.
    """
    if request.method != "POST" and not platform_of(_user(request)).roles:
        tenant_for(request.user, slug)
        return redirect("own-closing", slug)
    access = platform_access(request.user)
    access.require(PlatformAct.SEE)
    tenant = get_object_or_404(Tenant, slug=slug)
    form = BeginForm(request.POST or None, tenant=tenant)
    if request.method == "POST" and form.is_valid():
        try:
            closures.begin(
                access=access, tenant=tenant, request_id=request_id_of(request),
                now=timezone.now(), **form.cleaned_data,
            )  # fmt: skip
        except Invalid as refused:
            take(form, refused)
        else:
            said = f"{tenant.name} takes nothing new from now on."
            messages.success(request, said, extra_tags=request_id_of(request))
            return redirect("closing", slug)
    context = {
        **_shown(closures.newest(tenant)),
        "tenant": tenant,
        "form": form,
        "why_not": access.why_not(PlatformAct.RUN_TENANTS),
        "stream": reverse("platform-tenant-events", args=[slug]),
    }
    return render(request, "devices/closing.html", context, status=status(request))


@require_POST
@login_required
def cancel(request: HttpRequest, slug: str) -> HttpResponse:
    """The tenant is active again."""
    access = platform_access(request.user)
    tenant = get_object_or_404(Tenant, slug=slug)
    closures.cancel(
        access=access,
        tenant=tenant,
        request_id=request_id_of(request),
        now=timezone.now(),
    )
    said = f"{tenant.name} is active again; what was held goes on."
    messages.success(request, said, extra_tags=request_id_of(request))
    return redirect("platform-tenant", slug)


@require_http_methods(["GET", "HEAD"])
@login_required
def receipt(request: HttpRequest, slug: str) -> HttpResponse:
    """The receipt of a closed tenant, to be read and printed."""
    access = platform_access(request.user)
    access.require(PlatformAct.SEE)
    return _receipt(request, get_object_or_404(Tenant, slug=slug), own=False)


@require_http_methods(["GET", "HEAD"])
@login_required
def own_receipt(request: HttpRequest, slug: str) -> HttpResponse:
    """The same for who owned the tenant to the end; of all else of it nothing is left for them."""
    return _receipt(request, closed_tenant_for(request.user, slug), own=True)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def own_closing(request: HttpRequest, slug: str) -> HttpResponse:
    """The same for the tenant's people; an owner's POST asks the platform for it.

    Who watched to the end reads here that it is over.
    """
    gone = next((one for one in closed_tenants_of(_user(request)) if one.slug == slug), None)
    if gone is not None and request.method != "POST":
        context = {**_shown(closures.newest(gone)), "tenant": gone, "own": True}
        return render(request, "devices/closing.html", context)
    access = tenant_for(request.user, slug)
    form = AskForm(request.POST or None, tenant=access.tenant)
    if request.method == "POST" and form.is_valid():
        try:
            closures.ask_to_close(
                access=access, request_id=request_id_of(request), now=timezone.now(),
                **form.cleaned_data,
            )  # fmt: skip
        except Invalid as refused:
            take(form, refused)
        else:
            said = "Asked for. An admin of the platform decides."
            messages.success(request, said, extra_tags=request_id_of(request))
            return redirect("own-closing", slug)
    context = {
        **_shown(closures.newest(access.tenant)),
        "access": access,
        "tenant": access.tenant,
        "own": True,
        "form": form,
        "why_not": access.why_not(Act.ASK_CLOSING),
    }
    return render(request, "devices/closing.html", context, status=status(request))


def stages(closure: Closure) -> list[Stage]:
    """Where a closing stands among its steps."""
    here = next((n for n, step in enumerate(STEPS) if step[0] == closure.phase), -1)
    found, since = [], closure.began_at
    for number, (_, word, note, ends) in enumerate(STEPS):
        if number < here or closure.phase == Phase.CLOSED:
            moment = getattr(closure, ends)
            found.append(Stage("done", word, f"{moment:%-d %b %H:%M} UTC" if moment else note))
            since = moment or since
        elif number == here:
            stuck = any(one["code"] in WAITS_FOR_PEOPLE for one in closure.blockers)
            tone = "wait" if stuck or closure.late_at else "run"
            found.append(Stage("here", word, note, since, tone))
        else:
            found.append(Stage("todo", word, note))
    return found


def _shown(closure: Closure | None) -> dict[str, Any]:
    """What the page shows of a closing; the form is for when there is none."""
    if closure is None or closure.phase == Phase.CANCELLED:
        return {"closure": None, "before": closure}
    blockers = [
        {**one, "ends_at": datetime.fromisoformat(one["ends_at"]) if one["ends_at"] else None}
        for one in closure.blockers
    ]
    return {
        "closure": closure,
        "stages": stages(closure),
        "blockers": blockers,
        "pods_only": all(one["code"] in OF_PODS for one in blockers),
        "people": [one for one in blockers if one["code"] in WAITS_FOR_PEOPLE],
        "names": _names(closure),
    }


def _receipt(request: HttpRequest, tenant: Tenant, *, own: bool) -> HttpResponse:
    """The page of a receipt, 404 where there is none; `own`: for the tenant's people of then."""
    closure = closures.newest(tenant)
    if closure is None or closure.receipt is None:
        raise Http404
    context = {
        "tenant": tenant,
        "closure": closure,
        "receipt": closure.receipt,
        "own": own,
        "names": _names(closure),
        "faults": proved(closure),
        "kinds": _kinds(closure.receipt["items"]),
    }
    return render(request, "devices/receipt.html", context)


def _user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user


def _names(closure: Closure) -> dict[str, str]:
    """Who asked and who began it, in one query; where nobody began it an approval did."""
    found = names_of([closure.asked_by, closure.began_by])
    began = closure.began_by
    return {
        "asked": found[closure.asked_by],
        "began": found[began] if isinstance(began, UUID) else "an approval",
    }


def _kinds(items: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """How many items of each kind, in the order of the receipt."""
    counts: dict[str, int] = {}
    for item in items:
        counts[item["kind"]] = counts.get(item["kind"], 0) + 1
    return list(counts.items())

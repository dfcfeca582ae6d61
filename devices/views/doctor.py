"""What the doctor found at its last look, and asking it to look again."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from devices.doctor.findings import Severity
from devices.doctor.runs import ask, last
from portal.request_ids import request_id_of
from portal.ui.htmx import wants_partial
from tenants.access import platform_access
from tenants.policy import PlatformAct

#: How a severity is drawn, and what it is called.
SHOWN = {
    Severity.ERROR: ("fail", "Error"),
    Severity.WARNING: ("warning", "Warning"),
    Severity.INFO: ("info", "Note"),
}


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def doctor(request: HttpRequest) -> HttpResponse:
    """The last report; a POST asks a worker for a new one."""
    access = platform_access(request.user)
    access.require(PlatformAct.SEE)
    now = timezone.now()
    if request.method == "POST":
        ask(access=access, request_id=request_id_of(request), now=now)
        messages.success(request, "A worker looks now; this page shows it when it is done.")
        return redirect("doctor")
    found = last(now)
    report = found.report
    page = {
        "found": found,
        "report": report,
        "counts": [(*SHOWN[one], report.count(one)) for one in Severity] if report else [],
        "findings": [(*SHOWN[one.severity], one) for one in report.findings] if report else [],
        "why_not": access.why_not(PlatformAct.EXAMINE),
        "stream": reverse("platform-events"),
        "now": now,
    }
    part = "devices/_doctor.html" if wants_partial(request) else "devices/doctor.html"
    return render(request, part, page)

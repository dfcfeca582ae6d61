"""The survey page of a node pool: what to know before it moves."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from devices.forecasts.warm import warm
from devices.models import NodePool
from migrationplan.survey import Survey
from migrationplan.survey.users import By
from migrationplan.surveying import survey_of, tenants_of
from tenants.access import platform_access

PAGE_SIZE = 50
PATHS = {
    By.PLUGIN: ("plugin", "Device plugin"),
    By.CLAIM: ("dra", "Claim"),
    By.EXTENDED: ("dra", "By name, on DRA"),
    By.BOTH: ("look", "Both at once"),
}


@require_safe
@login_required
def node_pool_survey(request: HttpRequest, slug: str) -> HttpResponse:
    """Who uses it by which path, what would break, and which nodes should go first."""
    platform_access(request.user)
    pool = get_object_or_404(NodePool, slug=slug)
    seen = warm()
    found = survey_of(pool, seen) if seen else Survey()
    tenants = tenants_of(found)
    page = Paginator(found.workloads, PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "pool": pool,
        "found": found,
        "page": page,
        "rows": [
            (
                one,
                tenants.get(one.namespace, ""),
                *PATHS[one.by],
                _retryable(one.retryable, one.pods),
            )
            for one in page
        ],
        "verdict": verdict(found) if seen else ("unknown", "The cluster has not been seen yet."),
        "to_move": sum(len(wave.nodes) for wave in found.waves),
        "as_of": seen.as_of if seen else None,
        "now": timezone.now(),
    }
    return render(request, "migrationplan/survey.html", context)


def verdict(found: Survey) -> tuple[str, str]:
    """The sentence that stands first, and the state that colours it."""
    if not found.nodes:
        return "none", "No node has this pool's labels."
    if found.breaks:
        number = len(found.breaks)
        things = "One thing would break" if number == 1 else f"{number} things would break"
        return "look", f"{things} once every node has moved."
    if not found.waves:
        return "done", "No node of this pool is the plugin's any more."
    if found.risks:
        return "look", "Nothing would break; there are risks to look at."
    return "done", "Nothing stands against moving this pool."


def _retryable(number: int, of: int) -> str:
    if number == of:
        return "yes"
    return f"{number} of {of}" if number else "no"

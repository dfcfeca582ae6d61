"""Node pools: the list with the form for a new one, and how the nodes of one stand."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from devices.fleet.nodepools import (
    Overlap,
    Wish,
    change,
    define,
    remove,
    selected,
    standings,
)
from devices.forecasts.warm import warm
from devices.models import NodePool
from portal.errors import Invalid, Outdated
from portal.request_ids import request_id_of
from portal.ui.forms import blame
from tenants.access import platform_access
from tenants.policy import PlatformAct

PAGE_SIZE = 100


class NodePoolForm(forms.Form):
    """What a node pool is."""

    name = forms.CharField(max_length=80)
    words = forms.CharField(max_length=240, required=False, label="What it is for")
    selector = forms.CharField(
        label="Its nodes have",
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
        help_text="Node labels as key=value, one a line; a node needs all of them.",
    )
    resource = forms.CharField(
        max_length=253, label="Plugin offers", help_text="Such as vendor.example/gpu."
    )
    driver = forms.CharField(max_length=63, label="DRA driver")
    device_class = forms.CharField(max_length=253, label="Device class")
    plugin_label = forms.CharField(
        max_length=320,
        label="Plugin's switch",
        help_text="The node label that its DaemonSet selects on, as key=value.",
    )
    driver_label = forms.CharField(max_length=320, label="Driver's switch")
    plugin_sets = forms.CharField(
        required=False,
        label="Plugin's DaemonSets",
        widget=forms.Textarea(attrs={"rows": 1, "spellcheck": "false"}),
        help_text="namespace/name, one a line. Without them nobody can prove that it is off.",
    )
    driver_sets = forms.CharField(
        required=False,
        label="Driver's DaemonSets",
        widget=forms.Textarea(attrs={"rows": 1, "spellcheck": "false"}),
    )
    devices_per_node = forms.IntegerField(
        required=False, min_value=0, max_value=10_000, label="Devices per node"
    )
    settling = forms.IntegerField(
        min_value=0,
        max_value=3600,
        initial=320,
        label="Settling, in seconds",
        help_text="How long a kubelet may remember a plugin that stopped.",
    )

    def wish(self) -> Wish:
        asked = {name: self.cleaned_data[name] for name in NodePoolForm.base_fields}
        pairs = (line.partition("=") for line in asked["selector"].split())
        return Wish(
            **{
                **asked,
                "selector": {key: value for key, _, value in pairs},
                "plugin_sets": tuple(asked["plugin_sets"].split()),
                "driver_sets": tuple(asked["driver_sets"].split()),
                "settling": timedelta(seconds=asked["settling"]),
            }
        )


class NewNodePoolForm(NodePoolForm):
    """A new one has a name for addresses too."""

    slug = forms.SlugField(
        max_length=63, label="Name in addresses", help_text="It stays; the other may change."
    )
    field_order = ("slug", "name")


def _initial(pool: NodePool) -> dict[str, Any]:
    return {
        **{name: getattr(pool, name) for name in NodePoolForm.base_fields},
        "selector": "\n".join(f"{key}={value}" for key, value in pool.selector.items()),
        "plugin_sets": "\n".join(pool.plugin_sets),
        "driver_sets": "\n".join(pool.driver_sets),
        "settling": int(pool.settling.total_seconds()),
    }


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def node_pools(request: HttpRequest) -> HttpResponse:
    """All of them; a POST makes one."""
    access = platform_access(request.user)
    seen = warm()
    form = NewNodePoolForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            pool = define(
                form.cleaned_data["slug"],
                form.wish(),
                access=access,
                snapshot=seen.now if seen else None,
                request_id=request_id_of(request),
                now=timezone.now(),
            )
        except (Invalid, Overlap) as refused:
            _say(form, refused)
        else:
            messages.success(request, f"{pool.name} is a node pool now.")
            return redirect("node-pool", slug=pool.slug)
    rows = [
        (pool, len(selected(pool.selector, seen.now)) if seen else None)
        for pool in NodePool.objects.all()
    ]
    context = {
        "rows": rows,
        "form": form,
        "why_not": access.why_not(PlatformAct.RUN_POOLS),
        "now": timezone.now(),
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "devices/node_pools.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def node_pool(request: HttpRequest, slug: str) -> HttpResponse:
    """One of them with its nodes; a POST changes it."""
    access = platform_access(request.user)
    pool = get_object_or_404(NodePool, slug=slug)
    seen, now = warm(), timezone.now()
    form = NodePoolForm(request.POST or None, initial=_initial(pool))
    if request.method == "POST" and form.is_valid():
        try:
            change(
                pool,
                form.wish(),
                revision=int(request.POST.get("revision") or 0),
                access=access,
                snapshot=seen.now if seen else None,
                request_id=request_id_of(request),
                now=now,
            )
        except (Invalid, Overlap, Outdated) as refused:
            _say(form, refused)
        else:
            messages.success(request, "The node pool is changed.")
            return redirect("node-pool", slug=slug)
    nodes = standings(pool, seen, now) if seen else []
    context = {
        "pool": pool,
        "page": Paginator(nodes, PAGE_SIZE).get_page(request.GET.get("page")),
        "counts": _counts(nodes),
        "as_of": seen.as_of if seen else None,
        "form": form,
        "why_not": access.why_not(PlatformAct.RUN_POOLS),
        "why_not_convert": access.why_not(PlatformAct.CONVERT),
        "now": now,
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "devices/node_pool.html", context, status=status)


@require_POST
@login_required
def node_pool_remove(request: HttpRequest, slug: str) -> HttpResponse:
    """Forgets one."""
    access = platform_access(request.user)
    pool = get_object_or_404(NodePool, slug=slug)
    remove(pool, access=access, request_id=request_id_of(request), now=timezone.now())
    messages.success(request, f"{pool.name} is no node pool any more; its nodes are as they were.")
    return redirect("node-pools")


def _counts(nodes: list[Any]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for one in nodes:
        counts[one.owner] = counts.get(one.owner, 0) + 1
    return counts


def _say(form: forms.Form, refused: Invalid | Overlap | Outdated) -> None:
    if isinstance(refused, Invalid):
        blame(form, refused.fields)
    else:
        form.add_error("selector" if isinstance(refused, Overlap) else None, refused.message)

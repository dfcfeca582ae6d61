"""The two pages that belong to no app: how the cluster stands, and every part once."""

from __future__ import annotations

from datetime import timedelta

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from portal.ui.drawings import Cell, FunnelStep
from portal.ui.forms import Card, RadioCards, Stepper, Switch
from portal.ui.statuses import STATUSES


def cluster_line(request: HttpRequest) -> HttpResponse:
    """The fragment that open pages fetch when the cluster's state changes."""
    return render(request, "portal/_cluster_news.html")


class _EveryField(forms.Form):
    """One field of each kind, among them a wrong one."""

    reason = forms.CharField(label="Reason", help_text="One sentence, shown to tenants.")
    gpus = forms.IntegerField(
        label="GPUs",
        max_value=8,
        widget=Stepper,
        help_text="From 1 to 8.",
        error_messages={"max_value": "You may take 2 more of 8. Ask for a higher limit."},
    )
    namespace = forms.ChoiceField(label="Namespace", choices=[("a", "tidewater-train")])
    memory = forms.ChoiceField(
        label="Memory per GPU",
        widget=RadioCards,
        choices=[
            ("48", Card("48 GB", "L40S, 45.0 Gi usable", off="none is published")),
            ("80", Card("80 GB", "H100, 79.6 Gi usable", "2 free")),
            ("141", Card("141 GB", "H200, 140.4 Gi usable", "5 free")),
        ],
    )
    same_root = forms.BooleanField(
        label="On the same PCIe root", widget=Switch, help_text="Fewer nodes can serve that."
    )


def parts(request: HttpRequest) -> HttpResponse:
    """Every part of the stylesheet once, in every state; only where DEBUG is on."""
    now = timezone.now()
    form = _EveryField(
        {"reason": "Firmware change", "gpus": "12", "namespace": "a", "memory": "80"}
    )
    messages.success(request, "Released eval-nightly. One H100 is free when its Pod ends.")
    page = {
        "now": now,
        "statuses": STATUSES.items(),
        "fresh": now - timedelta(seconds=2),
        "old": now - timedelta(minutes=14),
        "form": form,
        "cells": [Cell("allocated", "gpu-0"), Cell("allocated"), Cell("idle"), Cell("unavailable")],
        "snippet": "spec:\n  resourceClaims:\n  # yours\n  - name: pair\n"
        "    resourceClaimName: resnet-ablate-41\n",
        "long_name": "tidewater-train-distributed-vision-transformer-pretrain-a-x7k2p",
        "steps": [
            FunnelStep(48, "H100 in pools open to you", "on 7 nodes are not offered by DRA"),
            FunnelStep(
                20,
                "published in class H100 80GB NVLink",
                "have no fast port on the same PCIe root.",
                "matchAttribute: resource.kubernetes.io/pcieRoot",
            ),
            FunnelStep(6, "share a PCIe root with a 400 Gb/s port", "taken"),
            FunnelStep(0, "free now", "You asked for 2"),
        ],
        "stages": [
            {"state": "done", "word": "Asked", "note": "14:06:02"},
            {"state": "done", "word": "Sent", "note": "+0.6 s"},
            {"state": "here", "word": "Allocation", "note": "26 min so far"},
            {"state": "todo", "word": "Running", "note": ""},
        ],
    }
    return render(request, "portal/parts.html", page)

"""Translated manifests put to the real API servers: what they took before, they take after."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest

from devices import cluster
from devices.cluster.gateway import ClusterError, Gateway
from devices.translation.proof import Question, questions
from devices.translation.translate import Pair, translate
from playground.plane.controlplane import ControlPlane
from tests.devices.following import until
from tests.devices.translation.manifests import FILES, TARGETS

pytestmark = pytest.mark.cluster

PLACE = "translated"
#: Refused as pasted, for reasons that have nothing to do with devices, or that translating mends.
RUNTIME_CLASS = "04-job-with-quotes"
REQUEST_ALONE = "20-with-what-stands-around"


def ready(gateway: Gateway) -> bool:
    """The namespace with the accounts that the manifests' Pods run as."""
    for kind, name, namespace in (
        ("Namespace", PLACE, ""),
        ("ServiceAccount", "release-inference", PLACE),
        ("ServiceAccount", "default", PLACE),
    ):
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        gateway.apply({"apiVersion": "v1", "kind": kind, "metadata": metadata}, manager="test")
    return True


def here(pair: Pair) -> Pair:
    """The pair in the test's own namespace."""
    before, after = deepcopy(pair.before), deepcopy(pair.after)
    templates = deepcopy(pair.templates)
    for obj in (before, after, *templates):
        obj["metadata"]["namespace"] = PLACE
    return replace(pair, before=before, after=after, templates=templates)


def said(gateway: Gateway, question: Question) -> str:
    """What the API server objects to; empty where it takes it."""
    try:
        gateway.create(question.obj, dry_run=True)
    except ClusterError as error:
        return error.message
    return ""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_api_server_takes_what_it_took_before(path: Path, plane: ControlPlane) -> None:
    gateway = cluster.connect(plane.admin_kubeconfig)
    until(lambda: ready(gateway))
    found = translate(path.read_text(), TARGETS)
    assert found.pairs
    before, after = [], []
    for question in questions([here(pair) for pair in found.pairs], PLACE, "try"):
        (before if question.before else after).append(
            (question.about, said(gateway, question).replace(question.obj["metadata"]["name"], "·"))
        )
    if path.stem == RUNTIME_CLASS:
        (refused,) = [about for about, words in after if "RuntimeClass" in words]
        assert refused == "Pod of Job finetune" and dict(before)[refused] == dict(after)[refused]
        return
    assert not [one for one in after if one[1]]
    if path.stem == REQUEST_ALONE:
        assert "limits" in dict(before)["Pod try-"], "requests alone are refused as pasted"
        return
    assert not [one for one in before if one[1]]

"""Whole objects from frozen wishes: pinned as YAML, and taken by the real API servers' dry run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from devices import cluster
from devices.dra.isolationobjects import Target, canary_claim, canary_pod, taint_rule
from devices.dra.namespaces import NamespaceSpec, namespace_patch, policy_config, quota_object
from devices.dra.objects import (
    ClaimWish,
    DeviceWish,
    MatchWish,
    Shape,
    claim_objects,
    deployment_manifest,
    job_manifest,
    pod_manifest,
)
from devices.dra.taints import Effect
from devices.dra.templates import answers, examples, read_template, render
from playground.plane.controlplane import ControlPlane
from portal.management.demo_templates import TEMPLATES

GOLDEN = Path(__file__).parents[2] / "golden"
PAIR = ClaimWish(
    public_id="k3x9p2mw",
    tenant="tidewater-vision",
    namespace="tidewater-train",
    name="llm-pretrain-k3x9p2mw",
    request_id="request-0001",
    shape=Shape.TEMPLATE,
    devices=(
        DeviceWish(
            "gpu",
            "h100-80gb",
            2,
            ('device.capacity["gpu.helios.example"].memory.compareTo(quantity("79Gi")) >= 0',),
        ),
        DeviceWish("port", "nic-rdma"),
    ),
    matches=(MatchWish("resource.kubernetes.io/pcieRoot", ("gpu", "port")),),
)
SHARED = replace(
    PAIR,
    name="cores-k3x9p2mw",
    shape=Shape.CLAIM,
    devices=(DeviceWish("cores", "cpu-numa", capacity=(("cpu.numa.example/cores", "16"),)),),
    matches=(),
)
TRAIN = NamespaceSpec(
    name="tidewater-train",
    tenant="tidewater-vision",
    classes=("h100-80gb", "nic-rdma"),
    extended_resources=("nvidia.com/gpu",),
    frozen=("deviceclass.resource.kubernetes.io/nic-rdma!", "nic-rdma!"),
    full_claims=("cores-k3x9p2mw",),
    devices=(("h100-80gb", 8), ("nic-rdma", 2)),
    explicit=(("h100-80gb", "nvidia.com/gpu"),),
    claims=1000,
)
RUN = {"image": "busybox:stable", "command": ("sleep", "3600")}
STARTERS: dict[str, list[dict[str, Any]]] = {
    "gpu": [{}, {"memory": "40", "near": True, "gpus": 4}],
    "training-pair": [{"gpus": 2}],
    "half-gpu": [{}, {"parts": 2, "apart": True}],
    "any-gpu": [{}, {"order": "roomy"}, {"order": "only"}],
    "cores": [{}, {"cores": 62, "two": True}],
    "notebook-gpu": [{}],
    "fpga-card": [{}, {"cards": 2, "shell": "base-3", "worn": True}],
}


def starter(slug: str) -> list[dict[str, Any]]:
    """What a starter template of the demo makes, for several answers."""
    template = read_template(TEMPLATES[slug][3])
    return [
        obj
        for number, given in enumerate(STARTERS[slug])
        for obj in render(
            template,
            answers(template, given),
            name=f"{slug}-{number}",
            namespace="tidewater-train",
            tenant="tidewater-vision",
        )
    ]


OBJECTS: dict[str, list[dict[str, Any]]] = {
    **{f"starter_{slug}": starter(slug) for slug in STARTERS},
    "claim_template_for_a_pair": claim_objects(PAIR),
    "shared_claim_of_cores": claim_objects(SHARED),
    "namespace_of_a_tenant": [namespace_patch(TRAIN)],
    "quota_of_a_namespace": [quota_object(TRAIN)],
    "parameter_of_the_policies": [policy_config({"h100-80gb": "nvidia.com/gpu"})],
    "pod_with_a_template": [pod_manifest(PAIR, **RUN)],  # type: ignore[arg-type]
    "pod_with_a_shared_claim": [pod_manifest(SHARED, **RUN)],  # type: ignore[arg-type]
    "job_with_a_template": [job_manifest(PAIR, **RUN)],  # type: ignore[arg-type]
    "deployment_with_a_template": [deployment_manifest(PAIR, **RUN)],  # type: ignore[arg-type]
}

ISOLATED = Target("k3x9p2mw", "gpu.helios.example", "h100-a01", "gpu-3")
OBJECTS["isolation_of_a_device"] = [
    taint_rule(ISOLATED, Effect.NO_SCHEDULE, 2),
    canary_claim("canary-h100-a01-1", ISOLATED, "h100-80gb"),
    canary_pod("canary-h100-a01-1", ISOLATED, "h100-a01", "localhost/berth/pause:1"),
]


@pytest.mark.parametrize("name", OBJECTS)
def test_objects_are_as_they_were_read(name: str, golden: Callable[[str, str], None]) -> None:
    text = yaml.safe_dump_all(OBJECTS[name], sort_keys=False)
    golden(f"tests/golden/{name}.yaml", text)


def test_every_golden_file_is_made_by_a_test() -> None:
    assert {path.stem for path in GOLDEN.glob("*.yaml")} == set(OBJECTS)


def test_the_same_wish_gives_the_same_objects() -> None:
    assert claim_objects(PAIR) == claim_objects(replace(PAIR))


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_api_server_takes_golden_objects(path: Path, plane: ControlPlane) -> None:
    gateway = cluster.connect(plane.admin_kubeconfig)
    for name in ("tidewater-train", "berth-system"):
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        gateway.apply(namespace, manager="test-namespaces", force=True)
    for obj in yaml.safe_load_all(path.read_text()):
        taken = gateway.apply(obj, manager="test", force=True, dry_run=True)
        assert cluster_keeps(obj, taken), "a field was dropped"


@pytest.mark.parametrize("slug", TEMPLATES)
def test_the_api_server_takes_whatever_a_starter_template_makes(
    slug: str, plane: ControlPlane
) -> None:
    gateway = cluster.connect(plane.admin_kubeconfig)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "example"}}
    gateway.apply(namespace, manager="test-namespaces", force=True)
    for values, objects in examples(read_template(TEMPLATES[slug][3])):
        for obj in objects:
            taken = gateway.apply(obj, manager="test", force=True, dry_run=True)
            assert cluster_keeps(obj, taken), f"a field was dropped: {values}"


def test_every_starter_template_is_pinned() -> None:
    assert STARTERS.keys() == TEMPLATES.keys()


def cluster_keeps(sent: Any, kept: Any) -> bool:
    """Whether everything sent is in what came back (which has defaults beside it)."""
    if isinstance(sent, dict):
        return isinstance(kept, dict) and all(
            # Admission gives every Pod two tolerations more.
            key in kept and cluster_keeps(value, kept[key][: len(value)])
            if key == "tolerations"
            else key in kept and cluster_keeps(value, kept[key])
            for key, value in sent.items()
        )
    if isinstance(sent, list):
        return len(sent) == len(kept) and all(
            cluster_keeps(one, other) for one, other in zip(sent, kept, strict=True)
        )
    return bool(sent == kept)

"""What people paste: manifests as YAML, and the same ask as API calls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import yaml

from devices.dra.objects import (
    ClaimWish,
    claim_objects,
    deployment_manifest,
    job_manifest,
    pod_manifest,
)

# Any image does: the claim gives the container its devices. This one is small and only waits.
IMAGE = "busybox:stable"
COMMAND = ("sleep", "3600")


@dataclass(frozen=True, slots=True)
class Snippet:
    """One thing to paste. `words` say what it does and what to change first."""

    key: str
    title: str
    words: str
    text: str


def manifest_yaml(obj: object) -> str:
    """YAML as people write it: keys in their usual order, no aliases."""
    return yaml.safe_dump(obj, sort_keys=False, allow_unicode=True)


def wish_yaml(wish: ClaimWish) -> str:
    """What Berth applies for this ask."""
    return "---\n".join(manifest_yaml(obj) for obj in claim_objects(wish))


def manifests(wish: ClaimWish) -> list[Snippet]:
    """Pod, Job and Deployment that use what was asked for."""
    return [
        Snippet(
            "pod",
            "Pod",
            "Put in your image and command, then apply it with kubectl.",
            manifest_yaml(pod_manifest(wish, image=IMAGE, command=COMMAND)),
        ),
        Snippet(
            "job",
            "Job",
            "Runs to its end, tries again twice.",
            manifest_yaml(job_manifest(wish, image=IMAGE, command=COMMAND)),
        ),
        Snippet(
            "deployment",
            "Deployment",
            "Keeps one Pod running. It stops the old Pod before it starts a new one, since both "
            "would need the devices.",
            manifest_yaml(deployment_manifest(wish, image=IMAGE, command=COMMAND)),
        ),
    ]


def extended_pod(wish: ClaimWish, resources: Sequence[tuple[str, int]]) -> str:
    """A Pod that asks for the same devices by extended resource, without any claim of its own; ""
    where that cannot be said. Berth finds it by its label.
    """
    if not resources:
        return ""
    pod = pod_manifest(wish, image=IMAGE, command=COMMAND)
    (container,) = pod["spec"]["containers"]
    container["resources"] = {"limits": {name: str(count) for name, count in resources}}
    del pod["spec"]["resourceClaims"]
    return manifest_yaml(pod)


def calls(*, base: str, tenant: str, body: dict[str, object]) -> list[Snippet]:
    """The same ask as `curl` and Python; `body` is what the API takes."""
    address = f"{base}/api/v1/tenants/{tenant}/claims"
    text = json.dumps(body, indent=2)
    return [
        Snippet(
            "curl",
            "curl",
            "Needs a token with the scope request in BERTH_TOKEN.",
            f"curl --fail-with-body {address} \\\n"
            '  -H "Authorization: Bearer $BERTH_TOKEN" \\\n'
            '  -H "Idempotency-Key: $(uuidgen)" \\\n'
            "  --json @- <<'END'\n"
            f"{text}\nEND\n",
        ),
        Snippet(
            "python",
            "Python",
            "Standard library only.",
            "import json\nimport os\nimport urllib.request\nimport uuid\n\n"
            f"body = json.loads('''{text}''')\n"
            "request = urllib.request.Request(\n"
            f'    "{address}",\n'
            "    data=json.dumps(body).encode(),\n"
            "    headers={\n"
            '        "Authorization": f"Bearer {os.environ[\'BERTH_TOKEN\']}",\n'
            '        "Content-Type": "application/json",\n'
            '        "Idempotency-Key": str(uuid.uuid4()),\n'
            "    },\n)\n"
            "with urllib.request.urlopen(request) as answer:\n"
            "    print(json.load(answer))\n",
        ),
    ]

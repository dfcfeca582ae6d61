"""What people paste: manifests as YAML, and the same ask as API calls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pprint import pformat

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
    """What Berth applies for this ask; nothing where its Pods ask by extended resource."""
    if wish.resources:
        return ""
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


def joining(wish: ClaimWish) -> str:
    """What a further Pod has to say so that it uses the same: the parts of its spec alone."""
    spec = pod_manifest(wish, image=IMAGE, command=COMMAND)["spec"]
    (container,) = spec["containers"]
    parts = {"name": container["name"], "resources": container["resources"]}
    claims = {"resourceClaims": spec["resourceClaims"]} if "resourceClaims" in spec else {}
    return manifest_yaml({"spec": {"containers": [parts], **claims}})


NOTHING_YET = tuple(
    Snippet(key, title, "", "")
    for key, title in (
        ("words", "Plain words"),
        ("yaml", "YAML"),
        ("pod", "Pod"),
        ("job", "Job"),
        ("deployment", "Deployment"),
        ("curl", "curl"),
        ("python", "Python"),
    )
)
"""The tabs of an ask that is not whole yet."""


def made(wish: ClaimWish, by_call: Sequence[Snippet]) -> list[Snippet]:
    """What an ask makes, in the order of its tabs; plain words are the page's own."""
    words, applied = NOTHING_YET[:2]
    said = "Berth applies this for you; the end of its name is chosen when you ask."
    if wish.resources:
        said = "Nothing: Pods of this claim ask for the devices by name."
    return [words, replace(applied, words=said, text=wish_yaml(wish)), *manifests(wish), *by_call]


def extended_pod(wish: ClaimWish, resources: Sequence[tuple[str, int]]) -> str:
    """A Pod that asks for the same devices by extended resource, without any claim of its own; ""
    where that cannot be said. Berth finds it by its label.
    """
    if not resources:
        return ""
    asked = replace(wish, resources=tuple(resources))
    return manifest_yaml(pod_manifest(asked, image=IMAGE, command=COMMAND))


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
            f"body = {pformat(body, sort_dicts=False)}\n"
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

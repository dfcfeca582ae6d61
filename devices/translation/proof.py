"""What to ask the API server about a translation: each workload before and after, with its Pod.

A Deployment is taken whatever its Pods say, so the Pod that it would make is asked about too, and
the claim that a template would give it: there the policies and quotas are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from devices.translation.translate import Pair

Obj = dict[str, Any]
#: Workloads that are asked about; what holds for these holds for others of the same make.
MOST_PAIRS: Final = 10
#: What the server writes and nobody sends.
_WRITTEN: Final = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "selfLink",
    "ownerReferences",
    "deletionTimestamp",
)


@dataclass(frozen=True, slots=True)
class Question:
    """One object to try: what it is in words, whether it is from before, and the object."""

    about: str
    before: bool
    obj: Obj


def questions(pairs: Sequence[Pair], namespace: str, mark: str) -> Iterator[Question]:
    """Everything to ask, in the order in which people would apply it.

    ``namespace`` is where what names none would go; ``mark`` ends every name, so that nothing that
    is there already stands in the way.
    """
    for pair in pairs[:MOST_PAIRS]:
        place = _text(_map(pair.before.get("metadata")).get("namespace")) or namespace
        for old, workload in ((True, pair.before), (False, pair.after)):
            if not old:
                for template in pair.templates:
                    named = _sent(template, place, mark)
                    name = template["metadata"]["name"]
                    yield Question(f"ResourceClaimTemplate {name}", False, named)
                    yield Question(f"Claim of {name}", False, _claim(template, place, mark))
            yield Question(pair.about, old, _sent(workload, place, mark))
            if pair.way:
                yield Question(f"Pod of {pair.about}", old, _pod(workload, pair.way, place, mark))


def namespaces(pairs: Sequence[Pair]) -> set[str]:
    """The namespaces that the workloads name themselves."""
    found = {_text(_map(pair.before.get("metadata")).get("namespace")) for pair in pairs}
    return found - {""}


def _sent(obj: Obj, namespace: str, mark: str) -> Obj:
    sent = deepcopy(obj)
    sent.pop("status", None)
    metadata = sent["metadata"] = _map(sent.get("metadata"))
    for name in _WRITTEN:
        metadata.pop(name, None)
    generated = _text(metadata.pop("generateName", ""))
    base = (_text(metadata.get("name")) or generated or "try").rstrip("-.")
    ending = f"-{mark}"
    metadata |= {"name": f"{base[: 52 - len(ending)]}{ending}", "namespace": namespace}
    return sent


def _pod(workload: Obj, way: Sequence[str], namespace: str, mark: str) -> Obj:
    template: Any = workload
    for step in way:
        template = template[step]
    inner = _map(template.get("metadata"))
    metadata = {name: inner[name] for name in ("labels", "annotations") if inner.get(name)}
    name = _text(_map(workload.get("metadata")).get("name")) or "try"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "name": name},
        "spec": {**_map(template.get("spec")), **_volumes(workload, template)},
    }
    return _sent(pod, namespace, mark)


def _volumes(workload: Obj, template: Obj) -> Obj:
    """The volumes that a StatefulSet adds to its Pods, one for each of its claim templates."""
    templates = _list(_map(workload.get("spec")).get("volumeClaimTemplates"))
    names = [_text(_map(_map(one).get("metadata")).get("name")) for one in templates]
    if not names:
        return {}
    volumes = _list(_map(template.get("spec")).get("volumes"))
    own = [one for one in volumes if _map(one).get("name") not in names]
    made = [
        {"name": name, "persistentVolumeClaim": {"claimName": f"{name}-try-0"}} for name in names
    ]
    return {"volumes": [*own, *made]}


def _claim(template: Obj, namespace: str, mark: str) -> Obj:
    claim = {
        "apiVersion": template["apiVersion"],
        "kind": "ResourceClaim",
        "metadata": {"name": template["metadata"]["name"]},
        "spec": template["spec"]["spec"],
    }
    return _sent(claim, namespace, mark)


def _map(value: Any) -> Obj:
    """A mapping; empty where somebody wrote something else, which the API server will say."""
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""

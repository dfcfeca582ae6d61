"""Translating for a tenant: which names stand for which class, and claims that it has already."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from devices.dra.lifecycle import State
from devices.models import Claim
from devices.routing.paths import targets
from devices.routing.routes import IMPLICIT, Path
from devices.translation.plan import Existing
from devices.translation.translate import TooLong, Translation, translate
from portal.errors import Invalid
from tenants.models import Tenant

#: Claims to choose from, the newest first.
MOST_CLAIMS: Final = 100
FALLBACK: Final = "nvidia.com/gpu"


def usable_claims(tenant: Tenant) -> list[Claim]:
    """Claims of the tenant that a Pod can name: no alternatives, and nobody released them."""
    rows = Claim.objects.of(tenant).open().filter(released_at=None, path=Path.CLAIM)
    rows = rows.exclude(state=State.FAILED).whole()
    return [claim for claim in rows[:MOST_CLAIMS] if _requests(claim)]


def translated(tenant: Tenant, text: str, claim: str = "") -> Translation:
    """The text with claims in it; `claim` is the public id of one to use, empty for new templates.

    Raises `Invalid` with the fields `text` and `claim`.
    """
    existing = None
    if claim:
        found = next((one for one in usable_claims(tenant) if one.public_id == claim), None)
        if found is None:
            wrong = {"claim": "This tenant has no such claim that Pods could name."}
            raise Invalid("Nothing was translated.", fields=wrong)
        wish = found.wish()
        existing = Existing(wish.name, wish.shape.kind, tuple(_requests(found)), wish.namespace)
    try:
        return translate(text, targets(), existing=existing)
    except TooLong as error:
        raise Invalid("Nothing was translated.", fields={"text": str(error)}) from error


def _requests(claim: Claim) -> Iterable[tuple[str, str, int]]:
    """Name, class and count of each request; nothing where one of them has alternatives."""
    devices = claim.wish().devices
    if any(device.alternatives for device in devices):
        return []
    return [(device.name, device.device_class, device.count) for device in devices]


def example() -> str:
    """A Deployment to try it with, asking for what this cluster has, by a plugin's name."""
    found = targets()
    names = [
        *(one.resource for one in found if one.by_plugin is not None),
        *(one.resource for one in found if not one.resource.startswith(IMPLICIT)),
        *(one.resource for one in found),
        FALLBACK,
    ]
    return _TEXT.format(resource=names[0])


_TEXT: Final = """\
# Serves the vision model.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: vision-server
spec:
  replicas: 2           # one per zone
  selector:
    matchLabels: {{app: vision-server}}
  template:
    metadata:
      labels: {{app: vision-server}}
    spec:
      initContainers:
        - name: warm-up
          image: registry.example.com/vision:1.4
          resources:
            limits:
              {resource}: 1
      containers:
        - name: server
          image: "registry.example.com/vision:1.4"
          resources:
            limits:
              {resource}: 1   # a whole card for each
              memory: 32Gi
"""

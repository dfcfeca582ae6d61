"""Translations proved by a worker that acts as the account which can write nothing: the policies
and quotas of the tenant's namespace answer, before and after.
"""

from __future__ import annotations

import pytest
from django.utils import timezone

from devices import cluster
from devices.cluster.gateway import Gateway
from devices.dra.names import PROBE_ACCOUNT
from devices.models import Proof
from devices.routing import proofs
from devices.translation.asks import Target
from devices.translation.translate import translate
from tenants.access import Access
from tests.deploy.ground import SYSTEM, Ground, until
from tests.factories import make_access

pytestmark = [pytest.mark.cluster, pytest.mark.django_db(transaction=True)]

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: server
spec:
  replicas: 2
  selector:
    matchLabels: {{app: server}}
  template:
    metadata:
      labels: {{app: server}}
    spec:
      containers:
      - name: main
        image: registry.example.com/x:1
        resources:
          limits:
            {name}: {count}
"""


@pytest.fixture
def acting(ground: Ground) -> Gateway:
    """Berth's worker as it asks: with its own credentials, and the probe's rights."""
    own = ground.plane.service_account_kubeconfig(SYSTEM, "berth-worker")
    return cluster.connect(own, acting_as=PROBE_ACCOUNT)


@pytest.fixture
def access(ground: Ground) -> Access:
    return make_access(namespaces=(ground.namespace,))


def proved(access: Access, gateway: Gateway, name: str, count: int) -> dict[tuple[str, bool], str]:
    """What the API server objects to, by object and whether it is from before; "" where it takes
    it.
    """
    target = Target(name, name.replace("bypass.example/", "bypass-"))
    found = translate(DEPLOYMENT.format(name=name, count=count), [target])
    row = proofs.ask(
        found.pairs,
        tenant=access.tenant,
        namespace=access.tenant.namespaces.get().name,
        person=access.user.person,
        request_id="r",
        now=timezone.now(),
    )
    assert proofs.answer(row.public_id, gateway=gateway, now=timezone.now())
    assert not proofs.answer(row.public_id, gateway=gateway, now=timezone.now()), "once"
    row = Proof.objects.get(pk=row.pk)
    assert row.questions == [], "what was asked about is forgotten with the answer"
    answers = proofs.answers_of(row)
    assert all(one.accepted is not None for one in answers), [one.words for one in answers]
    return {(one.about, one.before): one.words for one in answers}


def test_what_is_allowed_is_taken_before_and_after(access: Access, acting: Gateway) -> None:
    found = until(
        lambda: (
            (said := proved(access, acting, "bypass.example/gpu", 1))
            and not any(said.values())
            and said
        )
    )
    assert sorted(found) == [
        ("Claim of server-devices", False),
        ("Deployment server", False),
        ("Deployment server", True),
        ("Pod of Deployment server", False),
        ("Pod of Deployment server", True),
        ("ResourceClaimTemplate server-devices", False),
    ]


def test_policies_and_quotas_answer_as_they_would_answer_anybody(
    access: Access, acting: Gateway
) -> None:
    others = proved(access, acting, "bypass.example/h100", 1)
    for about, before in (
        ("Pod of Deployment server", True),
        ("ResourceClaimTemplate server-devices", False),
        ("Claim of server-devices", False),
    ):
        assert "Berth " in others[about, before], "another tenant's class"
    assert others["Deployment server", True] == "", "a Deployment says nothing of its Pods"
    many = proved(access, acting, "bypass.example/gpu", 51)
    assert "exceeded quota" in many["Claim of server-devices", False]
    assert "exceeded quota" in many["Pod of Deployment server", True]

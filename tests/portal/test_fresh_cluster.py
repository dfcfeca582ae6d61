"""What docs/backup.md says of a database that is restored beside a fresh cluster.

That a dump is restored whole is the drill's part (test_backup.py); here the rows meet a cluster
that has none of their objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.utils import timezone

from devices import cluster
from devices.asks import reconcile
from devices.cluster.gateway import Gateway, Ref
from devices.dra.lifecycle import State
from devices.dra.names import CLAIM_LABEL
from devices.models import Claim, ClusterState, NamespaceStanding, Observed
from devices.tenancy import turns
from playground.plane.components import API_SERVER, CONTROLLER_MANAGER, ETCD
from playground.plane.controlplane import ControlPlane
from portal.audit.record import all_breaks
from tenants.access import Access
from tenants.models import BudgetLine
from tests.deploy.objects import device_class
from tests.devices.following import following, same, until
from tests.factories import make_access, make_claim, make_version

pytestmark = [pytest.mark.long, pytest.mark.cluster, pytest.mark.django_db(transaction=True)]

MADE, ADOPTED = "tide-made", "tide-adopted"


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[tuple[Gateway, Gateway]]:
    """The one that Berth knew, and the one that stands there now."""
    with ExitStack() as stack:
        found = []
        for name in ("known", "fresh"):
            plane = ControlPlane(
                tmp_path / name, components=(ETCD, API_SERVER, CONTROLLER_MANAGER)
            ).start(tied=True)
            stack.callback(plane.wipe)
            stack.callback(plane.stop)
            gateway = cluster.connect(plane.admin_kubeconfig)
            gateway.create(device_class("gpu", driver="gpu.example"))
            found.append(gateway)
        known, fresh = found
        yield known, fresh


@pytest.fixture
def access() -> Access:
    return make_access(namespaces=(MADE, ADOPTED), limits={"gpu": 8})


def turn_tenant(gateway: Gateway, access: Access) -> None:
    turns.turn(access.tenant.slug, gateway=gateway, now=timezone.now())


def turn(gateway: Gateway, claim: Claim) -> Claim:
    for _ in range(2):
        reconcile.turn(claim.public_id, gateway=gateway, now=timezone.now())
    claim.refresh_from_db()
    return claim


def objects(gateway: Gateway) -> set[str]:
    kinds = ("ResourceClaim", "ResourceClaimTemplate")
    found = [one for kind in kinds for one in gateway.list(kind, labels=CLAIM_LABEL).items]
    return {one["metadata"]["labels"][CLAIM_LABEL] for one in found}


def test_each_thing_becomes_what_the_docs_say(
    clusters: tuple[Gateway, Gateway], access: Access
) -> None:
    known, fresh = clusters
    version = make_version()
    known.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ADOPTED}})
    with following(known):
        same(known)
        turn_tenant(known, access)
        sent = [
            turn(known, make_claim(access, version, namespace=place, name="sent"))
            for place in (MADE, ADOPTED)
        ]
    assert {claim.state for claim in sent} == {State.APPLIED}
    assert objects(known) == {claim.public_id for claim in sent}
    waiting, homeless = (
        make_claim(access, version, namespace=place, name="waiting") for place in (MADE, ADOPTED)
    )
    before = ClusterState.objects.get().identity

    with following(fresh):
        same(fresh)
        assert ClusterState.objects.get().identity != before
        assert not Observed.objects.filter(kind="Namespace", name=ADOPTED).exists()
        turn_tenant(fresh, access)
        standing = {row.namespace.name: row for row in NamespaceStanding.objects.all()}
        home = fresh.get(Ref("Namespace", MADE)) or {}
        assert home["metadata"]["labels"]["berth.dev/tenant"] == access.tenant.slug
        assert fresh.get(Ref("ResourceQuota", "berth", MADE)) is not None
        assert standing[ADOPTED].code == "NAMESPACE_MISSING"
        assert fresh.get(Ref("Namespace", ADOPTED)) is None

        until(lambda: Observed.objects.filter(kind="Namespace", name=MADE).exists())
        for claim in sent:
            assert (turn(fresh, claim).state, claim.code) == (State.RELEASED, "DELETED_OUTSIDE")
        assert turn(fresh, waiting).state == State.APPLIED
        assert (turn(fresh, homeless).state, homeless.code) == (State.HELD, "NAMESPACE_MISSING")
        assert objects(fresh) == {waiting.public_id}, "nothing is sent again by itself"

        fresh.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ADOPTED}})
        turn_tenant(fresh, access)
        assert turn(fresh, homeless).state == State.APPLIED
        assert objects(fresh) == {waiting.public_id, homeless.public_id}

    paid = BudgetLine.objects.filter(given_back_at=None).values_list("source", flat=True)
    assert set(paid) == {waiting.public_id, homeless.public_id}
    assert list(all_breaks()) == []

"""The API server's certificate is over: Berth says so, trusts nobody, goes on once it is new."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from devices.cluster import connect
from devices.cluster.gateway import Unreachable
from devices.doctor.asking import certificate
from devices.doctor.seen import Unseen
from devices.models import ClusterState
from playground.plane.components import API_SERVER, ETCD
from playground.plane.controlplane import ControlPlane
from tests.devices.following import following, listed, until

pytestmark = [pytest.mark.cluster, pytest.mark.django_db(transaction=True)]

OVER = "certificate has expired"
#: The API server looks at its certificate's file at least once a minute.
SOON = 90


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    with ControlPlane(tmp_path / "plane", components=(ETCD, API_SERVER)) as running:
        yield running


def expired(shown: x509.Certificate, authority: Path) -> bytes:
    """The same certificate as of yesterday, by the same authority."""
    key = serialization.load_pem_private_key(authority.with_suffix(".key").read_bytes(), None)
    issuer = x509.load_pem_x509_certificate(authority.read_bytes())
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(shown.subject)
        .issuer_name(issuer.subject)
        .public_key(shown.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=2))
        .not_valid_after(now - timedelta(hours=1))
    )
    for extension in shown.extensions:
        made = made.add_extension(extension.value, extension.critical)
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)  # type: ignore[arg-type]


def refused(plane: ControlPlane) -> bool:
    """Whether somebody who connects now is shown a certificate that is over."""
    try:
        connect(plane.admin_kubeconfig).list("Namespace")
    except Unreachable as error:
        return OVER in str(error)
    return False


def test_it_is_named_and_over_with_the_new_one(plane: ControlPlane) -> None:
    pair = plane.authority.server("kube-apiserver")
    good = pair.certificate.read_bytes()
    pair.certificate.write_bytes(
        expired(x509.load_pem_x509_certificate(good), plane.authority.certificate)
    )
    until(lambda: refused(plane), seconds=SOON)
    gateway = connect(plane.admin_kubeconfig)
    found = certificate(gateway)
    assert isinstance(found, Unseen) and OVER in found.why

    def state() -> ClusterState | None:
        return ClusterState.objects.first()

    with following(gateway):
        away = until(lambda: (one := state()) and one.message and one)
        assert not away.reachable and OVER in away.message
        pair.certificate.write_bytes(good)
        until(lambda: (one := state()) and one.reachable, seconds=SOON)
        until(listed)

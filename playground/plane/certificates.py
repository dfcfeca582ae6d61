"""The playground's own certificate authority: everyone gets a real certificate, all are checked."""

from __future__ import annotations

import datetime
import ipaddress
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = datetime.timedelta(days=1)
AUTHORITY_LIFE = 3650 * DAY
LEAF_LIFE = 365 * DAY
RENEW_BEFORE = 30 * DAY


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key as PEM files."""

    certificate: Path
    key: Path

    def expires_soon(self) -> bool:
        """True also where there is none yet, or only half of one after a killed run."""
        try:
            found = x509.load_pem_x509_certificate(self.certificate.read_bytes())
            serialization.load_pem_private_key(self.key.read_bytes(), None)
        except (FileNotFoundError, ValueError):
            return True
        return found.not_valid_after_utc - RENEW_BEFORE < _now()


class Authority:
    """A certificate authority in a folder; made on first use, and the same ever after."""

    def __init__(self, folder: Path, name: str):
        self.folder = folder
        self.pair = Pair(folder / "ca.crt", folder / "ca.key")
        self._name = name
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.pair.expires_soon():
            self._found()

    @property
    def certificate(self) -> Path:
        """PEM file that clients and servers check others against."""
        return self.pair.certificate

    def server(self, name: str, hosts: Sequence[str] = ()) -> Pair:
        """A server's certificate for loopback and further `hosts` (names or addresses).

        It serves as a client's certificate too: etcd's own gateway calls itself with it.
        """
        addresses: list[x509.GeneralName] = []
        for host in ("127.0.0.1", "::1", "localhost", *hosts):
            try:
                addresses.append(x509.IPAddress(ipaddress.ip_address(host)))
            except ValueError:
                addresses.append(x509.DNSName(host))
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        return self._leaf(name, _subject(name), usages, x509.SubjectAlternativeName(addresses))

    def client(self, file: str, user: str, groups: Sequence[str] = ()) -> Pair:
        """A client's certificate; Kubernetes reads the user from CN and the groups from O."""
        return self._leaf(file, _subject(user, groups), [ExtendedKeyUsageOID.CLIENT_AUTH], None)

    def _found(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _builder(_subject(self._name), _subject(self._name), key, AUTHORITY_LIFE)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(authority=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        _write_pair(self.pair, certificate, key)

    def _leaf(
        self,
        file: str,
        subject: x509.Name,
        usages: list[x509.ObjectIdentifier],
        names: x509.SubjectAlternativeName | None,
    ) -> Pair:
        pair = Pair(self.folder / f"{file}.crt", self.folder / f"{file}.key")
        if not pair.expires_soon():
            return pair
        authority = x509.load_pem_x509_certificate(self.pair.certificate.read_bytes())
        signer = serialization.load_pem_private_key(self.pair.key.read_bytes(), None)
        assert isinstance(signer, ec.EllipticCurvePrivateKey)
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(subject, authority.subject, key, LEAF_LIFE)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(authority=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), False
            )
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        _write_pair(pair, builder.sign(signer, hashes.SHA256()), key)
        return pair


def write_service_account_keys(folder: Path) -> Pair:
    """The key pair that signs ServiceAccount tokens: `certificate` is the bare public key."""
    pair = Pair(folder / "service-account.pub", folder / "service-account.key")
    if not (pair.certificate.exists() and pair.key.exists()):
        key = ec.generate_private_key(ec.SECP256R1())
        write_private(pair.key, _private_pem(key))
        write_private(
            pair.certificate,
            key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            ),
        )
    return pair


def write_private(path: Path, content: bytes) -> None:
    """Writes a file only its owner may read, whole or not at all, whichever thread it is."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    new.replace(path)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _subject(name: str, organisations: Sequence[str] = ()) -> x509.Name:
    return x509.Name(
        [
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, o) for o in organisations),
            x509.NameAttribute(NameOID.COMMON_NAME, name),
        ]
    )


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    life: datetime.timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_now() - DAY)  # clocks of virtual machines jump
        .not_valid_after(_now() + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
    )


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_encipherment=False,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _write_pair(pair: Pair, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    write_private(pair.key, _private_pem(key))
    write_private(pair.certificate, certificate.public_bytes(serialization.Encoding.PEM))

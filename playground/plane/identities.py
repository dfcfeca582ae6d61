"""Who is who in one control plane: its authorities, everybody's certificates and kubeconfigs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from playground.plane import kubeconfigs
from playground.plane.certificates import Authority, Pair, write_service_account_keys

ADMIN, ADMIN_GROUP = "playground-admin", "system:masters"
SERVICE_NAMES = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "10.0.0.1",
)


class Identities:
    """Certificates and kubeconfigs under one folder; all are made on first use and kept.

    etcd has an authority of its own: a person's certificate opens the API server, never etcd.
    """

    def __init__(self, folder: Path):
        self._certs = folder / "certs"
        self._kubeconfigs = folder / "kubeconfigs"

    @cached_property
    def authority(self) -> Authority:
        return Authority(self._certs, "berth-playground")

    @cached_property
    def etcd_authority(self) -> Authority:
        return Authority(self._certs / "etcd", "berth-playground-etcd")

    @cached_property
    def server(self) -> Pair:
        """API server, scheduler and controller-manager, all on loopback."""
        return self.authority.server("kube-apiserver", SERVICE_NAMES)

    @cached_property
    def etcd_server(self) -> Pair:
        return self.etcd_authority.server("etcd")

    @cached_property
    def etcd_client(self) -> Pair:
        return self.etcd_authority.client("kube-apiserver", "kube-apiserver")

    @cached_property
    def front_proxy_authority(self) -> Authority:
        """Of aggregated API servers. There are none, but the components ask for its certificate."""
        return Authority(self._certs / "front-proxy", "berth-playground-front-proxy")

    @cached_property
    def kubelet_client(self) -> Pair:
        """How the API server shows itself to kubelets."""
        return self.authority.client(
            "kubelet-client", "kube-apiserver-kubelet-client", [ADMIN_GROUP]
        )

    @cached_property
    def service_account(self) -> Pair:
        """Signs ServiceAccount tokens; `certificate` is the bare public key."""
        return write_service_account_keys(self._certs)

    @cached_property
    def admin(self) -> Pair:
        return self.authority.client(
            kubeconfigs.file_name(ADMIN, ADMIN_GROUP), ADMIN, [ADMIN_GROUP]
        )

    def certificate_kubeconfig(
        self, user: str, groups: Sequence[str], *, server: str, own_address: bool
    ) -> Path:
        """Kubeconfig with a client certificate; with `own_address` the server is in its name."""
        name = kubeconfigs.file_name(user, *groups)
        return kubeconfigs.write(
            self._path(kubeconfigs.file_name(name, server) if own_address else name),
            server=server,
            ca_file=self.authority.certificate,
            user=user,
            client=self.authority.client(name, user, groups),
        )

    def token_kubeconfig(
        self,
        namespace: str,
        name: str,
        token: str,
        bound_to: Mapping[str, str],
        *,
        server: str,
        own_address: bool,
    ) -> Path:
        """Kubeconfig of a ServiceAccount; one file for each thing its token is bound to."""
        user = f"system:serviceaccount:{namespace}:{name}"
        rest = [f"{key}={value}" for key, value in sorted(bound_to.items())]
        return kubeconfigs.write(
            self._path(kubeconfigs.file_name(user, *rest, *([server] if own_address else []))),
            server=server,
            ca_file=self.authority.certificate,
            user=user,
            token=token,
            namespace=namespace,
        )

    def component_path(self, name: str) -> Path:
        """Where the kubeconfig of a component of the control plane is."""
        return self._path(name)

    def write_component(self, name: str, server: str) -> None:
        """The kubeconfig of scheduler or controller-manager, `system:<name>`."""
        kubeconfigs.write(
            self._path(name),
            server=server,
            ca_file=self.authority.certificate,
            user=f"system:{name}",
            client=self.authority.client(name, f"system:{name}"),
        )

    def move(self, old: str, new: str) -> None:
        """The API server has a new address: so have all kubeconfigs that pointed to the old one."""
        kubeconfigs.move(self._kubeconfigs, old, new)

    def _path(self, name: str) -> Path:
        return self._kubeconfigs / f"{name}.kubeconfig"

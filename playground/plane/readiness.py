"""When a control plane is ready: its parts say so, and what Pods and controllers need is there."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator

from playground.errors import PlaygroundError
from playground.plane.components import (
    API_SERVER,
    CONTROLLER_MANAGER,
    ETCD,
    PROXY,
    SCHEDULER,
    Layout,
    Tuning,
)
from playground.plane.https import Answer, ask, words
from playground.running.processes import Program

READY_WITHIN = 120.0  # seconds; 3 to 5 on two idle cores, 15 beside a build
CLAIM_CONTROLLER = "resource-claim-controller"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
# Each component's port and the path that tells whether it is ready.
CHECKS = {
    ETCD: (ETCD, "/health"),
    API_SERVER: (API_SERVER, "/readyz"),
    SCHEDULER: (SCHEDULER, "/readyz"),
    CONTROLLER_MANAGER: (CONTROLLER_MANAGER, "/healthz"),
    PROXY: (PROXY, "/readyz"),
}


def wait_until_ready(name: str, program: Program, layout: Layout) -> None:
    """Returns when the component says that it is ready.

    Raises `PlaygroundError` with the end of its log when it ends instead, or takes too long.
    """
    port, path = CHECKS[name]
    identities, of_etcd = layout.identities, name == ETCD
    authority = identities.etcd_authority if of_etcd else identities.authority
    client = identities.etcd_client if of_etcd else None
    answer = Answer(0, b"")
    for _ in _tries(READY_WITHIN):
        if program.running() is None:
            raise PlaygroundError(f"{name} ended while it started:\n{program.last_words()}")
        answer = ask(
            layout.url(port) + path, ca_file=authority.certificate, client=client, timeout=5
        )
        if answer.status == 200:
            return
    raise PlaygroundError(
        f"{name} is not ready after {READY_WITHIN:.0f} s: {words(answer)}\n{program.last_words()}"
    )


def wait_for_default_objects(
    ask_as_admin: Callable[[str], Answer], components: Collection[str], tuning: Tuning
) -> None:
    """Default rights and ServiceAccounts come seconds after /readyz; Pods need them.

    Raises `PlaygroundError` naming what is still missing.
    """
    if API_SERVER not in components:
        return
    wanted = [f"{RBAC}/clusterroles/cluster-admin", "/api/v1/namespaces/kube-node-lease"]
    if CONTROLLER_MANAGER in components:
        wanted.append("/api/v1/namespaces/default/serviceaccounts/default")
        if tuning.makes_claims:
            wanted.append(f"{RBAC}/clusterrolebindings/system:controller:{CLAIM_CONTROLLER}")
            wanted.append(f"/api/v1/namespaces/kube-system/serviceaccounts/{CLAIM_CONTROLLER}")
    for _ in _tries(READY_WITHIN):
        wanted = [path for path in wanted if ask_as_admin(path).status != 200]
        if not wanted:
            return
    raise PlaygroundError(f"Not there {READY_WITHIN:.0f} s after the start: {', '.join(wanted)}.")


def _tries(seconds: float, pause: float = 0.05) -> Iterator[None]:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        yield
        time.sleep(pause)

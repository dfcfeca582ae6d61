"""ServiceAccount tokens by TokenRequest, as kubelets ask for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from playground.errors import PlaygroundError
from playground.plane.https import Answer, words


def request_token(
    ask_as_admin: Callable[..., Answer],
    namespace: str,
    service_account: str,
    *,
    bound_to: Mapping[str, str],
    seconds: int,
) -> str:
    """A token of an existing ServiceAccount that dies with the object it is bound to, if any.

    `bound_to` is `{kind, name, uid}` of a Pod, Node or Secret, or empty. Raises `PlaygroundError`
    with the API server's own words where it refuses.
    """
    spec: dict[str, Any] = {"expirationSeconds": seconds}
    if bound_to:
        spec["boundObjectRef"] = {"apiVersion": "v1", **bound_to}
    account = f"{quote(namespace)}/serviceaccounts/{quote(service_account)}"
    answer = ask_as_admin(
        f"/api/v1/namespaces/{account}/token",
        method="POST",
        body={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec},
    )
    if answer.status != 201:
        raise PlaygroundError(
            f"No token for ServiceAccount {namespace}/{service_account}: {words(answer)}"
        )
    return str(answer.json()["status"]["token"])

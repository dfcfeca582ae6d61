"""Requests to one API server over the official client's configuration; the only importer of it.

Takes from the client what is hard to get right (kubeconfig, exec plugins, the in-cluster account,
proxies, TLS) and nothing else: no typed models, no retries, own timeouts, bytes in and out.
Thread-safe; not to be carried over a fork (`connect` sees to that).
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import urllib3
import yaml
from kubernetes import client, config

from devices.cluster import answers, witness
from devices.cluster.decoding import dumps
from devices.cluster.gateway import Unreachable
from devices.cluster.watch import LineWatch

JSON = "application/json"
CONNECT_SECONDS = 5.0
READ_SECONDS = 30.0
# The API server sends a bookmark about every minute (bookmarkFrequency of its watch cache), so a
# watch that is silent for longer may be dead though its connection looks alive: it is ended in
# order, and the reader opens the next. That is no sign of trouble: there is no bookmark where
# nothing of the kind happened since the watch was opened, nor for Events, which are not cached.
WATCH_SILENCE_SECONDS = 90.0
# A token in a file is rotated long before it expires (the kubelet does at 80 % of its life).
TOKEN_FILE_SECONDS = 60.0
# What a dead or closed connection raises; the last two when another thread hangs up in mid-read.
BROKEN = (urllib3.exceptions.HTTPError, OSError, ValueError, AttributeError)
ENDED = RuntimeError  # urllib3: "connection has already been released to the pool"


class _Session:
    """One reading of the configuration and the connections made with it."""

    def __init__(self, kubeconfig: str):
        self._kubeconfig = kubeconfig
        self._stamp = _stamp(kubeconfig)
        self._read_at = time.monotonic()
        self._lock = threading.Lock()
        self.settings = client.Configuration()
        try:
            if kubeconfig:
                self._token_file = "tokenFile" in Path(kubeconfig).read_text()
                config.load_kube_config(  # type: ignore[no-untyped-call]
                    kubeconfig, client_configuration=self.settings, persist_config=False
                )
            else:
                self._token_file = False  # the client's own hook reads the account's token again
                config.load_incluster_config(  # type: ignore[no-untyped-call]
                    client_configuration=self.settings
                )
        except (config.ConfigException, OSError, yaml.YAMLError, KeyError, TypeError) as error:
            where = kubeconfig or "the in-cluster account"
            raise Unreachable(f"{where} cannot be read: {error}", doing="connect") from error
        self.settings.retries = 0
        self.settings.connection_pool_maxsize = 64
        self.settings.socket_options = _socket_options()
        self.pool = client.rest.RESTClientObject(self.settings).pool_manager

    def stale(self) -> bool:
        """True when the kubeconfig was replaced, or names a token file and is a minute old."""
        if self._token_file and time.monotonic() - self._read_at > TOKEN_FILE_SECONDS:
            return True
        return _stamp(self._kubeconfig) != self._stamp

    def headers(self) -> dict[str, str]:
        with self._lock:  # the hook may run an exec plugin: once, not once a thread
            auth = self.settings.auth_settings().get("BearerToken")
        token = auth["value"] if auth else None
        return {"Authorization": str(token)} if token else {}


class Transport:
    """Sends requests with the credentials of a kubeconfig, or (empty) of the Pod's own account.

    Raises the ClusterError that a failed answer is; Unreachable where there is none, or none
    within `connect_seconds` and, between two pieces of it, `read_seconds`. A watch that is silent
    for `silence_seconds` ends. `acting_as` is the user as which everything is sent (impersonation),
    where that is another one than the credentials are of.
    """

    def __init__(
        self,
        kubeconfig: str = "",
        *,
        connect_seconds: float = CONNECT_SECONDS,
        read_seconds: float = READ_SECONDS,
        silence_seconds: float = WATCH_SILENCE_SECONDS,
        acting_as: str = "",
    ):
        self._kubeconfig = kubeconfig
        self._acting_as = {"Impersonate-User": acting_as} if acting_as else {}
        self._silence_seconds = silence_seconds
        self._connect_seconds = connect_seconds
        self._read_seconds = read_seconds
        self._session: _Session | None = None
        self._lock = threading.Lock()

    def send(self, method: str, path: str, *, doing: str, **request: Any) -> bytes:
        """The body of the answer; takes what `_open` takes."""
        return _read(self._open(method, path, doing=doing, **request), doing)

    def lines(self, path: str, *, query: Mapping[str, str], doing: str) -> LineWatch:
        """A watch; silence for longer than the server's bookmarks are apart ends it."""
        response = self._open(
            "GET", path, query=query, read_seconds=self._silence_seconds, doing=doing
        )
        return LineWatch(_chunks(response, doing), lambda: _hang_up(response), doing=doing)

    def certificate_ends(self) -> datetime:
        """When the server's certificate is over, by a connection that trusts what we trust."""
        doing = "read the API server's certificate"
        settings = self._connected().settings
        address = urlsplit(settings.host)
        trust = ssl.create_default_context(cafile=settings.ssl_ca_cert)
        where = (address.hostname or "", address.port or 443)
        try:
            with (
                socket.create_connection(where, timeout=self._connect_seconds) as plain,
                trust.wrap_socket(plain, server_hostname=where[0]) as told,
            ):
                shown = told.getpeercert() or {}
        except (OSError, ValueError) as error:
            raise Unreachable(str(error), doing=doing) from error
        return datetime.fromtimestamp(ssl.cert_time_to_seconds(str(shown["notAfter"])), tz=UTC)

    def _open(
        self,
        method: str,
        path: str,
        *,
        doing: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
        accept: str = JSON,
        tested: bool = False,
        read_seconds: float | None = None,
    ) -> urllib3.BaseHTTPResponse:
        """One request, and once more with fresh credentials after a 401; the body is unread.

        `query`: empty values are left out. `body`: anything JSON. `doing` names the request in
        errors. `tested`: see `answers.failure`.
        """
        asked = urlencode({key: value for key, value in (query or {}).items() if value})
        for anew in (False, True):
            session = self._connected(anew=anew)
            headers = {"Accept": accept, "User-Agent": "berth"}
            headers |= {**session.headers(), **self._acting_as}
            if body is not None:
                headers["Content-Type"] = content_type
            began = time.monotonic()
            try:
                response = session.pool.request(
                    method,
                    f"{session.settings.host}{path}{'?' if asked else ''}{asked}",
                    body=None if body is None else dumps(body),
                    headers=headers,
                    timeout=urllib3.Timeout(
                        connect=self._connect_seconds, read=read_seconds or self._read_seconds
                    ),
                    preload_content=False,
                    retries=False,
                    redirect=False,
                )
            except (urllib3.exceptions.HTTPError, OSError) as error:
                witness.tell(method, path, 0, time.monotonic() - began)
                raise Unreachable(str(error), doing=doing) from error
            witness.tell(method, path, response.status, time.monotonic() - began)
            if 200 <= response.status < 300:
                return response
            answer = _read(response, doing)
            if response.status != 401:
                break
        raise answers.failure(
            response.status, answer, doing=doing, headers=response.headers, tested=tested
        )

    def _connected(self, *, anew: bool = False) -> _Session:
        """The session, made anew when the credentials on disk have changed or were refused."""
        with self._lock:
            if self._session is None or anew or self._session.stale():
                self._session = _Session(self._kubeconfig)
            return self._session


def _stamp(kubeconfig: str) -> tuple[int, int]:
    try:
        found = Path(kubeconfig).stat()
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_ino)


def _socket_options() -> list[tuple[int, int, int]]:
    """Notice within half a minute that the other side has vanished without saying so."""
    options = [
        (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    ]
    for name, value in (
        ("TCP_KEEPIDLE", 10),
        ("TCP_KEEPINTVL", 5),
        ("TCP_KEEPCNT", 3),
        ("TCP_USER_TIMEOUT", 25_000),
    ):
        if hasattr(socket, name):  # not all of them outside Linux
            options.append((socket.IPPROTO_TCP, getattr(socket, name), value))
    return options


def _read(response: urllib3.BaseHTTPResponse, doing: str) -> bytes:
    try:
        return response.read()
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise Unreachable(f"the answer broke off: {error}", doing=doing) from error
    finally:
        response.release_conn()


def _chunks(response: urllib3.BaseHTTPResponse, doing: str) -> Iterator[bytes]:
    try:
        yield from response.stream(65536)
    except urllib3.exceptions.ReadTimeoutError:
        return
    except BROKEN as error:
        raise Unreachable(f"the watch was cut: {error}", doing=doing) from error


def _hang_up(response: urllib3.BaseHTTPResponse) -> None:
    """Ends a watch, also one that another thread is reading."""
    with contextlib.suppress(*BROKEN, ENDED):
        response.shutdown()
    response.close()

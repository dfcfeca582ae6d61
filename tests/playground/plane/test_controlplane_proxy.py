"""What the proxy in front of the API server does to a client's connection, fault by fault."""

from __future__ import annotations

import contextlib
import http.client
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from playground.errors import PlaygroundError
from playground.plane.components import API_SERVER, COMPONENTS, PROXY
from playground.plane.controlplane import ControlPlane
from playground.plane.https import Answer, ask
from playground.plane.proxy import Fault, Proxy
from tests.playground.planes import NEWEST, built

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def proxy(plane_137: ControlPlane) -> Iterator[Proxy]:
    target = int(plane_137.url.rpartition(":")[2])
    with Proxy(target, plane_137.authority.server("proxy")) as proxy:
        yield proxy


@pytest.fixture(autouse=True)
def mended(proxy: Proxy) -> Iterator[None]:
    yield
    proxy.mend()


def get(proxy: Proxy, plane: ControlPlane, path: str = "/version", timeout: float = 5) -> Answer:
    person = plane.authority.client("proxy-admin", "ann", ["system:masters"])
    return ask(proxy.url + path, ca_file=plane.ca_file, client=person, timeout=timeout)


def connected(proxy: Proxy, plane: ControlPlane) -> http.client.HTTPSConnection:
    """A connection that stays open, as a client's pool holds it."""
    context = ssl.create_default_context(cafile=str(plane.ca_file))
    person = plane.authority.client("proxy-admin", "ann", ["system:masters"])
    context.load_cert_chain(person.certificate, person.key)
    return http.client.HTTPSConnection("127.0.0.1", proxy.port, timeout=5, context=context)


def test_without_a_fault_it_is_not_there(proxy: Proxy, plane_137: ControlPlane) -> None:
    answer = get(proxy, plane_137, "/api/v1/namespaces")
    assert answer.status == 200
    assert answer.json()["kind"] == "NamespaceList"


@pytest.mark.parametrize(
    ("word", "status", "part_of_body"),
    [
        pytest.param("429", 429, b'"reason": "TooManyRequests"', id="too many requests"),
        pytest.param("500", 500, b'"reason": "InternalError"', id="an error of the API server"),
        pytest.param("html", 200, b"<html>", id="a page that says 200"),
        pytest.param("html-404", 404, b"<html>", id="a page of somebody else's"),
        pytest.param("html-502", 502, b"<html>", id="a load balancer's page"),
    ],
)
def test_it_answers_in_the_api_servers_place(
    proxy: Proxy, plane_137: ControlPlane, word: str, status: int, part_of_body: bytes
) -> None:
    proxy.set(Fault(answer=word))
    answer = get(proxy, plane_137)
    assert answer.status == status
    assert part_of_body in answer.body
    proxy.mend()
    assert get(proxy, plane_137).json()["gitVersion"] == f"v{NEWEST}"


def test_a_posted_body_is_read_before_the_answer(proxy: Proxy, plane_137: ControlPlane) -> None:
    proxy.set(Fault(answer="429"))
    big = {"text": "x" * 1_000_000}
    answer = ask(
        proxy.url + "/api/v1/namespaces", ca_file=plane_137.ca_file, method="POST", body=big
    )
    assert answer.status == 429


def test_refused_is_refused_and_comes_back_on_the_same_port(
    proxy: Proxy, plane_137: ControlPlane
) -> None:
    proxy.set(Fault(refuse=True))
    answer = get(proxy, plane_137)
    assert (answer.status, b"refused" in answer.body) == (0, True)
    proxy.mend()
    assert get(proxy, plane_137).status == 200


def test_a_stalled_connection_says_nothing_and_goes_on_when_mended(
    proxy: Proxy, plane_137: ControlPlane
) -> None:
    connection = connected(proxy, plane_137)
    connection.request("GET", "/version")
    connection.getresponse().read()
    proxy.set(Fault(stall=True))
    answer = get(proxy, plane_137, timeout=0.5)
    assert (answer.status, b"timed out" in answer.body) == (0, True)
    connection.request("GET", "/version")
    proxy.mend()
    assert connection.getresponse().status == 200
    connection.close()


def test_delay_makes_answers_late(proxy: Proxy, plane_137: ControlPlane) -> None:
    proxy.set(Fault(delay=0.3))
    begun = time.monotonic()
    assert get(proxy, plane_137).status == 200
    assert time.monotonic() - begun > 0.6, "each way is slower"


def test_a_watch_is_cut_in_the_middle_of_a_line(proxy: Proxy, plane_137: ControlPlane) -> None:
    connection = connected(proxy, plane_137)
    connection.request("GET", "/api/v1/namespaces?watch=true")
    stream = connection.getresponse()
    assert stream.readline().endswith(b"\n")
    proxy.set(Fault(cut_after=60_000))
    long = {"name": f"cut-{time.time_ns()}", "annotations": {"long": "y" * 100_000}}
    made = plane_137.ask("/api/v1/namespaces", method="POST", body={"metadata": long})
    assert made.status == 201
    rest = b""
    with (
        contextlib.closing(connection),
        contextlib.closing(stream),
        contextlib.suppress(http.client.HTTPException, OSError),  # however TLS takes the cut
    ):
        while piece := stream.read1(100_000):
            rest += piece
    assert len(rest) > 10_000
    assert not rest.endswith(b"\n")


def test_all_open_connections_are_cut_once(proxy: Proxy, plane_137: ControlPlane) -> None:
    connection = connected(proxy, plane_137)
    connection.request("GET", "/version")
    connection.getresponse().read()
    proxy.cut()
    with pytest.raises((http.client.HTTPException, OSError)):
        connection.request("GET", "/version")
        connection.getresponse()
    connection.close()
    assert get(proxy, plane_137).status == 200


def test_an_unknown_answer_is_refused_by_name() -> None:
    with pytest.raises(PlaygroundError, match="No such answer: 418; there are 429, 500"):
        Fault(answer="418")


def test_a_proxy_of_its_own_follows_the_control_planes_faults(tmp_path: Path) -> None:
    parts = (*COMPONENTS[:2], PROXY)
    with ControlPlane(tmp_path, built(NEWEST), components=parts) as plane:
        kubeconfig = plane.kubeconfig("ann", server=plane.proxy_url)
        assert plane.proxy_url in kubeconfig.read_text()

        def status_within(wanted: int, seconds: float) -> int:
            until = time.monotonic() + seconds
            found = -1
            while found != wanted and time.monotonic() < until:
                found = ask(plane.proxy_url + "/version", ca_file=plane.ca_file).status
            return found

        assert status_within(200, 1) == 200
        plane.set_fault(Fault(answer="500"))
        assert status_within(500, 2) == 500
        plane.set_fault(Fault())
        assert status_within(200, 2) == 200
        plane.stop_component(API_SERVER)
        assert status_within(0, 2) == 0
        pids = plane.pids()
    assert PROXY in pids
    assert plane.pids() == {}

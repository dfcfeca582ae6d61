"""What the command line does when the other side is away, busy, or somewhere else.

A real server on this machine that says what a test tells it to, over real sockets.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from berthctl.config import Config
from berthctl.outcomes import PERMANENT, RETRYABLE, Failure
from berthctl.service import TRIES, Service

BUSY = (503, {"code": "CLUSTER_NOT_SEEN", "detail": "Not seen."}, {})


@dataclass
class Server:
    """Answers in their order, the last one for ever; `asked` is what came."""

    answers: list[tuple[int, Any, dict[str, str]]] = field(default_factory=list)
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    paused: list[float] = field(default_factory=list)
    port: int = 0

    def service(self) -> Service:
        config = Config(f"http://127.0.0.1:{self.port}", "tidewater", "berth_a_b")
        return Service(config, pause=self.paused.append)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()

    class Handler(BaseHTTPRequestHandler):
        def _said(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            self.rfile.read(length)
            made.asked.append((self.command, self.path, dict(self.headers)))
            status, body, headers = made.answers.pop(0) if made.answers[1:] else made.answers[0]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        do_GET = do_POST = do_PUT = _said

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as listening:
        made.port = listening.server_port
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        listening.shutdown()
        thread.join()


def test_a_change_is_tried_again_under_the_same_key(server: Server) -> None:
    server.answers = [BUSY, BUSY, (201, {"id": "k1"}, {})]
    assert server.service().act("POST", "claims", {"name": "a"}).body == {"id": "k1"}
    keys = {headers["Idempotency-Key"] for _, _, headers in server.asked}
    assert (len(server.asked), len(keys)) == (3, 1)
    assert server.paused == [0.5, 1.0]


def test_two_changes_have_two_keys(server: Server) -> None:
    server.answers = [(201, {}, {})]
    service = server.service()
    service.act("POST", "claims")
    service.act("POST", "claims")
    assert len({headers["Idempotency-Key"] for _, _, headers in server.asked}) == 2


def test_the_server_says_how_long_to_wait(server: Server) -> None:
    server.answers = [(429, {"code": "TOO_MANY_REQUESTS"}, {"Retry-After": "7"}), (200, {}, {})]
    server.service().get("claims")
    assert server.paused == [7.0]


def test_it_gives_up_and_says_that_later_may_be_better(server: Server) -> None:
    server.answers = [BUSY]
    with pytest.raises(Failure, match="Not seen") as caught:
        server.service().get("claims")
    assert caught.value.exit_code == RETRYABLE
    assert len(server.asked) == TRIES


def test_a_refusal_is_not_tried_again(server: Server) -> None:
    fields = {"name": "Too long."}
    problem = {"code": "INVALID", "detail": "No.", "facts": {"fields": fields}, "request_id": "r1"}
    server.answers = [(422, problem, {})]
    with pytest.raises(Failure) as caught:
        server.service().act("POST", "claims")
    assert caught.value.exit_code == PERMANENT
    assert caught.value.lines() == [
        "berth: No. (INVALID)",
        "  name: Too long.",
        "  → Mend the fields that are named above and try again.",
        "  request r1",
    ]
    assert len(server.asked) == 1


def test_a_token_does_not_follow_a_redirect(server: Server) -> None:
    server.answers = [(302, {}, {"Location": "http://127.0.0.1:1/elsewhere"})]
    with pytest.raises(Failure, match=r"sends us to http://127\.0\.0\.1:1/elsewhere"):
        server.service().get("claims")
    assert len(server.asked) == 1


def test_nobody_at_home_is_said_with_what_to_look_at() -> None:
    service = Service(Config("http://127.0.0.1:1", "a", "b"), pause=lambda seconds: None)
    with pytest.raises(Failure, match="does not answer") as caught:
        service.get("claims")
    assert caught.value.exit_code == RETRYABLE
    assert caught.value.remedy


def test_a_token_that_must_rehearse_is_given_its_dry_run(server: Server) -> None:
    server.answers = [
        (428, {"code": "DRY_RUN_FIRST", "detail": "First."}, {}),
        (201, {}, {"Berth-Confirm": "signed"}),
        (201, {"id": "k1"}, {}),
    ]
    assert server.service().act("POST", "claims", {}).body == {"id": "k1"}
    (_, first, _), (_, tried, _), (_, last, headers) = server.asked
    assert tried == f"{first}?dry_run=true"
    assert (last, headers["Berth-Confirm"]) == (first, "signed")


def test_lists_are_read_to_their_end(server: Server) -> None:
    then = "http://berth/api/v1/tenants/tidewater/claims?cursor=c1&limit=200"
    server.answers = [
        (200, {"next": then, "results": [1, 2]}, {}),
        (200, {"next": None, "results": [3]}, {}),
    ]
    assert list(server.service().every("claims", state="open")) == [1, 2, 3]
    assert [path.partition("?")[2] for _, path, _ in server.asked] == [
        "limit=200&state=open",
        "cursor=c1&limit=200",
    ]

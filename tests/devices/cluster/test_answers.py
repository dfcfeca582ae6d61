"""Which ClusterError an answer is, by the API server's own words."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from devices.cluster.answers import a_line, a_list, an_object, failure
from devices.cluster.gateway import (
    Change,
    Conflict,
    Expired,
    Forbidden,
    Missing,
    NotServed,
    Rejected,
    Unreachable,
)

ROOT = Path(__file__).parents[3]


def a_status(code, reason, message, **details):
    return json.dumps(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "message": message,
            "reason": reason,
            "details": details,
            "code": code,
        }
    ).encode()


NO_RIGHT = (
    'pods is forbidden: User "system:serviceaccount:berth-system:watch" cannot list resource '
    '"pods" in API group "" at the cluster scope'
)


@pytest.mark.parametrize(
    "code, body, kind, retry",
    [
        pytest.param(
            403, a_status(403, "Forbidden", NO_RIGHT), Forbidden, False, id="a right is missing"
        ),
        pytest.param(
            403,
            a_status(403, "Forbidden", 'forbidden: User "x" cannot get path "/metrics"'),
            Forbidden,
            False,
            id="a right to a path is missing",
        ),
        pytest.param(
            401, a_status(401, "Unauthorized", "Unauthorized"), Forbidden, False, id="401"
        ),
        pytest.param(
            403,
            a_status(403, "Forbidden", 'resourceclaims "b" is forbidden: exceeded quota: devices'),
            Rejected,
            False,
            id="quota is no missing right",
        ),
        pytest.param(
            403,
            a_status(
                403,
                "Forbidden",
                "resourceclaims \"b\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: "
                'User "x" cannot use resource "big"',
            ),
            Rejected,
            False,
            id="a policy that talks like the authorizer is still a policy",
        ),
        pytest.param(
            422, a_status(422, "Invalid", "spec: Invalid value"), Rejected, False, id="validation"
        ),
        pytest.param(
            400, a_status(400, "BadRequest", 'unknown field "spec.x"'), Rejected, False, id="field"
        ),
        pytest.param(
            404,
            a_status(404, "NotFound", 'namespaces "x" not found', name="x", kind="namespaces"),
            Missing,
            False,
            id="something is not there",
        ),
        pytest.param(404, b"404 page not found\n", Unreachable, True, id="somebody's 404"),
        pytest.param(404, b"<html>Not Found</html>", Unreachable, True, id="a proxy's 404"),
        pytest.param(
            404,
            a_status(404, "NotFound", "the server could not find the requested resource"),
            NotServed,
            False,
            id="the kind is not there",
        ),
        pytest.param(
            409, a_status(409, "Conflict", "the object has been modified"), Conflict, True, id="409"
        ),
        pytest.param(
            409, a_status(409, "AlreadyExists", "exists already"), Conflict, True, id="exists"
        ),
        pytest.param(
            410, a_status(410, "Expired", "too old resource version"), Expired, True, id="410"
        ),
        pytest.param(
            429, a_status(429, "TooManyRequests", "slow down"), Unreachable, True, id="overload"
        ),
        pytest.param(
            500,
            a_status(500, "InternalError", "etcdserver: leader changed"),
            Unreachable,
            True,
            id="500",
        ),
        pytest.param(
            500,
            a_status(
                500, "", "failed to create typed patch object (t/a): .spec.typo: not declared"
            ),
            Rejected,
            False,
            id="an unknown field in an apply",
        ),
        pytest.param(502, b"<html>Bad Gateway</html>", Unreachable, True, id="a proxy's page"),
        pytest.param(403, b"<html>Sign in</html>", Unreachable, True, id="a proxy's 403"),
        pytest.param(302, b"", Unreachable, True, id="a redirect to a login page"),
    ],
)
def test_a_failed_status_is_an_error_of_its_kind(code, body, kind, retry):
    error = failure(code, body, doing="list Pod")
    assert type(error) is kind
    assert error.retry is retry
    assert error.status == code
    assert str(error).startswith("list Pod: ")


def test_a_json_patch_whose_test_failed_is_a_conflict_and_nothing_else_is():
    unfit = a_status(
        422, "Invalid", "the server rejected our request due to an error in our request"
    )
    invalid = a_status(
        422, "Invalid", "Node is invalid: spec", name="n1", causes=[{"field": "spec"}]
    )
    assert type(failure(422, unfit, doing="patch Node n1", tested=True)) is Conflict
    assert type(failure(422, unfit, doing="patch Node n1")) is Rejected
    assert type(failure(422, invalid, doing="patch Node n1", tested=True)) is Rejected


@pytest.mark.parametrize(
    "headers, details, seconds",
    [
        pytest.param({"Retry-After": "7"}, {}, 7.0, id="by header"),
        pytest.param({}, {"retryAfterSeconds": 3}, 3.0, id="by Status"),
        pytest.param({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, {}, None, id="by date"),
        pytest.param({}, {}, None, id="not said"),
    ],
)
def test_the_servers_wish_to_be_left_alone_is_a_fact_of_the_error(headers, details, seconds):
    body = a_status(429, "TooManyRequests", "slow down", **details)
    assert failure(429, body, doing="list Pod", headers=headers).retry_after == seconds


def test_an_apply_conflict_names_the_managers_and_their_fields():
    body = a_status(
        409,
        "Conflict",
        'Apply failed with 1 conflict: conflict with "vendor" using v1: .metadata.labels.x',
        causes=[
            {
                "reason": "FieldManagerConflict",
                "message": 'conflict with "vendor" using v1',
                "field": ".metadata.labels.x",
            }
        ],
    )
    error = failure(409, body, doing="apply Node n1")
    assert isinstance(error, Conflict)
    assert error.owners == (("vendor", ".metadata.labels.x"),)


def test_a_list_keeps_its_items_as_they_came():
    body = (
        b'{"apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"t"},"items":[{"a": 1}]}'
    )
    found = a_list(body, doing="list Pod")
    assert [bytes(item) for item in found.items or ()] == [b'{"a": 1}']
    assert (found.metadata.version, found.metadata.token, found.api_version) == ("7", "t", "v1")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"<html></html>", id="a page"),
        pytest.param(b'{"items":[{"a":1}', id="half a list"),
        pytest.param(b"[1,2]", id="another JSON value"),
    ],
)
def test_an_answer_that_is_none_is_unreachable(body):
    with pytest.raises(Unreachable):
        a_list(body, doing="list Pod")
    with pytest.raises(Unreachable):
        an_object(body, doing="get Pod x")


def test_lines_of_a_watch():
    event = a_line(b'{"type":"ADDED","object":{"a":"\\ud800"}}', doing="watch Pod")
    assert (event.change, event.raw) == (Change.ADDED, '{"a":"\ufffd"}'.encode())
    gone = b'{"type":"ERROR","object":' + a_status(410, "Expired", "too old") + b"}"
    with pytest.raises(Expired):
        a_line(gone, doing="watch Pod")
    with pytest.raises(Unreachable, match="no event"):
        a_line(b'{"type":"ADDED","obj', doing="watch Pod")
    with pytest.raises(Unreachable, match="unknown event"):
        a_line(b'{"type":"SYNCED","object":{}}', doing="watch Pod")


def test_who_only_imports_the_door_does_not_pay_for_the_client():
    """The client costs half a second and 50 MB; pages never connect."""
    script = "import sys, devices.cluster; sys.exit('kubernetes' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT).returncode == 0

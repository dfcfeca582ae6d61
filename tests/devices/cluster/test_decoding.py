"""Objects with hostile text in them are read and shown; what is no JSON is refused."""

from __future__ import annotations

import pytest

from devices.cluster.decoding import TOO_DEEP, dumps, loads, readable

DEEP = b'{"a":' + b"[" * 50_000 + b"]" * 50_000 + b',"b":"x]]"}'


@pytest.mark.parametrize(
    "raw, value",
    [
        pytest.param(b'{"a":"\\u0000"}', {"a": "\x00"}, id="a NUL is a character like others"),
        pytest.param(b'{"a":"\\ud800"}', {"a": "\ud800"}, id="half a surrogate pair is kept"),
        pytest.param(b'{"a":"\\ud83d\\ude00"}', {"a": "😀"}, id="a whole pair is one character"),
        pytest.param(b'{"a":1e999}', {"a": float("inf")}, id="a number beyond a float"),
        pytest.param(b'{"a":12345678901234567890123}', {"a": 12345678901234567890123}, id="big"),
        pytest.param(b'{"a":"\x07"}', {"a": "\x07"}, id="a control character as it is"),
        pytest.param(b'{"a":"\xff"}', {"a": "\ufffd"}, id="a byte that is no UTF-8"),
        pytest.param(
            DEEP,
            loads(b'{"a":' + b"[" * 99 + TOO_DEEP + b"]" * 99 + b',"b":"x]]"}'),
            id="what nests beyond all reason is cut off with a sentence",
        ),
    ],
)
def test_hostile_objects_are_read(raw, value):
    assert loads(raw) == value
    assert loads(dumps(loads(raw))) == loads(readable(raw))


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b'{"a":1', id="half an object"),
        pytest.param(b'{"a":' + b"[" * 5000, id="half of a deep object"),
        pytest.param(b"<html>Bad Gateway</html>", id="a page of a proxy"),
        pytest.param(b'{"a":1}{"b":2}', id="two objects"),
    ],
)
def test_what_is_no_json_is_refused(raw):
    with pytest.raises(ValueError):
        loads(raw)


def test_half_a_surrogate_pair_becomes_the_replacement_character_on_the_way_out():
    assert dumps({"a": "x\ud800y", "b": "😀"}) == '{"a":"x\ufffdy","b":"😀"}'.encode()

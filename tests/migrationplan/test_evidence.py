"""Evidence: written down when it is seen, the same bytes ever after, and only for those who may."""

from __future__ import annotations

import io
import json
import tarfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from devices.forecasts.warm import forget
from devices.models import Freeze, NodePool, Observed
from migrationplan.evidence.collecting import collect, exported
from migrationplan.evidence.sighting import LEFT_OUT, sight, without_secrets
from migrationplan.evidence.waves import collect_wave
from migrationplan.models import (
    Evidence,
    Exhibit,
    Move,
    MoveEvent,
    Plan,
    Sighting,
    Wave,
    WaveEvent,
    WaveNode,
)
from portal.audit.models import AuditLine
from portal.audit.record import record
from portal.errors import Invalid
from tenants.access import PlatformAccess
from tests.devices.demofleet import mirror
from tests.devices.pages import client_of, text
from tests.migrationplan.keeping import a_move, a_pod, a_pool, a_world, on_platform

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator() -> PlatformAccess:
    return on_platform("olga", "operator")


@pytest.fixture
def pool(operator: PlatformAccess) -> NodePool:
    forget()
    mirror(a_world())
    return a_pool(operator)


@pytest.fixture
def move(pool: NodePool, operator: PlatformAccess) -> Move:
    return a_move(pool, operator)


def collected(pool: NodePool, moves: list[Move] | None = None, **changed: Any) -> Evidence:
    now = timezone.now()
    given = {"since": now - timedelta(hours=1), "until": None, "now": now, **changed}
    since, until = given.pop("since"), given.pop("until")
    return collect(pool, moves, since, until, why="a review", request_id="request-c", **given)


def opened(evidence: Evidence) -> dict[str, bytes]:
    content = b"".join(exported(evidence))
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        return {one.name: tar.extractfile(one).read() for one in tar}  # type: ignore[union-attr]


def rows(files: dict[str, bytes], name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in files[name].splitlines()]


def test_what_the_cluster_forgets_is_in_the_bundle(pool: NodePool, move: Move) -> None:
    sight(pool, [move], why="begun", now=timezone.now())
    Observed.objects.all().delete()
    files = opened(collected(pool, [move]))
    first = json.loads(files["sightings/001.json"])
    kinds = [one["kind"] for one in first["objects"]]
    assert kinds == ["DeviceClass", "Node", "Pod", "Pod", "ResourceClaim", "ResourceSlice", "Event"]
    [event] = [one for one in first["objects"] if one["kind"] == "Event"]
    assert json.loads(files[event["file"]])["message"] == "words that the cluster forgets"
    assert json.loads(files["sightings/002.json"])["objects"] == []
    assert b"very secret" not in b"".join(files.values())


def test_the_same_bytes_whatever_happens_afterwards(
    pool: NodePool, move: Move, operator: PlatformAccess
) -> None:
    made = collected(pool, [move])
    before = b"".join(exported(made))
    Move.objects.update(step="done", ended_at=timezone.now(), why="it went on")
    MoveEvent.objects.create(
        move=move, at=timezone.now(), step="done", direction=move.direction, text="Done."
    )
    NodePool.objects.update(name="Another name", devices_per_node=9)
    Observed.objects.all().delete()
    with transaction.atomic():
        record(action="move.done", subject=f"move {move.public_id}", request_id="request-e",
               at=made.until, person=operator.user.person)  # fmt: skip
    again = Evidence.objects.get(pk=made.pk)
    assert b"".join(exported(again)) == before
    assert len(before) == made.size


def test_the_same_input_makes_the_same_bytes(pool: NodePool, move: Move) -> None:
    now = timezone.now()
    sight(pool, [move], why="begun", now=now - timedelta(minutes=2))
    span = {"since": now - timedelta(minutes=5), "until": now - timedelta(minutes=1)}
    one, other = collected(pool, [move], **span), collected(pool, [move], **span)
    assert one.digest == other.digest and one.public_id != other.public_id
    assert Sighting.objects.count() == 1, "what is over is not looked at anew"


def test_it_holds_what_was_done_and_by_whom(
    pool: NodePool, move: Move, operator: PlatformAccess
) -> None:
    with transaction.atomic():
        record(action="move.begun", subject=f"move {move.public_id}", request_id="request-e",
               at=timezone.now(), person=operator.user.person)  # fmt: skip
        record(action="claim.made", subject="somebody else's", request_id="other",
               at=timezone.now())  # fmt: skip
    Freeze.objects.create(scope="class", target=pool.device_class, reason="a bad driver",
                          frozen_by=operator.user.person, frozen_at=timezone.now(),
                          request_id="request-f")  # fmt: skip
    files = opened(collected(pool, None))
    assert [one["id"] for one in rows(files, "moves.jsonl")] == [move.public_id]
    assert [one["text"] for one in rows(files, "move-events.jsonl")] == ["Begun."]
    [line] = rows(files, "audit.jsonl")
    assert (line["action"], line["person"]) == ("move.begun", str(operator.user.person))
    assert "name" not in line and line["digest"]
    assert [one["reason"] for one in rows(files, "freezes.jsonl")] == ["a bad driver"]
    manifest = json.loads(files["MANIFEST.json"])
    assert manifest["about"]["moves"] == [move.public_id]
    assert set(manifest["files"]) == files.keys() - {"MANIFEST.json"}


def test_moves_of_another_time_are_not_in_it(pool: NodePool, move: Move) -> None:
    long_ago = timezone.now() - timedelta(days=2)
    Move.objects.update(begun_at=long_ago, ended_at=long_ago)
    assert collected(pool, None).moves == []


def test_a_span_ends_after_it_begins(pool: NodePool) -> None:
    with pytest.raises(Invalid):
        collected(pool, [], since=timezone.now() + timedelta(hours=1))


def test_nothing_that_was_kept_can_be_changed(pool: NodePool, move: Move) -> None:
    made = collected(pool, [move])
    for rows_of in (Exhibit.objects, Sighting.objects, Evidence.objects):
        with pytest.raises(DatabaseError), transaction.atomic():
            rows_of.all().delete()
    with pytest.raises(DatabaseError), transaction.atomic():
        Evidence.objects.filter(pk=made.pk).update(digest="0" * 64)


def test_an_object_that_did_not_change_is_kept_once(pool: NodePool, move: Move) -> None:
    for _ in range(3):
        sight(pool, [move], why="again", now=timezone.now())
    assert Exhibit.objects.count() == 7


def test_secrets_of_owners_stay_with_them() -> None:
    pod = a_pod("train", "c1")
    pod["spec"]["containers"][0] |= {"command": ["run", "--token=x"], "args": ["y"]}
    pod["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    quiet = without_secrets(pod)
    [container] = quiet["spec"]["containers"]
    assert container["env"] == [{"name": "TOKEN", "value": LEFT_OUT}]
    assert container["command"] == container["args"] == [LEFT_OUT]
    assert quiet["metadata"]["annotations"] == {}
    assert pod["spec"]["containers"][0]["env"][0]["value"] == "very secret", "a copy"


def test_a_wave_that_was_rolled_back_leaves_a_bundle_for_each_pool(
    pool: NodePool, move: Move, operator: PlatformAccess
) -> None:
    now, person = timezone.now(), operator.user.person
    plan = Plan.objects.create(name="Racks", made_by=person, made_at=now, request_id="request-p")
    plan.pools.add(pool)
    wave = Wave.objects.create(
        plan=plan, position=1, name="Canary", since=now, started_at=now - timedelta(hours=1)
    )
    WaveNode.objects.create(wave=wave, pool=pool, node="n1", node_uid="u-n1", position=1, move=move)
    WaveEvent.objects.create(wave=wave, at=now, phase="rolling back", text="A gate failed.")
    with transaction.atomic():
        [made] = collect_wave(wave, why="P-1, wave 1 rolled back", now=timezone.now())
    files = opened(made)
    assert made.moves == [move.public_id] and made.made_by is None
    assert [one["name"] for one in rows(files, "waves.jsonl")] == ["Canary"]
    assert [one["text"] for one in rows(files, "wave-events.jsonl")] == ["A gate failed."]
    Wave.objects.update(started_at=None)
    wave.refresh_from_db()
    assert collect_wave(wave, why="it never ran", now=timezone.now()) == []


# --- commands ---


def test_a_bundle_is_written_and_proves_itself(
    pool: NodePool, move: Move, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bundle.tar"
    since = (timezone.now() - timedelta(hours=1)).isoformat()
    call_command("exportbundle", str(file), "--pool", "a", "--since", since,
                 "--move", move.public_id)  # fmt: skip
    made = Evidence.objects.get()
    call_command("verifybundle", str(file))
    assert f"Berth recorded it as evidence {made.public_id}" in capsys.readouterr().out
    again = tmp_path / "again.tar"
    call_command("exportbundle", str(again), "--evidence", made.public_id)
    assert again.read_bytes() == file.read_bytes()


def test_one_that_was_tampered_with_is_named(pool: NodePool, move: Move, tmp_path: Path) -> None:
    made = collected(pool, [move])
    content = b"".join(exported(made))
    file = tmp_path / "bundle.tar"
    file.write_bytes(content.replace(b'"text":"Begun."', b'"text":"Ended."'))
    with pytest.raises(CommandError, match=r"move-events\.jsonl: was changed") as error:
        call_command("verifybundle", str(file))
    assert "Berth recorded no bundle with sha256:" in str(error.value)


def test_one_that_is_whole_but_not_of_berth_does_not_prove(
    pool: NodePool, move: Move, tmp_path: Path
) -> None:
    from migrationplan.evidence.bundle import packed

    file = tmp_path / "forged.tar"
    file.write_bytes(b"".join(packed({"pool": "a"}, [("moves.jsonl", b"{}\n")])))
    call_command("verifybundle", str(file), "--alone")
    with pytest.raises(CommandError, match="Berth recorded no bundle"):
        call_command("verifybundle", str(file))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param(["--evidence", "nothing"], "no evidence nothing", id="none of that name"),
        pytest.param(["--pool", "a"], "give --evidence, or --pool and --since", id="no span"),
        pytest.param(["--pool", "b", "--since", "2026-01-01T00:00Z"], "no node pool b", id="pool"),
        pytest.param(["--pool", "a", "--since", "soon"], "soon is no moment", id="a moment"),
        pytest.param(
            ["--pool", "a", "--since", "2026-01-01T00:00Z", "--move", "x"], "no move", id="a move"
        ),
    ],
)
def test_the_command_says_what_is_wrong(
    pool: NodePool, options: list[str], said: str, tmp_path: Path
) -> None:
    with pytest.raises(CommandError, match=said):
        call_command("exportbundle", str(tmp_path / "x.tar"), *options)


# --- pages and API ---


def test_the_pages_show_it_and_hand_it_out(
    pool: NodePool, move: Move, operator: PlatformAccess
) -> None:
    client = client_of(operator.user)
    page = text(client.get("/platform/evidence/"))
    assert "Nothing was collected yet" in page
    begun = (timezone.now() - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M")
    answer = client.post(
        "/platform/evidence/",
        {"pool": "a", "move": move.public_id, "since": begun, "until": "", "why": "a review"},
    )
    made = Evidence.objects.get()
    assert answer["Location"] == f"/platform/evidence/{made.public_id}/"
    assert made.digest in text(client.get(answer["Location"]))
    file = client.get(f"/platform/evidence/{made.public_id}/file/")
    assert b"".join(file.streaming_content) == b"".join(exported(made))
    assert file["Content-Type"] == "application/x-tar"
    last = AuditLine.objects.order_by("-number").first()
    assert last is not None and last.action == "evidence.downloaded"


def test_wrong_answers_stand_by_their_fields(pool: NodePool, operator: PlatformAccess) -> None:
    client = client_of(operator.user)
    asked = {"pool": "a", "move": "none", "since": "2026-11-01T10:00", "why": "a review"}
    answer = client.post("/platform/evidence/", asked)
    assert answer.status_code == 422 and "has no such move" in text(answer)
    turned = {**asked, "move": "", "until": "2026-11-01T09:00"}
    answer = client.post("/platform/evidence/", turned)
    assert answer.status_code == 422 and "Later than the beginning" in text(answer)
    assert not Evidence.objects.exists()


def test_an_approver_reads_why_and_gets_nothing(pool: NodePool, move: Move) -> None:
    made = collected(pool, [move])
    client = client_of(on_platform("pia", "approver").user)
    page = text(client.get(f"/platform/evidence/{made.public_id}/"))
    assert "to download evidence one must be" in page
    assert client.get(f"/platform/evidence/{made.public_id}/file/").status_code == 403
    assert client.post("/platform/evidence/", {}).status_code == 403


def test_pages_need_few_queries_however_much_there_is(
    pool: NodePool, move: Move, operator: PlatformAccess
) -> None:
    client = client_of(operator.user)

    def queries(path: str) -> int:
        with CaptureQueriesContext(
            connection,
        ) as seen:
            assert client.get(path).status_code == 200
        return len(seen)

    one = collected(pool, [move])
    queries("/platform/evidence/")
    before = queries("/platform/evidence/"), queries(f"/platform/evidence/{one.public_id}/")
    for _ in range(4):
        sight(pool, [move], why="again", now=timezone.now())
        many = collected(pool, [move])
    after = queries("/platform/evidence/"), queries(f"/platform/evidence/{many.public_id}/")
    assert after == before


def test_the_api_collects_once_and_hands_out_the_file(
    pool: NodePool, move: Move, operator: PlatformAccess
) -> None:
    client = client_of(operator.user)
    body = {"pool": "a", "moves": [move.public_id], "since": "2026-01-01T00:00:00Z", "why": "x"}
    path = "/api/v1/platform/evidence"

    def post(body: dict[str, Any]) -> Any:
        return client.post(
            path, body, content_type="application/json", headers={"Idempotency-Key": "k1"}
        )

    made = post(body)
    assert made.status_code == 201 and post(body).json() == made.json()
    found = client.get(f"{path}/{made.json()['id']}").json()
    assert found["sha256"] == Evidence.objects.get().digest
    file = client.get(f"{path}/{made.json()['id']}/file")
    assert len(b"".join(file.streaming_content)) == found["size"]
    assert [one["id"] for one in client.get(path).json()["results"]] == [found["id"]]

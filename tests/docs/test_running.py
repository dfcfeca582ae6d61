"""What docs say by `curl`, `berth` and Python is said to a Berth that serves the demo's people.

No worker and no cluster stand behind it: the lines that wait for one are run by
tests/journeys/test_command_line.py.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pytest_django import DjangoDbBlocker

from tests.docs.examples import ROOT, Block, blocks
from tests.portal.apiserver import a_database, serving

pytestmark = pytest.mark.django_db
#: Lines that need a worker or a cluster; the journey of the command line has them.
WAITING = re.compile(r"--wait|kubectl|^berth (wait|apply|completion)|asks for the token")
TOKENS = """
import json, django
django.setup()
from datetime import timedelta
from django.core.management import call_command
from django.utils import timezone
from tenants.access import tenant_for
from tenants.models import User
from tenants.tokens import make_token
call_command("seeddemo", json=True)
now = timezone.now()
def token(*scopes, first=False):
    return make_token(
        access=tenant_for(User.objects.get(username="plover"), "tidewater-vision"), name="docs",
        scopes=list(scopes), expires_at=now + timedelta(hours=1), now=now,
        request_id="request-0001", dry_run_first=first).text
print(json.dumps([token("read", "request"), token("read", "request", first=True), token("signal")]))
"""


@dataclass(frozen=True, slots=True)
class Told:
    """A serving Berth, tokens (one rehearses first, one tells signals), a folder to work in."""

    address: str
    token: str
    rehearsing: str
    signalling: str
    folder: Path

    def shell(self, text: str, *, token: str = "", codes: tuple[int, ...] = (0,)) -> str:
        """What the lines print. Only the address is another than in docs."""
        text = re.sub(r"https://berth\.example\.(com|org)", self.address, text)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=self.folder,
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "PYTHONPATH": str(ROOT),
                "BERTH_TOKEN": token or self.token,
                "BERTH_URL": self.address,
                "BERTH_TENANT": "tidewater-vision",
                "BERTH_CONFIG": str(self.folder / "config.json"),
            },
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode in codes, f"{text}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def told(
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Told]:
    with django_db_blocker.unblock(), a_database("docs_run") as database:
        said = subprocess.run(
            [sys.executable, "-c", TOKENS],
            cwd=ROOT,
            env={**os.environ, "DATABASE_URL": database,
                 "DJANGO_SETTINGS_MODULE": "portal.settings"},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout  # fmt: skip
        tokens = json.loads(said.splitlines()[-1])
        with serving(database) as berth:
            yield Told(berth.address, *tokens, tmp_path_factory.mktemp("docs"))


def of(file: str, language: str) -> list[Block]:
    return [one for one in blocks() if (one.file, one.language) == (file, language)]


def answers(text: str) -> list[Any]:
    """JSON documents one after the other, as curl prints them."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while at < len(text.rstrip()):
        one, at = decoder.raw_decode(text, at)
        found.append(one)
    return found


def test_the_api_guide_asks_follows_and_rehearses(told: Told) -> None:
    listing, asking, rehearsal, watch = of("docs/api.md", "sh")
    assert answers(told.shell(listing.text))[0]["results"] == []
    # No worker releases it here, and the other guide has a claim of that name.
    ask = asking.text.replace('"name": "train"', '"name": "guide"')
    made = answers(told.shell(ask))[0]
    assert (made["name"], made["state"]) == ("guide", "requested")
    assert answers(told.shell(ask))[0]["id"] == made["id"], "the same key does it once"
    again = {"template": "gpu", "namespace": "tidewater-train", "name": "again", "values": {}}
    (told.folder / "ask.json").write_text(json.dumps(again))
    tried, done = answers(told.shell(rehearsal.text, token=told.rehearsing))
    assert (tried["name"], done["state"]) == ("again", "requested")
    # curl ends with 28 where the stream still runs after that time.
    seen = told.shell(watch.text.replace("curl", "curl -s --max-time 5"), codes=(0, 28))
    assert "event: " in seen
    released = f"curl -s -X POST {told.address}/api/v1/tenants/tidewater-vision/claims/{made['id']}"
    told.shell(f'{released}/release -H "Authorization: Bearer $BERTH_TOKEN"')


def test_the_command_line_guide(told: Told) -> None:
    for block in of("docs/cli.md", "sh"):
        for line in block.text.splitlines():
            if line.startswith("berth ") and not WAITING.search(line):
                if "login" in line:
                    (told.folder / "token-file").write_text(told.token + "\n")
                line = line.replace("berth ", "python -m berthctl ", 1)
                if re.search(r"(explain|release) train", line):
                    ask = "request gpu --name train --namespace tidewater-train -v gpus=2"
                    if "explain" in line:
                        told.shell(f"python -m berthctl {ask}")
                told.shell(line)
    (told.folder / "claims").mkdir()
    (document,) = of("docs/cli.md", "yaml")
    (told.folder / "claims" / "train.yaml").write_text(document.text)
    assert "would be asked for" in told.shell("python -m berthctl apply -f claims/ --dry-run")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed_for_each_shell(told: Told, shell: str) -> None:
    assert "release" in told.shell(f"python -m berthctl completion {shell}")


def test_training_platforms_tell_as_docs_show(told: Told) -> None:
    (line,) = of("docs/training.md", "sh")
    (shown,) = of("docs/training.md", "json")
    results = answers(told.shell(line.text, token=told.signalling))[0]["results"]
    assert [set(one) for one in results] == [set(one) for one in json.loads(shown.text)["results"]]
    (program,) = of("docs/training.md", "python")
    stand_ins = "def train(step): pass\ndef save(step): pass\n"
    (told.folder / "told.py").write_text(stand_ins + program.text)
    pod = "POD_NAMESPACE=tidewater-train POD_NAME=train-0"
    told.shell(f"{pod} python told.py", token=told.signalling)

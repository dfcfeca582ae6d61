"""`berth` from signing in to a released claim, against a running Berth over the real cluster."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from devices.cluster.gateway import Ref
from tests.journeys.conftest import Demo, SignIn

pytestmark = [pytest.mark.cluster, pytest.mark.browser]
ROOT = Path(__file__).parents[2]
DOCUMENTS = """
apiVersion: berth.dev/v1
kind: Claim
metadata: {name: cli-applied, namespace: tidewater-eval}
spec: {template: gpu, values: {memory: "10", gpus: 1}, note: from a file}
---
apiVersion: berth.dev/v1
kind: Claim
metadata: {name: cli-wrong, namespace: tidewater-eval}
spec: {template: nonsense}
"""


class Shell:
    """Somebody's terminal."""

    def __init__(self, folder: Path) -> None:
        self.kept = folder / "config.json"
        self.environ = {**os.environ, "BERTH_CONFIG": str(self.kept)}

    def run(self, *words: str, stdin: str = "") -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "berthctl", *words],
            cwd=ROOT, env=self.environ, input=stdin, capture_output=True, text=True,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    def json(self, *words: str, code: int = 0, stdin: str = "") -> Any:
        ended, out, err = self.run(*words, "-o", "json", stdin=stdin)
        assert ended == code, f"{out}{err}"
        return json.loads(out)


def new_token(sign_in: SignIn) -> str:
    page = sign_in("plover")
    page.goto("/account/tokens/")
    page.get_by_label("Name").fill("command line")
    page.get_by_label("For", exact=True).select_option("tidewater-vision")
    page.get_by_label("Ask and release").check()
    page.get_by_role("button", name="Make the token").click()
    return page.locator("#new-token").inner_text().strip()


def test_from_a_token_to_a_running_pod_and_back(
    demo: Demo, sign_in: SignIn, tmp_path: Path
) -> None:
    shell = Shell(tmp_path)
    where = ("--url", demo.address, "--tenant", "tidewater-vision")
    code, _, said = shell.run("login", *where, stdin="berth_wrong_token\n")
    assert (code, "TOKEN_INVALID" in said) == (4, True), said
    assert not shell.kept.exists(), "a token that is refused is not kept"
    code, _, said = shell.run("login", *where, stdin=f"{new_token(sign_in)}\n")
    assert code == 0, said
    assert stat.S_IMODE(shell.kept.stat().st_mode) == 0o600

    ask = ("gpu", "-v", "memory=\"10\"", "-v", "gpus=1")  # fmt: skip
    assert shell.json("whatif", *ask)["outlook"]["fits"] is True
    named = ("--name", "cli-train", "--namespace", "tidewater-eval")
    assert shell.json("request", *ask, *named, "--dry-run")["state"] == "requested"
    assert all(row["name"] != "cli-train" for row in shell.json("status"))
    ready = shell.json("request", *ask, *named, "--wait", "usable", "--timeout", "60s")
    assert ready["verdict"] == "ready"
    public_id = ready["claim"]["id"]

    assert shell.json("wait", "cli-train", "--until", "running", "--timeout", "1s", code=3)
    _, text, _ = shell.run("snippet", "cli-train")
    pod = yaml.safe_load(text)
    pod["metadata"]["annotations"] = {"playground.berth.dev/run-for": "3600s"}
    demo.gateway.create(pod)
    running = shell.json("wait", "cli-train", "--until", "running", "--timeout", "60s")
    assert running["claim"]["devices"], running
    assert shell.json("status", public_id)["state"] == "in use"

    shell.json("release", "cli-train")
    demo.gateway.delete(Ref("Pod", pod["metadata"]["name"], "tidewater-eval"))
    gone = shell.json("wait", public_id, "--until", "released", "--timeout", "60s")
    assert gone["verdict"] == "ready"
    assert shell.json("wait", public_id, code=4)["verdict"] == "permanent"
    code, _, said = shell.run("release", "cli-train")
    assert (code, "No open claim is called cli-train" in said) == (4, True)


def test_files_are_applied_once_however_often(demo: Demo, sign_in: SignIn, tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.environ |= {"BERTH_URL": demo.address, "BERTH_TENANT": "tidewater-vision",
                      "BERTH_TOKEN": new_token(sign_in)}  # fmt: skip

    def did(*words: str, code: int = 4, text: str = DOCUMENTS) -> list[str]:
        return [row["did"] for row in shell.json("apply", "-f", "-", *words, code=code, stdin=text)]

    assert did("--dry-run") == ["would be asked for", "refused"]
    assert did() == ["asked for", "refused"]
    assert did() == ["unchanged", "refused"]
    one = DOCUMENTS.partition("---")[0]
    assert did(text=one.replace("from a file", "anew"), code=0) == ["changed"]
    assert did(text=one.replace("gpus: 1", "gpus: 2")) == ["refused"]
    shell.json("release", "cli-applied")

"""Headers, forms and secrets; and that the threat model promises nothing without a test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

from tests.factories import make_person, make_tenant

ROOT = Path(__file__).parents[2]
PROOFS = re.findall(
    r"\| `(tests/[\w/]+\.py)::(test_\w+)` \|", (ROOT / "docs" / "threat-model.md").read_text()
)
HEADERS = {
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def test_every_threat_names_its_test():
    text = (ROOT / "docs" / "threat-model.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert len(PROOFS) == len(rows) >= 25


@pytest.mark.parametrize(
    "file, name", [pytest.param(file, name, id=f"{file}::{name}") for file, name in PROOFS]
)
def test_the_test_that_a_threat_names_is_there(file: str, name: str):
    assert re.search(rf"^(async )?def {name}\(", (ROOT / file).read_text(), re.MULTILINE)


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/account/login/", "/no/such/place/", "/api/v1/alerts"])
def test_every_answer_carries_its_headers(client: Client, path: str):
    answer = client.get(path)
    for name, value in HEADERS.items():
        assert answer[name] == value, name
    policy = answer["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


@pytest.mark.django_db
def test_a_form_without_its_token_changes_nothing(settings: Settings):
    client = Client(enforce_csrf_checks=True)
    client.force_login(make_person("tess", make_tenant(), role="owner"))
    assert client.post("/account/tokens/", {"name": "a"}).status_code == 403
    assert settings.SESSION_COOKIE_HTTPONLY and settings.SESSION_COOKIE_SAMESITE == "Lax"


def started(**env: str) -> subprocess.CompletedProcess[str]:
    """A process that reads Berth's settings with nothing but this environment."""
    code = "from django.conf import settings; print(settings.SECRET_KEY, settings.METRICS_TOKEN)"
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "portal.settings", **env},
        capture_output=True,
        text=True,
    )


def test_without_a_key_production_does_not_start():
    done = started()
    assert done.returncode != 0
    assert "SECRET_KEY setting must not be empty" in done.stderr


def test_secrets_are_read_from_files(tmp_path: Path):
    for name in ("key", "token"):
        (tmp_path / name).write_text(f"{name}-of-a-file")
    done = started(
        SECRET_KEY_FILE=str(tmp_path / "key"), METRICS_TOKEN_FILE=str(tmp_path / "token")
    )
    assert done.stdout.split() == ["key-of-a-file", "token-of-a-file"], done.stderr

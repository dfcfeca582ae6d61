"""A client that a generator makes of the committed document works against a serving Berth."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_django import DjangoDbBlocker

from tests.portal.apiserver import a_database, filled, serving

ROOT = Path(__file__).parents[2]
GENERATOR = str(Path(sys.executable).with_name("openapi-python-client"))
#: Operations whose body or answer is no JSON; a generator leaves them out.
ASIDE = 6

pytestmark = [pytest.mark.long, pytest.mark.django_db]


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("client")
    (folder / "options.yaml").write_text("post_hooks: []\n")
    done = subprocess.run(
        [GENERATOR, "generate", "--path", str(ROOT / "docs/openapi.json"), "--meta", "none",
         "--config", str(folder / "options.yaml"), "--output-path", str(folder / "berthclient")],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("Endpoint will not be generated") <= ASIDE, done.stdout
    sys.path.insert(0, str(folder))
    yield "berthclient"
    sys.path.remove(str(folder))


def test_it_asks_lists_and_releases(
    generated: str, django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> None:
    def part(name: str) -> Any:
        return importlib.import_module(f"{generated}.{name}")

    models = part("models")
    with django_db_blocker.unblock(), a_database("api_client") as database:
        token = filled(database)["tokens"]["tenant"]
        with (
            serving(database) as berth,
            part("client").AuthenticatedClient(berth.address, token) as client,
        ):
            ask = models.ClaimInRequest(
                template="gpu", namespace="tidewater-train", name="generated"
            )
            made = part("api.claims.ask_for_devices").sync("tidewater", client=client, body=ask)
            assert (made.name, made.state.value) == ("generated", "requested")
            page = part("api.claims.list_claims").sync("tidewater", client=client, q="generated")
            assert [one.id for one in page.results] == [made.id]
            gone = part("api.claims.release_claim").sync("tidewater", made.id, client=client)
            assert gone.released_at is not None
            said = part("api.claims.get_claim").sync("tidewater", "nothing", client=client)
            assert (said.status, said.code) == (404, "NOT_FOUND")

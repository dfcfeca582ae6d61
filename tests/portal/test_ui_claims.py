"""What an open page of a claim or a home is told when something changes; asked over HTTP."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from devices.models import Claim, ClusterState, Sync
from tests.factories import make_access, make_claim

pytestmark = pytest.mark.django_db
FRAGMENT = {"HX-Request": "true"}
NO_USE = '<div id="claim-use" hx-swap-oob="innerHTML"></div>'
NO_DIALOG = '<div id="claim-release" hx-swap-oob="innerHTML"></div>'


@pytest.fixture
def claim(client: Client) -> Claim:
    access = make_access()
    client.force_login(access.user)
    return make_claim(access)


def pages(client: Client, claim: Claim) -> tuple[str, str]:
    """The claim's page, and what an open one fetches."""
    address = f"/t/tidewater/claims/{claim.public_id}/"
    return client.get(address).text, client.get(address, headers=FRAGMENT).text


def test_an_open_claim_keeps_what_to_paste_and_its_dialog(client: Client, claim: Claim) -> None:
    page, live = pages(client, claim)
    assert 'id="use"' in page and '<dialog class="dialog" id="release"' in page
    assert 'id="claim-use"' not in live and 'id="claim-release"' not in live
    assert 'id="release-effects"' in live


@pytest.mark.parametrize("state", ["releasing", "released"])
def test_what_can_no_longer_be_done_leaves_an_open_page(
    client: Client, claim: Claim, state: str
) -> None:
    claim.released_at, claim.state = timezone.now(), state
    claim.save()
    page, live = pages(client, claim)
    assert NO_USE in live and NO_DIALOG in live
    assert 'id="use"' not in page and 'id="release"' not in page
    assert 'id="claim-use"' in page and 'id="claim-release"' in page


def test_a_failed_claim_can_be_released_but_not_used(client: Client, claim: Claim) -> None:
    Claim.objects.filter(pk=claim.pk).update(state="failed", code="REFUSED_BY_CLUSTER")
    page, live = pages(client, claim)
    assert NO_USE in live and NO_DIALOG not in live
    assert 'id="use"' not in page and '<dialog class="dialog" id="release"' in page


def lose_the_cluster(*, ago: timedelta, reachable: bool) -> None:
    then = timezone.now() - ago
    Sync.objects.update_or_create(
        kind="Pod", defaults={"served": True, "listed_at": then, "alive_at": then}
    )
    ClusterState.objects.update_or_create(pk=1, defaults={"reachable": reachable})


@pytest.mark.parametrize(
    "reachable",
    [pytest.param(True, id="news are late"), pytest.param(False, id="the cluster is away")],
)
def test_a_home_with_old_news_says_of_nobody_that_they_need_not_act(
    client: Client, claim: Claim, reachable: bool
) -> None:
    Claim.objects.filter(pk=claim.pk).update(state="pending", code="NO_MATCHING_DEVICE_FREE")
    lose_the_cluster(ago=timedelta(0), reachable=True)
    assert "See why" in client.get("/t/tidewater/").text
    lose_the_cluster(ago=timedelta(minutes=5), reachable=reachable)
    home = client.get("/t/tidewater/").text
    assert "Nobody has to act" not in home and "See why" not in home
    assert "Not known until the cluster is heard again" in home


def test_a_home_says_once_that_the_cluster_is_away(client: Client, claim: Claim) -> None:
    """The verdict has the class by which the stylesheet leaves the banner out, however it came."""
    lose_the_cluster(ago=timedelta(minutes=5), reachable=False)
    home = client.get("/t/tidewater/").text
    assert 'class="card verdict-card st-fail away"' in home
    assert home.index('id="cluster-banner"') < home.index('id="home-live"')

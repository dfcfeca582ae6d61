"""Every EXPECT line of the cases: which test holds it, or why it is no matter of these rules.

Lines of the areas preview, api and ui stand in the tests of the allocator and of the pages.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from devices.dra.usage import usage
from tests.devices.dra.cases import FOLDER, PATHS, by_number, snapshot

HERE = Path(__file__).parent
#: Areas that are answered here: what is charged, owned, drifting, waiting, leaking, counted.
AREAS = frozenset(
    [
        "capacity",
        "drift",
        "ledger",
        "ledger/quota",
        "ownership",
        "ownership/drift",
        "lifecycle",
        "class",
        "pending-explain",
        "migration",
        "admin",
        "security",
    ]
)

LEDGER = "test_ledger.py::test_a_node_is_charged"
STANDS = "test_capacity.py::test_a_cluster_stands"
REASON = "test_reasons.py::test_a_pod_of_the_real_world"
EXPLAINED = "test_explain.py::test_one_dominant_reason"
DRIFTS = "test_drift.py::test_findings_of_a_case"
LEAKS = "test_leaks.py::test_findings_of_a_case"
OWNERS = "test_ownership.py::test_each_node_has_one_owner_or_a_conflict"
HELD = "test_holders.py::test_a_claim_is_held"
RENAMED = "test_drift.py::test_a_name_that_means_another_card_is_found_with_the_claims_it_touches"
QUOTA = "test_quota.py::test_claims_are_charged_by_what_they_ask"

#: Case and number of the line → the test that holds it.
HELD_BY = {
    "02.3": EXPLAINED,
    "04.1": STANDS,
    "04.4": DRIFTS,
    "05.1": STANDS,
    "05.4": DRIFTS,
    "06.1": STANDS,
    "06.3": "test_drift.py::test_an_invalid_pool_says_why",
    "07.1": "test_capacity.py::test_published_devices_and_hardware_are_two_figures",
    "08.4": "test_evictions.py::test_tolerations_put_the_end_off",
    "09.1": "test_capacity.py::test_published_devices_and_hardware_are_two_figures",
    "09.2": LEAKS,
    "09.4": "test_ledger.py::test_a_device_is_on_a_numa_node_only_where_it_says_so",
    "10.1": LEDGER,
    "10.2": "test_ledger.py::test_ordinary_pods_and_devices_are_two_streams",
    "10.3": "test_ledger.py::test_ordinary_pods_and_devices_are_two_streams",
    "11.1": LEDGER,
    "11.2": LEDGER,
    "11.3": LEDGER,
    "12.1": LEDGER,
    "12.2": "test_ledger.py::test_an_unknown_shape_makes_the_balance_unknown",
    "12.3": "test_ledger.py::test_a_device_costs_its_node",
    "13.1": LEDGER,
    "13.2": "test_ledger.py::test_each_line_says_who_pays_and_by_which_rule",
    "13.3": "test_ledger.py::test_each_line_says_who_pays_and_by_which_rule",
    "14.1": LEDGER,
    "14.2": "test_podverdict.py::test_a_budget_that_is_too_small_says_by_how_much",
    "15.1": LEDGER,
    "15.2": STANDS,
    "16.1": REASON,
    "16.2": REASON,
    "16.3": LEDGER,
    "17.1": LEDGER,
    "19.1": "test_capacity.py::test_what_is_left_of_a_shared_device_is_exact",
    "20.1": "test_capacity.py::test_what_is_left_of_a_shared_device_is_exact",
    "20.3": DRIFTS,
    "21.3": "test_quota.py::test_each_class_of_an_alternative_is_charged_its_own_worst",
    "22.1": STANDS,
    "24.2": STANDS,
    "24.3": "test_evictions.py::test_a_claim_that_tolerates_for_a_while_ends_later",
    "24.4": "test_holders.py::test_a_pods_extended_resource_claim_is_one_of_its_claims",
    "25.1": "test_evictions.py::test_an_empty_selector_reaches_every_device_and_none_reaches_none",
    "25.3": "test_evictions.py::test_an_empty_selector_reaches_every_device_and_none_reaches_none",
    "26.3": "test_explain.py::test_an_attribute_that_a_driver_does_not_publish_is_named",
    "29.1": HELD,
    "29.2": LEAKS,
    "29.3": HELD,
    "29.4": LEAKS,
    "29.5": STANDS,
    "30.2": "test_status.py::test_each_device_stands_as_its_driver_says_and_silence_is_unknown",
    "30.3": REASON,
    "31.1": LEAKS,
    "31.2": LEAKS,
    "31.3": "test_capacity.py::test_devices_that_nobody_publishes_are_listed_apart",
    "31.4": "test_ledger.py::test_what_is_gone_owes_nothing",
    "32.2": "test_quota.py::test_a_claim_of_the_scheduler_is_charged_once",
    "32.3": "test_ownership.py::test_a_pod_on_a_dra_node_is_no_violation",
    "33.1": "test_holders.py::test_a_claim_counts_as_the_schedulers_only_where_its_pod_says_so",
    "33.2": "test_quota.py::test_a_tenants_own_annotation_exempts_nothing",
    "34.1": OWNERS,
    "34.2": OWNERS,
    "34.3": OWNERS,
    "34.4": OWNERS,
    "35.1": "test_capacity.py::test_published_devices_and_hardware_are_two_figures",
    "35.2": "test_ownership.py::test_two_drivers_on_one_card_are_wrong_and_two_views_of_one_driver"
    "_are_not",
    "36.1": REASON,
    "36.2": "test_reasons.py::test_lesser_reasons_of_a_message_are_kept_with_their_nodes",
    "36.3": REASON,
    "36.4": REASON,
    "36.5": REASON,
    "36.6": REASON,
    "36.7": "test_reasons.py::test_a_gate_is_named_with_its_owner_and_what_it_waits_for",
    "36.8": REASON,
    "37.1": REASON,
    "37.2": REASON,
    "37.3": REASON,
    "37.4": REASON,
    "37.5": REASON,
    "37.6": REASON,
    "38.1": "test_capacity.py::test_devices_of_the_cluster_are_in_no_nodes_sum",
    "38.2": "test_reasons.py::test_attaching_is_overdue_after_the_schedulers_limit",
    "38.3": "test_reasons.py::test_a_failed_attachment_is_tried_again_by_the_scheduler",
    "40.1": QUOTA,
    "40.2": QUOTA,
    "40.3": "test_quota.py::test_a_claim_of_the_scheduler_is_charged_once",
    "41.1": STANDS,
    "42.1": RENAMED,
    "42.2": STANDS,
    "42.3": RENAMED,
    "43.1": DRIFTS,
    "43.2": DRIFTS,
    "43.3": "test_capacity.py::test_a_pool_and_a_node_have_their_own_figures",
    "44.1": "test_expectations.py::test_devices_of_a_tenant_are_counted_by_what_is_held",
    "45.2": REASON,
    "45.3": "test_leaks.py::test_a_pod_group_is_never_a_stale_consumer",
    "46.1": "test_capacity.py::test_devices_of_the_cluster_are_in_no_nodes_sum",
    "47.3": "test_explain.py::test_parts_that_fit_only_on_different_nodes",
    "48.1": "test_capacity.py::test_a_tenant_sees_its_own_part_and_the_rest_as_one",
    "48.3": "test_capacity.py::test_a_tenant_sees_its_own_part_and_the_rest_as_one",
    "49.1": "test_capacity.py::test_amounts_are_shown_in_the_devices_own_unit",
    "50.1": "test_ledger.py::test_an_idle_claim_is_charged_to_nobody_and_shown_apart",
    "50.2": "test_ledger.py::test_a_pod_whose_claim_is_gone_stays_charged_and_is_flagged",
    "50.3": STANDS,
}
#: Lines that no rule of these can hold, and why.
NOT_HERE = {
    "18.3": "sums of capacities in any spelling are quantity arithmetic: test_quantity.py",
    "22.4": "which namespaces carry the admin-access label is the tenants' floor and its policies",
    "32.4": "an advice of the page; that the Pod owns the claim is held by test_holders.py",
    "39.3": "an export's business: CSV and JSON are written by the pages and the API",
}


def lines() -> dict[str, str]:
    """Every EXPECT line of the areas answered here, by case and number."""
    found = {}
    for path in PATHS:
        text = path.read_text()
        for number, (area, said) in enumerate(
            re.findall(r"^# EXPECT: ([\w/-]+): (.*)$", text, re.MULTILINE), 1
        ):
            if area in AREAS:
                found[f"{path.name[:2]}.{number}"] = said
    return found


def test_every_line_is_held_or_explained() -> None:
    assert FOLDER.is_dir()
    assert sorted({*HELD_BY, *NOT_HERE}) == sorted(lines())
    assert not HELD_BY.keys() & NOT_HERE.keys()


@pytest.mark.parametrize("test", sorted(set(HELD_BY.values())))
def test_the_test_that_holds_a_line_exists(test) -> None:
    file, _, name = test.partition("::")
    assert re.search(rf"^def {name}\(", (HERE / file).read_text(), re.MULTILINE)


def test_devices_of_a_tenant_are_counted_by_what_is_held() -> None:

    used = usage(snapshot(by_number("44")))
    held = {key[2]: {str(claim) for claim in claims} for key, claims in used.whole.items()}
    assert held == {
        "gpu-0": {"team-a/extra"},
        "gpu-1": {"team-a/w-0-own-7hxkp"},
        "nic-0": {"team-a/w-0-own-7hxkp"},
        "gpu-2": {"team-a/shared"},  # once, for two Pods
    }

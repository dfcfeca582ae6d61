"""Facts about a cluster's features come with their source; what cannot be read is unknown."""

from __future__ import annotations

import pytest

from devices.cluster import connect
from devices.cluster.capabilities import (
    DENIED,
    FIELDS,
    GATES,
    Fact,
    Source,
    State,
    denied_fact,
    facts_of,
    field_facts,
    gate_facts,
    kind_facts,
    read_capabilities,
)
from devices.cluster.gateway import Rejected, Served, ServedResource
from playground.plane.components import API_SERVER, ETCD
from playground.plane.controlplane import ControlPlane
from tests.playground.planes import NEWEST, built

PAGE = """\
# HELP kubernetes_feature_enabled [BETA] the state
kubernetes_feature_enabled{name="DRADeviceTaints",stage=""} 1
kubernetes_feature_enabled{name="DRAListTypeAttributes",stage="ALPHA"} 0
kubernetes_feature_enabled{name="DRAPartitionableDevices",stage="BETA"} 1
"""


def test_gates_by_the_metric():
    facts = {fact.name: fact for fact in gate_facts(PAGE)}
    assert set(facts) == set(GATES)
    assert facts["DRADeviceTaints"] == Fact("DRADeviceTaints", State.ON, Source.METRIC, "stable")
    assert facts["DRAListTypeAttributes"].state is State.OFF
    assert facts["DRAListTypeAttributes"].stage == "alpha"
    assert facts["DRADerivedAttributes"].state is State.ABSENT


def test_what_berths_own_policies_denied_is_added_up():
    name = "apiserver_validating_admission_policy_check_total"
    rest = 'error_type="no_error",policy_binding="b"'
    page = (
        f'{name}{{enforcement_action="deny",{rest},policy="berth-own-names"}} 3\n'
        f'{name}{{enforcement_action="deny",{rest},policy="berth-frozen-pods"}} 9\n'
        f'{name}{{enforcement_action="allow",{rest},policy="berth-own-names"}} 100\n'
        f'{name}{{enforcement_action="deny",{rest},policy="somebody-elses"}} 1000\n'
    )
    assert denied_fact(page) == Fact(DENIED, State.ON, Source.METRIC, detail="12")
    assert denied_fact("go_goroutines 7\n").detail == "0", "a policy never asked has no sample"


def test_a_page_without_the_metric_tells_nothing():
    with pytest.raises(Rejected):
        list(gate_facts("go_goroutines 7\n"))


@pytest.mark.parametrize(
    "versions, state, stage, detail",
    [
        pytest.param(("v1", "v1beta2"), State.ON, "stable", "v1", id="the best version counts"),
        pytest.param(("v1alpha3",), State.ON, "alpha", "v1alpha3", id="an alpha version"),
        pytest.param((), State.ABSENT, "", "", id="not served"),
        pytest.param(
            ("v2",),
            State.ABSENT,
            "",
            "served as v2, which Berth does not know",
            id="served in a form that nobody knows yet",
        ),
    ],
)
def test_kinds_by_discovery(versions, state, stage, detail):
    group = "resource.k8s.io"
    rule = tuple(
        ServedResource(group, version, "DeviceTaintRule", "devicetaintrules", False)
        for version in versions
    )
    served = Served("v1.40.0", {(group, "DeviceTaintRule"): rule} if rule else {})
    fact = next(fact for fact in kind_facts(served) if fact.name == "DeviceTaintRule")
    assert (fact.state, fact.stage, fact.detail) == (state, stage, detail)


def test_fields_by_openapi():
    schema = {"properties": {"nodeAllocatableResources": {}}}
    document = {"components": {"schemas": {"io.k8s.api.resource.v1.Device": schema}}}
    facts = {fact.name: fact.state for fact in field_facts(document)}
    assert facts["Device.nodeAllocatableResources"] is State.ON
    assert facts["Device.nodeAllocatableResourceMappings"] is State.ABSENT
    assert len(facts) == len(FIELDS)


def test_stored_facts_of_another_berth_are_left_out():
    fact = Fact("DRADeviceTaints", State.ON, Source.METRIC, "stable")
    stored = [fact.as_json(), {"name": "x", "state": "dreaming", "source": "metric"}, {}]
    assert facts_of(stored) == {"DRADeviceTaints": fact}


def test_the_real_api_servers(plane, gateway):
    facts = {fact.name: fact for fact in read_capabilities(gateway, gateway.served())}
    newest = plane.release == NEWEST
    assert not [fact for fact in facts.values() if fact.state is State.UNKNOWN]
    assert facts["DRANodeAllocatableResources"].state is State.ON
    assert facts["Device.nodeAllocatableResources"].state is (State.ON if newest else State.ABSENT)
    assert facts["Device.nodeAllocatableResourceMappings"].state is (
        State.ABSENT if newest else State.ON
    )
    assert facts["DRADerivedAttributes"].state is (State.OFF if newest else State.ABSENT)
    assert facts["DeviceTaintRule"].detail == ("v1" if newest else "v1beta2")


def test_without_the_right_to_metrics_gates_are_unknown_and_say_why(plane):
    gateway = connect(plane.kubeconfig("jane", ["nobody"]))
    facts = {fact.name: fact for fact in read_capabilities(gateway, gateway.served())}
    assert facts["DRADeviceTaints"].state is State.UNKNOWN
    assert 'cannot get path "/metrics"' in facts["DRADeviceTaints"].detail
    assert facts["ResourceClaim"].state is State.ON


@pytest.mark.cluster
def test_an_older_surface_is_read_as_what_it_is(tmp_path):
    plane = ControlPlane(
        tmp_path, built(NEWEST), emulated_version="1.35", components=(ETCD, API_SERVER)
    )
    with plane:
        gateway = connect(plane.admin_kubeconfig)
        facts = {fact.name: fact for fact in read_capabilities(gateway, gateway.served())}
        assert facts["DeviceTaintRule"].detail == "v1alpha3"
        assert facts["ResourcePoolStatusRequest"].state is State.ABSENT
        assert facts["DRAWorkloadResourceClaims"].state in (State.ABSENT, State.OFF)
        assert gateway.list("DeviceTaintRule").items == ()

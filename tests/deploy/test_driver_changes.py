"""Frozen driver changes on real API servers: nobody changes drivers but Berth and break-glass."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devices.cluster.gateway import Ref
from devices.dra.closures import locks
from devices.dra.names import Manager
from devices.dra.namespaces import policy_config
from tests.deploy.acts import Attempt, change, denied
from tests.deploy.ground import DRIVERS, EXPLICIT, Ground, until

CODE = "DRIVER_CHANGES_FROZEN"
SWITCH = "vendor.example/driver"
NEW_SELECTOR = {
    "spec": {"selectors": [{"cel": {"expression": "device.driver == 'another.example'"}}]}
}
NEW_IMAGE = {"spec": {"template": {"metadata": {"labels": {"release": "2"}}}}}


def daemonset(name: str) -> dict[str, object]:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": DRIVERS},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "nodeSelector": {"example.com/no-such": "node"},
                    "containers": [{"name": "main", "image": "driver"}],
                },
            },
        },
    }


def of_set(name: str, who: str = "admin") -> Attempt:
    def act(ground: Ground) -> object:
        return getattr(ground, who).merge(Ref("DaemonSet", name, DRIVERS), NEW_IMAGE, dry_run=True)

    return Attempt(f"a change of DaemonSet {name} by {who}", act, CODE)


def label(node: str, value: str | None, *, key: str = SWITCH, sub: str = "", who: str = "admin"):  # type: ignore[no-untyped-def]
    patch = {"metadata": {"labels": {key: value}}}
    words = f"label {key}={value} on {node}{' by its status' if sub else ''} by {who}"
    return Attempt(words, change("Node", node, patch, who=who, sub=sub), CODE)


FROZEN = (
    of_set("driver"),
    Attempt(
        "deleting the DaemonSet",
        lambda ground: ground.admin.delete(Ref("DaemonSet", "driver", DRIVERS), dry_run=True),
        CODE,
    ),
    Attempt("another class", change("DeviceClass", "bypass-gpu", NEW_SELECTOR, who="admin"), CODE),
    Attempt(
        "deleting the class",
        lambda ground: ground.admin.delete(Ref("DeviceClass", "bypass-gpu"), dry_run=True),
        CODE,
    ),
    label("bypass-n1", "off"),
    label("bypass-n1", None),
    label("bypass-n1", "off", sub="status"),
)
FREE = (
    of_set("other"),
    of_set("driver", who="break_glass"),
    Attempt(
        "another node pool's class",
        change("DeviceClass", "bypass-slow", NEW_SELECTOR, who="admin"),
    ),
    label("bypass-n2", "off"),
    label("bypass-n1", "x", key="example.com/own"),
    label("bypass-n1", "off", who="worker"),
    label("bypass-n1", "off", who="break_glass"),
)


@pytest.fixture(scope="module")
def frozen(ground: Ground) -> Iterator[Ground]:
    """A node pool of one node whose driver changes are frozen; the other node is in no pool."""
    for name in ("driver", "other"):
        ground.admin.apply(daemonset(name), manager="test")
    labels = {"pool": "h100", "zone": "a", SWITCH: "on"}
    ground.admin.merge(Ref("Node", "bypass-n1"), {"metadata": {"labels": labels}})
    lines = locks(
        selector={"pool": "h100", "zone": "a"}, sets=[f"{DRIVERS}/driver"],
        device_class="bypass-gpu", switches=[f"{SWITCH}=on", "vendor.example/plugin=on"],
    )  # fmt: skip
    ground.worker.apply(policy_config(EXPLICIT, lines), manager=Manager.TENANT, force=True)
    until(lambda: denied(ground, FROZEN[0]))
    yield ground
    ground.worker.apply(policy_config(EXPLICIT), manager=Manager.TENANT, force=True)
    until(lambda: not any(denied(ground, one) for one in FROZEN))
    for name in ("driver", "other"):
        ground.admin.delete(Ref("DaemonSet", name, DRIVERS))
    gone = {"pool": None, "zone": None, SWITCH: None}
    ground.admin.merge(Ref("Node", "bypass-n1"), {"metadata": {"labels": gone}})


@pytest.mark.parametrize("attempt", FROZEN, ids=str)
def test_a_frozen_driver_stays_as_it_is(frozen: Ground, attempt: Attempt) -> None:
    assert f"Berth {CODE}:" in denied(frozen, attempt)


@pytest.mark.parametrize("attempt", FREE, ids=str)
def test_what_is_not_frozen_may_change(frozen: Ground, attempt: Attempt) -> None:
    assert denied(frozen, attempt) == ""

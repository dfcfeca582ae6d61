"""A simulated device plugin on one node: it tells the kubelet its devices, nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playground.fleet.spec import Plugin

if TYPE_CHECKING:
    from playground.fleet.kubelet import Kubelet


class NodePlugin:
    """The plugin's Pod on one node. It never speaks to the API server: the kubelet does."""

    def __init__(self, spec: Plugin, kubelet: Kubelet) -> None:
        self.spec = spec
        self._kubelet = kubelet
        self._key = ("plugin", kubelet.name, spec.name)

    def start(self) -> None:
        takes = self._kubelet.site.pace.of(self.spec.register_seconds)
        self._kubelet.site.turns.add(self._key, self._register, after=takes)

    def stop(self) -> None:
        self._kubelet.site.turns.drop(self._key)
        self._kubelet.devices.stopped(self.spec.resource)

    def _register(self) -> None:
        count = self.spec.devices.get(self._kubelet.group.name, 0)
        names = [self.spec.device.format(index=index) for index in range(count)]
        self._kubelet.devices.register(self.spec.resource, names)

"""A collector of traces: takes OTLP over HTTP on loopback and keeps what was sent."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from tests.listening import Listener, listening


def _values(pairs: list[KeyValue]) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in pairs}


@dataclass(frozen=True, slots=True)
class Told:
    """One span as it arrived; ids are bytes, no parent is empty."""

    service: str
    name: str
    trace: bytes
    id: bytes
    parent: bytes
    links: tuple[bytes, ...]
    attributes: dict[str, Any]
    events: int
    status: str


@dataclass(frozen=True, slots=True)
class Collector:
    listener: Listener

    @property
    def address(self) -> str:
        return self.listener.address

    @property
    def bodies(self) -> list[bytes]:
        """As they came, to be searched for what must not be there."""
        return [body for _, _, body in self.listener.asked]

    def spans(self) -> list[Told]:
        found = []
        for body in self.bodies:
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                service = _values(list(resource.resource.attributes))["service.name"]
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        told = Told(
                            service,
                            span.name,
                            span.trace_id,
                            span.span_id,
                            span.parent_span_id,
                            tuple(link.trace_id for link in span.links),
                            _values(list(span.attributes)),
                            len(span.events),
                            span.status.message,
                        )
                        found.append(told)
        return found

    def wait(self, for_one: Callable[[Told], bool], seconds: float = 120) -> Told:
        """The first span that is so."""
        end = time.monotonic() + seconds
        while True:
            for span in self.spans():
                if for_one(span):
                    return span
            assert time.monotonic() < end, sorted({(s.service, s.name) for s in self.spans()})
            time.sleep(0.1)


@contextmanager
def collecting() -> Iterator[Collector]:
    with listening() as listener:
        yield Collector(listener)

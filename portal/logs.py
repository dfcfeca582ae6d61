"""How log lines look: one JSON object a line in production, a readable line in development."""

from __future__ import annotations

import sys
from typing import Any

import structlog

FOREIGN: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def with_trace(logger: object, method: str, event: structlog.typing.EventDict) -> Any:
    """Names the trace and the span in which a line was written, as hexadecimal digits."""
    from opentelemetry import trace  # where nobody traces, it is not even loaded

    found = trace.get_current_span().get_span_context()
    if found.is_valid:
        event["trace_id"] = trace.format_trace_id(found.trace_id)
        event["span_id"] = trace.format_span_id(found.span_id)
    return event


def configure(*, level: str, readable: bool, traced: bool) -> dict[str, Any]:
    """Sets up structlog; returns the `LOGGING` dict that gives foreign loggers the same shape."""
    shared = [*FOREIGN, with_trace] if traced else FOREIGN
    renderer: Any = (
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
        if readable
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            *shared,
            structlog.stdlib.filter_by_level,
            structlog.processors.StackInfoRenderer(),
            structlog.processors.format_exc_info,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "()": structlog.stdlib.ProcessorFormatter,
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    renderer,
                ],
                "foreign_pre_chain": shared,
            }
        },
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["console"], "level": level},
        "loggers": {
            "django.request": {"level": "ERROR"},
            # Warns of every event stream that a closed page ends.
            "django_structlog": {"level": "ERROR"},
            # Errors name the task; a line for each one that went well is noise.
            "celery": {"level": "WARNING"},
            "kubernetes": {"level": "WARNING"},
            # Says when spans are lost, not each time that it tries again.
            "opentelemetry": {"level": "ERROR"},
            "urllib3": {"level": "ERROR"},
        },
    }

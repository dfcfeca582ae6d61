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


def configure(*, level: str, readable: bool) -> dict[str, Any]:
    """Sets up structlog; returns the `LOGGING` dict that gives foreign loggers the same shape."""
    renderer: Any = (
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
        if readable
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            *FOREIGN,
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
                "foreign_pre_chain": FOREIGN,
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
            "urllib3": {"level": "ERROR"},
        },
    }

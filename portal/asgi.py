"""ASGI entry point: pages, API and event streams from one process group."""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

from django.conf import settings
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

# WhiteNoise hands out files as plain iterators; they are small and read in a thread.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous")

application: Callable[[Any, Any, Any], Awaitable[None]] = get_asgi_application()

# All that serves is loaded before anybody asks, and the collector looks at it never again: it was
# a sixth of what a read costs.
import_module(settings.ROOT_URLCONF)
gc.collect()
gc.freeze()

if settings.TRACES_ENDPOINT:
    from portal import tracing

    tracing.start("web")
    application = tracing.until_the_end(application)

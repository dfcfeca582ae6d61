"""The programs of the demo: which command, in which stage, with which settings."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from playground.demo.cluster import kubeconfig_path, notice_path, plane_folder
from playground.running.supervisor import Program

ROOT = Path(__file__).resolve().parents[2]
# Together 9 s at the very worst, so that Ctrl-C is done in 10. Whoever is killed loses nothing: a
# task that was not finished is done again, and etcd and PostgreSQL keep what they confirmed.
PATIENCE = 4.5
CLUSTER_PATIENCE = 4.5
# PostgreSQL and Valkey are stage 0. A higher stage is stopped earlier, and all of one together.
CLUSTER_STAGE = 1
PORTAL_STAGE = 2
CORES = os.cpu_count() or 2
WEB_WORKERS = str(min(4, max(1, CORES // 2)))
TASK_WORKERS = str(min(4, max(2, CORES // 2)))


def environment(
    folder: Path, address: str, services: dict[str, str], secret_key: str
) -> dict[str, str]:
    """Settings that all processes of the portal share; as in production, but for plain HTTP."""
    return {
        **services,
        "SECRET_KEY": secret_key,
        "DEBUG": "false",
        "HTTPS": "false",
        "STATIC_FROM_SOURCE": "true",
        "ALLOWED_HOSTS": "localhost,127.0.0.1,[::1]",
        "PUBLIC_URL": address,
        "BERTH_CLUSTER_NAME": "playground",
        "BERTH_CLUSTER_NOTICE_FILE": str(notice_path(folder)),
        # A person's own cluster must never be touched by a demo.
        "KUBECONFIG": "",
        "BERTH_KUBECONFIG": str(folder / "kubeconfigs" / "none"),
        "PYTHONUNBUFFERED": "1",
        "CELERY_SKIP_CHECKS": "true",  # of the code; they are `make check`'s
        "DJANGO_SETTINGS_MODULE": "portal.settings",
    }


def portal(folder: Path, port: int, env: dict[str, str]) -> list[Program]:
    """Berth's four processes, each with its own identity in the cluster, or none."""
    celery = ("-m", "celery", "--app", "portal.celery")
    watch = env | {"BERTH_KUBECONFIG": str(kubeconfig_path(folder, "watch"))}
    worker = env | {"BERTH_KUBECONFIG": str(kubeconfig_path(folder, "worker"))}
    return [
        _python(
            "web",
            *("-m", "uvicorn", "portal.asgi:application", "--host", "127.0.0.1"),
            *("--port", str(port), "--workers", WEB_WORKERS, "--no-access-log"),
            *("--timeout-graceful-shutdown", "3"),
            env=env,
        ),
        _python("watch", "manage.py", "watchcluster", "--skip-checks", env=watch),
        _python(
            "worker",
            *(*celery, "worker", "--concurrency", TASK_WORKERS, "--loglevel", "INFO"),
            *("--without-gossip", "--without-mingle"),
            env=worker,
        ),
        _python(
            "beat",
            *(*celery, "beat", "--loglevel", "INFO", "--pidfile="),
            *("--schedule", str(folder / "beat-schedule")),
            env=env,
        ),
    ]


def cluster(folder: Path, *, proxy: bool = False) -> Program:
    """Makes and keeps the control plane; with `proxy`, Berth's way to it is one that can fail."""
    return _python(
        "cluster",
        *("-m", "playground.demo.cluster", str(folder), *(["--proxy"] if proxy else [])),
        stage=CLUSTER_STAGE,
        patience=CLUSTER_PATIENCE,
    )


def fleet(folder: Path, scenario: str, *, real_nodes: bool = False) -> Program:
    """The simulated machines; with `real_nodes` their drivers run on real ones, too."""
    more = ["--real-nodes"] if real_nodes else []
    place = str(plane_folder(folder))
    return _python("fleet", "-m", "playground", "fleet", "up", scenario, "--folder", place, *more)


def real_nodes(folder: Path, count: int, scenario: str) -> Program:
    """The machines whose kubelets are real, beside the simulated ones."""
    place = str(plane_folder(folder))
    return _python("realnodes", "-m", "playground.realnodes.guard", place, str(count), scenario)


def _python(
    name: str,
    *arguments: str,
    env: dict[str, str] | None = None,
    stage: int = PORTAL_STAGE,
    patience: float = PATIENCE,
) -> Program:
    return Program(
        name,
        (sys.executable, *arguments),
        env=env or {"PYTHONUNBUFFERED": "1"},
        cwd=ROOT,
        stage=stage,
        patience=patience,
    )

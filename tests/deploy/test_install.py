"""Chart, manifests, Compose and image: what can be judged without a registry is judged for real."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from devices import cluster
from devices.cluster.gateway import NotServed, Ref
from devices.runbooks import runbooks
from playground.building.go_tools import build_tool
from playground.plane.controlplane import ControlPlane
from tests.deploy.ground import policies, rights

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "chart"
MANIFESTS = "deploy/manifests/berth.yaml"
EVERYTHING = (
    "--set=metrics.operator=true",
    "--set=metrics.dashboard=true",
    "--set=externalSecrets.enabled=true",
    "--set=ingress.enabled=true",
    "--set=ingress.tlsSecret=berth-tls",
    '--set-json=networkPolicy.webFrom=[{"podSelector":{}}]',
    '--set-json=networkPolicy.egress=[{"ports":[{"port":443}]}]',
    "--set=secret.optional.EMAIL_URL=email-url",
    "--set=settings.OIDC_NAME=Harbour",
    "--set=tracing.endpoint=http://otel-collector:4318",
)
#: Kinds of operators that the control planes of the tests do not have.
OF_OPERATORS = {"ServiceMonitor", "PodMonitor", "PrometheusRule", "ExternalSecret"}
Obj = dict[str, Any]


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [build_tool("helm"), *arguments], capture_output=True, text=True, cwd=ROOT, timeout=120
    )


def rendered(*values: str, namespace: str = "berth-system") -> str:
    done = helm("template", "berth", str(CHART), f"--namespace={namespace}", *values)
    assert done.returncode == 0, done.stderr
    return done.stdout


def objects(text: str) -> list[Obj]:
    return [one for one in yaml.safe_load_all(text) if one]


def compose() -> Obj:
    found: Obj = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return found


def own_services() -> dict[str, Obj]:
    return {n: s for n, s in compose()["services"].items() if n not in ("postgres", "valkey")}


def known_settings() -> set[str]:
    """Every name that Berth reads from its environment."""
    text = "".join((ROOT / "portal" / name).read_text() for name in ("settings.py", "metrics.py"))
    names = set(re.findall(r'env(?:\.\w+)?\(\s*"([A-Z0-9_]+)"', text))
    names |= set(re.findall(r'MULTIPROC: Final = "([A-Z_]+)"', text))
    return names | {f"{name}_FILE" for name in names} | {"DJANGO_SETTINGS_MODULE"}


# --- without Helm ---


def test_the_chart_carries_the_very_files_of_deploy():
    for part in ("rbac", "policies", "monitoring"):
        assert (CHART / "files" / part).resolve() == ROOT / "deploy" / part


def test_compose_runs_every_process_without_root_and_without_writing():
    services = own_services()
    assert set(services) == {"web", "watch", "worker", "beat", "migrate"}
    assert services["watch"]["deploy"]["replicas"] == 2
    for name, service in services.items():
        assert service["user"] == "65532:65532", name
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert service["healthcheck"], name
    for name in ("postgres", "valkey"):
        assert compose()["services"][name]["healthcheck"]["test"][0] == "CMD"
        assert "ports" not in compose()["services"][name], "only web is reached from outside"


def test_compose_gives_each_process_only_the_secrets_that_it_needs():
    with_kubeconfig = {
        name: {one for one in service["secrets"] if one.startswith("kubeconfig")}
        for name, service in own_services().items()
    }
    assert with_kubeconfig == {
        "web": set(),
        "beat": set(),
        "migrate": set(),
        "watch": {"kubeconfig-watch"},
        "worker": {"kubeconfig-worker"},
    }
    used = {one for s in compose()["services"].values() for one in s.get("secrets", ())}
    assert used == set(compose()["secrets"])


def test_every_setting_that_compose_and_chart_give_is_one_that_berth_reads():
    asked = {name for service in own_services().values() for name in service["environment"]}
    chart = "".join(path.read_text() for path in (CHART / "templates").iterdir())
    asked |= set(re.findall(r"name: ([A-Z][A-Z0-9_]+),", chart))
    assert asked <= known_settings(), asked - known_settings()


def test_the_image_is_built_of_files_that_are_there_and_runs_as_nobody():
    text = (ROOT / "Dockerfile").read_text()
    for source in re.findall(r"^COPY (?!--from)(\S+)", text, re.MULTILINE):
        assert (ROOT / source).exists(), source
    assert re.findall(r"^USER (.*)$", text, re.MULTILINE) == ["65532:65532"]
    assert "--require-hashes" in text


def test_the_docs_name_the_secrets_that_the_chart_reads():
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    docs = (ROOT / "docs" / "install.md").read_text()
    for key in values["externalSecrets"]["remote"]:
        assert f"`{key}`" in docs
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert set(values) <= set(schema["properties"])


# --- with Helm ---


@pytest.mark.long
@pytest.mark.parametrize("values", [(), EVERYTHING], ids=["as it is", "with everything"])
def test_helm_finds_nothing_wrong_with_the_chart(values: tuple[str, ...]):
    done = helm("lint", str(CHART), "--strict", "--namespace=berth-system", *values)
    assert done.returncode == 0, done.stdout


@pytest.mark.long
def test_the_plain_manifests_are_the_chart_rendered(golden: Callable[[str, str], None]):
    head = "# Made from deploy/chart with its default values; see docs/install.md.\n"
    golden(MANIFESTS, head + rendered())


@pytest.mark.long
def test_rights_and_policies_in_the_chart_are_those_of_deploy():
    found = objects(rendered())
    for wanted in (*rights(), *policies()):
        if wanted["kind"] != "Namespace":
            assert wanted in found, f"{wanted['kind']} {wanted['metadata']['name']}"
    without = objects(rendered("--set=rbac.install=false", "--set=policies.install=false"))
    assert not [one for one in without if one["kind"] in ("ClusterRole", "ServiceAccount")]


@pytest.mark.long
def test_every_pod_of_the_chart_is_without_root_writes_nothing_and_is_probed():
    found = objects(rendered(*EVERYTHING))
    for one in found:
        if one["kind"] not in ("Deployment", "Job"):
            continue
        pod = one["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"
        for container in pod["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert "limits" in container["resources"]
            if one["kind"] == "Deployment":
                assert "livenessProbe" in container
        account = pod.get("serviceAccountName")
        if account in ("berth-web", "berth-beat", None):
            assert pod["automountServiceAccountToken"] is False


@pytest.mark.long
@pytest.mark.parametrize(
    "value, named",
    [
        ("--set=publicUrl=http://berth.example.org", "publicUrl"),
        ("--set=image.digest=sha256:short", "digest"),
        ("--set=web.autoscaling.cpu=300", "cpu"),
        ("--set=wacht.replicas=2", "wacht"),
        ("--set=settings.lower=1", "lower"),
        ("--set=metrics.port=80", "port"),
        ("--set=tracing.endpoint=otel-collector:4317", "endpoint"),
    ],
)
def test_values_that_make_no_sense_are_refused(value: str, named: str):
    done = helm("template", "berth", str(CHART), "--namespace=berth-system", value)
    assert done.returncode != 0
    assert named in done.stderr


@pytest.mark.long
def test_elsewhere_than_in_its_namespace_the_chart_refuses_and_says_why():
    done = helm("template", "berth", str(CHART), "--namespace=default")
    assert done.returncode != 0
    assert "--namespace berth-system" in done.stderr


@pytest.fixture
def system_namespace(plane: ControlPlane) -> Iterator[cluster.Gateway]:
    admin = cluster.connect(plane.admin_kubeconfig)
    namespace = next(one for one in rights() if one["kind"] == "Namespace")
    admin.apply(namespace, manager="test", force=True)
    yield admin


@pytest.mark.long
@pytest.mark.parametrize("values", [(), EVERYTHING], ids=["as it is", "with everything"])
def test_the_api_server_takes_every_object_of_the_chart(
    system_namespace: cluster.Gateway, values: tuple[str, ...]
):
    """As `kubectl apply --server-side --dry-run=server` would; unknown fields are refused."""
    taken, unserved = 0, set()
    for obj in objects(rendered(*values)):
        try:
            system_namespace.apply(obj, manager="test", force=True, dry_run=True)
            taken += 1
        except NotServed:
            unserved.add(obj["kind"])
    assert unserved <= OF_OPERATORS
    assert taken >= 60


@pytest.mark.long
def test_helm_installs_upgrades_and_removes_a_release_on_a_real_cluster(
    plane_137: ControlPlane,
):
    """Without hooks: no node runs the migration here. Rights and policies are other tests'."""
    admin = cluster.connect(plane_137.admin_kubeconfig)
    namespace = next(one for one in rights() if one["kind"] == "Namespace")
    admin.apply(namespace, manager="test", force=True)
    how = (
        "--namespace=berth-system",
        f"--kubeconfig={plane_137.admin_kubeconfig}",
        "--no-hooks",
    )
    own = ("--set=rbac.install=false", "--set=policies.install=false")
    done = helm("install", "berth", str(CHART), *how, *own)
    try:
        assert done.returncode == 0, done.stderr
        web = admin.get(Ref("Deployment", "berth-web", "berth-system"))
        assert web is not None
        done = helm("upgrade", "berth", str(CHART), *how, *own, "--set=image.tag=9.9.9")
        assert done.returncode == 0, done.stderr
        web = admin.get(Ref("Deployment", "berth-web", "berth-system"))
        assert web is not None
        image = web["spec"]["template"]["spec"]["containers"][0]["image"]
        assert image.endswith(":9.9.9")
    finally:
        done = helm("uninstall", "berth", *how)
    assert done.returncode == 0, done.stderr
    assert admin.get(Ref("Service", "berth-web", "berth-system")) is None


def test_the_image_has_every_folder_that_the_product_reads():
    """Beside its packages: `settings.BASE_DIR / "docs" / "runbooks"`, in whatever form."""
    folder = re.compile(r'BASE_DIR\)?(?: /|,) "(\w+)"(?:(?: /|,) "(\w+)")?')
    read = {
        "/".join(filter(None, found))
        for app in ("portal", "tenants", "devices", "migrationplan")
        for file in (ROOT / app).rglob("*.py")
        for found in folder.findall(file.read_text())
    } - {"staticfiles", "deploy"}
    read |= {"deploy/rbac", "deploy/policies"}  # whose name is an argument
    assert {"docs/runbooks", "templates", "static"} <= read
    copied = set(re.findall(r"^COPY (\S+) \1$", (ROOT / "Dockerfile").read_text(), re.MULTILINE))
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line[0] == "!"}
    assert read - copied == set()
    assert read - let_in == set()


@pytest.mark.long
def test_what_the_dockerfile_copies_is_enough_to_start_every_process(tmp_path: Path):
    for source in re.findall(
        r"^COPY (?!--from)(\S+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE
    ):
        target = tmp_path / source
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(ROOT / source, target)
    env = {
        "PATH": os.environ["PATH"],
        "SECRET_KEY": "x" * 60,
        "PUBLIC_URL": "https://localhost",
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
    }

    def run(*command: str) -> str:
        done = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("manage.py", "collectstatic", "--no-input", "--verbosity", "0")
    assert list((tmp_path / "staticfiles").glob("berth*.css"))
    run("-c", "import portal.asgi, portal.celery")
    assert "--once" in run("manage.py", "watchcluster", "--help")
    said = run(
        "-c",
        "import portal.asgi\nfrom devices import runbooks\nfrom devices.doctor import deployed\n"
        "print(len(deployed.accounts()), len(deployed.objects('policies')),"
        " len(runbooks.runbooks()))",
    )
    accounts, guarded, told = map(int, said.split())
    assert accounts >= 6 and guarded >= 20 and told == len(runbooks())

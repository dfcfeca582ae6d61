"""Which kinds have Pods, and where in them the Pod's own spec stands."""

from __future__ import annotations

from typing import Final

from devices.translation.tree import Mapping

#: Group of the API and kind → the way to the Pod template (empty: the object is the Pod).
_TEMPLATED: Final = ("spec", "template")
POD_AT: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("", "Pod"): (),
    ("", "ReplicationController"): _TEMPLATED,
    ("", "PodTemplate"): ("template",),
    ("apps", "Deployment"): _TEMPLATED,
    ("apps", "StatefulSet"): _TEMPLATED,
    ("apps", "DaemonSet"): _TEMPLATED,
    ("apps", "ReplicaSet"): _TEMPLATED,
    ("batch", "Job"): _TEMPLATED,
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
}

#: Kinds of operators that make Pods themselves, and whose they are.
OPERATORS: Final[dict[tuple[str, str], str]] = {
    ("kubeflow.org", "PyTorchJob"): "the Kubeflow training operator",
    ("kubeflow.org", "TFJob"): "the Kubeflow training operator",
    ("kubeflow.org", "XGBoostJob"): "the Kubeflow training operator",
    ("kubeflow.org", "PaddleJob"): "the Kubeflow training operator",
    ("kubeflow.org", "JAXJob"): "the Kubeflow training operator",
    ("kubeflow.org", "MPIJob"): "the MPI operator",
    ("kubeflow.org", "Notebook"): "Kubeflow Notebooks",
    ("trainer.kubeflow.org", "TrainJob"): "Kubeflow Trainer",
    ("trainer.kubeflow.org", "TrainingRuntime"): "Kubeflow Trainer",
    ("trainer.kubeflow.org", "ClusterTrainingRuntime"): "Kubeflow Trainer",
    ("ray.io", "RayJob"): "KubeRay",
    ("ray.io", "RayCluster"): "KubeRay",
    ("ray.io", "RayService"): "KubeRay",
    ("argoproj.io", "Workflow"): "Argo Workflows",
    ("argoproj.io", "WorkflowTemplate"): "Argo Workflows",
    ("argoproj.io", "ClusterWorkflowTemplate"): "Argo Workflows",
    ("argoproj.io", "CronWorkflow"): "Argo Workflows",
    ("argoproj.io", "Rollout"): "Argo Rollouts",
    ("jobset.x-k8s.io", "JobSet"): "JobSet",
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): "LeaderWorkerSet",
    ("batch.volcano.sh", "Job"): "Volcano",
    ("serving.knative.dev", "Service"): "Knative",
    ("serving.kserve.io", "InferenceService"): "KServe",
    ("serving.kserve.io", "ServingRuntime"): "KServe",
    ("serving.kserve.io", "ClusterServingRuntime"): "KServe",
    ("sparkoperator.k8s.io", "SparkApplication"): "the Spark operator",
    ("machinelearning.seldon.io", "SeldonDeployment"): "Seldon Core",
    ("workload.codeflare.dev", "AppWrapper"): "AppWrapper",
    ("tekton.dev", "Task"): "Tekton",
    ("tekton.dev", "Pipeline"): "Tekton",
}


def group_of(api_version: str) -> str:
    """ "apps/v1" → "apps"; the core group is empty."""
    group, slash, _ = api_version.partition("/")
    return group if slash else ""


def pod_at(obj: Mapping) -> tuple[str, ...] | None:
    """The way from an object to its Pod template; None for kinds without one that is known."""
    return POD_AT.get((group_of(obj.text("apiVersion")), obj.text("kind")))


def is_list(obj: Mapping) -> bool:
    """Whether it is a list of objects, as `kubectl get` prints them."""
    return obj.text("kind").endswith("List") and obj.get("items") is not None


def operator_of(obj: Mapping) -> str:
    """Whose kind it is, in words; empty where that is not known."""
    return OPERATORS.get((group_of(obj.text("apiVersion")), obj.text("kind")), "")

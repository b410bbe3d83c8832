"""Airflow's cluster policy for Kubernetes: a task of the queue `gpu` gets a pod of its own, with one GPU.

Read by Airflow wherever a module of this name is on its path, by its scheduler alone and never by a DAG file: so the
DAGs say `queue="gpu"` and no more, there as on one machine. docker/values.yaml tells how the chart is given it.
"""

from typing import Any

from airflow.configuration import conf

SHARED_MEMORY = "8Gi"  # PyTorch's data loaders hand batches over in /dev/shm, of which a container has 64 MB


def pod() -> Any:
    """What differs from docker/values.yaml's pods: the image, one GPU, the nodes that have one, shared memory."""
    from kubernetes.client import models as k8s

    shared = k8s.V1Volume(
        name="shared-memory", empty_dir=k8s.V1EmptyDirVolumeSource(medium="Memory", size_limit=SHARED_MEMORY)
    )
    task = k8s.V1Container(
        name="base",  # the one that runs the task, in every pod of Airflow's
        image=conf.get("kubernetes_executor", "worker_container_repository") + ":0.2.0-gpu",
        resources=k8s.V1ResourceRequirements(
            requests={"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"},
            limits={"memory": "24Gi", "nvidia.com/gpu": "1"},
        ),
        volume_mounts=[k8s.V1VolumeMount(name="shared-memory", mount_path="/dev/shm")],  # noqa: S108
    )
    toleration = k8s.V1Toleration(key="nvidia.com/gpu", operator="Exists", effect="NoSchedule")
    return k8s.V1Pod(
        spec=k8s.V1PodSpec(
            containers=[task],
            volumes=[shared],
            tolerations=[toleration],
            termination_grace_period_seconds=3600,  # a task that is asked to stop may end
        )
    )


def task_instance_mutation_hook(task_instance: Any) -> None:
    """Send tasks of the queue `gpu` to Kubernetes; Airflow calls this whenever it copies a task's settings."""
    if task_instance.queue == "gpu":
        task_instance.executor = "KubernetesExecutor"
        task_instance.executor_config = {"pod_override": pod()}

"""slurm-operator as a part: a process on this host with the definitions, rights and settings of its chart."""

import shutil
import sys
from functools import partial
from pathlib import Path

import yaml

from sandbox import chart, identity, probes, services
from sandbox.errors import SandboxError
from sandbox.instance import Instance, make_folder
from sandbox.operator import images, names
from sandbox.part import Part
from sandbox.realnodes import box
from slurmruntime.model.objects import JsonDict

CHART = chart.CHART.parent / "operator" / "chart"
CLUSTER = chart.CHART.parent / "slurm" / "cluster.yaml"
SLURM_CONF = """\
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
"""
CGROUP_CONF = "CgroupPlugin=disabled\n"
"""Containers of real nodes have no cgroups of their own mounted (docs/development.md)."""
_NAME = "operator"
_APPLIED = {
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "PriorityClass",
    "Role",
    "RoleBinding",
    "ServiceAccount",
}
"""The chart's kinds to apply; the rest belongs to the Deployment, which this process replaces."""


def cluster_file(instance: Instance) -> Path:
    """Return the path of a merge patch with the settings that every SlurmCluster in this sandbox needs."""
    return instance.root / "cluster.yaml"


def prepare(instance: Instance, helm: Path) -> None:
    """Write the operator's manifests and settings, and the patch for its clusters; load Slurm's images into the nodes.

    Raises:
        SandboxError: an image is missing, helm failed, or there is no chart.
    """
    if not CHART.is_dir():
        raise SandboxError(f"no chart in {CHART}: run the sandbox from a checkout of the project")
    if not (instance.bin / "helm").exists():
        (instance.bin / "helm").symlink_to(helm)
    folder = make_folder(instance.bridge / _NAME, identity.caller())
    slurm_images = images.ready()
    for image in slurm_images:
        shutil.copyfile(image.archive, box.image_folder(instance) / image.archive.name)
    where = ("--namespace", chart.NAMESPACE)
    rendered = chart.run(instance, "helm", "template", "slurm-operator", str(CHART), *where)
    objects = [document for document in yaml.safe_load_all(rendered) if document]
    applied = [document for document in objects if document["kind"] in _APPLIED]
    (folder / "manifests.yaml").write_text(yaml.safe_dump_all(applied))
    (configured,) = (document["data"] for document in objects if document["kind"] == "ConfigMap")
    settings = yaml.safe_load(configured["config.yaml"])
    (folder / "config.yaml").write_text(
        yaml.safe_dump(_here(instance, settings, images.pattern(slurm_images)))
    )
    cluster_file(instance).write_text(yaml.safe_dump(_cluster_patch(), sort_keys=False))


def parts(instance: Instance) -> tuple[Part, ...]:
    """Return the operator, and the part that resolves Service names for it."""
    folder = instance.bridge / _NAME
    environment = {"PYTHONPATH": services.module_path(), "PYTHONUNBUFFERED": "1"}
    hosts = names.hosts_file(instance)
    names.write(hosts, names.hosts())
    return (
        Part(
            name=_NAME,
            argv=(
                *names.with_hosts(hosts),
                *(sys.executable, "-m", "slurmoperator", "--config", str(folder / "config.yaml")),
            ),
            env=environment,
            identity=identity.caller(),
            folder=folder,
            port=instance.ports["operator-health"],
            answers=partial(probes.says_yes, f"{instance.url('operator-health')}/readyz"),
            needs=("apiserver", "controller-manager"),
            prepare=partial(_install, instance),
            restarts=True,
        ),
        Part(
            name="operator-names",
            argv=(
                *(sys.executable, "-m", "sandbox.operator.names"),
                *(str(instance.kubeconfig), str(hosts)),
            ),
            env=environment,
            identity=identity.caller(),
            folder=folder,
            port=instance.ports["apiserver"],
            answers=_at_once,
            needs=("apiserver",),
            restarts=True,
        ),
    )


def _at_once() -> bool:
    """Count as up at once: there are no Services until a user creates one."""
    return True


def _here(instance: Instance, settings: JsonDict, image: str) -> JsonDict:
    """Return the chart's settings with the paths and addresses that would be the pod's own."""
    folder = instance.bridge / _NAME
    local: dict[str, JsonDict] = {
        "kubernetes": {"kubeconfig": str(folder / "kubeconfig")},
        "operator": {"image": image},
        "health": {"listen": f"127.0.0.1:{instance.ports['operator-health']}"},
    }
    merged = {
        **settings,
        **{key: {**settings.get(key, {}), **here} for key, here in local.items()},
    }
    chart.set_values(merged, instance.options.settings)
    return merged


def _install(instance: Instance) -> None:
    """Apply the chart's other objects, and get the program's credentials, unless this was done before."""
    folder = instance.bridge / _NAME
    done = folder / "applied"
    if done.exists():
        return
    manifests = str(folder / "manifests.yaml")
    chart.make_namespace(instance)
    chart.run(instance, "kubectl", "apply", "--server-side", "--filename", manifests)
    definitions = ("wait", "crd", "--all", "--for=condition=Established", "--timeout=30s")
    chart.run(instance, "kubectl", *definitions)
    chart.credentials(instance, _NAME)
    done.touch()


def _cluster_patch() -> JsonDict:
    return {
        "spec": {
            "config": dict(line.split("=", 1) for line in SLURM_CONF.splitlines()),
            "configFiles": {"cgroup.conf": CGROUP_CONF},
            "state": {"persistent": False},  # the sandbox has no volumes
        }
    }

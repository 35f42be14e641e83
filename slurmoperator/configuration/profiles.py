"""Configuration for workers with the profile plain: Slurm has no control groups there and cannot mount.

Slurm has one way to track processes for all nodes (slurm.conf(5), ProctrackType), so all NodeSets of a Controller have one profile.
"""

from collections.abc import Iterator
from typing import Final

from slurmoperator.configuration import lines
from slurmoperator.configuration.inputs import ConfigurationInputs
from slurmoperator.configuration.lines import Setting
from slurmoperator.objects.own.profiles import WorkerProfile, profile_of
from slurmruntime.values.faults import Fault

PRIVILEGED_CGROUP: Final = "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n"
PLAIN_CGROUP: Final = "CgroupPlugin=disabled\n"
_PLAIN: Final = (
    Setting("ProctrackType", "proctrack/linuxproc"),
    Setting("TaskPlugin", "task/none"),
    Setting("JobAcctGatherType", "jobacct_gather/linux"),
)
_MOUNT: Final = frozenset({"jobcontainertype", "namespacetype"})


def settings(inputs: ConfigurationInputs) -> tuple[Setting, ...]:
    """Return the settings that the workers' profile needs in slurm.conf."""
    return _PLAIN if _is_plain(inputs) else ()


def cgroup_conf(inputs: ConfigurationInputs) -> str:
    """Return the cgroup.conf to use if no ConfigMap brings one."""
    return PLAIN_CGROUP if _is_plain(inputs) else PRIVILEGED_CGROUP


def faults(inputs: ConfigurationInputs) -> Iterator[Fault]:
    """Find NodeSets with different profiles, and configuration that plain workers cannot have."""
    plain: list[str] = []
    others: list[str] = []
    for node_set in inputs.sorted_node_sets:
        is_plain = profile_of(node_set) is WorkerProfile.PLAIN
        (plain if is_plain else others).append(node_set.metadata.name)
    if not plain:
        return
    if others:
        yield Fault(
            f"NodeSet {others[0]} metadata.annotations",
            f"NodeSet {plain[0]} has the profile plain and this one does not: Slurm tracks processes in one way on all"
            " nodes; expected the same profile",
        )
        return
    keys = {setting.key.lower() for setting in _PLAIN}
    for line in lines.read(inputs.controller.spec.extra_conf):
        for setting in line.settings:
            at, key = f"spec.extraConf line {line.number}", setting.key.lower()
            if key in keys and "cgroup" in setting.value.lower():
                text = (
                    f"{setting.key}={setting.value}: workers with the profile plain have no cgroups"
                )
                yield Fault(at, text)
            elif key in _MOUNT and not setting.value.lower().endswith("/none"):
                yield Fault(at, f"{setting.key}: workers with the profile plain cannot mount")
    brought = inputs.files("config_file_refs").get("cgroup.conf")
    if brought is not None and not _is_disabled(brought):
        text = "workers with the profile plain have no cgroups: expected CgroupPlugin=disabled, or no such file"
        yield Fault("spec.configFileRefs cgroup.conf", text)


def _is_plain(inputs: ConfigurationInputs) -> bool:
    return any(profile_of(node_set) is WorkerProfile.PLAIN for node_set in inputs.node_sets)


def _is_disabled(cgroup: str) -> bool:
    return any(
        (setting.key.lower(), setting.value.lower()) == ("cgroupplugin", "disabled")
        for setting in lines.settings(cgroup)
    )

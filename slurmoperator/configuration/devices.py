"""Devices of workers (GRES): their kinds for slurm.conf, and gres.conf, which tells slurmd how to find them."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from slurmoperator.configuration.inputs import ConfigurationInputs
from slurmoperator.objects.nodeset import NodeSetObject
from slurmruntime.model.objects import JsonObject
from slurmruntime.values.faults import Fault

_KIND: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_BY_RESOURCE: Final[Mapping[str, str]] = {
    "nvidia.com/": "nvidia",
    "amd.com/": "rsmi",
    "gpu.intel.com/": "oneapi",
}
"""The `AutoDetect` by which slurmd finds the devices of a resource with this prefix."""


def kinds(node_sets: tuple[NodeSetObject, ...]) -> tuple[str, ...]:
    """Return the kinds that NodeSets have: Slurm silently drops those that GresTypes does not list."""
    return tuple(sorted({kind for node_set in node_sets for kind in _kinds(node_set)}))


def gres_conf(inputs: ConfigurationInputs) -> str:
    """Return gres.conf; "" if no NodeSet has GPUs, or no single `AutoDetect` finds them."""
    finders = {
        _auto_detect(node_set) for node_set in inputs.node_sets if "gpu" in _kinds(node_set)
    } - {""}
    return f"AutoDetect={finders.pop()}\n" if len(finders) == 1 else ""


def faults(inputs: ConfigurationInputs) -> Iterator[Fault]:
    """Find kinds that slurm.conf cannot hold, and GPUs that slurmd would not find."""
    for node_set in inputs.sorted_node_sets:
        for kind in _kinds(node_set):
            if not _KIND.fullmatch(kind):
                text = f"Gres: expected a kind such as gpu, made of letters, digits, - and _, found {kind[:80]!r}"
                yield Fault(f"NodeSet {node_set.metadata.name} spec.extraConf", text)
    if "gres.conf" in inputs.files("config_file_refs"):
        return
    with_gpus = [node_set for node_set in inputs.sorted_node_sets if "gpu" in _kinds(node_set)]
    finders = {node_set.metadata.name: _auto_detect(node_set) for node_set in with_gpus}
    for name, finder in finders.items():
        if not finder:
            yield Fault(
                f"NodeSet {name} spec.extraConf",
                "it has GPUs, but nothing says how slurmd finds them: expected a limit for a known"
                " resource, such as nvidia.com/gpu, in spec.slurmd.resources, or a gres.conf in one"
                " of the Controller's configFileRefs",
            )
    if len(set(filter(None, finders.values()))) > 1:
        text = "NodeSets have GPUs of several vendors: expected a ConfigMap with a gres.conf that tells their nodes apart"
        yield Fault("spec.configFileRefs", text)


def _kinds(node_set: NodeSetObject) -> tuple[str, ...]:
    gres_kinds: list[str] = []
    for word in node_set.spec.extra_conf.split():
        key, _, value = word.partition("=")
        if key.lower() == "gres":
            devices = value.strip('"').split(",")
            gres_kinds += [device.partition(":")[0] for device in devices if device]
    return tuple(gres_kinds)


def _auto_detect(node_set: NodeSetObject) -> str:
    container: JsonObject = node_set.spec.slurmd or {}
    resources = container.get("resources")
    limits = resources.get("limits") if isinstance(resources, dict) else None
    for resource in sorted(limits) if isinstance(limits, dict) else ():
        for prefix, finder in _BY_RESOURCE.items():
            if resource.startswith(prefix):
                return finder
    return ""

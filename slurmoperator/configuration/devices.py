"""Devices of workers (GRES): their kinds in slurm.conf, and gres.conf, which says how a slurmd finds them."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from slurmoperator.configuration.inputs import ConfigurationInputs
from slurmoperator.objects.nodeset import NodeSetObject
from slurmruntime.values.faults import Fault

_KIND: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_BY_RESOURCE: Final[Mapping[str, str]] = {
    "nvidia.com/": "nvidia",
    "amd.com/": "rsmi",
    "gpu.intel.com/": "oneapi",
}
"""How slurmd finds the devices that a container gets by a resource of this prefix."""


def kinds(node_sets: tuple[NodeSetObject, ...]) -> tuple[str, ...]:
    """Return the kinds that NodeSets have: Slurm drops, without a word, what GresTypes does not name."""
    return tuple(sorted({kind for each in node_sets for kind in _kinds(each)}))


def gres_conf(inputs: ConfigurationInputs) -> str:
    """Return gres.conf; "" if no NodeSet has GPUs, or it is not known how to find them."""
    found = {_finder(each) for each in inputs.node_sets if "gpu" in _kinds(each)} - {""}
    return f"AutoDetect={found.pop()}\n" if len(found) == 1 else ""


def faults(inputs: ConfigurationInputs) -> Iterator[Fault]:
    """Find kinds that Slurm's file cannot name, and GPUs that no slurmd would find."""
    for node_set in inputs.sorted_node_sets:
        for kind in _kinds(node_set):
            if not _KIND.fullmatch(kind):
                yield Fault(
                    f"NodeSet {node_set.metadata.name} spec.extraConf",
                    f"Gres: expected a kind such as gpu, of letters, digits, - and _, found {kind[:80]!r}",
                )
    if "gres.conf" in inputs.files("config_file_refs"):
        return
    with_gpus = [each for each in inputs.sorted_node_sets if "gpu" in _kinds(each)]
    finders = {each.metadata.name: _finder(each) for each in with_gpus}
    for name, finder in finders.items():
        if not finder:
            yield Fault(
                f"NodeSet {name} spec.extraConf",
                "it has GPUs, and nothing says how slurmd finds them: expected a limit of a known"
                " resource, such as nvidia.com/gpu, in spec.slurmd.resources, or gres.conf in one"
                " of the Controller's configFileRefs",
            )
    if len(set(filter(None, finders.values()))) > 1:
        yield Fault(
            "spec.configFileRefs",
            "NodeSets have GPUs of several makers: expected a ConfigMap with gres.conf that tells"
            " their nodes apart",
        )


def _kinds(node_set: NodeSetObject) -> tuple[str, ...]:
    found = []
    for word in node_set.spec.extra_conf.split():
        key, _, value = word.partition("=")
        if key.lower() == "gres":
            found += [each.partition(":")[0] for each in value.strip('"').split(",") if each]
    return tuple(found)


def _finder(node_set: NodeSetObject) -> str:
    container: Mapping[str, Any] = node_set.spec.slurmd or {}
    resources = container.get("resources")
    limits = resources.get("limits") if isinstance(resources, dict) else None
    for resource in sorted(limits) if isinstance(limits, dict) else ():
        for prefix, finder in _BY_RESOURCE.items():
            if resource.startswith(prefix):
                return finder
    return ""

"""The objects and ConfigMaps that a configuration is made from, as of one moment."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from slurmoperator.objects.accounting import AccountingObject
from slurmoperator.objects.controller import ControllerObject
from slurmoperator.objects.nodeset import NodeSetObject
from slurmruntime.values.faults import Fault

_OURS: Final = frozenset(
    {"slurm.conf", "slurmdbd.conf", "slurm.key", "slurm.jwks", "jwt.key", "jwks.json", ".written"}
)
"""Files that no ConfigMap may bring: slurm-operator generates them, or they come from Secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationInputs:
    """Everything that decides what Slurm's files contain."""

    controller: ControllerObject
    accounting: AccountingObject | None = None
    """The one that `accountingRef` names; None if there is none, or it does not exist."""
    node_sets: tuple[NodeSetObject, ...] = ()
    config_maps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The data of those in its namespace that it refers to and that exist, by name."""
    obsolete_partitions: tuple[str, ...] = ()
    """Lines of removed partitions that jobs may still have; see `partitions`."""

    @property
    def sorted_node_sets(self) -> tuple[NodeSetObject, ...]:
        """The NodeSets in the order of slurm.conf."""
        return tuple(sorted(self.node_sets, key=lambda node_set: node_set.metadata.name))

    def files(self, reference: str) -> Mapping[str, str]:
        """Return the files that the ConfigMaps of one list of references, one of `REFERENCES`, bring."""
        files: dict[str, str] = {}
        for config_map in getattr(self.controller.spec, reference) or ():
            files.update(self.config_maps.get(config_map.name, {}))
        return files


REFERENCES: Final[Mapping[str, str]] = {
    "config_file_refs": "configFileRefs",
    "prolog_script_refs": "prologScriptRefs",
    "epilog_script_refs": "epilogScriptRefs",
    "prolog_slurmctld_script_refs": "prologSlurmctldScriptRefs",
    "epilog_slurmctld_script_refs": "epilogSlurmctldScriptRefs",
}
"""The Controller's lists of ConfigMaps, by the names of the types and of the objects."""


def config_maps(controller: ControllerObject) -> Sequence[str]:
    """Return the names of the ConfigMaps that it refers to."""
    lists = (getattr(controller.spec, field) or () for field in REFERENCES)
    return sorted({reference.name for references in lists for reference in references})


def faults(inputs: ConfigurationInputs) -> Iterator[Fault]:
    """Find missing objects, files that two ConfigMaps bring, and files that would replace generated ones."""
    ref = inputs.controller.spec.accounting_ref
    if ref is not None and inputs.accounting is None:
        text = f"there is no Accounting {ref.name} in this namespace"
        yield Fault("spec.accountingRef.name", text)
    brought: dict[str, str] = {}
    for attribute, name in REFERENCES.items():
        references = getattr(inputs.controller.spec, attribute) or ()
        for index, config_map in enumerate(references):
            at = f"spec.{name}[{index}].name"
            data = inputs.config_maps.get(config_map.name)
            if data is None:
                yield Fault(at, f"there is no ConfigMap {config_map.name} in this namespace")
                continue
            for file in sorted(data):
                if file in _OURS:
                    text = f"ConfigMap {config_map.name} has {file}, which slurm-operator generates: use extraConf"
                    yield Fault(at, text)
                elif brought.setdefault(file, config_map.name) != config_map.name:
                    text = f"ConfigMaps {brought[file]} and {config_map.name} both have {file}"
                    yield Fault(at, text)

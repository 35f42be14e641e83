"""What a configuration is made from: objects and ConfigMaps, as they are at one moment."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from bridge.domain.faults import Fault
from cluster.objects.accounting import AccountingObject
from cluster.objects.controller import ControllerObject
from cluster.objects.nodeset import NodeSetObject

_OURS: Final = frozenset(
    {"slurm.conf", "slurmdbd.conf", "slurm.key", "slurm.jwks", "jwt.key", "jwks.json", ".written"}
)
"""Files that no ConfigMap may bring: they are made, or come from Secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationInputs:
    """All that decides what Slurm's files say."""

    controller: ControllerObject
    accounting: AccountingObject | None = None
    """The one that `accountingRef` names; None if there is none, or it does not exist."""
    node_sets: tuple[NodeSetObject, ...] = ()
    """Of this Controller, in any order."""
    config_maps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The data of those in its namespace that it refers to and that exist, by name."""
    kept_partitions: tuple[str, ...] = ()
    """Lines of partitions that nobody wants any more, and that jobs have."""

    @property
    def sorted_node_sets(self) -> tuple[NodeSetObject, ...]:
        """The NodeSets in the order in which they stand in slurm.conf."""
        return tuple(sorted(self.node_sets, key=lambda each: each.metadata.name))

    def files(self, reference: str) -> Mapping[str, str]:
        """Return the files that the ConfigMaps of one list of references bring.

        Args:
            reference: one of `REFERENCES`.
        """
        found: dict[str, str] = {}
        for each in getattr(self.controller.spec, reference) or ():
            found.update(self.config_maps.get(each.name, {}))
        return found


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
    lists = (getattr(controller.spec, each) or () for each in REFERENCES)
    return sorted({each.name for names in lists for each in names})


def faults(inputs: ConfigurationInputs) -> Iterator[Fault]:
    """Find what is missing, what is there twice, and what would overwrite our own files."""
    wanted = inputs.controller.spec.accounting_ref
    if wanted is not None and inputs.accounting is None:
        yield Fault("spec.accountingRef.name", f"there is no Accounting {wanted.name} here")
    brought: dict[str, str] = {}
    for attribute, name in REFERENCES.items():
        references = getattr(inputs.controller.spec, attribute) or ()
        for index, each in enumerate(references):
            at = f"spec.{name}[{index}].name"
            data = inputs.config_maps.get(each.name)
            if data is None:
                yield Fault(at, f"there is no ConfigMap {each.name} here")
                continue
            for file in sorted(data):
                if file in _OURS:
                    text = f"ConfigMap {each.name} has {file}, which we make: use extraConf"
                    yield Fault(at, text)
                elif brought.setdefault(file, each.name) != each.name:
                    text = f"ConfigMaps {brought[file]} and {each.name} both have {file}"
                    yield Fault(at, text)

"""The files of a cluster as one set that is checked and has a digest."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from bridge.domain import faults as bounds
from bridge.domain.faults import Fault, Refused
from cluster.configuration import checking, devices, inputs, profiles, slurm_conf
from cluster.configuration.inputs import REFERENCES, ConfigurationInputs

MOST_BYTES: Final = 1_000_000
"""Of all files together: they are projected from ConfigMaps, and an object has 1 MiB at most."""

UNNAMED: Final = "-"
"""A write, where writes are not told apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationSet:
    """Files that belong together."""

    files: Mapping[str, str]
    made: frozenset[str]
    """The files that we make; the others are in the ConfigMaps that the Controller names."""
    written: str = UNNAMED
    """Which write of them it is; the same files may be written again after others."""

    @property
    def digest(self) -> str:
        """Return what only this set has: 64 hexadecimal digits, over names and contents, as sha256sum prints them.

        A pod makes the same of the files that its kubelet has brought.
        """
        lines = (
            f"{hashlib.sha256(content.encode()).hexdigest()}  {name}\n"
            for name, content in sorted(self.files.items())
        )
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    @property
    def tag(self) -> str:
        """Return what only this write of this set has: its digest, and the write, as a pod says them."""
        return f"{self.digest} {self.written}"


def render(given: ConfigurationInputs) -> ConfigurationSet | Refused:
    """Return the files, or all that is wrong: then what is in force stays."""
    if found := bounds.bounded(_faults(given)):
        return Refused(found)
    made = {"slurm.conf": slurm_conf.text(given)}
    brought: dict[str, str] = {}
    if not given.controller.spec.external:
        for reference in REFERENCES:
            brought.update(given.files(reference))
        if "cgroup.conf" not in brought:
            made["cgroup.conf"] = profiles.cgroup_conf(given)
        if "gres.conf" not in brought and (found_devices := devices.gres_conf(given)):
            made["gres.conf"] = found_devices
    return ConfigurationSet(files=MappingProxyType({**brought, **made}), made=frozenset(made))


def _faults(given: ConfigurationInputs) -> Iterator[Fault]:
    yield from inputs.faults(given)
    if given.controller.spec.external:
        return
    yield from slurm_conf.faults(given)
    yield from devices.faults(given)
    yield from profiles.faults(given)
    spec = given.controller.spec
    total = len(spec.extra_conf)
    for index, each in enumerate(spec.config_file_refs or ()):
        for file, content in sorted(given.config_maps.get(each.name, {}).items()):
            yield from checking.check(
                file, content, f"spec.configFileRefs[{index}] ConfigMap {each.name} {file}"
            )
    total += sum(len(text) for name in REFERENCES for text in given.files(name).values())
    if total > MOST_BYTES:
        yield Fault("spec", f"expected files of at most {MOST_BYTES} bytes together, found {total}")

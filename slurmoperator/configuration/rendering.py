"""Render the files of a cluster as one set that is checked and has a digest."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from slurmoperator.configuration import checking, devices, inputs, lines, profiles, slurm_conf
from slurmoperator.configuration.inputs import REFERENCES, ConfigurationInputs
from slurmruntime.values.faults import Fault, require_none

MOST_BYTES: Final = 1_000_000
"""Of all files together: they are projected from ConfigMaps, and an object is limited to 1 MiB."""
UNNAMED_WRITE: Final = "-"
"""Where writes are not distinguished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationSet:
    """Files that belong together."""

    files: Mapping[str, str]
    write: str = UNNAMED_WRITE
    """Which write of these files this is: the same files may be written again after others."""

    @property
    def digest(self) -> str:
        """The SHA-256 over names and contents, 64 hexadecimal digits, in the format of sha256sum: a pod computes the same from the files that it has mounted."""
        lines = (
            f"{hashlib.sha256(content.encode()).hexdigest()}  {name}\n"
            for name, content in sorted(self.files.items())
        )
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    @property
    def tag(self) -> str:
        """Return the digest and the write, in the form in which a pod reports them."""
        return f"{self.digest} {self.write}"


@dataclass(frozen=True, slots=True)
class FilesInForce:
    """The configuration files that a daemon has."""

    files: ConfigurationSet
    is_proven: bool
    """Whether the daemon has been seen serving with them."""

    @classmethod
    def stored(cls, files: Mapping[str, str], proven: str) -> "FilesInForce":
        """Return stored files, with the tag of those that the daemon has served with."""
        digest, _, write = proven.partition(" ")
        write = write or UNNAMED_WRITE
        files_set = ConfigurationSet(files=files, write=write)
        return cls(files_set, is_proven=digest == files_set.digest)

    def is_proven_to_be(self, files: ConfigurationSet) -> bool:
        """Check whether this write of these files is in force and proven."""
        return self.is_proven and self.files.tag == files.tag


def render(sources: ConfigurationInputs) -> ConfigurationSet:
    """Return the files.

    Raises:
        Refusal: with everything that is wrong; the files in force then stay.
    """
    require_none(_faults(sources))
    generated = {"slurm.conf": slurm_conf.text(sources)}
    brought: dict[str, str] = {}
    if not sources.controller.spec.external:
        for reference in REFERENCES:
            brought.update(sources.files(reference))
        if "cgroup.conf" not in brought:
            generated["cgroup.conf"] = profiles.cgroup_conf(sources)
        if "gres.conf" not in brought and (gres_conf := devices.gres_conf(sources)):
            generated["gres.conf"] = gres_conf
    return ConfigurationSet(files=MappingProxyType({**brought, **generated}))


def _faults(sources: ConfigurationInputs) -> Iterator[Fault]:
    yield from inputs.faults(sources)
    if sources.controller.spec.external:
        return
    if too_long := tuple(lines.excess(sources.controller.spec.extra_conf)):
        yield from too_long
        return
    yield from slurm_conf.faults(sources)
    yield from devices.faults(sources)
    yield from profiles.faults(sources)
    spec = sources.controller.spec
    total = len(spec.extra_conf)
    for index, config_map in enumerate(spec.config_file_refs or ()):
        for file, content in sorted(sources.config_maps.get(config_map.name, {}).items()):
            yield from checking.check(
                file, content, f"spec.configFileRefs[{index}] ConfigMap {config_map.name} {file}"
            )
    total += sum(len(text) for name in REFERENCES for text in sources.files(name).values())
    if total > MOST_BYTES:
        text = f"expected at most {MOST_BYTES} bytes in all files together, found {total}"
        yield Fault("spec", text)

"""How a site wants old manifests translated; `bridge.settings.sylabs` reads it from the settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, Self

from slurmjobs.objects.results import ResultTarget
from slurmjobs.objects.spec import JobOutput
from slurmjobs.sylabs.spec import Mount


class SiteSettings(Protocol):
    """The settings that a site is made from: `sylabs` in docs/settings.md."""

    @property
    def constraints(self) -> Mapping[str, str]:
        """As in `SylabsSite`."""

    @property
    def ssh_rules(self) -> Mapping[str, str]:
        """As in `SylabsSite`."""

    @property
    def output_claim(self) -> str:
        """A claim; "" for none."""

    @property
    def output_path(self) -> str:
        """Where Slurm's nodes mount that claim."""

    @property
    def volumes(self) -> Mapping[str, str]:
        """As in `SylabsSite`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SylabsSite:
    """The site's rules for translating old manifests."""

    constraints: Mapping[str, str] = field(default_factory=dict)
    """`label=value` of a nodeSelector → the equivalent node features; "" for none."""
    ssh_rules: Mapping[str, str] = field(default_factory=dict)
    """`spec.ssh.user` → the policy rule that decides whose jobs those are."""
    output: JobOutput | None = None
    """The claim with the cluster's files, which each of their namespaces must have."""
    volumes: Mapping[str, str] = field(default_factory=dict)
    """`/path` of a hostPath or `server:/path` of an nfs → the equivalent claim, or `claim/folder`."""

    @classmethod
    def of(cls, configured: SiteSettings) -> Self:
        """Build it from the settings."""
        claim, path = configured.output_claim, configured.output_path
        return cls(
            constraints=configured.constraints,
            ssh_rules=configured.ssh_rules,
            output=JobOutput(claim_name=claim, cluster_path=path) if claim else None,
            volumes=configured.volumes,
        )

    def target(self, mount: Mount) -> ResultTarget | None:
        """Return the claim and folder for a volume; None if the settings have none."""
        if mount.persistent_volume_claim is not None:
            return ResultTarget(claim_name=mount.persistent_volume_claim.claim_name)
        if mount.nfs is not None:
            place = f"{mount.nfs.server}:{mount.nfs.path}"
        elif mount.host_path is not None:
            place = mount.host_path.path
        else:
            return None
        for known in sorted(self.volumes, key=len, reverse=True):
            above = known.rstrip("/")
            if place == above or place.startswith(f"{above}/"):
                claim, _, folder = self.volumes[known].partition("/")
                parts = [folder, *place.removeprefix(above).split("/")]
                return ResultTarget(claim_name=claim, path="/".join(filter(None, parts)))
        return None

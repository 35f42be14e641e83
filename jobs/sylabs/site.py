"""What an administrator says about old manifests; `bridge.settings.sylabs` has it from the settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class SylabsSite:
    """How old manifests are understood here."""

    constraints: Mapping[str, str] = field(default_factory=dict)
    """`label=value` of a nodeSelector → the node features that it stands for; "" for none."""
    ssh_rules: Mapping[str, str] = field(default_factory=dict)
    """`spec.ssh.user` → the policy rule that decides whose jobs those are."""
    addresses: frozenset[str] = frozenset()
    """Hosts under which our Slurm is known, in lower case."""

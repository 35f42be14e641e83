"""What one pod needs of a node."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Whole CPUs and MiB, as Slurm counts; the exact Kubernetes amounts beside them for the fit check."""

    cpus: int = 1
    memory_mib: int = 1
    gres: Mapping[str, int] = field(default_factory=dict)
    """Slurm GRES name (`gpu`, `gpu:a100`) → count."""
    milli_cpu: int = 0
    """Kubernetes' own books, thousandths of a CPU, not rounded up."""
    memory_bytes: int = 0
    ephemeral_storage_bytes: int = 0
    extended: Mapping[str, int] = field(default_factory=dict)
    """Extended resource name (`nvidia.com/gpu`) → count, as Kubernetes names them."""

"""What can be done about a node: in Slurm, on the Kubernetes node, and with placeholders that name it."""

from dataclasses import dataclass

from bridge.domain import names
from bridge.domain.ids import JobId, KubeNode, Sluid, SlurmNode
from bridge.domain.model.nodes import NodeCondition, SlurmNodeSpec, Taint


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Create an external node; where one of that name is there already, what follows waits for another look."""

    spec: SlurmNodeSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Delete a Slurm node; Slurm refuses while jobs run there, then it is tried again at the next look."""

    slurm_node: SlurmNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """Let running jobs finish and start no others; of a node that is drained only the reason changes."""

    slurm_node: SlurmNode
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Undrain:
    """Take our own drain back."""

    slurm_node: SlurmNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Down:
    """Declare the node lost: its jobs end as NODE_FAIL at once."""

    slurm_node: SlurmNode
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """Take our own DOWN back, and a drain with it."""

    slurm_node: SlurmNode


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFeatures:
    """Replace a Slurm node's features, available and active ones."""

    slurm_node: SlurmNode
    features: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewPartitions:
    """Let Slurm look anew which nodes its partitions have: create a node that nobody needs, and delete it."""

    spare: SlurmNodeSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAddress:
    """Replace a Slurm node's NodeAddr."""

    slurm_node: SlurmNode
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTopology:
    """Move a Slurm node in the topology; "" takes it out."""

    slurm_node: SlurmNode
    topology: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetWeight:
    """Replace a Slurm node's weight."""

    slurm_node: SlurmNode
    weight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """Write the node lists of a waiting placeholder anew, without a node that is about to be deleted."""

    job_id: JobId
    sluid: Sluid | None
    required_nodes: tuple[SlurmNode, ...]
    excluded_nodes: tuple[SlurmNode, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdraw:
    """Cancel a waiting placeholder that could go nowhere else, the cause written down first: it is submitted again."""

    job_id: JobId
    sluid: Sluid | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTaint:
    """Put our taint on the Kubernetes node, or replace one with the same key."""

    kube_node: KubeNode
    taint: Taint


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveTaint:
    """Take our taint off the Kubernetes node."""

    kube_node: KubeNode
    key: str = names.MANAGED_NODE_TAINT


@dataclass(frozen=True, slots=True, kw_only=True)
class Cordon:
    """Cordon the Kubernetes node, with our mark beside it."""

    kube_node: KubeNode
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncordon:
    """Take our mark off, and with it the cordon, if somebody has not lifted it already."""

    kube_node: KubeNode


@dataclass(frozen=True, slots=True, kw_only=True)
class SetCondition:
    """Say on the Kubernetes node what it is in Slurm."""

    kube_node: KubeNode
    condition: NodeCondition


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveCondition:
    """Slurm has nothing to do with the node any more: take the condition away."""

    kube_node: KubeNode
    type: str = names.SLURM_STATE_CONDITION


NodeAction = (
    Create
    | Delete
    | Drain
    | Undrain
    | Down
    | Resume
    | SetFeatures
    | RenewPartitions
    | SetAddress
    | SetTopology
    | SetWeight
    | Rename
    | Withdraw
    | SetTaint
    | RemoveTaint
    | Cordon
    | Uncordon
    | SetCondition
    | RemoveCondition
)

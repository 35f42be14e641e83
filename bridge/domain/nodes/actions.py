"""The actions on a node: in Slurm, on the Kubernetes node, and on placeholders that name it."""

from dataclasses import dataclass
from typing import Literal

from slurmruntime.model.nodes import NodeCondition, SlurmNodeFacts, SlurmNodeSpec, Taint
from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId, JobId, KubeNode, Sluid, SlurmNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Create an external node.

    If Slurm already has a node of that name, the actions after this one wait for the next pass.
    """

    spec: SlurmNodeSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Delete a Slurm node. Slurm refuses while jobs run there; the next pass tries again."""

    slurm_node: SlurmNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """Let running jobs finish and start no others.

    On a node that is already drained, only the reason changes.
    """

    slurm_node: SlurmNode
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Undrain:
    """Lift our own drains, of all these nodes between two passes of Slurm's scheduler."""

    slurm_nodes: tuple[SlurmNode, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Down:
    """Declare the node lost: its jobs end as NODE_FAIL at once."""

    slurm_node: SlurmNode
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """Lift our own DOWN, and a drain with it."""

    slurm_node: SlurmNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Respond:
    """Make Slurm treat an external node as responding; its NodeAddr must be set afterwards.

    The next list of nodes shows whether that helped.
    """

    slurm_node: SlurmNode
    record: SlurmNodeFacts
    """The node as Slurm has it: the registration must not offer less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFeatures:
    """Replace a Slurm node's features, both available and active."""

    slurm_node: SlurmNode
    features: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewPartitions:
    """Make Slurm rebuild the node lists of its partitions.

    Slurm does so when any node is created or deleted, so this creates a spare node and deletes it
    again.
    """

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
    """Rewrite a waiting placeholder's node lists without a node that is about to be deleted."""

    job_id: JobId
    sluid: Sluid | None
    required_nodes: tuple[SlurmNode, ...]
    excluded_nodes: tuple[SlurmNode, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdraw:
    """Cancel a waiting placeholder that could run nowhere else, and record the cause first.

    The workload is then submitted again.
    """

    job_id: JobId
    sluid: Sluid | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """Remove a node that Slurm does not have from the lists of placeholders.

    Slurm refuses any update of a job that names such a node, so a node record of that name stands
    in meanwhile.
    """

    slurm_node: SlurmNode
    cluster: ClusterId
    """Whose mark that record has."""
    changes: tuple[Rename | Withdraw, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTaint:
    """Put our taint on the Kubernetes node, or replace the one with the same key."""

    kube_node: KubeNode
    taint: Taint


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveTaint:
    """Remove our taint from the Kubernetes node."""

    kube_node: KubeNode
    key: str = names.MANAGED_NODE_TAINT


@dataclass(frozen=True, slots=True, kw_only=True)
class Cordon:
    """Cordon the Kubernetes node and mark the cordon as ours."""

    kube_node: KubeNode
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncordon:
    """Remove our mark, and the cordon with it unless it has already been lifted."""

    kube_node: KubeNode


@dataclass(frozen=True, slots=True, kw_only=True)
class SetCondition:
    """Show the node's state in Slurm as a condition of the Kubernetes node."""

    kube_node: KubeNode
    condition: NodeCondition
    event: Literal["", "Normal", "Warning"] = ""
    """The type of the Event that tells of it; "" if it is no news."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveCondition:
    """Remove the condition: Slurm no longer has anything to do with the node."""

    kube_node: KubeNode
    type: str = names.SLURM_STATE_CONDITION


NodeAction = (
    Create
    | Delete
    | Drain
    | Undrain
    | Down
    | Resume
    | Respond
    | SetFeatures
    | RenewPartitions
    | SetAddress
    | SetTopology
    | SetWeight
    | Rename
    | Withdraw
    | Forget
    | SetTaint
    | RemoveTaint
    | Cordon
    | Uncordon
    | SetCondition
    | RemoveCondition
)

"""The options of a sandbox, chosen at `sandbox up`."""

from dataclasses import dataclass
from typing import Annotated

import typer

from sandbox.realnodes.network import MOST_NODES

WORKLOADS = ("jobset", "lws", "coscheduling")
"""The values of `--workloads`."""
OPERATED_NODES = 4
"""Default number of real nodes in a sandbox with slurm-operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Which parts run, and the shape of the nodes they see; each field is an option of `sandbox up`."""

    nodes: Annotated[int, typer.Option(help="Nodes for Slurm.")] = 4
    """KWOK nodes: node-0, node-1 …"""
    plain_nodes: Annotated[int, typer.Option(help="Other nodes.")] = 1
    """KWOK nodes that Slurm does not know: plain-0 …"""
    node_cpus: Annotated[int, typer.Option(help="CPUs per node.")] = 8
    node_memory_mib: Annotated[int, typer.Option(help="Memory per node, MiB.")] = 32 * 1024
    node_gpus: Annotated[int, typer.Option(help="GPUs per node for Slurm.")] = 4
    """Of the resource nvidia.com/gpu; in Slurm gres/gpu. Plain nodes have none."""
    accounting: Annotated[bool, typer.Option(help="slurmdbd and mariadb: sacct, limits.")] = False
    bridge: Annotated[
        bool,
        typer.Option(
            help="Run the bridge's three services.", show_default="yes, without --operator"
        ),
    ] = True
    """Webhook, extender, controllers and the bridge's scheduler, from `deploy/chart`; needs both clusters."""
    real_nodes: Annotated[
        int, typer.Option(min=0, max=MOST_NODES, help="Nodes with real containers; needs root.")
    ] = 0
    """They have a real kubelet and are labelled for Slurm: real-0 …"""
    real_memory_mib: Annotated[int, typer.Option(min=512, help="Memory of a real node, MiB.")] = (
        2048
    )
    """The memory that its kubelet sees; its processors are this machine's."""
    real_gpus: Annotated[int, typer.Option(min=0, help="Fake GPUs of each real node.")] = 0
    """From a device plugin; counted as nvidia.com/gpu."""
    real_dra: Annotated[
        int, typer.Option(min=0, max=100, help="Devices of each real node for resource claims.")
    ] = 0
    """In a ResourceSlice, from Kubernetes' own DRA test driver."""
    real_network: Annotated[
        str, typer.Option(help="The /16 of the real nodes.", show_default="a free one")
    ] = ""
    dns: Annotated[bool, typer.Option(help="CoreDNS for the pods of real nodes.")] = False
    compute: Annotated[
        int, typer.Option(min=0, help="Nodes that run batch scripts; SlurmJobs; needs root.")
    ] = 0
    """Nodes with a slurmd that Kubernetes does not know: compute-0 …"""
    hybrid: Annotated[
        bool,
        typer.Option(help="A slurmd on every real node, or on one more simulated one; needs root."),
    ] = False
    hybrid_gpus: Annotated[
        int, typer.Option(min=0, help="Fake GPUs of that node, in both systems.")
    ] = 0
    """Fake GPUs of the additional node."""
    operator: Annotated[
        bool,
        typer.Option(help="slurm-operator and four real nodes for a Slurm in pods; needs root."),
    ] = False
    """Needs real nodes and DNS."""
    escrow: Annotated[
        bool, typer.Option(help="Hold native jobs back while containers stop: docs/escrow.md.")
    ] = False
    """The bridge's PrologSlurmctld and EpilogSlurmctld."""
    together: Annotated[bool, typer.Option(help="Extender and controllers as one process.")] = False
    """The process is then the part `extender`: docs/install.md."""
    audit: Annotated[bool, typer.Option(help="Log the API requests of service accounts.")] = False
    """Of those outside kube-system, to `Instance.audit_log`."""
    data_parser: Annotated[
        str,
        typer.Option(help="slurmrestd's only data parser, such as v0.0.43.", show_default="all"),
    ] = ""
    """slurmrestd then answers as an older release."""
    kubernetes: Annotated[bool, typer.Option(help="Run the Kubernetes side.")] = True
    """etcd, API server, controller manager, scheduler and KWOK."""
    slurm: Annotated[bool, typer.Option(help="Run the Slurm side.")] = True
    """slurmctld and slurmrestd."""
    feature_gates: Annotated[
        tuple[str, ...],
        typer.Option("--feature-gate", help="Kubernetes alpha feature to enable; repeatable."),
    ] = ()
    """With their APIs: `GenericWorkload` for in-tree pod groups."""
    workloads: Annotated[
        tuple[str, ...],
        typer.Option(help=f"Real controllers of workload kinds: {','.join(WORKLOADS)}."),
    ] = ()
    settings: Annotated[
        tuple[str, ...],
        typer.Option(
            "--set", help="Setting of the bridge, such as controllers.start_deadline_s=20."
        ),
    ] = ()
    """docs/settings.md lists them."""
    values: Annotated[
        tuple[str, ...],
        typer.Option("--value", help="Value of the bridge's chart, such as admission.calls=one."),
    ] = ()
    """deploy/chart/README.md lists them."""
    hurried: Annotated[
        bool, typer.Option(help="Shorten leases, orphan checks and self-tests to seconds.")
    ] = True
    """Detect a killed leader, an orphan or a broken webhook within seconds; False: as everywhere
    else, which costs less.
    """
    lease_s: Annotated[
        int,
        typer.Option(min=2, help="After so many seconds a killed leader is followed, if hurried."),
    ] = 4
    """More than a busy machine may stand still."""

    @property
    def services(self) -> tuple[str, ...]:
        """The names of our own programs' parts."""
        return ("webhook", "extender") if self.together else ("webhook", "extender", "controllers")

    @property
    def slurm_services(self) -> tuple[str, ...]:
        """The services that talk to Slurm."""
        return self.services[1:]

    @property
    def node_names(self) -> tuple[str, ...]:
        """The names of Slurm's nodes, the same in both clusters."""
        return tuple(f"node-{number}" for number in range(self.nodes))

    @property
    def plain_node_names(self) -> tuple[str, ...]:
        """The names of the nodes that only Kubernetes knows."""
        return tuple(f"plain-{number}" for number in range(self.plain_nodes))

    @property
    def real_node_names(self) -> tuple[str, ...]:
        """The names of the nodes with real kubelets."""
        return tuple(f"real-{number}" for number in range(self.real_nodes))

    @property
    def compute_names(self) -> tuple[str, ...]:
        """The names of the nodes with nothing but a slurmd."""
        return tuple(f"compute-{number}" for number in range(self.compute))

    @property
    def slurmd_names(self) -> tuple[str, ...]:
        """The names of all nodes whose slurmd runs on this host: not of real ones."""
        return (*filter(None, (self.hybrid_name,)), *self.compute_names)

    @property
    def runs_jobs(self) -> bool:
        """Whether any node has a slurmd."""
        return self.hybrid or self.compute > 0

    @property
    def hybrid_name(self) -> str:
        """The name of the simulated node with a slurmd, the same in both clusters; "" for none."""
        return "hybrid-0" if self.hybrid and not self.real_nodes else ""

    @property
    def hybrid_real_names(self) -> tuple[str, ...]:
        """The names of the real nodes with a slurmd: all or none."""
        return self.real_node_names if self.hybrid else ()

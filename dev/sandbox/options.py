"""The options of a sandbox, chosen at `sandbox up`."""

from dataclasses import dataclass

OPERATED_NODES = 4
"""Default number of real nodes in a sandbox with slurm-operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Which parts run, and the shape of the nodes they see."""

    kubernetes: bool = True
    """etcd, API server, controller manager, scheduler and KWOK."""
    slurm: bool = True
    """slurmctld and slurmrestd."""
    accounting: bool = False
    """mariadb and slurmdbd too: enables sacct, accounts and limits."""
    data_parser: str = ""
    """slurmrestd's only data parser, such as `v0.0.43`: it then answers as an older release; default: all."""
    bridge: bool = True
    """Webhook, extender, controllers and the bridge's scheduler, from `deploy/chart`; needs both clusters."""
    together: bool = False
    """Extender and controllers as one process, which is then the part `extender`: docs/install.md."""
    nodes: int = 4
    """KWOK nodes labelled for Slurm: node-0, node-1 …"""
    workloads: tuple[str, ...] = ()
    """Real controllers of workload kinds: some of `sandbox.workloads.NAMES`; needs Kubernetes."""
    plain_nodes: int = 1
    """KWOK nodes that Slurm does not know: plain-0 …"""
    real_nodes: int = 0
    """Nodes with a real kubelet and real containers, labelled for Slurm: real-0 …; they need root."""
    real_memory_mib: int = 2048
    """The memory that a real node's kubelet sees; its processors are this machine's."""
    real_gpus: int = 0
    """Fake GPUs of each real node, from a device plugin; counted as nvidia.com/gpu."""
    real_dra: int = 0
    """Devices of each real node in a ResourceSlice, from Kubernetes' own DRA test driver."""
    dns: bool = False
    """CoreDNS, so that pods on real nodes find Services by name; needs real nodes."""
    real_network: str = ""
    """The /16 of real nodes and their pods; default: a free one."""
    operator: bool = False
    """slurm-operator, which builds a Slurm in pods of the real nodes; needs real nodes and DNS."""
    hybrid: bool = False
    """Slurm daemons beside kubelets: on every real node, or on one more simulated one; needs root."""
    hybrid_gpus: int = 0
    """Fake GPUs of that additional node, the same in slurmd's gres.conf and in Kubernetes."""
    escrow: bool = False
    """The bridge's PrologSlurmctld and EpilogSlurmctld: docs/escrow.md."""
    compute: int = 0
    """Nodes with a slurmd that Kubernetes does not know: compute-0 …; they run batch scripts, and need root."""
    node_cpus: int = 8
    node_memory_mib: int = 32 * 1024
    hurried: bool = True
    """Detect a killed leader, an orphan or a broken webhook within seconds; False: the default
    settings, which cost less.
    """
    node_gpus: int = 4
    """Of the resource nvidia.com/gpu; in Slurm gres/gpu. Plain nodes have none."""
    feature_gates: tuple[str, ...] = ()
    """Kubernetes alpha features to enable, with their APIs: `GenericWorkload` for in-tree pod
    groups.
    """
    audit: bool = False
    """Log every request of a service account outside kube-system to `Instance.audit_log`."""
    settings: tuple[str, ...] = ()
    """Settings of the bridge, such as `controllers.start_deadline_s=20` (docs/settings.md)."""
    values: tuple[str, ...] = ()
    """Values of the bridge's chart, such as `admission.calls=one` (deploy/chart/README.md)."""

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

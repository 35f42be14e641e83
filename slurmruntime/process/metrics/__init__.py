"""Every metric slurm-bridge exports, with its meaning and unit, a class for each subject.

There is one `Metrics` per process, passed to all that record something. Its methods are named after
our own events, so no other module depends on the library. Names start with `slurm_bridge_` (the
process's own CPU and memory have the usual `process_`); units are seconds and bytes, as Prometheus
recommends.
"""

from slurmruntime.process.metrics.nodes import AgentMetrics, NodeMetrics
from slurmruntime.process.metrics.peers import KubeMetrics, SlurmMetrics
from slurmruntime.process.metrics.pods import PlaceholderMetrics, PodMetrics
from slurmruntime.process.metrics.registry import Registry
from slurmruntime.process.metrics.servers import (
    CertificateMetrics,
    EscrowMetrics,
    ExtenderMetrics,
    LoopMetrics,
    PolicyMetrics,
    WebhookMetrics,
)
from slurmruntime.process.metrics.slurm_jobs import SlurmJobMetrics
from slurmruntime.process.metrics.work import WorkMetrics


class Metrics:
    """The metrics of one process, on a registry of its own."""

    def __init__(self, program: str) -> None:
        self.registry = Registry(program)
        self.slurm = SlurmMetrics(self.registry)
        self.kube = KubeMetrics(self.registry)
        self.webhook = WebhookMetrics(self.registry)
        self.extender = ExtenderMetrics(self.registry)
        self.escrow = EscrowMetrics(self.registry)
        self.policy = PolicyMetrics(self.registry)
        self.certificates = CertificateMetrics(self.registry)
        self.work = WorkMetrics(self.registry)
        self.loops = LoopMetrics(self.registry)
        self.pods = PodMetrics(self.registry)
        self.placeholders = PlaceholderMetrics(self.registry)
        self.nodes = NodeMetrics(self.registry)
        self.agent = AgentMetrics(self.registry)
        self.slurm_jobs = SlurmJobMetrics(self.registry)

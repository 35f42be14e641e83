"""Those that the control plane is read from and written to."""

from dataclasses import dataclass

from slurmoperator.nodesets.owned.conf_trials import ConfTrials
from slurmoperator.nodesets.views import OpensSlurm
from slurmruntime.kube.client import KubeClient


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPeers:
    """Both systems, for the control plane."""

    kube: KubeClient
    slurms: OpensSlurm
    """Opens a client of a Controller's Slurm, to find out which partitions have jobs."""
    tried: ConfTrials
    """Takes slurmctld's verdicts on the nodes that workers will register."""

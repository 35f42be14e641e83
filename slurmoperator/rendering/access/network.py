"""NetworkPolicies: which connections the daemons of a cluster take, and from whom.

They only say who may connect to a daemon. To where daemons and jobs connect is left open. A node may always connect to its own pods
(<https://kubernetes.io/docs/concepts/services-networking/network-policies/>), so probes need no rule.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from slurmoperator.configuration.slurm_conf import SLURMCTLD_PORT, SLURMD_PORT, SLURMDBD_PORT
from slurmoperator.objects.labels import APP_LABEL
from slurmoperator.rendering.body import Body, BodyOwner, made
from slurmoperator.rendering.site import NetworkSite
from slurmoperator.rendering.ssh import SSH_PORT
from slurmruntime.crd.restapis import SLURMRESTD_PORT

ANYBODY: Final = "anybody"
OPERATOR: Final = "the namespace of slurm-operator"
OTHERS: Final = "those that the administrator names"
EXPORTER: Final = "slurm-exporter"

ALL_PORTS: Final[tuple[int, ...]] = ()


@dataclass(frozen=True, slots=True)
class TakenConnections:
    """Who may connect to some ports."""

    by: tuple[str, ...]
    """What runs in pods of the same namespace, by label, or one of the names above."""
    ports: tuple[int, ...]


TAKEN: Final[Mapping[str, tuple[TakenConnections, ...]]] = {
    "slurmctld": (
        TakenConnections(
            ("slurmctld", "slurmd", "login", "slurmrestd", "slurmdbd", OPERATOR, OTHERS),
            (SLURMCTLD_PORT,),
        ),
    ),
    "slurmdbd": (
        TakenConnections(("slurmctld", "slurmrestd", "login", "slurmd", OTHERS), (SLURMDBD_PORT,)),
    ),
    "slurmrestd": (TakenConnections(("login", EXPORTER, OPERATOR, OTHERS), (SLURMRESTD_PORT,)),),
    # srun and the steps of jobs listen on any port, and so do the programs of a job.
    "slurmd": (
        TakenConnections(("slurmctld",), (SLURMD_PORT,)),
        TakenConnections(("slurmd", "login", OTHERS), ALL_PORTS),
    ),
    # slurmctld and workers call back srun and salloc.
    "login": (
        TakenConnections((ANYBODY,), (SSH_PORT,)),
        TakenConnections(("slurmctld", "slurmd", OTHERS), ALL_PORTS),
    ),
}
"""By what runs in the pods. SchedMD's table of ports: <https://slurm.schedmd.com/network.html>."""


def network_policy(
    owner: BodyOwner,
    name: str,
    site: NetworkSite | None,
    *,
    app: str = "",
    selecting: Mapping[str, str] | None = None,
) -> tuple[Body, ...]:
    """Return the policy for some pods, if there are to be any.

    Args:
        owner: whose it is.
        name: its name.
        site: None for no policies.
        app: what runs in the pods; by default what runs for the owner.
        selecting: labels of the pods; by default those of the owner's.
    """
    if site is None:
        return ()
    spec = {
        "podSelector": {"matchLabels": dict(selecting or owner.selecting)},
        "policyTypes": ["Ingress"],
        "ingress": [rule for each in TAKEN[app or owner.app] for rule in _rule(each, site)],
    }
    return (
        made(
            owner,
            "NetworkPolicy",
            name,
            api_version="networking.k8s.io/v1",
            parts={"spec": spec},
        ),
    )


def _rule(taken: TakenConnections, site: NetworkSite) -> Iterator[dict[str, Any]]:
    peers = [peer for each in taken.by for peer in _peers(each, site)]
    ports = [{"port": port, "protocol": "TCP"} for port in taken.ports]
    whom = {} if ANYBODY in taken.by else {"from": peers}
    where = {"ports": ports} if ports else {}
    if peers or not whom:  # an empty list would stand for anybody
        yield {**whom, **where}


def _peers(by: str, site: NetworkSite) -> Sequence[Mapping[str, Any]]:
    if by == ANYBODY:
        return ()
    if by == OPERATOR:
        labels = {"kubernetes.io/metadata.name": site.operator_namespace}
        return ({"namespaceSelector": {"matchLabels": labels}},)
    if by == OTHERS:
        return site.others
    return ({"podSelector": {"matchLabels": {APP_LABEL: by}}},)

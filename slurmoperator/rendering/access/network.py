"""Renders NetworkPolicies: which connections the daemons of a cluster accept, and from whom.

They restrict ingress only; egress of daemons and jobs is open. A node may always connect to its own pods
(<https://kubernetes.io/docs/concepts/services-networking/network-policies/>), so probes need no rule.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from slurmoperator.configuration.slurm_conf import SLURMCTLD_PORT, SLURMD_PORT, SLURMDBD_PORT
from slurmoperator.objects.labels import APP_LABEL
from slurmoperator.rendering.body import BodyOwner, owned_body
from slurmoperator.rendering.site import NetworkSite
from slurmoperator.rendering.ssh import SSH_PORT
from slurmruntime.crd.restapis import SLURMRESTD_PORT
from slurmruntime.model.objects import JsonDict, JsonObject

ANYBODY: Final = "anybody"
OPERATOR: Final = "the namespace of slurm-operator"
OTHERS: Final = "those that the administrator names"
EXPORTER: Final = "slurm-exporter"

ALL_PORTS: Final[tuple[int, ...]] = ()


@dataclass(frozen=True, slots=True)
class ConnectionRule:
    """Who may connect to which ports."""

    sources: tuple[str, ...]
    """Apps in pods of the same namespace, by label, or one of the names above."""
    ports: tuple[int, ...]


ALLOWED: Final[Mapping[str, tuple[ConnectionRule, ...]]] = {
    "slurmctld": (
        ConnectionRule(
            ("slurmctld", "slurmd", "login", "slurmrestd", "slurmdbd", OPERATOR, OTHERS),
            (SLURMCTLD_PORT,),
        ),
    ),
    "slurmdbd": (
        ConnectionRule(("slurmctld", "slurmrestd", "login", "slurmd", OTHERS), (SLURMDBD_PORT,)),
    ),
    "slurmrestd": (ConnectionRule(("login", EXPORTER, OPERATOR, OTHERS), (SLURMRESTD_PORT,)),),
    # srun, job steps and the programs of a job listen on any port.
    "slurmd": (
        ConnectionRule(("slurmctld",), (SLURMD_PORT,)),
        ConnectionRule(("slurmd", "login", OTHERS), ALL_PORTS),
    ),
    # slurmctld and workers call back srun and salloc.
    "login": (
        ConnectionRule((ANYBODY,), (SSH_PORT,)),
        ConnectionRule(("slurmctld", "slurmd", OTHERS), ALL_PORTS),
    ),
}
"""Connections that each app accepts. SchedMD's table of ports: <https://slurm.schedmd.com/network.html>."""


def network_policy(
    owner: BodyOwner,
    name: str,
    site: NetworkSite | None,
    *,
    app: str = "",
    selecting: Mapping[str, str] | None = None,
) -> tuple[JsonObject, ...]:
    """Return the policy for some pods, by default for the daemon and the pods of the owner; none without a site."""
    if site is None:
        return ()
    spec = {
        "podSelector": {"matchLabels": dict(selecting or owner.selecting)},
        "policyTypes": ["Ingress"],
        "ingress": [rule for allowed in ALLOWED[app or owner.app] for rule in _rule(allowed, site)],
    }
    return (
        owned_body(
            owner, "NetworkPolicy", name, api_version="networking.k8s.io/v1", parts={"spec": spec}
        ),
    )


def _rule(allowed: ConnectionRule, site: NetworkSite) -> Iterator[JsonDict]:
    peers = [peer for source in allowed.sources for peer in _peers(source, site)]
    ports = [{"port": port, "protocol": "TCP"} for port in allowed.ports]
    senders = {} if ANYBODY in allowed.sources else {"from": peers}
    listening = {"ports": ports} if ports else {}
    if peers or not senders:  # an empty list would allow everybody
        yield {**senders, **listening}


def _peers(source: str, site: NetworkSite) -> Sequence[JsonObject]:
    if source == ANYBODY:
        return ()
    if source == OPERATOR:
        labels = {"kubernetes.io/metadata.name": site.operator_namespace}
        return ({"namespaceSelector": {"matchLabels": labels}},)
    if source == OTHERS:
        return site.others
    return ({"podSelector": {"matchLabels": {APP_LABEL: source}}},)

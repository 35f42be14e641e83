"""Write what each account's token can do into `docs/security.md`, right by right: page in, page out.

The rights are those of the chart and of slurm-operator; tests/chart/test_stolen_tokens.py compares both ways. Text outside the
marks of the page is kept (`make docs`).
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from bridge.domain.workloads import kinds
from docs.generate import markdown

_MARK, _END = "<!-- stolen tokens -->\n", "<!-- end of stolen tokens -->"
_READ = "get list watch"
_SYLABS = ("slurm.sylabs.io", "wlm.sylabs.io")
_NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Right:
    """Rights of an account that are held in the same way."""

    group: str | Sequence[str]
    resources: str
    """Separated by spaces."""
    verbs: str
    held: str
    """What keeps a thief of the token from using them for something else."""
    rest: str
    """What they can be used for all the same."""
    where: str = "everywhere"

    def kinds(self) -> Iterator[tuple[str, str, str]]:
        """Yield API group, resource and verb, one by one."""
        for group in (self.group,) if isinstance(self.group, str) else self.group:
            for resource in self.resources.split():
                for verb in self.verbs.split():
                    yield group, resource, verb


_PODS_READ: Final = Right(
    "",
    "pods",
    _READ,
    "RBAC cannot select pods, and admission sees no reads",
    "read every pod of the cluster, with what stands in its environment",
)
_PODS_PATCH: Final = Right(
    "",
    "pods",
    "patch",
    "policies `direct` and `accounts-pods`: only pods that Slurm places, and of those only gate, pin, deadline, finalizer and what says where Slurm has placed them",
    "let a bridged pod go without its job, or end it; never another image, container, toleration or owner",
)
_POD_STATUS: Final = Right(
    "",
    "pods/status",
    "patch",
    "policies `keys` and `accounts-pods`, for pods that Slurm places and in excluded namespaces: three conditions, and the end of a pod that never got a node",
    "**in ordinary namespaces, the status of pods that are not ours**: their address, readiness and phase. One policy more would cost each status of the cluster some 800 allocations",
)
_EVENTS: Final = Right(
    "events.k8s.io", "events", "create", "RBAC", "write Events that mislead people"
)
_NODES_READ: Final = Right("", "nodes", "list watch", "RBAC", "read nodes")
_SLICES: Final = Right(
    "resource.k8s.io", "resourceslices", "list watch", "RBAC", "read which devices nodes have"
)
_LEASE: Final = Right(
    "coordination.k8s.io",
    "leases",
    "get update create",
    "RBAC: its own by name; a name cannot be asked for at CREATE",
    "keep the program from leading",
    where="its own namespace",
)
_WORKLOADS: Final = tuple(
    Right(
        group,
        " ".join(resources),
        "get",
        "RBAC: by a name that one knows",
        "read these workloads, with what stands in their pods' environment",
    )
    for group, resources in sorted(kinds.reads().items())
)
_SLURM: Final = (
    Right(
        "slinky.slurm.net",
        "controllers",
        "get",
        "RBAC: one by name",
        "read how a Slurm in pods is set up",
        where="namespace of that Slurm",
    ),
    Right(
        "slinky.slurm.net",
        "restapis",
        "list",
        "RBAC",
        "read where its slurmrestd is",
        where="namespace of that Slurm",
    ),
    Right(
        "",
        "secrets configmaps",
        "get",
        "RBAC: the key and the CAs by name",
        "sign tokens of any user of that Slurm, as with the token that is mounted anyway",
        where="namespace of that Slurm",
    ),
)
_SERVED: Final = "RBAC: with the chart's value `namespaces`, only there"

ACCOUNTS: Final[Mapping[str, Sequence[Right]]] = MappingProxyType(
    {
        "webhook": (),
        "extender": (
            _PODS_READ,
            _PODS_PATCH,
            _POD_STATUS,
            Right(
                "",
                "pods/binding",
                "create",
                "policy `accounts-bindings` in excluded namespaces; a pod is bound once, and not while it has a gate",
                "choose the node of an ordinary pod that waits for one: a Binding does not show its pod",
            ),
            _NODES_READ,
            _EVENTS,
            Right("", "namespaces", "get", "RBAC", "read labels of namespaces"),
            Right(
                "",
                "persistentvolumeclaims persistentvolumes",
                "get",
                "RBAC: by a name that one knows",
                "read where volumes are",
            ),
            Right("storage.k8s.io", "storageclasses", "get", "RBAC", _NOTHING),
            *_WORKLOADS,
            Right(
                "resource.k8s.io",
                "resourceclaims",
                f"{_READ} patch",
                "the API server: a claim's spec never changes",
                "change labels, annotations and finalizers of claims; only with `device_profiles`",
            ),
            Right(
                "resource.k8s.io",
                "resourceclaims/status resourceclaims/binding",
                "patch",
                "RBAC cannot select claims, and a claim does not say whose pod it is for",
                "take devices from claims, or give them others; only with `device_profiles`",
            ),
            Right(
                "resource.k8s.io",
                "resourceclaimtemplates",
                "get create",
                "policy `templates`: one of our names asks for what its name says",
                "create templates, which are nothing until a pod names them",
            ),
            Right("resource.k8s.io", "deviceclasses", _READ, "RBAC", "read device classes"),
            _SLICES,
            _LEASE,
            *_SLURM,
        ),
        "controllers": (
            _PODS_READ,
            _PODS_PATCH,
            Right(
                "",
                "pods",
                "delete",
                "policy `accounts-deletes`: pods that Slurm places, and companions",
                "end bridged pods",
            ),
            _POD_STATUS,
            _NODES_READ,
            Right(
                "",
                "nodes",
                "patch",
                "policy `accounts-nodes`: of Slurm's nodes our taint, and a cordon with our mark",
                "cordon Slurm's nodes; by our taint with the effect NoExecute, end what runs on them",
            ),
            Right(
                "",
                "nodes/status",
                "patch",
                "policy `accounts-nodes`: condition `slurm-bridge.dev/SlurmState`",
                "say wrongly what state a node has in Slurm",
            ),
            _EVENTS,
            Right("", "namespaces", "get", "RBAC: two by name; all with SlurmJobs", _NOTHING),
            Right(
                "",
                "pods",
                "create",
                "policy `self-test`: as a dry run only",
                _NOTHING,
                where="namespace `…-self-test`",
            ),
            Right(
                "admissionregistration.k8s.io",
                "mutatingwebhookconfigurations validatingwebhookconfigurations",
                "get patch",
                "RBAC: two by name. Admission never sees these objects",
                "**everything**: a webhook of one's own that changes each object of the cluster. Only with `tls.mode: managed`; `certManager` and `secret` take the right away",
            ),
            Right(
                "",
                "secrets",
                "get patch",
                "RBAC: four by name",
                "sign certificates for our webhook and extender. Only with `tls.mode: managed`",
                where="its own namespace",
            ),
            Right(
                "slurm-bridge.dev",
                "slurmjobs",
                f"{_READ} patch delete",
                "only our own kind; what Slurm was given is fixed by its definition",
                "read all scripts, end SlurmJobs",
            ),
            Right(
                "slurm-bridge.dev",
                "slurmjobs/status",
                "patch",
                "only our own kind",
                "say wrongly what became of a SlurmJob",
            ),
            Right(
                _SYLABS,
                "slurmjobs wlmjobs",
                f"{_READ} patch delete",
                "only these kinds",
                "read all scripts, end these jobs",
            ),
            Right(
                _SYLABS,
                "slurmjobs/status wlmjobs/status",
                "patch",
                "only these kinds",
                "say wrongly what became of one",
            ),
            Right(
                "",
                "configmaps",
                "get",
                "by a name that one knows: `spec.scriptFrom` may name any, RBAC knows no label, and admission sees no reads",
                "**read ConfigMaps of all namespaces**; only with SlurmJobs",
            ),
            Right(
                "",
                "serviceaccounts",
                "impersonate",
                "RBAC: `…-companions` by name, whose pods policy `companions` bounds",
                "what that account can do",
                where="its own namespace",
            ),
            *_WORKLOADS,
            _SLICES,
            _LEASE,
            *_SLURM,
        ),
        "companions": (
            Right(
                "",
                "pods",
                "create",
                "policy `companions`: no root, host, token or toleration, a SlurmJob's own, claims of its namespace only",
                "read and write claims as any user but root, as every user who may create pods in that namespace can",
            ),
        ),
        "agent": (
            Right(
                "",
                "pods",
                "list watch",
                "nothing. The agent asks for its own node's pods, but a field selector is held by the authorizer of kubelets only (`AuthorizeWithSelectors`), "
                "not by RBAC, and admission sees no reads; one account serves all nodes",
                "**read every pod of the cluster** from a node that is broken into, where a kubelet sees its own only. It writes nothing. It exists only with `agent.pin_cores`",
            ),
        ),
        "scheduler": (
            Right(
                "coordination.k8s.io",
                "leases",
                "get update",
                "RBAC: its own by name",
                "keep it from leading",
                where="its own namespace",
            ),
        ),
        "operator": (
            Right(
                "",
                "secrets configmaps services",
                "get create patch delete",
                _SERVED,
                "**read and write all Secrets where it serves, by default everywhere**",
            ),
            Right(
                "apps",
                "deployments statefulsets",
                "get create patch delete",
                _SERVED,
                "**run privileged pods where it serves, by default everywhere**: root on nodes",
            ),
            Right("", "pods", "get create patch delete", _SERVED, "the same"),
            Right("", "pods/status", "patch", _SERVED, "write any pod's status there"),
            Right("", "pods/log", "get", _SERVED, "read any pod's output there"),
            Right(
                "",
                "persistentvolumeclaims",
                "get list create patch delete",
                _SERVED,
                "delete claims, and what is stored in them",
            ),
            Right(
                "apps",
                "controllerrevisions",
                "get list create patch delete",
                _SERVED,
                "change what others roll back to",
            ),
            Right(
                "monitoring.coreos.com",
                "servicemonitors",
                "get create patch delete",
                _SERVED,
                "have something else scraped",
            ),
            Right(
                "networking.k8s.io",
                "networkpolicies",
                "get create patch delete",
                _SERVED,
                "open or close ports of pods",
            ),
            Right(
                "policy",
                "poddisruptionbudgets",
                "get create patch delete",
                _SERVED,
                "block or allow evictions",
            ),
            Right(
                "slinky.slurm.net",
                "accountings controllers loginsets nodesets restapis tokens",
                "get create patch delete",
                _SERVED,
                "have the operator itself run what one likes",
            ),
            Right(
                "slinky.slurm.net",
                "accountings controllers loginsets nodesets restapis tokens",
                "list watch",
                "RBAC: its own kinds",
                "read how all Slurms are set up",
            ),
            Right(
                "slinky.slurm.net",
                "accountings/status controllers/status loginsets/status nodesets/status restapis/status tokens/status",
                "patch",
                "RBAC: its own kinds",
                "say wrongly how a Slurm is",
            ),
            Right(
                "slinky.slurm.net",
                "accountings controllers restapis nodesets",
                "patch",
                "RBAC: its own kinds. For finalizers, also where it does not serve, where it does not act on the rest",
                "change these objects everywhere",
            ),
            Right(
                "slurm-bridge.dev",
                "slurmclusters",
                "list watch patch",
                "RBAC: its own kind",
                "change SlurmClusters everywhere",
            ),
            _EVENTS,
            Right(
                "slurm-bridge.dev",
                "slurmclusters/status",
                "patch",
                "RBAC: its own kind",
                "say wrongly how a Slurm is",
            ),
            Right("apps", "deployments statefulsets", "list watch", "RBAC", "read all of these"),
            Right("", "pods", "list watch", "RBAC", "read every pod of the cluster"),
            _NODES_READ,
            Right("", "namespaces", "get", "RBAC: `kube-system` by name", _NOTHING),
            _LEASE,
            Right("coordination.k8s.io", "leases", "list", "RBAC", "see who leads"),
            Right(
                "admissionregistration.k8s.io",
                "validatingwebhookconfigurations",
                "list",
                "RBAC",
                _NOTHING,
            ),
        ),
    }
)
"""By account. Where the extender's pods do the controllers' work (`workloads.together`), it has the rights of both."""


def render(page: str) -> str:
    """Return the page with fresh tables."""
    before, mark, rest = page.partition(_MARK)
    _, end, after = rest.partition(_END)
    tables = "\n".join(_table(account, rights) for account, rights in ACCOUNTS.items() if rights)
    return f"{before}{mark}{tables}{end}{after}"


def _table(account: str, rights: Sequence[Right]) -> str:
    head = (f"right of the account `…-{account}`", "where", "held by", "good for, if stolen")
    return markdown.table(
        head, ((_named(right), right.where, right.held, right.rest) for right in rights)
    )


def _named(right: Right) -> str:
    return f"{', '.join(right.resources.split())}: {', '.join(right.verbs.split())}"


if __name__ == "__main__":
    sys.stdout.write(render(sys.stdin.read()))

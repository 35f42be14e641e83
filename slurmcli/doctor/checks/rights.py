"""The rights that the service accounts need.

They mirror the chart's roles; a test keeps the two in step.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """One verb on one resource."""

    program: str
    verb: str
    group: str
    resource: str
    """With its subresource: `pods/status`."""
    name: str = ""
    is_own: bool = False
    """Only in the namespace that slurm-bridge runs in."""

    @property
    def words(self) -> str:
        """Return the right in words: `controllers: delete pods`."""
        return f"{self.program}: {self.verb} {self.resource}"


def _rights(
    program: str, group: str, resource: str, verbs: str, *, name: str = "", is_own: bool = False
) -> Sequence[Right]:
    return [
        Right(program=program, verb=verb, group=group, resource=resource, name=name, is_own=is_own)
        for verb in verbs.split()
    ]


_BOTH = tuple(
    right
    for program in ("extender", "controllers")
    for right in (
        *_rights(program, "", "pods", "get list watch patch"),
        *_rights(program, "", "pods/status", "patch"),
        *_rights(program, "", "nodes", "list watch"),
        *_rights(program, "events.k8s.io", "events", "create"),
        *_rights(
            program,
            "coordination.k8s.io",
            "leases",
            "get update",
            name=f"slurm-bridge-{program}",
            is_own=True,
        ),
        *_rights(program, "coordination.k8s.io", "leases", "create", is_own=True),
    )
)

RIGHTS: Sequence[Right] = (
    *_BOTH,
    *_rights("extender", "", "pods/binding", "create"),
    *_rights("extender", "", "namespaces", "get"),
    *_rights("extender", "", "persistentvolumeclaims", "get"),
    *_rights("extender", "", "persistentvolumes", "get"),
    *_rights("extender", "storage.k8s.io", "storageclasses", "get"),
    *_rights("controllers", "", "namespaces", "get", name="kube-system"),
    *_rights("controllers", "", "pods", "delete"),
    *_rights("controllers", "", "nodes", "patch"),
    *_rights("controllers", "", "nodes/status", "patch"),
)
"""The rights that every installation needs.

Those for resource claims are in `CLAIM_RIGHTS`. Which kinds may own pods is the administrator's choice (chart value `workloadKinds`), and only an
installation that signs its own certificates may write to the webhook configurations (`tls.mode:
managed`).
"""

_DEVICES = "resource.k8s.io"

CLAIM_RIGHTS: Sequence[Right] = (
    *_rights("extender", _DEVICES, "resourceclaims", "get list watch patch"),
    *_rights("extender", _DEVICES, "resourceclaims/status", "patch"),
    *_rights("extender", _DEVICES, "resourceclaims/binding", "patch"),
    *_rights("extender", _DEVICES, "resourceclaimtemplates", "get create"),
    *_rights("extender", _DEVICES, "deviceclasses", "get list watch"),
    *_rights("extender", _DEVICES, "resourceslices", "list watch"),
    *_rights("controllers", _DEVICES, "resourceslices", "list watch"),
)
"""The rights that an installation with device profiles needs besides."""

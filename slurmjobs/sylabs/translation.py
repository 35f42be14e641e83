"""Translate objects of Sylabs' kinds into SlurmJobs: one pure function per kind, which lists all faults at once.

Fields that only steered Sylabs' own pods (labels, extended resources, a security context) never reached Slurm. They are
ignored with a warning, unless the administrator has set an equivalent.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from slurmjobs.objects.results import JobResult
from slurmjobs.script import options as o
from slurmjobs.script import read
from slurmjobs.sylabs import container
from slurmjobs.sylabs.site import SylabsSite
from slurmjobs.sylabs.spec import (
    ContainerSpec,
    Labels,
    Mount,
    SlurmSpec,
    SshAccess,
    SylabsResults,
    WlmSpec,
)
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.values.faults import Fault, shortened

_PARTITION: Final = "wlm.sylabs.io/partition"
_ALWAYS: Final = frozenset(
    f"{prefix}{label}"
    for prefix in ("", "slurm.sylabs.io/", "wlm.sylabs.io/")
    for label in ("workload-manager=slurm", "integration-type=local", "integration-type=ssh")
) | {"type=virtual-kubelet"}
"""The labels that Sylabs' operators put on each of their nodes."""

OldSpec = SlurmSpec | WlmSpec | ContainerSpec


@dataclass(slots=True, kw_only=True)
class Translation:
    """An old manifest in our terms."""

    script: str
    options: dict[str, str | int | bool] = field(default_factory=dict)
    results: tuple[JobResult, ...] = ()
    places: dict[str, str]
    """Path in our spec → the corresponding path in theirs."""
    only_rule: str = ""
    """The only policy rule that it may run under; "" for any."""
    faults: list[Fault] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)

    def fault(self, where: str, message: str) -> None:
        """Add a fault of their field at this path."""
        self.faults.append(Fault(where, message))

    def warn(self, where: str, message: str) -> None:
        """Add a warning about their field at this path."""
        self.warnings.append(Fault(where, message))

    def choose(self, option: str, value: str | int, where: str) -> None:
        """Set an option that their field at this path asks for."""
        self.options[option] = value
        self.places[f"spec.options.{option}"] = where


def translate(spec: OldSpec, metadata: ObjectMetadata, site: SylabsSite) -> Translation:
    """Return the translation of an object; never raises."""
    if isinstance(spec, ContainerSpec):
        script = container.script(spec.image, spec.options)
        draft = Translation(script=script, places={"spec.script": "spec.image"})
        for where, option, value in container.requested_options(spec.resources):
            draft.choose(option, value, f"spec.resources.{where}")
        _select(spec.node_selector, None, site, draft)
    else:
        draft = Translation(script=spec.batch, places={"spec.script": "spec.batch"})
        if isinstance(spec, SlurmSpec):
            _slurm(spec, metadata, site, draft)
        else:
            _wlm(spec, draft)
        _select(spec.node_selector, spec.batch, site, draft)
    _results(spec.results, site, draft)
    return draft


def _slurm(spec: SlurmSpec, metadata: ObjectMetadata, site: SylabsSite, draft: Translation) -> None:
    for name in spec.resources:
        draft.warn(
            f"spec.resources[{shortened(name, 128)}]",
            "it has no effect: Slurm counts what the script requests (#SBATCH)",
        )
    if spec.pod_security_context:
        draft.warn(
            "spec.podSecurityContext",
            "it has no effect: no pod runs the job, and the policy says whose job it is",
        )
    if spec.time_limit is not None:
        draft.warn("spec.timeLimit", "it has no effect, and never had: write #SBATCH --time")
    if spec.ssh:
        draft.only_rule = _ssh(spec.ssh, metadata, site, draft.faults)


def _wlm(spec: WlmSpec, draft: Translation) -> None:
    if spec.prepare is not None:
        draft.faults += _volume_faults("spec.prepare", spec.prepare.mount)
        draft.fault(
            "spec.prepare",
            "slurm-bridge does not copy files before a job yet, and without them the job would do something else: "
            "put the files on the cluster and leave this out",
        )


def _results(results: SylabsResults | None, site: SylabsSite, draft: Translation) -> None:
    if results is None:
        return
    draft.faults += _volume_faults("spec.results", results.mount)
    target = site.target(results.mount)
    if target is None or site.output is None:
        setting = "sylabs.output_claim" if site.output is None else "sylabs.volumes"
        draft.warn(
            "spec.results",
            f"they are not copied and stay on the cluster until an administrator sets where to ({setting})",
        )
        return
    draft.results = (JobResult(source=results.source, to=target),)
    draft.places["spec.results[0].from"] = "spec.results.from"
    draft.places["spec.results[0].to.path"] = "spec.results.mount"


def _volume_faults(where: str, mount: Mount) -> Iterator[Fault]:
    named = [
        name
        for name, source in (
            ("hostPath", mount.host_path),
            ("nfs", mount.nfs),
            ("persistentVolumeClaim", mount.persistent_volume_claim),
        )
        if source is not None
    ]
    if len(named) != 1:
        sources = " and ".join(named) or "none of them"
        yield Fault(
            f"{where}.mount",
            f"expected one of hostPath, nfs and persistentVolumeClaim, found {sources}",
        )


def _select(labels: Labels, script: str | None, site: SylabsSite, draft: Translation) -> None:
    """Turn labels of a nodeSelector into options, in addition to the script's own."""
    wanted: list[str] = []
    for name, value in labels.items():
        where = f"spec.nodeSelector[{shortened(name, 128)}]"
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            draft.fault(where, "expected text or a number")
            continue
        text = label_value(value)
        label = f"{name}={text}"
        if label in site.constraints:
            wanted += filter(None, [site.constraints[label]])
        elif name == _PARTITION:
            draft.choose("partition", text, where)
        elif label not in _ALWAYS:
            draft.warn(
                where,
                f"it has no effect: it selected Sylabs' virtual nodes, and {shortened(label, 256)} means nothing to Slurm; "
                "write #SBATCH --constraint, or ask an administrator to map it to a node feature (sylabs.constraints)",
            )
    if wanted:
        # Not earlier: objects are decoded wherever they are watched, and most have no such label.
        own = read.script(script).options.get(o.CONSTRAINT) if script is not None else None
        wanted = [own, *wanted] if own else wanted
        parts = (f"({part})" if "|" in part and len(wanted) > 1 else part for part in wanted)
        draft.choose("constraint", "&".join(parts), "spec.nodeSelector")


def label_value(value: str | float) -> str:
    """Return the value of a label as text, without losing or adding digits of numbers."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


def _ssh(ssh: SshAccess, metadata: ObjectMetadata, site: SylabsSite, faults: list[Fault]) -> str:
    rule = site.ssh_rules.get(ssh.user, "")
    if not rule:
        user = shortened(ssh.user, 64)
        namespace = metadata.namespace or "…"
        faults.append(
            Fault(
                "spec.ssh",
                f"slurm-bridge uses no ssh and reads no key: a policy rule decides whose job it is. Leave it out, or ask an "
                f"administrator to add a rule such as {{name: {user}, match: {{kinds: [SlurmJob], namespaces: "
                f"[{namespace}]}}, user: {user}}} and to map this user to it (sylabs.ssh_rules: {{{user}: {user}}})",
            )
        )
    return rule

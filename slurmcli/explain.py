"""`explain FILE`: what a manifest would become in Slurm, and everything that is wrong with it.

Has no effect. Each pod is created as a dry run, so the webhook and the policies respond as usual. The extender's own
function then builds the job, from what the caller may read. Exit code 2 if something is refused.
"""

import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import msgspec
import typer
import yaml

from bridge.domain import caps
from bridge.domain.diagnosis import explained, namespaces
from bridge.domain.diagnosis.explained import TemplateReport
from bridge.domain.model.claims import asking, profiles
from bridge.domain.model.claims.profiles import Profiles
from bridge.domain.model.placeholder import PlaceholderSpec
from bridge.domain.model.pods import Pod
from bridge.domain.request import candidates, expected, manifests, overrides
from bridge.domain.request.attribution import Provenance
from bridge.domain.request.build import Defaults
from bridge.domain.request.candidates import Pool
from bridge.domain.request.effective import RequestFacts, effective
from bridge.domain.request.manifests import Template
from bridge.domain.request.rules import Policy
from bridge.domain.workloads import claims, workload
from bridge.domain.workloads.kinds import pod_group
from bridge.domain.workloads.membership import Membership
from bridge.domain.workloads.workload import Workload
from bridge.kube import decode
from bridge.kube.claims.claimed import ClaimsOfManifest
from bridge.settings import policy_file as policy
from bridge.settings import request_defaults
from bridge.slurm import encode
from slurmcli import access, output
from slurmcli.access import Access
from slurmcli.installation import Installation, excluded_namespaces
from slurmcli.line.options import FormatOption, Namespace, ReleaseNamespace, Way
from slurmcli.output import Format
from slurmruntime.kube import lists, node_objects, objects, paths
from slurmruntime.kube.errors import Forbidden, KubeError, NotFound
from slurmruntime.kube.objects import Objects
from slurmruntime.model.objects import JsonDict, KubeObject, Reference
from slurmruntime.values import names
from slurmruntime.values.faults import Refusal
from slurmruntime.values.ids import PodUid

REFUSED = 2
"""Exit code."""

_HIDDEN = frozenset({"admin_comment", "flags", "current_working_directory", "extra"})
"""Fields of a submission that are the same for every job, or not for people."""


def command(
    file: Annotated[str, typer.Argument(help="Manifest to explain; - reads standard input.")],
    *,
    way: Way,
    namespace: Namespace = "",
    release_namespace: ReleaseNamespace = names.RELEASE_NAMESPACE,
    form: FormatOption = Format.TABLE,
) -> None:
    """Show what a manifest would become in Slurm and what is wrong with it. Creates nothing."""
    documents = _documents(file)
    where = namespace or way.namespace
    answers = access.run(way, lambda opened: _explain(opened, documents, where, release_namespace))
    if form in (Format.JSON, Format.YAML):
        output.document([output.plain(answer) for answer in answers], form)
    else:
        for answer in answers:
            _print(answer)
    raise typer.Exit(REFUSED if any(answer.faults for answer in answers) else 0)


def _documents(file: str) -> Sequence[JsonDict]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        documents = list(yaml.safe_load_all(text))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        output.say(f"error: {file}: {error}")
        raise typer.Exit(1) from None
    mappings = [document for document in documents if isinstance(document, dict)]
    if not any(True for document in mappings for _ in manifests.templates(document)):
        output.say(
            f"error: {file}: contains no pod: expected a Pod or something with a pod template"
        )
        raise typer.Exit(1)
    return mappings


async def _explain(
    opened: Access, documents: Sequence[JsonDict], namespace: str, release: str
) -> Sequence[TemplateReport]:
    installed = await Installation.read(opened.kube, release)
    excluded = await excluded_namespaces(opened.kube, release)
    explainer = _Explainer(opened, installed, documents, release=release, excluded=excluded)
    return await explainer.explain(namespace)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    report: TemplateReport
    """What is known without its job."""
    members: Sequence[tuple[Membership, Pod]] = ()
    """Its pods, as far as the manifest determines them; none if Slurm gets no job for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Site:
    policy: Policy
    defaults: Defaults
    pool: Pool
    profiles: Profiles


class _Explainer:
    """Gathers once what is needed to assemble the jobs."""

    def __init__(
        self,
        opened: Access,
        installed: Installation,
        documents: Sequence[JsonDict],
        *,
        release: str,
        excluded: frozenset[str],
    ) -> None:
        self._opened = opened
        self._installed = installed
        self._release = release
        self._excluded = excluded
        self._objects = Objects(opened.kube)
        self._documents = documents
        self._claims = ClaimsOfManifest(opened.kube, documents)
        self._declared: dict[Reference, KubeObject | None] = {}
        """The PodGroups and Workloads looked up so far."""
        self._owners: dict[PodUid, Sequence[KubeObject]] = {}
        self._gangs: dict[str, list[tuple[Membership, Pod]]] = {}
        """The pods of all templates, by workload."""

    async def explain(self, namespace: str) -> Sequence[TemplateReport]:
        """Explain every pod template, in the order of the manifest; namespace is for objects that name none.

        Raises:
            KubeError: the API server does not answer.
        """
        templates = [
            template for document in self._documents for template in manifests.templates(document)
        ]
        outcomes = [
            await self._try_template(template, template.root.namespace or namespace)
            for template in templates
        ]
        site = await self._site()
        return [
            await self._job(outcome, site) if outcome.members else outcome.report
            for outcome in outcomes
        ]

    async def _try_template(self, template: Template, namespace: str) -> _Outcome:
        root = template.root
        where = f"{root.kind}/{root.name} {template.path}".strip() + f" in namespace {namespace}"
        report = TemplateReport(where=where, warnings=_warnings(template))
        try:
            created = await self._dry_run(template, namespace)
        except KubeError as error:
            if error.transient and not isinstance(error, Forbidden):
                raise
            return _Outcome(report=replace(report, faults=(error.message,)))
        pods = expected.pods(template, created)
        note = "" if pods else "creates no pods"
        if not created.is_gated:
            note = f"not scheduled by Slurm: {self._why_not(namespace)}"
        members = [(await self._membership(pod, template.owners), pod) for pod in pods]
        for member, pod in members:
            self._owners[pod.uid] = template.owners
            self._gangs.setdefault(member.key, []).append((member, pod))
        return _Outcome(report=replace(report, note=note), members=() if note else members)

    def _why_not(self, namespace: str) -> str:
        if namespace in self._excluded:
            return namespaces.no_effect(namespace, release=self._release)
        return f"namespace {namespace} is not labelled {names.ENABLED_LABEL}=true"

    async def _dry_run(self, template: Template, namespace: str) -> Pod:
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**template.metadata, "generateName": "slurm-bridge-explain-"},
            "spec": template.spec,
        }
        path = paths.collection("v1", "pods", namespace)
        answer = await self._opened.kube.request("POST", path, body=body, params={"dryRun": "All"})
        stored: JsonDict = msgspec.json.decode(answer)
        stored["metadata"] |= {
            "resourceVersion": "0",
            "uid": str(uuid.uuid4()),
        }  # the dry run stored none
        return decode.pod(msgspec.json.encode(stored))

    async def _membership(self, pod: Pod, owners: Sequence[KubeObject]) -> Membership:
        member = claims.of(pod, owners)
        group = member.declared_by
        if member.kind != pod_group.KIND or group is None:
            return member
        declared = await self._declaring(group)
        is_served = declared is not None or await self._serves(group)
        why = f"the API server does not serve {group.kind} in {group.api_version}"
        return claims.settled(member, pod, declared, unread="" if is_served else why)

    async def _declaring(self, group: Reference) -> KubeObject | None:
        if group not in self._declared:
            self._declared[group] = await self._look_up(group)
        return self._declared[group]

    async def _groups(self, pod: Pod) -> Sequence[KubeObject]:
        """Return the PodGroup that the pod names, and the Workload behind it."""
        named = claims.declaring(pod)
        group = await self._declaring(named) if named is not None else None
        behind = pod_group.workload_of(group) if group is not None else None
        kueue_workload = await self._declaring(behind) if behind is not None else None
        return [declaring for declaring in (group, kueue_workload) if declaring is not None]

    async def _look_up(self, group: Reference) -> KubeObject | None:
        for document in self._documents:
            candidate = manifests.read(document)
            where = candidate.namespace or group.namespace
            if replace(Reference.to(candidate), namespace=where) == group:
                return candidate
        try:
            return await self._objects.get(
                group.api_version, group.kind, group.namespace, group.name
            )
        except (NotFound, Forbidden):
            return None

    async def _serves(self, group: Reference) -> bool:
        try:
            return await self._objects.serves(group.api_version, group.kind)
        except Forbidden:
            return False

    async def _site(self) -> _Site | None:
        slurm_nodes = await self._opened.slurm_nodes()
        settings, cluster = self._installed.settings, self._installed.cluster
        if slurm_nodes is None or settings is None or cluster is None:
            return None
        kube_nodes = await lists.listing(self._opened.kube, node_objects.NODES)
        return _Site(
            policy=policy.compiled(settings),
            defaults=request_defaults.of(settings, cluster),
            pool=candidates.pool(kube_nodes, slurm_nodes, cluster),
            profiles=profiles.read(settings.controllers.device_profiles),
        )

    async def _job(self, outcome: _Outcome, site: _Site | None) -> TemplateReport:
        """Explain the job of a template's first pod: the template's other gangs resemble the first."""
        report = outcome.report
        if site is None:
            note = "admitted; to show its job, access to Slurm and to slurm-bridge's settings is needed"
            return replace(report, note=note)
        member, pod = outcome.members[0]
        gang = self._gang(member) if member.is_gang else None
        if faults := gang.faults if gang else member.faults:
            return replace(report, faults=tuple(fault.text for fault in faults))
        members = gang.members if gang else (pod,)
        try:
            asked = [await self._claims.of(member_pod) for member_pod in members]
        except Forbidden as error:
            return replace(report, note=f"its claims cannot be read: {error.message}")
        words = tuple(asking.in_words(asked[0], site.profiles))
        counted, unclaimable = asking.of_all(members, asked, site.profiles)
        if counted:
            members, gang = counted, replace(gang, members=counted) if gang else None
        labels = await self._labels(pod.namespace) if site.policy.asks_for_labels else {}
        gathered = RequestFacts(
            members=members,
            gang=gang,
            provenance=Provenance(
                owners=self._owners,
                groups={member_pod.uid: await self._groups(member_pod) for member_pod in members},
                namespace_labels=labels,
            ),
            policy=site.policy,
            pool=site.pool,
            unclaimable=unclaimable,
        )
        try:
            spec = effective(gathered, site.defaults)
        except Refusal as refusal:
            refused = tuple(fault.text for fault in refusal.faults)
            return replace(report, faults=refused, claims=words)
        first, *others = map(_fields, (spec, *spec.also))
        return replace(
            report,
            job=first,
            components=tuple(others),
            pods=gang.size if gang else 1,
            claims=words,
            rule=spec.identity.frozen.rule if spec.identity.frozen else "",
            note=_waits(gang) if gang else "",
        )

    def _gang(self, member: Membership) -> Workload:
        """Evaluate a gang as it will be at submission: some members are created only once others run."""
        together = self._gangs[member.key]
        declared = None if member.declared_by is None else self._declared.get(member.declared_by)
        settings = self._installed.settings
        most = settings.caps.values if settings else caps.DEFAULT
        complete = workload.evaluate(together, declared, most)
        if not complete.is_exact:
            return complete
        first = {pod.uid for pod in complete.members[: complete.needed]}
        present = [(membership, pod) for membership, pod in together if pod.uid in first]
        return workload.evaluate(present, declared, most)

    async def _labels(self, namespace: str) -> Mapping[str, str]:
        try:
            return (await objects.get_namespace(self._opened.kube, namespace)).labels
        except Forbidden:
            return {}


def _warnings(template: Template) -> tuple[str, ...]:
    """Return the annotations without effect, of the template and of its owners."""
    own = {str(key): "" for key in template.metadata.get("annotations") or {}}
    sources = [own, *(owner.annotations for owner in template.owners)]
    return tuple(dict.fromkeys(text for source in sources for text in overrides.effectless(source)))


def _waits(gang: Workload) -> str:
    missing = gang.needed - len(gang.members)
    return f"waits for {missing} more pods that are not in the manifest" if missing > 0 else ""


def _fields(spec: PlaceholderSpec) -> dict[str, object]:
    """Return the fields that differ between jobs, under slurmrestd's names."""
    job = encode.submission(replace(spec, also=()))["job"]
    fields = msgspec.convert(job, dict[str, object])
    return {name: value for name, value in fields.items() if name not in _HIDDEN}


def _print(answer: TemplateReport) -> None:
    verdict = ("refused", "bold red") if answer.faults else ("accepted", "green")
    output.line((answer.where, "bold"), " ", verdict)
    for fault in answer.faults:
        output.line("  ", (fault, "red"))
    if answer.note:
        output.line("  ", answer.note)
    for warning in answer.warnings:
        output.line("  ", (warning, "yellow"))
    for claim in answer.claims:
        output.line("  ", ("claim", "dim"), "  ", claim)
    about = {"policy rule": answer.rule or None, "pods": answer.pods if answer.pods > 1 else None}
    lines = {name: value for name, value in about.items() if value is not None} | (answer.job or {})
    output.titled(
        (name, ",".join(map(str, value)) if isinstance(value, list) else output.number(value))
        for name, value in [*lines.items(), *explained.differences(answer)]
    )

"""`explain FILE`: what a manifest would become in Slurm, and everything that is wrong with it, without any effect.

Each pod is created as a dry run, so the webhook and the policies say what they would say; the job is then put together as the
extender would, from what whoever asks may read. Exit code 2 where something is refused.
"""

import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
import yaml
from rich.text import Text

from bridge.commands import access, output
from bridge.commands.access import Access, Kubeconfig, Namespace, SlurmTokenFile, SlurmUrl, Way
from bridge.commands.installation import Installation
from bridge.commands.output import Format, FormatOption
from bridge.domain import names
from bridge.domain.faults import Fault, Refused
from bridge.domain.placeholder import PlaceholderSpec
from bridge.domain.pods import Pod
from bridge.domain.request import build, candidates, manifests, overrides, permit
from bridge.domain.request.manifests import Template
from bridge.domain.request.overrides import Overrides
from bridge.domain.request.permit import Ask, Permit
from bridge.domain.request.rules import Requester
from bridge.kube import decode, lists, objects, paths
from bridge.kube.errors import Forbidden, KubeError
from bridge.runtime import policy, request_defaults
from bridge.runtime.settings import Settings
from bridge.slurm import encode

REFUSED = 2
"""Exit code."""

_HIDDEN = frozenset({"admin_comment", "flags", "current_working_directory", "extra"})
"""Fields of a submission that are the same for all, or for nobody to read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One pod of a manifest."""

    where: str
    """`Job/train spec.template in namespace research`."""
    faults: tuple[str, ...] = ()
    job: dict[str, object] | None = None
    """What would be submitted for one such pod; None where that cannot be told."""
    rule: str = ""
    """The policy rule that holds for whoever asks."""
    note: str = ""


def command(
    file: Annotated[str, typer.Argument(help="A manifest; - is standard input.")],
    *,
    namespace: Namespace = "",
    release_namespace: Annotated[
        str, typer.Option(help="Where slurm-bridge is installed.", metavar="NAME")
    ] = "slurm-bridge",
    form: FormatOption = Format.TABLE,
    kubeconfig: Kubeconfig = "",
    slurm_url: SlurmUrl = "",
    slurm_token_file: SlurmTokenFile = "",
) -> None:
    """Say what a manifest would become in Slurm, and what is wrong with it. Creates nothing."""
    way = Way(kubeconfig=kubeconfig, slurm_url=slurm_url, slurm_token_file=slurm_token_file)
    found = _templates(file)
    where = namespace or way.namespace
    explained = access.run(way, lambda opened: _explain(opened, found, where, release_namespace))
    if form in (Format.JSON, Format.YAML):
        output.document([output.plain(one) for one in explained], form)
    else:
        for one in explained:
            _print(one)
    raise typer.Exit(REFUSED if any(one.faults for one in explained) else 0)


def _templates(file: str) -> Sequence[Template]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        documents = list(yaml.safe_load_all(text))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        typer.echo(f"error: {file}: {error}", err=True)
        raise typer.Exit(1) from None
    found = [
        template
        for document in documents
        if isinstance(document, dict)
        for template in manifests.templates(document)
    ]
    if not found:
        typer.echo(
            f"error: {file}: no pod in it: expected a Pod or something with a pod template",
            err=True,
        )
        raise typer.Exit(1)
    return found


async def _explain(
    opened: Access, templates: Sequence[Template], namespace: str, release: str
) -> Sequence[Explained]:
    installed = await Installation.read(opened.kube, release)
    return [await _Explainer(opened, installed).explain(one, namespace) for one in templates]


class _Explainer:
    """One look at what is needed to put a job together."""

    def __init__(self, opened: Access, installed: Installation) -> None:
        self._opened = opened
        self._installed = installed

    async def explain(self, template: Template, namespace: str) -> Explained:
        """Explain one pod.

        Raises:
            KubeError: the API server does not answer.
        """
        namespace = template.namespace or namespace
        where = (
            f"{template.kind}/{template.name} {template.path}".strip()
            + f" in namespace {namespace}"
        )
        try:
            made = await self._dry_run(template, namespace)
        except Forbidden as error:
            return Explained(where=where, faults=(error.message,))
        except KubeError as error:
            if error.transient:
                raise
            return Explained(where=where, faults=(error.message,))
        if not made.is_gated:
            note = f"not Slurm's to place: namespace {namespace} is not labelled {names.ENABLED_LABEL}=true"
            return Explained(where=where, note=note)
        return await self._job(where, made, template)

    async def _dry_run(self, template: Template, namespace: str) -> Pod:
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**template.metadata, "generateName": "slurm-bridge-explain-"},
            "spec": template.spec,
        }
        path = paths.collection("v1", "pods", namespace)
        answer = await self._opened.kube.request("POST", path, body=body, params={"dryRun": "All"})
        made: dict[str, Any] = msgspec.json.decode(answer)
        made["metadata"] |= {
            "resourceVersion": "0",
            "uid": str(uuid.uuid4()),
        }  # never stored: it has none
        return decode.pod(msgspec.json.encode(made))

    async def _job(self, where: str, pod: Pod, template: Template) -> Explained:
        slurm_nodes = await self._opened.slurm_nodes()
        settings, cluster = self._installed.settings, self._installed.cluster
        if slurm_nodes is None or settings is None or cluster is None:
            note = "let in; what it would be in Slurm needs access to Slurm and to slurm-bridge's settings"
            return Explained(where=where, note=note)
        asked, faults = overrides.read(
            {**template.owner_requests, **overrides.requests(pod.annotations)}
        )
        if faults:
            return Explained(where=where, faults=tuple(fault.text for fault in faults))
        granted = await self._permit(pod, asked, settings)
        if isinstance(granted, Refused):
            return Explained(where=where, faults=tuple(fault.text for fault in granted.faults))
        kube_nodes = await lists.listing(self._opened.kube, decode.NODES)
        pool = candidates.pool(kube_nodes, slurm_nodes, cluster)
        defaults = request_defaults.of(settings, cluster)
        built = build.placeholder(pod, asked, defaults, pool, permit=granted)
        if isinstance(built, Refused):
            return Explained(where=where, faults=tuple(fault.text for fault in built.faults))
        return Explained(where=where, job=_fields(built), rule=granted.rule)

    async def _permit(self, pod: Pod, asked: Overrides, settings: Settings) -> Permit | Refused:
        """What the policy makes of it for whoever asks; a controller that creates the pods may be somebody else."""
        rules = policy.compiled(settings)
        requester = Requester(user=pod.annotations.get(names.REQUESTER_ANNOTATION, ""))
        text = pod.annotations.get(names.RULES_ANNOTATION)
        named = None if text is None else [name for name in text.split(",") if name]
        labels = await self._labels(pod.namespace) if rules.asks_for_labels else {}
        rule = rules.holding(requester, pod.namespace, labels, named=named)
        if rule is None:
            why = rules.nobody(requester, pod.namespace, named=named)
            return Refused((Fault(permit.PATH, why),))
        choices = permit.node_choices(
            has_selector=bool(pod.node_selector), has_terms=bool(pod.node_terms)
        )
        ask = Ask(overrides=asked, deadline_s=pod.deadline_s, node_choices=choices)
        return permit.decide(rule, ask, requester=requester, namespace=pod.namespace)

    async def _labels(self, namespace: str) -> Mapping[str, str]:
        try:
            return (await objects.get_namespace(self._opened.kube, namespace)).labels
        except Forbidden:
            return {}


def _fields(spec: PlaceholderSpec) -> dict[str, object]:
    """What differs from job to job, in slurmrestd's words."""
    job = encode.submission(spec)["job"]
    fields = msgspec.convert(job, dict[str, object])
    return {name: value for name, value in fields.items() if name not in _HIDDEN}


def _print(one: Explained) -> None:
    screen = output.console()
    verdict = ("refused", "bold red") if one.faults else ("accepted", "green")
    screen.print(Text.assemble((one.where, "bold"), " ", verdict))
    for fault in one.faults:
        screen.print(Text.assemble("  ", (fault, "red")))
    if one.note:
        screen.print(Text.assemble("  ", one.note))
    lines = {**({"policy rule": one.rule} if one.rule else {}), **(one.job or {})}
    width = max(map(len, lines), default=0)
    for name, value in lines.items():
        text = ",".join(map(str, value)) if isinstance(value, list) else output.number(value)
        screen.print(Text.assemble("  ", (name.ljust(width), "dim"), "  ", text))

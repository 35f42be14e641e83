"""Build the job that a SlurmJob is submitted as, or say why that is not possible."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import msgspec
import structlog

from bridge.domain.request.rules import Policy
from slurmjobs.identity import permission
from slurmjobs.identity.permission import JobProvenance
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.reconcile.dependencies import SlurmDependencies, UnmetDependency
from slurmjobs.request import build
from slurmjobs.request.origin import ScriptOrigin
from slurmjobs.script import read
from slurmruntime.kube import errors, paths
from slurmruntime.kube.client import KubeClient
from slurmruntime.values import names
from slurmruntime.values.faults import Refusal, one_line, shortened

_log = structlog.get_logger(__name__)

_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationFailure:
    """Why there is no job to submit."""

    reason: str
    """CamelCase."""
    text: str
    is_final: bool = False


class _ConfigMap(msgspec.Struct, frozen=True):
    data: dict[str, str] | None = None


class Preparer:
    """Builds the job of a SlurmJob, from fresh facts for each submit."""

    def __init__(
        self,
        kube: KubeClient,
        *,
        policy: Callable[[], Policy],
        labels: Callable[[str], Awaitable[Mapping[str, str]]],
        slurm_user: Callable[[], Awaitable[frozenset[str]]],
        now: Callable[[], datetime],
        resolve: Callable[[SlurmJobObject], SlurmDependencies | UnmetDependency],
        has_collectors: bool,
    ) -> None:
        """Keep the sources of facts.

        Args:
            slurm_user: returns the name and the uid of SlurmUser; no rule may run jobs as either.
            now: in the time zone of times in scripts.
            has_collectors: whether results can be copied in this installation.
        """
        self._kube = kube
        self._policy = policy
        self._labels = labels
        self._slurm_user = slurm_user
        self._now = now
        self._resolve = resolve
        self._has_collectors = has_collectors

    async def prepare(self, job: SlurmJobObject) -> Mapping[str, object] | PreparationFailure:
        """Return the fields of the job, without its mark.

        Raises:
            KubeError, SlurmError: something could not be read.
        """
        if job.faults:  # translated without faults at CREATE, but the settings have changed since
            return PreparationFailure(reason="ManifestInvalid", text=one_line(job.faults))
        namespace = job.metadata.namespace
        labels = await self._labels(namespace)
        if labels.get(names.ENABLED_LABEL) != "true":
            return PreparationFailure(
                reason="NamespaceNotEnabled",
                text=f"refused: namespace {namespace} does not have the label {names.ENABLED_LABEL}: true",
            )
        if job.spec.results and not self._has_collectors:
            return PreparationFailure(
                reason="ResultsNotServed",
                text="spec.results: this installation of slurm-bridge has no image to copy results with"
                " (slurm_jobs.companion_image): leave them out, or ask its administrator to set one",
                is_final=True,
            )
        resolved = self._resolve(job)
        if isinstance(resolved, UnmetDependency):
            reason = "DependencyNeverSatisfied" if resolved.is_final else "Dependency"
            return PreparationFailure(reason=reason, text=resolved.text, is_final=resolved.is_final)
        script = await self._script(job)
        if isinstance(script, PreparationFailure):
            return script
        provenance = JobProvenance(namespace_labels=labels, operators=await self._slurm_user())
        try:
            return self._fields(job, script, provenance, resolved)
        except Exception as error:  # noqa: BLE001  # a bug of ours that the author has to see
            _log.exception("slurm_job.not_prepared")
            why = f"{type(error).__name__}: {shortened(str(error), 256)}"
            return PreparationFailure(
                reason="PreparationFailed",
                text=f"slurm-bridge failed to build a job from the script, which is a bug ({why}); nothing was submitted."
                " Report it, and leave out whatever is unusual in the script",
            )

    def _fields(
        self,
        job: SlurmJobObject,
        script: str,
        provenance: JobProvenance,
        resolved: SlurmDependencies,
    ) -> Mapping[str, object] | PreparationFailure:
        content = read.script(script, job.spec.options)
        try:
            permit = permission.decide(job, content.options, provenance, self._policy())
        except Refusal as refusal:
            return PreparationFailure(reason="PolicyRefused", text=refusal.text)
        variables = {variable.name: variable.value for variable in job.spec.env}
        origin = ScriptOrigin(
            directory=permit.working_directory or "/",
            now=self._now(),
            environment={"PATH": _PATH, "USER": permit.user, "LOGNAME": permit.user, **variables},
        )
        result = build.assemble(script, content, name=job.metadata.name, origin=origin)
        if result.request is None:
            return PreparationFailure(
                reason="ScriptInvalid",
                text=one_line(result.faults),
                is_final=job.spec.script is not None,
            )
        request = permission.grant(result.request, permit)
        request = replace(request, fields=resolved.merge_into(request.fields))
        arguments = {"argv": [job.metadata.name, *job.spec.args]} if job.spec.args else {}
        return {**request.body, **arguments}

    async def _script(self, job: SlurmJobObject) -> str | PreparationFailure:
        if job.spec.script is not None:
            return job.spec.script
        if job.spec.script_from is None:
            return PreparationFailure(
                reason="ScriptInvalid",
                text="expected spec.script or spec.scriptFrom",
                is_final=True,
            )
        ref = job.spec.script_from.config_map_key_ref
        path = paths.of("api", "v1", "namespaces", job.metadata.namespace, "configmaps", ref.name)
        try:
            body = await self._kube.request("GET", path)
            config_map = msgspec.json.decode(body, type=_ConfigMap)
        except errors.NotFound:
            config_map = _ConfigMap()
        except msgspec.MsgspecError as error:
            return PreparationFailure(reason="ScriptInvalid", text=f"ConfigMap {ref.name}: {error}")
        script = (config_map.data or {}).get(ref.key)
        if script is None:
            return PreparationFailure(
                reason="ScriptMissing",
                text=f"there is no ConfigMap {ref.name} with key {ref.key} in this namespace",
            )
        return script
